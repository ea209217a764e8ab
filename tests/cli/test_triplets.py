"""`contstim triplets` as a user meets it; for kills and executors see tests/optimization/jobs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from contstim.cli.program import app
from contstim.errors import ContstimError, StoreError
from contstim.items.stimuli import read_triplets
from contstim.models.ngram.adapter import NgramModel
from contstim.optimization.jobs.tasks import SearchContext, TripletTask
from contstim.optimization.search.recipes import RECIPES
from contstim.optimization.search.restarts import SINGLE
from contstim.optimization.search.synthesize import synthesize
from contstim.store import Store
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.optimization.jobs.studies import seed_of

MODELS = ("--model", "kenlm:2.arpa", "--model", "kenlm:3.arpa")
NAMED = ("--model", "small=kenlm:2.arpa", "--model", "kenlm:3.arpa")
INPUTS = ("--sentences", "natural.txt", "--vocabulary", "vocab.txt", "--per-pair", "2")


def triplets(*arguments: str, inputs: tuple[str, ...] = (*MODELS, *INPUTS)) -> Result:
    # One search, unless a test asks for more: they take long.
    search = ("--frame", "none", "--restarts", "1")
    command = ["triplets", *inputs, "--out", "t.csv", *search, *arguments]
    return CliRunner().invoke(app, command)


def test_it_writes_triplets_statistics_and_records(folder: Path) -> None:
    done = triplets("--seed", "4", "--restarts", "2")
    assert done.exit_code == 0, done.output
    found = read_triplets(folder / "t.csv")
    assert len(found) == 2
    record = json.loads((folder / "t.csv.meta.json").read_text())
    assert record["seed"] == 4
    assert record["recipe"] == "default"
    assert record["restarts"] == "at most 2, until 5 in a row gain less than 0.5 nats"
    assert "seconds" not in record["options"]
    assert record["pairs"][0]["searches"] == 2 * 2 * 2
    assert record["models"]["kenlm:3.arpa"]["fingerprint"].startswith("kenlm-")
    mean = sum(t.controversiality for t in found) / 2
    assert record["pairs"][0]["controversiality"] == pytest.approx(mean)
    assert f"{mean:.2f}" in done.stdout
    assert {*record["outputs"]} == {"t.csv"}
    # N-gram models have no network
    assert record["time"]["wall_seconds"] > record["time"]["network_seconds"] == 0
    assert "all workers together.\n" in done.stderr
    again = triplets("--seed", "4", "--restarts", "2", "-q")
    assert again.stderr == ""
    # Nothing was searched
    assert "time" not in json.loads((folder / "t.csv.meta.json").read_text())
    assert read_triplets(folder / "t.csv") == found


def test_failures_are_listed_and_the_status_is_3(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine, first = TripletTask.perform, list[Sentence]()

    def perform(task: TripletTask, context: SearchContext) -> object:
        first[:] = first or [task.natural]
        if task.natural in first:
            raise ContstimError("no such luck")
        return genuine(task, context)

    monkeypatch.setattr(TripletTask, "perform", perform)
    done = triplets("-q")
    assert done.exit_code == 3
    assert "failed: kenlm:2.arpa × kenlm:3.arpa, " in done.stderr
    assert "no such luck" in done.stderr
    assert len(read_triplets(folder / "t.csv")) == 1
    monkeypatch.setattr(TripletTask, "perform", genuine)
    assert triplets("-q").exit_code == 0
    assert len(read_triplets(folder / "t.csv")) == 2


@pytest.fixture
def few_words(folder: Path) -> Path:
    """A vocabulary of the natural sentences' own words, with which some searches find nothing."""
    natural = [Sentence.parse(s) for s in (folder / "natural.txt").read_text().splitlines()]
    inner = dict.fromkeys(word for sentence in natural for word in sentence.words[1:])
    initial = dict.fromkeys(sentence.words[0] for sentence in natural)
    path = folder / "few.txt"
    Vocabulary(tuple(initial), tuple(inner), frozenset()).save(path)
    return path


def test_searches_that_find_nothing_are_counted_and_named_where_no_sentence_is_left(
    folder: Path, few_words: Path
) -> None:
    """Witness: `synthesize` in both directions with the three seeds of each job."""
    files = ("--sentences", "natural.txt", "--vocabulary", "few.txt")
    inputs = (*MODELS, *files, "--per-pair", "5")
    done = triplets(inputs=inputs)
    assert done.exit_code == 0
    assert "all replaced" in done.stderr
    record = json.loads((folder / "t.csv.meta.json").read_text())
    assert record["pairs"][0]["replaced"] >= record["pairs"][0]["unchanged"] > 0
    assert len(read_triplets(folder / "t.csv")) == 5
    lines = (folder / "natural.txt").read_text().splitlines(keepends=True)
    of_study = {t.natural.text for t in read_triplets(folder / "t.csv")}
    of_study |= {each["natural"] for each in record["unchanged"]}
    kept = [line for line in lines if Sentence.parse(line).text in of_study]
    (folder / "natural.txt").write_text("".join(kept))
    inputs = (*inputs[:-1], str(len(kept)))
    done = triplets("--store", "other.sqlite", inputs=inputs)
    assert done.exit_code == 3
    record = json.loads((folder / "t.csv.meta.json").read_text())
    found, unchanged = read_triplets(folder / "t.csv"), record["unchanged"]
    n_below_floors = record["pairs"][0]["inadmissible"]
    assert len(found) + len(unchanged) + n_below_floors == len(kept)
    assert len(found) == record["pairs"][0]["triplets"]
    assert len(unchanged) == record["pairs"][0]["unchanged"] > 0
    assert all(triplet.distinct for triplet in found)
    words = Vocabulary.load(few_words)
    models = [NgramModel(f"{n}.arpa", name=f"kenlm:{n}.arpa") for n in (2, 3)]
    for one in unchanged[:2]:
        assert f"unchanged: kenlm:2.arpa × kenlm:3.arpa, {one['natural']!r}: " in done.stderr
        assert one["reason"] in done.stderr
        natural = Sentence.parse(one["natural"])
        seed = seed_of(0, models, natural)
        failed = [
            reject.name
            for accept, reject in (models[::-1], models)
            if not any(
                synthesize(
                    *(accept, reject, natural, words),
                    recipe=RECIPES["default"],
                    seed=seed + more,
                    restarts=SINGLE,
                ).changed
                for more in range(3)
            )
        ]
        assert failed
        assert all(name in one["reason"] for name in failed)
    again = triplets("--store", "other.sqlite", inputs=inputs)
    assert again.exit_code == 3
    repeated = json.loads((folder / "t.csv.meta.json").read_text())
    del record["time"]  # of the searches of a run, of which the second has none
    for each in (record, repeated):
        del each["seconds"], each["date"]
    assert repeated == record


def test_the_default_floor_is_recorded_in_nats(folder: Path) -> None:
    """Witness: no natural sentence below the floors that the record states."""
    assert triplets("-q", inputs=(*NAMED, *INPUTS)).exit_code == 0
    facts = json.loads((folder / "t.csv.meta.json").read_text())
    assert (facts["plausible"], facts["capitals"]) == (0.25, "rules")
    floors = facts["floors"]
    assert set(floors) == {"small", "kenlm:3.arpa"}
    for triplet in read_triplets(folder / "t.csv"):
        length = str(len(triplet.natural))
        assert triplet.log_prob_natural_model_1 >= floors["small"][length]
        assert triplet.log_prob_natural_model_2 >= floors["kenlm:3.arpa"][length]


@pytest.mark.slow
def test_a_judge_and_word_options_hold_and_are_recorded(folder: Path) -> None:
    (folder / "unwanted.txt").write_text("is\nwas\n")
    options = ("--judge", "judge=kenlm:1.arpa", "--judge-drop", "2", "--exclude", "unwanted.txt")
    limits = ("--max-changes", "3", "--fix", "0", "--enough", "0.5")
    command = ("triplets", *NAMED, *INPUTS, "--out", "t.csv", "--frame", "none")
    done = CliRunner().invoke(app, [*command, *options, *limits])
    assert done.exit_code == 0, done.output
    facts = json.loads((folder / "t.csv.meta.json").read_text())
    assert (facts["exclude"], facts["max_changes"], facts["fix"]) == (["is", "was"], 3, ["0"])
    assert facts["judge"]["judge"]["specification"] == "kenlm:1.arpa"
    assert 0 <= facts["judge"]["judge"]["refused_alone"] <= 1
    assert "judge alone refused: judge " in done.output
    assert "floors" not in facts
    judge = NgramModel("1.arpa")
    for triplet in read_triplets(folder / "t.csv"):
        for sentence in (triplet.synthetic_1, triplet.synthetic_2):
            pairs = list(zip(triplet.natural.words, sentence.words, strict=True))
            assert pairs[0][0] == pairs[0][1]
            assert sum(old != new for old, new in pairs) <= 3
            scores = judge.log_probs([triplet.natural, sentence])
            assert scores[0] - scores[1] <= 2


def test_a_store_in_use_is_refused(folder: Path) -> None:
    with Store(folder / "contstim.sqlite"):
        refused = triplets("-q").exception
    assert isinstance(refused, StoreError)
    assert "in use by another process" in str(refused)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--per-pair", "30"), "Too few natural sentences.*Give at least 10 more"),
        (("--per-pair", "0"), "1 or more, not 0"),
        (("--recipe", "soup"), "there are default, golan2023"),
        (("--workers", "2"), "--workers must be 1 for the --executor local"),
        (("--gpus-per-worker", "1"), "the --executor ray"),
        (("--executor", "processes", "--workers", "0"), "workers must be 1 or more"),
        (("--model", "kenlm:2.arpa"), "got several models named"),
        (("--model", "kenlm:none.arpa"), "none.arpa is not an n-gram model"),
        (("--vocabulary", "none.txt"), "Cannot read none.txt"),
        (("--out", "t.txt"), "not a table"),
        (("--judge", "kenlm:1.arpa"), "judge"),
        (("--fix", "xylograph"), "no sentence has the word"),
    ],
)
def test_bad_input_is_one_message(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    done = triplets("-q", *arguments)
    assert isinstance(done.exception, ContstimError), done.output
    with pytest.raises(ContstimError, match=message):
        raise done.exception
    assert not (folder / "t.csv").exists()


def test_one_model_and_identical_models_are_refused_at_once(folder: Path) -> None:
    one = triplets("-q", inputs=(*MODELS[:2], *INPUTS)).exception
    assert "Triplets need two models or more" in str(one)
    shutil.copy(folder / "2.arpa", folder / "copy.arpa")
    same = triplets("-q", "--model", "kenlm:copy.arpa").exception
    assert "are the same model: they can never disagree" in str(same)


def test_without_a_vocabulary_the_words_are_the_models_own(folder: Path) -> None:
    done = triplets("-q", inputs=(*MODELS, *INPUTS[:2], "--per-pair", "1"))
    assert done.exit_code == 0, done.exception
    assert len(read_triplets(folder / "t.csv")) == 1


def test_natural_sentences_that_models_were_trained_on_are_said_to_be(
    folder: Path, trained: Path, english: list[Sentence]
) -> None:
    """Witness: sentences taken from the training text itself."""
    words = Vocabulary.load(folder / "vocab.txt")
    known = [s for s in dict.fromkeys(english) if not words.missing_words(s) and len(s) > 7][:9]
    (folder / "natural.txt").write_text("".join(f"{s.text}\n" for s in known))
    for n in (2, 3):
        name = f"{n}gram.arpa.sentences.npy"
        shutil.copy(trained / name, folder / f"{n}.arpa.sentences.npy")
    done = triplets("--quiet")
    n = len(read_triplets(folder / "t.csv"))
    line = f"warning: {n} of {n} natural sentences (100.0 %) occur in the training text of "
    assert f"{line}kenlm:2.arpa, kenlm:3.arpa" in done.stderr
    record = json.loads((folder / "t.csv.meta.json").read_text())
    assert record["training_text"]["kenlm:3.arpa"]["found"] == n > 0
