"""Pages of review, exports, and answers, made from Python.

Witness of the records: checksums are computed again from the files that they name.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from contstim.errors import InputError
from contstim.experiments.platforms.jspsych.study import PageSettings
from contstim.experiments.reproduce.golan2023_data import Golan2023Reading
from contstim.experiments.responses import read_responses
from contstim.scores import ScoreTable
from contstim.steps.export import export_trials
from contstim.steps.responses import import_responses, simulate_people
from contstim.steps.review import write_review_page
from contstim.steps.settings_files import files_of_settings
from contstim.steps.simulation_settings import SimulationSettings
from contstim.steps.text_settings import ReviewSettings
from contstim.stimuli import write_trials, write_triplets
from tests.experiments.responses.experiment import make_trials
from tests.experiments.stimuli import some_triplets
from tests.steps.records import files_of, record_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """`trials.csv`, and `scores.csv` of their sentences."""
    trials = make_trials()
    write_trials(tmp_path / "trials.csv", trials)
    sentences = tuple(dict.fromkeys(s for t in trials for s in (t.sentence_1, t.sentence_2)))
    scores = -np.random.default_rng(1).uniform(20, 60, (len(sentences), 2))
    ScoreTable(sentences, ("gpt2", "rnn"), scores).write(tmp_path / "scores.csv")
    return tmp_path


def test_a_page_of_review(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    triplets = some_triplets(1)
    write_triplets(folder / "triplets.csv", triplets)
    (folder / "blocked.txt").write_text("machines\n", encoding="utf-8")
    out = folder / "review.html"
    settings = ReviewSettings(blocked=folder / "blocked.txt")
    content = write_review_page(folder / "triplets.csv", out, settings=settings, reviewer="Ann")
    assert [item.item_id for item in content.items] == [each.triplet_id for each in triplets]
    assert out.read_text(encoding="utf-8") == content.html()
    assert files_of(out) == ({"triplets.csv", "blocked.txt"}, {"review.html"})
    # Every triplet has a sentence that begins with the blocked word
    assert record_of(out)["flagged"] == len(triplets)
    assert capsys.readouterr() == ("", "")


def test_answers_of_artificial_people(folder: Path) -> None:
    trials, scores, out = (folder / f"{name}.csv" for name in ("trials", "scores", "responses"))
    settings = SimulationSettings(participants=3, noise=1.0)
    responses = simulate_people(trials, scores, "rnn", out, settings=settings, seed=3)
    assert list(read_responses(out)) == list(responses)
    assert files_of(out) == ({"trials.csv", "scores.csv"}, {"responses.csv"})
    record = record_of(out)
    assert (record["participants"], record["server"], record["browser"]) == (3, None, False)


@pytest.mark.parametrize("platform", ["csv", "pcibex", "psych-ds"])
def test_exports_of_files_tell_what_was_read(folder: Path, platform: str) -> None:
    out = folder / "export"
    exported = export_trials(platform, folder / "trials.csv", out)
    inputs, outputs = files_of(exported.path / "export")
    assert inputs == {"../trials.csv"}
    in_folder = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    hidden = {".psychds-ignore"}
    assert outputs == in_folder - {"export.meta.json"} - hidden
    # Exported again, the folder is still that of the platform
    export_trials(platform, folder / "trials.csv", out)


def test_other_exports_have_their_record_beside_them(folder: Path) -> None:
    exported = export_trials("jatos", folder / "trials.csv", folder / "study")
    inputs, outputs = files_of(exported.path)
    assert inputs == {"../trials.csv"}
    assert outputs == {exported.path.name}


def test_platforms_that_do_not_export_or_read(folder: Path) -> None:
    with pytest.raises(InputError, match="collected is not a platform that trials are exported"):
        export_trials("collected", folder / "trials.csv", folder / "out")
    with pytest.raises(InputError, match="nowhere is not a platform whose data are read"):
        import_responses("nowhere", [folder / "x"], folder / "trials.csv", folder / "r.csv")


def test_files_of_settings() -> None:
    pairs, data, scores = Path("pairs.csv"), Path("data"), Path("scores.csv")
    assert files_of_settings(PageSettings(practice=pairs)) == ([pairs], [])
    assert files_of_settings(Golan2023Reading(data, scores)) == ([data], [scores])
