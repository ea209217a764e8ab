"""After an edit of a study, a run repeats exactly the stages in a table.

The table was written before the first run.
"""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import pytest

from contstim.errors import InputError
from contstim.experiments.responses.questionnaire import QuestionAnswer, read_answers
from contstim.experiments.responses.table import read_responses
from contstim.files.records import Record
from contstim.items.reviews import Decision, Stimulus, undecided_items, write_review
from contstim.items.stimuli import read_pairs, read_trials, read_triplets
from contstim.study.verification import verify_folder
from contstim.testing.platform import read_csv_rows
from tests.study.small import STAGES, change, omit, run, set_reviews

pytestmark = pytest.mark.slow

AFTER_RESPONSES = {"simulate", "analyze"}
AFTER_DESIGN = {"design", "review trials", "score trials", "power", "export csv", *AFTER_RESPONSES}
AFTER_TRIPLETS = {"triplets", "select triplets", "review triplets", *AFTER_DESIGN}
AFTER_SCORES = {"select natural", "review pairs", *AFTER_TRIPLETS}


def edit(*changes: tuple[str, str]) -> Callable[[Path], None]:
    return lambda folder: change(folder, *changes)


def _append(name: str, line: str) -> Callable[[Path], None]:
    def append(folder: Path) -> None:
        with (folder / name).open("a", encoding="utf-8") as file:
            file.write(line)

    return append


def _touch(folder: Path) -> None:
    for path in folder.rglob("*"):
        os.utime(path, (1, 1))


def _delete(name: str) -> Callable[[Path], None]:
    def delete(folder: Path) -> None:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return delete


def _reject_first(
    read: Callable[[Path], Sequence[Stimulus]], table: str, *changes: tuple[str, str]
) -> Callable[[Path], None]:
    """Return a function that rejects the first item of a table and changes the study file."""

    def reject(folder: Path) -> None:
        first, *others = undecided_items(read(folder / "results" / table), "Ann")
        decisions = [replace(first, decision=Decision.REJECT)]
        decisions += [replace(item, decision=Decision.KEEP) for item in others]
        write_review(folder / "review.csv", decisions)
        set_reviews(folder, ["review.csv"])
        change(folder, *changes)

    return reject


def _remove_a_word(folder: Path) -> None:
    """Remove a word of many natural sentences from the vocabulary by hand."""
    path = folder / "results" / "vocabulary.txt"
    lines = path.read_text(encoding="utf-8").split("\n")
    natural = (folder / "results" / "natural.txt").read_text(encoding="utf-8").split()
    word = max((w for w in lines if w.islower()), key=natural.count)
    path.write_text("\n".join(line for line in lines if line != word), encoding="utf-8")


EDITS: dict[str, tuple[Callable[[Path], None], set[str]]] = {
    "nothing": (lambda _folder: None, set()),
    "times of all files": (_touch, set()),
    "the title": (edit(('"Small"', '"Smaller"')), set()),
    "the executor of scores": (
        edit(("[review]", '[score]\nexecutor = "processes"\nworkers = 2\n[review]')),
        set(),
    ),
    "workers of searches": (edit(("max_changes = 2", "max_changes = 2\nworkers = 1")), set()),
    "the training text": (_append("corpus.txt", "The cat and the dog sleep.\n"), {*STAGES}),
    "a natural sentence of another length": (_append("more.txt", "They sleep.\n"), {"sentences"}),
    "the seed": (edit(("seed = 3", "seed = 4")), AFTER_TRIPLETS),
    "more natural pairs": (
        edit(("[select.natural]\nper_pair = 3", "[select.natural]\nper_pair = 6")),
        {"select natural", "review pairs", *AFTER_DESIGN},
    ),
    "more triplets": (edit(("per_pair = 4", "per_pair = 6")), AFTER_TRIPLETS),
    "fewer triplets": (
        edit(("per_pair = 4", "per_pair = 3")),
        {"triplets", "select triplets"},  # the same ones are selected
    ),
    "another objective": (edit(("enough = 1", 'objective = "worst-rank"')), {"select triplets"}),
    "more groups": (edit(("catch_per_group = 1", "catch_per_group = 2")), AFTER_DESIGN),
    "the response scale": (
        edit(("catch_per_group = 1", 'catch_per_group = 1\nscale = "choice"')),
        AFTER_DESIGN,
    ),
    "the limit of rare words": (
        edit(("rare = 3.0", "rare = 3.5")),
        {"review pairs", "review triplets", "review trials"},
    ),
    "more simulations": (edit(("simulations = 4", "simulations = 5")), {"power"}),
    "more participants": (edit(("participants = 12", "participants = 15")), AFTER_RESPONSES),
    "the planned participants": (edit(("participants = 12\n", "")), AFTER_RESPONSES),
    "fewer failures to list": (edit(("worst = 4", "worst = 3")), {"analyze"}),
    "a list for the export": (edit(("[export.csv]", "[export.csv]\nseed = 5")), {"export csv"}),
    "the device of networks": (
        edit(("[vocabulary]", '[loading]\ndevice = "cpu"\n[vocabulary]')),
        {"score sentences", "triplets", "score trials"},
    ),
    "a removed table": (_delete("results/pairs.csv"), {"select natural"}),
    "a removed folder": (_delete("results/analysis"), {"analyze"}),
    "a word of the vocabulary": (_remove_a_word, {"sentences", "score sentences", *AFTER_SCORES}),
    "a rejected pair": (
        _reject_first(read_pairs, "pairs.csv"),
        {"select natural", "select triplets", "review pairs", *AFTER_DESIGN},
    ),
    "a rejected triplet": (
        # With fewer triplets, none remains to select
        _reject_first(read_triplets, "selected.csv", ("per_pair = 4", "per_pair = 8")),
        {"select natural", *AFTER_TRIPLETS},
    ),
    "another model": (
        edit(("[vocabulary]", 'trigram = { train = "ngram", order = 3 }\n[vocabulary]')),
        {"model trigram", "vocabulary", "score sentences", *AFTER_SCORES},
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_edit_repeats_exactly_the_dependent_stages(study: Path, name: str) -> None:
    make_edit, expected = EDITS[name]
    make_edit(study)
    first_run = run(study)
    assert set(first_run.done) == expected
    second_run = run(study)
    assert second_run.done == ()


def test_removed_model_leaves_other_results_unchanged(study: Path) -> None:
    """Results of the other two models equal those before the third model was added."""
    tables = [study / "results" / name for name in ("scores.csv", "pairs.csv", "triplets.csv")]
    contents = [path.read_bytes() for path in tables]
    trigram = 'trigram = { train = "ngram", order = 3 }\n'
    change(study, ("[vocabulary]", f"{trigram}[vocabulary]"))
    run(study)
    assert [path.read_bytes() for path in tables] != contents
    change(study, (trigram, ""))
    last_run = run(study)
    assert not {"model bigram", "model unigram", "sentences"} & {*last_run.done}
    assert [path.read_bytes() for path in tables] == contents


@pytest.mark.parametrize("last", ["sentences", None])
def test_file_edited_by_hand_is_not_overwritten(study: Path, last: str | None) -> None:
    _remove_a_word(study)
    assert run(study, last=last).edited == ("results/vocabulary.txt",)
    change(study, ("min_count = 4", "min_count = 5"))
    with pytest.raises(InputError, match=r"results/vocabulary\.txt: changed by hand after") as exc:
        run(study)
    assert "min count: 4 → 5" in str(exc.value)
    assert "vocabulary" in run(study, overwrite=True, last=last).done
    assert run(study, last=last).edited == ()


def test_user_may_edit_texts_of_the_exported_page(study: Path) -> None:
    """An edited consent text is copied into the page and kept when trials change."""
    omit(study, "review", "power", "simulate", "analyze")
    change(study, ("[export.csv]", "[export.jspsych]"))
    assert run(study).done == ("export jspsych",)
    page = study / "results" / "export" / "jspsych"
    (page / "consent.md").write_text("I agree.\n", encoding="utf-8")
    assert verify_folder(study).wrong == ()
    assert run(study).done == ("export jspsych",)
    assert "I agree." in (page / "study.json").read_text(encoding="utf-8")
    change(study, ("catch_per_group = 1", "catch_per_group = 2"))
    assert "export jspsych" in run(study, last="export").done
    assert (page / "consent.md").read_text(encoding="utf-8") == "I agree.\n"
    assert run(study, last="export").done == ()
    with (page / "experiment.js").open("a", encoding="utf-8") as file:
        file.write("// mine\n")
    assert run(study, last="export").edited == ("results/export/jspsych/experiment.js",)


def test_study_exports_to_jatos_and_imports_results(study: Path) -> None:
    """The archive contains the current texts and title; responses are in the format of JATOS."""
    omit(study, "review", "power", "simulate", "analyze")
    change(study, ("[export.csv]", "[export.jatos]"), ("twins = true", 'scale = "choice"'))
    assert run(study).done[-1] == "export jatos"
    folder = study / "results" / "export" / "jatos"
    (folder / "page" / "consent.md").write_text("I agree.\n", encoding="utf-8")
    change(study, ("[export.jatos]", '[export.jatos]\ntitle = "Other"'))
    assert run(study).done == ("export jatos",)
    (archive,) = folder.glob("*.jzip")
    with ZipFile(archive) as zip_file:
        assert "I agree." in zip_file.read("contstim_other/study.json").decode()
        assert json.loads(zip_file.read("contstim_other.jas"))["data"]["title"] == "Other"
    questions = '[[questions]]\nname = "age"\nwhen = "before"\nkind = "number"\nquestion = "Age?"\n'
    questions += 'question_de = "Alter?"\noptions = "18|99"\n\n[export.jatos]\nlanguage = "de"'
    change(study, ("[export.jatos]", questions))
    assert run(study).done == ("questions", "export jatos")
    content = json.loads((folder / "page" / "study.json").read_text(encoding="utf-8"))
    assert [question["question"] for question in content["questions"]] == ["Alter?"]
    change(study, ('"Age?"', '"How old?"'), ('\nlanguage = "de"', ""))
    assert run(study).done == ("questions", "export jatos")
    page = (study / "index.html").read_text(encoding="utf-8")
    assert page.count(">1 This one<") == page.count(">2 This one<") == 1
    assert "./results/export/jatos/page/consent.md" in page
    trials = read_trials(study / "results" / "trials.csv")
    answer = {"participant": "ann", "left": 1, "rating": 2, "age": 30}
    rows = [answer | {"trial_id": trial.trial_id} for trial in trials if trial.group == 1]
    (study / "jatos.txt").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    toml = study / "study.toml"
    section = '\n[import.jatos]\nfiles = ["jatos.txt"]\nkeep = ["age"]\n'
    toml.write_text(toml.read_text(encoding="utf-8") + section, encoding="utf-8")
    assert run(study).done == ("import jatos",)
    responses = read_responses(study / "results" / "responses.csv", trials)
    assert {r.trial_id for r in responses} == {row["trial_id"] for row in rows}
    assert {r.choice for r in responses} == {2}
    answers = read_answers(study / "results" / "responses.csv.questions.csv")
    assert answers == [QuestionAnswer("ann", "age", "30")]
    assert [file.path for file in verify_folder(study).wrong if "responses" in file.path] == []


def test_killed_rerun_is_repeated(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stage is done neither with the new settings nor with the restored old ones."""
    table = study / "results" / "pairs.csv"
    content = table.read_bytes()
    change(study, ("[select.natural]\nper_pair = 3", "[select.natural]\nper_pair = 6"))

    def interrupt(_record: Record, *, private: bool) -> None:
        del private
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Record, "write", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run(study, last="select natural")
    assert table.read_bytes() != content
    change(study, ("[select.natural]\nper_pair = 6", "[select.natural]\nper_pair = 3"))
    assert run(study, last="select natural").done == ("select natural",)
    assert table.read_bytes() == content
    assert run(study, last="design").done == ()


def test_search_reads_the_excluded_words_of_a_file(study: Path) -> None:
    """A word that is excluded later occurs in no triplet of the next run."""
    (study / "block.txt").write_text("xylophone\n", encoding="utf-8")
    change(study, ("max_changes = 2", 'max_changes = 2\nexclude = ["block.txt"]'))
    assert "triplets" in run(study, last="triplets").done
    triplets = study / "results" / "triplets.csv"
    row = read_csv_rows(triplets)[0]
    new_words = {*row["synthetic_1"].split()} - {*row["natural"].split()}
    word = min(new_words).strip(".").lower()
    (study / "block.txt").write_text(f"{word}\n", encoding="utf-8")
    assert run(study, last="triplets").done == ("triplets",)
    columns = ("synthetic_1", "synthetic_2")
    synthetic = [row[column] for row in read_csv_rows(triplets) for column in columns]
    assert word not in " ".join(synthetic).lower().replace(".", "").split()


def test_run_may_begin_with_and_stop_after_a_stage(study: Path) -> None:
    change(study, ("[select.natural]\nper_pair = 3", "[select.natural]\nper_pair = 6"))
    assert run(study, last="select natural").done == ("select natural",)
    assert run(study, last="review").done[:2] == ("review pairs", "design")
    assert run(study, first="model", last="model").done == ("model bigram", "model unigram")
    with pytest.raises(InputError, match="has no stage 'triplet'"):
        run(study, last="triplet")
