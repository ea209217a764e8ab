"""Review pages, exports, imports and simulated responses, made from Python.

Witness of the records: checksums computed from the files that the records name.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from typing import Never

import numpy as np
import pytest

from contstim.errors import InputError
from contstim.experiments.design.building import triplet_trials
from contstim.experiments.platforms.platform import Exported
from contstim.experiments.responses.table import read_responses
from contstim.files.tables import columns_of, write_table
from contstim.items.item_flags import FlagKind
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Condition, Trial, Triplet, trial_columns
from contstim.models.loading import Loading
from contstim.models.ngram.training import DiscountWarning, train_ngram
from contstim.steps.platforms import export_step, import_step
from contstim.steps.review import WriteReviewPage, flags_of
from contstim.steps.sentences import FindSentences
from contstim.steps.simulation import SimulateResponses
from contstim.steps.step import Step
from contstim.words.sentence import Sentence
from tests.experiments.responses.experiment import make_trials
from tests.experiments.stimuli import natural, some_triplets
from tests.steps.records import files_of, record_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with `trials.csv` and `scores.csv`, the scores of its sentences."""
    write_trials(tmp_path, make_trials())
    return tmp_path


def write_trials(folder: Path, trials: Sequence[Trial]) -> None:
    write_table(folder / "trials.csv", trial_columns(trials))
    sentences = tuple(dict.fromkeys(s for t in trials for s in (t.sentence_1, t.sentence_2)))
    scores = -np.random.default_rng(1).uniform(20, 60, (len(sentences), 2))
    ScoreTable(sentences, ("gpt2", "rnn"), scores).write(folder / "scores.csv")


def make_export_step(platform: str, folder: Path, out: Path) -> Step[Exported]:
    step = export_step(platform)
    assert step is not None
    return step.of({"trials": folder / "trials.csv", "out": out})


def test_import_of_a_folder_records_unreadable_rows(tmp_path: Path) -> None:
    cases = Path(__file__).parents[1] / "experiments" / "platforms" / "cases"
    text = (cases / "psychopy-standard.csv").read_text(encoding="utf-8-sig")
    data = tmp_path / "data"
    data.mkdir()
    (data / "p01.csv").write_text(text, encoding="utf-8")
    lines = text.replace("p01", "p02").splitlines()[:-1]  # the last row is cut off
    (data / "p02.csv").write_text("\n".join(lines)[:-30], encoding="utf-8")
    (data / "p02.log").write_text("not data", encoding="utf-8")
    step, out = import_step("psychopy"), tmp_path / "responses.tsv"
    assert step is not None
    step.of({"files": (data,), "trials": cases / "trials.csv", "out": out}).run()
    n_rows = len(read_responses(out))
    (unreadable,) = record_of(out)["unreadable_rows"]
    assert unreadable.startswith(f"{data / 'p02.csv'}, line {len(lines)}:")
    assert n_rows == 9 + 7


def test_review_page_and_its_record(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    triplets = some_triplets(1)
    write_table(folder / "triplets.csv", columns_of(Triplet, triplets))
    (folder / "blocked.txt").write_text("machines\n", encoding="utf-8")
    out = folder / "review.html"
    table, blocked = folder / "triplets.csv", folder / "blocked.txt"
    content = WriteReviewPage(table=table, out=out, blocked=blocked, reviewer="Ann").run()
    assert [item.item_id for item in content.items] == [triplet.triplet_id for triplet in triplets]
    assert out.read_text(encoding="utf-8") == content.html()
    assert files_of(out) == ({"triplets.csv", "blocked.txt"}, {"review.html"})
    # Every triplet has a sentence that begins with the blocked word
    assert record_of(out)["flagged"] == len(triplets)
    assert capsys.readouterr() == ("", "")


def test_responses_of_artificial_participants(folder: Path) -> None:
    trials, scores, out = (folder / f"{name}.csv" for name in ("trials", "scores", "responses"))
    responses = SimulateResponses(
        trials=trials, scores=scores, model="rnn", out=out, participants=3, noise=1.0, seed=3
    ).run()
    assert list(read_responses(out)) == list(responses)
    assert files_of(out) == ({"trials.csv", "scores.csv"}, {"responses.csv"})
    record = record_of(out)
    assert (record["participants"], record["server"], record["browser"]) == (3, None, False)


@pytest.mark.parametrize(
    ("n_random", "noise", "warns"), [(9, None, True), (10, None, False), (9, 1.0, False)]
)
def test_noise_calibrated_on_few_pairs_causes_a_warning(
    folder: Path, n_random: int, noise: float | None, warns: bool
) -> None:
    """Witness: the number of random pairs that remain in the table."""
    trials = make_trials(groups=5)
    random_trials = [t for t in trials if t.condition is Condition.RANDOM_NATURAL]
    write_trials(folder, [t for t in trials if t not in random_trials[n_random:]])
    SimulateResponses(
        trials=folder / "trials.csv",
        scores=folder / "scores.csv",
        model="rnn",
        out=folder / "responses.csv",
        participants=2,
        noise=noise,
    ).run()
    warnings = record_of(folder / "responses.csv").get("warnings", [])
    cause = f"calibrated on {n_random} random natural pairs only"
    assert [cause in warning for warning in warnings] == [True] * warns


@pytest.mark.parametrize("platform", ["csv", "pcibex", "psych-ds"])
def test_record_of_an_export_lists_its_files(folder: Path, platform: str) -> None:
    out = folder / "export"
    export = make_export_step(platform, folder, out)
    export.run()
    assert files_of(out) == ({"trials.csv"}, {"export"})
    paths = {path.relative_to(folder).as_posix() for path in out.rglob("*") if path.is_file()}
    unlisted = {"export/export.meta.json", "export/.psychds-ignore"}
    assert set(record_of(out)["files"]) == paths - unlisted
    # A second export may replace the folder of the first
    export.run()


def test_jatos_export_records_editable_texts_as_inputs(folder: Path) -> None:
    make_export_step("jatos", folder, folder / "study").run()
    inputs, outputs = files_of(folder / "study")
    # Texts that the user may edit count as inputs
    names = record_of(folder / "study")["to_edit"]
    texts = {f"study/{name}" for name in names if (folder / "study" / name).is_file()}
    assert inputs == {"trials.csv", *texts}
    assert outputs == {"study"}


def test_platforms_without_export_or_import(folder: Path) -> None:
    assert export_step("collected") is None
    assert import_step("nowhere") is None
    step = import_step("jspsych")
    assert step is not None
    with pytest.raises(InputError, match="Set either `trials`"):
        step.of({"files": (folder / "x",), "out": folder / "r.csv"}).run()


def test_judge_reads_natural_sentences_not_shown_in_trials(tmp_path: Path) -> None:
    (triplet,) = some_triplets(1, ("ngram", "rnn"))
    (trial,) = triplet_trials(triplet, twins=False)
    write_table(tmp_path / "trials.csv", trial_columns([replace(trial, group=1)]))
    with pytest.warns(DiscountWarning):
        train_ngram([*triplet.sentences, *natural(9)], 2, tmp_path / "2.arpa")
    judge, out = (f"kenlm:{tmp_path / '2.arpa'}",), tmp_path / "page.html"
    page = WriteReviewPage(table=tmp_path / "trials.csv", out=out, judge=judge).run()
    assert page.flags is not None
    assert not page.flags.explanations[FlagKind.UNLIKELY].startswith("Not checked")


def test_judges_are_loaded_with_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(_judges: Sequence[str], loading: Loading) -> Never:
        raise InputError(loading.device)

    table, text, out = tmp_path / "triplets.csv", tmp_path / "text.txt", tmp_path / "out"
    write_table(table, columns_of(Triplet, some_triplets(1, ("ngram", "rnn"))))
    text.write_text("The old dog slept in the small house.")
    judge, loading = ("kenlm:1.arpa",), Loading(device="cuda")
    for step in (
        WriteReviewPage(table=table, out=out, judge=judge, loading=loading),
        FindSentences(text=text, out=out, judge=judge, loading=loading),
    ):
        monkeypatch.setattr(f"{type(step).__module__}.load_models", load)
        with pytest.raises(InputError, match="cuda"):
            step.run()


def test_english_rules_flag_no_german_sentences() -> None:
    """German nouns are capitalised and are not names."""
    (triplet,) = some_triplets(1, ("ngram", "rnn"))
    german = replace(
        triplet,
        natural=Sentence.parse("Der alte Hund schläft"),
        synthetic_1=Sentence.parse("Der alte Vogel schläft"),
        synthetic_2=Sentence.parse("Der junge Hund schläft"),
    )
    assert not flags_of([german]).flags


@pytest.mark.parametrize(
    ("platform", "files", "field"),
    [
        ("psychopy", (), "`files` must not be empty"),
        ("psychopy", ("a.csv", "b.csv"), "either `trials`"),
        ("psychopy", ("empty",), "no file ends in"),
        ("collected", ("a.csv", "b.csv"), "`files` must name one file"),
    ],
)
def test_invalid_files_of_an_import_name_the_field(
    tmp_path: Path, platform: str, files: tuple[str, ...], field: str
) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("x\n1\n", encoding="utf-8")
    step = import_step(platform)
    assert step is not None
    with chdir(tmp_path), pytest.raises(InputError, match=field):
        step.of({"files": files, "out": "responses.csv"}).run()
