"""Plans of studies, against what a run does, and against numbers worked out by hand."""

import json
import re
import shutil
from contextlib import chdir
from math import comb
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import rankdata, wilcoxon

from contstim.english.words import english_tags
from contstim.errors import InfeasibleError
from contstim.files.files import checksum
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import read_stimuli, read_trials, read_triplets
from contstim.optimization.jobs.queues import search_key
from contstim.steps.training import TrainNetwork
from contstim.steps.triplets import SearchTriplets
from contstim.store.times import Times
from contstim.study import planning, probe
from contstim.study.amounts import StudyNumbers
from contstim.study.planning import StudyPlan, plan_study
from contstim.study.study_file import read_study
from contstim.study.times import TimeEstimates, training_key
from contstim.wording import duration, duration_range
from contstim.words.vocabulary import REPEATABLE_ENGLISH, Vocabulary
from tests.study.small import STAGES, change, leave_out, run

pytestmark = pytest.mark.slow


def plan(folder: Path, **options: object) -> StudyPlan:
    return plan_study(read_study(folder), **options)  # type: ignore[arg-type]


def contents(folder: Path) -> dict[str, str]:
    return {str(path): checksum(path) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def begun(study: Path) -> Path:
    """A study of which nothing is done yet."""
    shutil.rmtree(study / "results")
    return study


def test_numbers_are_those_of_the_run(study: Path) -> None:
    numbers = plan(study, measure=False).numbers
    trials = read_trials(study / "results" / "trials.csv")
    assert numbers.trials == len(trials)
    assert numbers.groups == len({trial.group for trial in trials})
    assert numbers.trials_each == sum(trial.group == 1 for trial in trials)
    natural = set(read_stimuli(study / "results" / "natural.txt"))
    of_trials = {s for trial in trials for s in (trial.sentence_1, trial.sentence_2)}
    assert numbers.new_sentences == len(of_trials - natural)


def test_done_stages_take_no_time(study: Path) -> None:
    planned = plan(study)
    assert [stage.stage for stage in planned.stages] == list(STAGES)
    assert {stage.state for stage in planned.stages} == {"done"}
    assert planned.longest == 0


def test_a_plan_only_measures_and_writes_it(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models that are trained already, and searches between them."""
    monkeypatch.setattr(planning, "_MAX_SECONDS", 300.0)  # also on a busy machine
    (study / "results" / "scores.csv").unlink()
    change(study, ("per_pair = 4", "per_pair = 6"))
    times = study / "results" / "contstim.sqlite.times.json"
    times.unlink()
    before = contents(study)
    with chdir(study.parent):
        planned = plan(Path(study.name))
    assert {path for path in contents(study) if path not in before} == {str(times)}
    assert before.items() <= contents(study).items()
    stages = {stage.stage: stage for stage in planned.stages}
    assert (stages["score sentences"].basis, stages["triplets"].basis) == ("measured", "measured")
    assert "per pair: 4 → 6" in stages["triplets"].because
    assert stages["select triplets"].state == "waits"
    measured = times.read_bytes()
    again = plan(study)
    assert times.read_bytes() == measured  # nothing is measured twice
    assert again.to_frame()["longest"].tolist() == planned.to_frame()["longest"].tolist()
    shutil.rmtree(study / "results")
    planned = plan(study)
    assert not (study / "results").exists()
    assert not planned.unknown
    assert 0 < planned.shortest < planned.longest


def test_searches_in_standard_deviations_are_measured(study: Path) -> None:
    """The unit of `+mean` is nats for each token, so the searches need standard deviations."""
    change(
        study,
        ("order = 1 }", 'order = 1, transform = "mean" }'),
        ("restarts = 1\nmax_changes = 2", "max_changes = 2\nenough = 0.1"),
    )
    planned = plan(study)
    stages = {stage.stage: stage for stage in planned.stages}
    assert stages["triplets"].basis == "measured", planned


def test_a_run_measures_units_of_work(study: Path) -> None:
    """Witness: the tables. A run that takes all from the store measures no further unit."""
    path = study / "results" / "contstim.sqlite.times.json"
    before = json.loads(path.read_text())["times"]
    n_sentences = len(set(read_stimuli(study / "results" / "natural.txt")))
    scored = {name: measured["units"] for name, measured in before.items() if "score " in name}
    assert len(scored) == 2
    assert min(scored.values()) >= n_sentences
    (searched,) = (measured["units"] for name, measured in before.items() if "search " in name)
    assert searched == len(read_triplets(study / "results" / "triplets.csv"))
    run(study, first="triplets")
    after = json.loads(path.read_text())["times"]
    assert {n: m["units"] for n, m in after.items()} == {n: m["units"] for n, m in before.items()}


def test_trainings_are_measured_by_some_steps(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = 'lstm = { train = "lstm", hidden = 8, embedding = 8, epochs = 99, batch_size = 8 }'
    change(begun, ("[vocabulary]", f"{network}\n[vocabulary]"))
    unknown = plan(begun, measure=False)
    assert unknown.unknown == ("model lstm",)
    assert all(bool(stage.reason) == (stage.basis == "unknown") for stage in unknown.stages)
    read, times = read_study(begun), Times(begun / "times.json")
    monkeypatch.setattr(probe, "_TRAINING", 0.05)
    monkeypatch.setattr(
        probe, "print_measurement", lambda key, units, s: times.add(key, units=units, seconds=s)
    )
    with chdir(begun):
        (stage,) = (stage for stage in read.stages if stage.name == "model lstm")
        assert isinstance(stage.step, TrainNetwork)
        probe._probe_training(stage.step, begun)
        estimates = TimeEstimates(read, StudyNumbers(read), 50, times)
        shortest, _, basis, _ = estimates.of_stage(stage)
    assert basis == "measured"
    assert times.get(training_key(stage.step)).units < 0.5  # of all steps
    assert (shortest or 0) > 0.05


def test_a_search_that_is_cut_off_makes_a_range_of_what_is_usual(study: Path) -> None:
    """Witness: by hand. 4 triplets; 3 in 12 s are sure, 1 in 5 s is not, and 0 say too little."""
    read = read_study(study)
    models = tuple(model.specification for model in read.models)
    with chdir(study):
        stages = {stage.name: stage for stage in read.stages}
        step = stages["triplets"].step
        assert isinstance(step, SearchTriplets)
        key = search_key(step.question().resolved, *models)
        ranges = []
        for number, (units, seconds) in enumerate(((3, 12.0), (1, 5.0), (0, 5.0))):
            times = Times(study / f"{number}.json")
            for model in models:
                times.add(f"score {model}", units=1000, seconds=0)
            times.add(key, units=units, seconds=seconds)
            estimates = TimeEstimates(read, StudyNumbers(read), 50, times)
            shortest, longest, *_ = estimates.of_stage(stages["triplets"])
            assert shortest is not None
            assert longest is not None
            ranges.append((shortest, longest))
    assert ranges[0] == pytest.approx((16.0, 16.0))
    assert ranges[1][0] < 20.0 < ranges[1][1]
    assert ranges[2][0] < ranges[2][1]


def test_the_sentences_of_a_text_are_those_that_a_run_finds(study: Path) -> None:
    natural = study / "results" / "natural.txt"
    n_run, n_text = (
        len(set(read_stimuli(natural))),
        len((study / "more.txt").read_text("utf-8").splitlines()),
    )
    supply = plan(study, measure=False).supply
    assert supply is not None
    assert (supply.number, supply.in_text, supply.found_sentences) == (n_run, n_text, None)
    shutil.rmtree(study / "results")
    supply = plan(study, measure=False).supply
    assert supply is not None
    assert supply.found_sentences is not None
    assert (supply.number, supply.in_text, supply.path) == (n_run, n_text, Path("more.txt"))
    assert not supply.may_be_fewer
    lines = [*supply.found_sentences.lines(StudyNumbers(read_study(study)).needs)]
    assert [lines[n].split()[0] for n in (0, -1)] == [f"{n_text:,}", f"{n_run:,}"]
    assert {line.rsplit(": ", 1)[1] for line in lines} == {"enough"}


def told_apart(log_probs: np.ndarray) -> tuple[tuple[str, str, int], ...]:
    """Witness: SciPy's ranks, and a count for each order of the two models."""
    ranks = rankdata(log_probs, axis=0) / len(log_probs)
    below, above = (ranks < 0.5).T, (ranks >= 0.5).T
    return (
        ("bigram", "unigram", int((below[0] & above[1]).sum())),
        ("unigram", "bigram", int((below[1] & above[0]).sum())),
    )


def test_sentences_that_tell_models_apart_are_counted_in_the_scores(study: Path) -> None:
    assert plan(study, measure=False).admissible == ()
    scores = ScoreTable.from_file(study / "results" / "scores.csv").log_probs
    change(study, ("per_pair = 3\n[triplets]", "per_pair = 90\n[triplets]"))
    planned = plan(study, measure=False)
    assert planned.admissible == told_apart(scores)
    least = min(number for *_, number in planned.admissible)
    assert any(f"about {least} natural sentences" in caution for caution in planned.cautions)
    change(study, ("per_pair = 90", "per_pair = 3\nagreeing = true"))
    planned = plan(study, measure=False)
    above = (rankdata(scores, axis=0) >= len(scores) / 2).sum(axis=0).tolist()
    assert [number for *_, number in planned.admissible] == above[::-1]
    # Scores of sentences that a run finds again count nothing
    change(study, ('words = "8"', 'words = "7-9"'))
    assert plan(study, measure=False).admissible == ()


def test_without_measurement_times_are_ranges(begun: Path) -> None:
    planned = plan(begun, measure=False)
    assert not planned.unknown
    assert {stage.basis for stage in planned.stages} == {"usual"}
    frame = planned.to_frame()
    assert list(frame["stage"]) == list(STAGES)
    columns = ["stage", "state", "what", "because", "shortest", "longest", "basis", "reason"]
    assert list(frame.columns) == columns


def test_sentences_that_lack_are_counted(study: Path) -> None:
    natural = read_stimuli(study / "results" / "natural.txt")
    (study / "few.txt").write_text("".join(f"{s.text}\n" for s in natural[:23]))
    leave_out(study, "sentences")
    change(study, ("[triplets]", '[triplets]\nsentences = "few.txt"'))
    planned = plan(study, measure=False)
    # 4 triplets, 2 · 3 of natural pairs, 3 · (2 · 2 + 1) of fillers
    assert planned.numbers.needs is not None
    assert planned.numbers.needs.in_all == 4 + 6 + 15
    assert planned.supply is not None
    assert (planned.supply.number, planned.missing_sentences) == (23, 2)
    assert any("2 more" in caution for caution in planned.cautions)


def test_too_short_a_text_is_told_by_a_plan_and_by_a_run_that_stops(study: Path) -> None:
    """Lines enough, of which few are of eight words."""
    natural = [sentence.text for sentence in read_stimuli(study / "results" / "natural.txt")[:9]]
    longer = [f"Now and then he says so to her again {number}." for number in range(90)]
    (study / "more.txt").write_text("\n".join((*natural, *longer)), "utf-8")
    planned = plan(study, measure=False)
    assert planned.supply is not None
    assert (planned.supply.number, planned.supply.in_text) == (9, 99)
    assert planned.missing_sentences == 25 - 9
    assert any(
        "needs 25 natural" in caution and "more.txt has 9" in caution
        for caution in planned.cautions
    )
    with pytest.raises(InfeasibleError, match=r"needs 25 .*natural.txt has 9: give more"):
        run(study, last="select natural")


def test_a_plan_makes_in_memory_what_stages_before_would_write(begun: Path) -> None:
    change(
        begun,
        ('"corpus.txt"', '"english:400"'),
        ('"more.txt"', '"english:200"'),
        ("[vocabulary]", 'lstm = { train = "lstm" }\n[vocabulary]'),
    )
    supply = plan(begun, measure=False).supply
    assert supply is not None
    assert supply.may_be_fewer  # an LSTM knows no rare words
    assert not (begun / "results").exists()
    change(begun, ('lstm = { train = "lstm" }\n', ""))
    run(begun, last="sentences")
    assert supply.number == len(set(read_stimuli(begun / "results" / "natural.txt")))


@pytest.mark.parametrize("groups", [3, 6])
def test_what_tests_can_show(study: Path, groups: int) -> None:
    change(
        study,
        ("groups = 3", f"groups = {groups}"),
        (
            "per_pair = 3\n[triplets]\nper_pair = 4",
            f"per_pair = {groups}\n[triplets]\nper_pair = 12",
        ),
        ("per_pair = 3\nquantiles", f"per_pair = {groups}\nquantiles"),
    )
    planned = plan(study, measure=False)
    smallest = wilcoxon([1.0 + n for n in range(groups)], method="exact").pvalue
    n_tests = comb(2, 2) + 2  # two models, and each against the ceiling
    # Benjamini and Hochberg: all of them at once are the easiest to find
    if smallest >= 0.05:
        assert f" {n_tests} crossed tests of people and items: " in planned.tests
        assert "no signed-rank test over groups" in planned.tests
    else:
        assert f" {n_tests} tests of {groups} groups" in planned.tests
        assert f"{smallest:.3g}" in planned.tests
    change(study, ("[analyze]", '[analyze]\nunits = "groups"'))
    asked = plan(study, measure=False)
    hopeless = smallest >= 0.05
    assert any("no result can be significant" in caution for caution in asked.cautions) == hopeless


def test_too_few_candidates(study: Path) -> None:
    cautions = " ".join(plan(study, measure=False).cautions)
    assert "3 triplets of each pair of models are selected from 4" in cautions
    change(study, ("per_pair = 4", "per_pair = 6"))
    assert "are selected from" not in " ".join(plan(study, measure=False).cautions)


def test_single_candidate_for_each_that_is_selected(study: Path) -> None:
    change(study, ("per_pair = 4", "per_pair = 3"), ("quantiles = 0", "quantiles = 3"))
    (caution, *_) = plan(study, measure=False).cautions
    assert "the selection fails" in caution


def test_planned_and_simulated_participants_are_one_number(study: Path) -> None:
    """Two in each of three groups by [power], and 12 by [simulate]."""
    (caution,) = (c for c in plan(study, measure=False).cautions if "participants" in c)
    assert "have 6 participants" in caution
    assert "has 12" in caution
    change(study, ("participants = 12\n", ""))
    read = read_study(study)
    with chdir(study):
        (stage,) = (stage for stage in read.stages if stage.name == "simulate")
    options = stage.step.options()
    assert options["participants"] == read.planned_participants == 6
    assert not any("participants" in c for c in plan(study, measure=False).cautions)


def test_a_selection_asks_for_what_its_searches_look_for(study: Path) -> None:
    """Nats and tags of [triplets], unless [select.triplets] names its own or chooses by nats."""
    (study / "tags.csv").write_text("word,tag,count\nthe,AT0,1\n")
    searched = 'frame = "words"\ntags = "tags.csv"\nenough = 3'
    change(study, ('frame = "none"\nrestarts = 1', searched))

    def asked() -> tuple[object, object]:
        with chdir(study):
            (stage,) = (s for s in read_study(study).stages if s.name == "select triplets")
        values = {field.name: value for field, value in stage.step.values()}
        return values["enough"], str(values["tags"])

    assert asked() == (1, "tags.csv")
    change(study, ("enough = 1\n", ""))
    assert asked() == (3, "tags.csv")
    change(study, ("quantiles = 0", 'quantiles = 0\nobjective = "worst-rank"'))
    assert asked() == (None, "tags.csv")


def test_counts_of_model_pairs_are_counted(study: Path) -> None:
    (study / "counts.csv").write_text("model_1,model_2,per_pair\nbigram,unigram,0\n")
    change(study, ("quantiles = 0", 'quantiles = 0\ncounts = "counts.csv"'))
    numbers = plan(study, measure=False).numbers
    assert numbers.selected == 0
    assert numbers.trials == 3 + 3 * (2 + 1)
    change(study, ("per_pair = 4", "per_pair = 1"))
    cautions = " ".join(plan(study, measure=False).cautions)
    assert "2023 study searched" not in cautions


def test_word_cap_without_room(study: Path) -> None:
    """Witness: words that no article or preposition is, counted here."""
    change(
        study,
        ("per_pair = 3\nquantiles = 0", "per_pair = 60\nquantiles = 0\nword_cap = 3"),
        ("per_pair = 4", "per_pair = 60"),
    )
    results = study / "results"
    usual = {word.lower() for word in REPEATABLE_ENGLISH}
    lemma = english_tags().lemma
    text = {w.lower() for w in Vocabulary.load(results / "vocabulary.txt").words} - usual
    words = {lemma(word) for word in text}
    natural = read_stimuli(results / "natural.txt")
    each = [{lemma(w) for w in {w.lower() for w in s.words} - usual} for s in natural]
    a_sentence = sum(map(len, each)) / len(natural)
    # 60 triplets of three sentences, and three sentences for each word
    share = 180 * a_sentence / (3 * len(words))
    cautions = " ".join(plan(study, measure=False).cautions)
    assert share > 1 / 3
    assert "[select.triplets] word_cap" in cautions
    assert f"words that count, {share:.0%} of the" in cautions
    (advised,) = re.findall(r"Raise word_cap to (\d+)", cautions)
    change(study, ("word_cap = 3", f"word_cap = {advised}"))
    assert "[select.triplets] word_cap" not in " ".join(plan(study, measure=False).cautions)


def test_time_of_scores(study: Path) -> None:
    read = read_study(study)
    numbers, times = StudyNumbers(read), Times(study / "times.json")
    for model in read.models:
        times.add(f"load {model.specification}", units=2, seconds=2)
        times.add(f"score {model.specification}", units=30, seconds=3)
    with chdir(study):
        stages = {stage.name: stage for stage in read.stages}
        estimates = TimeEstimates(read, numbers, 50, times)
        natural, trials = (
            estimates.of_stage(stages[n]) for n in ("score sentences", "score trials")
        )
    assert natural[:2] == pytest.approx((12.0, 12.0))  # 2 * (1 + 50 * 0.1)
    assert trials[1] == pytest.approx(2 * (1 + numbers.new_sentences * 0.1))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.0 s"),
        (9.9, "9.9 s"),
        (40.2, "40 s"),
        (150.0, "2.5 min"),
        (3_000.0, "50 min"),
        (12_600.0, "3.5 h"),
        (259_200.0, "3.0 days"),
    ],
)
def test_durations_in_words(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("shortest", "longest", "text"),
    [
        (480, 1_800, "8.0 to 30 min"),
        (50, 1_800, "50 s to 30 min"),
        (100, 110, "about 1.7 min"),
        (0, 4, "about 4.0 s"),
    ],
)
def test_ranges_in_words(shortest: float, longest: float, text: str) -> None:
    assert duration_range(shortest, longest) == text
