"""The plain table: who sees what, in order, with sides."""

from __future__ import annotations

from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.experiments.design.assignment import presentation
from contstim.experiments.platforms.lists import PLATFORM, CsvSettings, export_csv
from contstim.experiments.responses.table import NO_BREAK_SPACE
from contstim.testing.platform import ExportContract, read_csv_rows
from tests.experiments.platforms.hostile import hostile_trials

TRIALS = hostile_trials()


def test_every_participant_sees_what_presentation_says(tmp_path: Path) -> None:
    rows = read_csv_rows(
        export_csv(TRIALS, tmp_path, CsvSettings(3, seed=9)).path / "presentation.csv"
    )
    assert len(rows) == 2 * 3 * 20
    for group in (1, 2):
        for participant in (1, 2, 3):
            theirs = [
                r for r in rows if (r["group"], r["participant"]) == (str(group), str(participant))
            ]
            expected = presentation(TRIALS, group=group, participant=participant, seed=9)
            for row, shown in zip(theirs, expected, strict=True):
                assert row["trial_id"] == shown.trial.trial_id
                assert (row["left"], row["position"]) == (str(shown.left), str(shown.position))
                texts = [*shown.trial.displayed_texts]
                written = [row["left_sentence"], row["right_sentence"]]
                assert [text.removeprefix(NO_BREAK_SPACE) for text in written] == (
                    texts if shown.left == 1 else texts[::-1]
                )
                assert not any(text.startswith(("=", "+", "-", "@")) for text in written)


class TestContract(ExportContract):
    platform = PLATFORM
    list_columns = ("group", "participant")


def test_nobody_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be at least 1, got 0"):
        export_csv(TRIALS, tmp_path, CsvSettings(participants=0))
