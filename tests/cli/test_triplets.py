"""`contstim triplets` as a user runs it; tests/optimization/jobs tests kills and executors."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import Result

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
from tests.cli.running import invoke
from tests.optimization.jobs.studies import seed_of

MODELS = ("--model", "kenlm:2.arpa", "--model", "kenlm:3.arpa")
NAMED = ("--model", "small=kenlm:2.arpa", "--model", "kenlm:3.arpa")
INPUTS = ("--sentences", "natural.txt", "--vocabulary", "vocab.txt", "--per-pair", "2")


def run_triplets(*arguments: str, inputs: tuple[str, ...] = (*MODELS, *INPUTS)) -> Result:
    # One restart unless a test needs more: searches take long
    search_options = ("--frame", "none", "--restarts", "1")
    return invoke("triplets --out t.csv", *inputs, *search_options, *arguments)


def test_triplets_statistics_and_records_are_written(folder: Path) -> None:
    result = run_triplets("--seed", "4", "--restarts", "2")
    assert result.exit_code == 0, result.output
    triplets = read_triplets(folder / "t.csv")
    assert len(triplets) == 2
    record = json.loads((folder / "t.csv.meta.json").read_text())
    assert record["seed"] == 4
    assert record["recipe"] == "default"
    assert record["restarts"] == "at most 2, until 5 in a row gain less than 0.5 nats"
    assert "seconds" not in record["options"]
    assert record["pairs"][0]["searches"] == 2 * 2 * 2
    assert record["models"]["kenlm:3.arpa"]["fingerprint"].startswith("kenlm-")
    mean_nats = sum(t.controversiality for t in triplets) / 2
    assert record["pairs"][0]["controversiality"] == pytest.approx(mean_nats)
    assert f"{mean_nats:.2f}" in result.stdout
    assert {*record["outputs"]} == {"t.csv"}
    # N-gram models have no network
    assert record["time"]["wall_seconds"] > record["time"]["network_seconds"] == 0
    assert "all workers together.\n" in result.stderr
    second_result = run_triplets("--seed", "4", "--restarts", "2", "-q")
    assert second_result.stderr == ""
    # The second run searches nothing
    assert "time" not in json.loads((folder / "t.csv.meta.json").read_text())
    assert read_triplets(folder / "t.csv") == triplets


def test_failed_searches_are_listed_with_status_3(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, failing_sentences = TripletTask.perform, list[Sentence]()

    def perform(task: TripletTask, context: SearchContext) -> object:
        failing_sentences[:] = failing_sentences or [task.natural]
        if task.natural in failing_sentences:
            raise ContstimError("no such luck")
        return original(task, context)

    monkeypatch.setattr(TripletTask, "perform", perform)
    result = run_triplets("-q")
    assert result.exit_code == 3
    assert "failed: kenlm:2.arpa × kenlm:3.arpa, " in result.stderr
    assert "no such luck" in result.stderr
    assert len(read_triplets(folder / "t.csv")) == 1
    monkeypatch.setattr(TripletTask, "perform", original)
    assert run_triplets("-q").exit_code == 0
    assert len(read_triplets(folder / "t.csv")) == 2


@pytest.fixture
def small_vocabulary(folder: Path) -> Path:
    """A vocabulary of the natural sentences' own words, with which some searches find nothing."""
    natural = [Sentence.parse(s) for s in (folder / "natural.txt").read_text().splitlines()]
    inner = dict.fromkeys(word for sentence in natural for word in sentence.words[1:])
    initial = dict.fromkeys(sentence.words[0] for sentence in natural)
    path = folder / "few.txt"
    Vocabulary(tuple(initial), tuple(inner), frozenset()).save(path)
    return path


def test_unsuccessful_searches_are_replaced_or_reported(
    folder: Path, small_vocabulary: Path
) -> None:
    """Witness: `synthesize` in both directions with the three seeds of each job."""
    files = ("--sentences", "natural.txt", "--vocabulary", "few.txt")
    inputs = (*MODELS, *files, "--per-pair", "5")
    result = run_triplets(inputs=inputs)
    assert result.exit_code == 0
    assert "all replaced" in result.stderr
    record = json.loads((folder / "t.csv.meta.json").read_text())
    assert record["pairs"][0]["unchanged"] > 0
    assert len(read_triplets(folder / "t.csv")) == 5
    lines = (folder / "natural.txt").read_text().splitlines(keepends=True)
    study_sentences = {t.natural.text for t in read_triplets(folder / "t.csv")}
    study_sentences |= {entry["natural"] for entry in record["unchanged"]}
    lines_kept = [line for line in lines if Sentence.parse(line).text in study_sentences]
    (folder / "natural.txt").write_text("".join(lines_kept))
    inputs = (*inputs[:-1], str(len(lines_kept)))
    result = run_triplets("--store", "other.sqlite", inputs=inputs)
    assert result.exit_code == 3
    record = json.loads((folder / "t.csv.meta.json").read_text())
    triplets, unchanged = read_triplets(folder / "t.csv"), record["unchanged"]
    n_below_floors = record["pairs"][0]["inadmissible"]
    assert len(triplets) + len(unchanged) + n_below_floors == len(lines_kept)
    assert len(triplets) == record["pairs"][0]["triplets"]
    assert len(unchanged) == record["pairs"][0]["unchanged"] > 0
    assert all(triplet.distinct for triplet in triplets)
    vocabulary = Vocabulary.load(small_vocabulary)
    models = [NgramModel(f"{n}.arpa", name=f"kenlm:{n}.arpa") for n in (2, 3)]
    for item in unchanged[:2]:
        assert f"unchanged: kenlm:2.arpa × kenlm:3.arpa, {item['natural']!r}: " in result.stderr
        assert item["reason"] in result.stderr
        natural = Sentence.parse(item["natural"])
        seed = seed_of(0, models, natural)
        failed_models = [
            reject.name
            for accept, reject in (models[::-1], models)
            if not any(
                synthesize(
                    *(accept, reject, natural, vocabulary),
                    recipe=RECIPES["default"],
                    seed=seed + offset,
                    restarts=SINGLE,
                ).changed
                for offset in range(3)
            )
        ]
        assert failed_models
        assert all(name in item["reason"] for name in failed_models)
    second_result = run_triplets("--store", "other.sqlite", inputs=inputs)
    assert second_result.exit_code == 3
    second_record = json.loads((folder / "t.csv.meta.json").read_text())
    del record["time"]  # the second run has no searches and therefore no times
    for facts in (record, second_record):
        del facts["seconds"], facts["date"]
    assert second_record == record


def test_default_floor_is_recorded_in_nats(folder: Path) -> None:
    """Witness: no natural sentence is below the recorded floors."""
    assert run_triplets("-q", inputs=(*NAMED, *INPUTS)).exit_code == 0
    facts = json.loads((folder / "t.csv.meta.json").read_text())
    assert (facts["plausible"], facts["capitals"]) == (0.25, "rules")
    floors = facts["floors"]
    assert set(floors) == {"small", "kenlm:3.arpa"}
    for triplet in read_triplets(folder / "t.csv"):
        length = str(len(triplet.natural))
        assert triplet.log_prob_natural_model_1 >= floors["small"][length]
        assert triplet.log_prob_natural_model_2 >= floors["kenlm:3.arpa"][length]


@pytest.mark.slow
def test_judge_and_word_options_hold_and_are_recorded(folder: Path) -> None:
    (folder / "unwanted.txt").write_text("is\nwas\n")
    options = ("--judge", "judge=kenlm:1.arpa", "--judge-drop", "2", "--exclude", "unwanted.txt")
    limits = ("--max-changes", "3", "--fix", "0", "--enough", "0.5")
    result = invoke("triplets --out t.csv --frame none", *NAMED, *INPUTS, *options, *limits)
    assert result.exit_code == 0, result.output
    facts = json.loads((folder / "t.csv.meta.json").read_text())
    assert (facts["exclude"], facts["max_changes"], facts["fix"]) == (["is", "was"], 3, ["0"])
    assert facts["judge"]["judge"]["specification"] == "kenlm:1.arpa"
    assert 0 <= facts["judge"]["judge"]["refused_alone"] <= 1
    assert "refused: judge " in result.output
    assert "floors" not in facts
    judge = NgramModel("1.arpa")
    for triplet in read_triplets(folder / "t.csv"):
        for sentence in (triplet.synthetic_1, triplet.synthetic_2):
            pairs = list(zip(triplet.natural.words, sentence.words, strict=True))
            assert pairs[0][0] == pairs[0][1]
            assert sum(old != new for old, new in pairs) <= 3
            scores = judge.log_probs([triplet.natural, sentence])
            assert scores[0] - scores[1] <= 2


def test_store_in_use_is_refused(folder: Path) -> None:
    with (
        Store(folder / "contstim.sqlite"),
        pytest.raises(StoreError, match="in use by another process"),
    ):
        run_triplets("-q")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--per-pair", "30"), "Too few natural sentences.*Give at least 10 more"),
        (("--per-pair", "0"), "1 or more, not 0"),
        (("--recipe", "soup"), "there are default, golan2023"),
        (("--model", "kenlm:2.arpa"), "got several models named"),
        (("--model", "kenlm:none.arpa"), "none.arpa is not an n-gram model"),
        (("--vocabulary", "none.txt"), "Cannot read none.txt"),
        (("--out", "t.txt"), "not a table"),
        (("--judge", "kenlm:1.arpa"), "judge"),
        (("--fix", "xylograph"), "no sentence has the word"),
    ],
)
def test_bad_input_is_one_error(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(ContstimError, match=message):
        run_triplets("-q", *arguments)
    assert not (folder / "t.csv").exists()


def test_single_and_identical_models_are_refused(folder: Path) -> None:
    with pytest.raises(ContstimError, match="Triplets need two models or more"):
        run_triplets("-q", inputs=(*MODELS[:2], *INPUTS))
    shutil.copy(folder / "2.arpa", folder / "copy.arpa")
    with pytest.raises(ContstimError, match="are the same model: they can never disagree"):
        run_triplets("-q", "--model", "kenlm:copy.arpa")


def test_default_vocabulary_is_the_words_of_the_models(folder: Path) -> None:
    result = run_triplets("-q", inputs=(*MODELS, *INPUTS[:2], "--per-pair", "1"))
    assert result.exit_code == 0
    assert len(read_triplets(folder / "t.csv")) == 1


def test_training_sentences_are_reported(
    folder: Path, trained: Path, english: list[Sentence]
) -> None:
    """Witness: sentences taken from the training text itself."""
    vocabulary = Vocabulary.load(folder / "vocab.txt")
    sentences = (s for s in dict.fromkeys(english) if len(s) > 7)
    known_sentences = [s for s in sentences if not vocabulary.missing_words(s)]
    (folder / "natural.txt").write_text("".join(f"{s.text}\n" for s in known_sentences[:9]))
    for n in (2, 3):
        name = f"{n}gram.arpa.sentences.npy"
        shutil.copy(trained / name, folder / f"{n}.arpa.sentences.npy")
    result = run_triplets("--quiet")
    n = len(read_triplets(folder / "t.csv"))
    line = f"warning: {n} of {n} natural sentences (100.0 %) occur in the training text of "
    assert f"{line}kenlm:2.arpa, kenlm:3.arpa" in result.stderr
    record = json.loads((folder / "t.csv.meta.json").read_text())
    assert record["training_text"]["kenlm:3.arpa"]["found"] == n > 0
