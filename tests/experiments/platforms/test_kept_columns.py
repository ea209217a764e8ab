"""Columns about people of every platform's data, kept on request."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from contstim.errors import InputError
from contstim.experiments.responses.alignment import kept_columns
from contstim.experiments.responses.questionnaire import QuestionAnswer
from contstim.testing.platform import TRIALS
from tests.experiments.platforms import (
    test_gorilla,
    test_jspsych_reading,
    test_pcibex,
    test_psychopy,
    test_qualtrics,
)

COLUMNS = {  # that name the participant
    test_pcibex: "participant",
    test_psychopy: "participant",
    test_gorilla: "Participant Private ID",
    test_qualtrics: "ResponseId",
    test_jspsych_reading: "participant",
}


@pytest.mark.parametrize("module", COLUMNS, ids=lambda module: module.PLATFORM.name)
def test_columns_about_people_are_kept_on_request(module: ModuleType, tmp_path: Path) -> None:
    contract, column = module.TestContract(), COLUMNS[module]
    files, _ = contract.collect(tmp_path)
    imported = contract.read_export(files, TRIALS, tmp_path / "out")
    people = dict.fromkeys(response.participant for response in imported.responses)
    assert len(people) > 1
    assert kept_columns(imported, [column]) == [
        QuestionAnswer(name, column, name) for name in people
    ]
    with pytest.raises(InputError, match=r"got shoe size\. The columns are"):
        kept_columns(imported, [column, "shoe size"])
