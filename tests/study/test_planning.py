"""Plans of studies, compared with runs and with numbers computed by hand."""

import json
import re
import shutil
from collections.abc import Iterable
from contextlib import chdir
from math import comb
from pathlib import Path
from statistics import fmean

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
from contstim.study.amounts import NaturalSupply, StudyNumbers
from contstim.study.planning import StudyPlan, plan_study
from contstim.study.study_file import read_study
from contstim.study.times import TimeEstimates, training_key
from contstim.wording import duration, duration_range
from contstim.words.vocabulary import REPEATABLE_ENGLISH, Vocabulary
from tests.cli.running import run as contstim
from tests.study.small import STAGES, change, omit, run

pytestmark = pytest.mark.slow


def plan(folder: Path, **options: object) -> StudyPlan:
    return plan_study(read_study(folder), **options)  # type: ignore[arg-type]


def estimate(folder: Path) -> StudyPlan:
    """Plan without measuring times."""
    return plan(folder, measure=False)


def join_cautions(folder: Path) -> str:
    return " ".join(estimate(folder).cautions)


def read_supply(folder: Path) -> NaturalSupply:
    supply = estimate(folder).supply
    assert supply is not None
    return supply


def file_checksums(folder: Path) -> dict[str, str]:
    return {str(path): checksum(path) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def new_study(study: Path) -> Path:
    """A study without results."""
    shutil.rmtree(study / "results")
    return study


def test_planned_numbers_equal_those_of_the_run(study: Path) -> None:
    numbers = estimate(study).numbers
    trials = read_trials(study / "results" / "trials.csv")
    assert numbers.trials == len(trials)
    assert numbers.groups == len({trial.group for trial in trials})
    assert numbers.trials_each == sum(trial.group == 1 for trial in trials)
    natural = set(read_stimuli(study / "results" / "natural.txt"))
    sentences = {s for trial in trials for s in (trial.sentence_1, trial.sentence_2)}
    assert numbers.new_sentences == len(sentences - natural)


def test_done_stages_need_no_time(study: Path) -> None:
    planned = plan(study)
    assert [stage.stage for stage in planned.stages] == list(STAGES)
    assert {stage.state for stage in planned.stages} == {"done"}
    assert planned.longest == 0


def test_plan_only_writes_measured_times(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models are trained already; scoring and searches are measured."""
    monkeypatch.setattr(planning, "_MAX_SECONDS", 300.0)  # also on a busy machine
    (study / "results" / "scores.csv").unlink()
    change(study, ("per_pair = 4", "per_pair = 6"))
    times = study / "results" / "contstim.sqlite.times.json"
    times.unlink()
    checksums = file_checksums(study)
    with chdir(study.parent):
        planned = plan(Path(study.name))
    assert {path for path in file_checksums(study) if path not in checksums} == {str(times)}
    assert checksums.items() <= file_checksums(study).items()
    stages = {stage.stage: stage for stage in planned.stages}
    assert (stages["score sentences"].basis, stages["triplets"].basis) == ("measured", "measured")
    assert "per pair: 4 → 6" in stages["triplets"].because
    assert stages["select triplets"].state == "waits"
    content = times.read_bytes()
    second_plan = plan(study)
    assert times.read_bytes() == content  # no unit is measured twice
    assert second_plan.to_frame()["longest"].tolist() == planned.to_frame()["longest"].tolist()
    shutil.rmtree(study / "results")
    planned = plan(study)
    assert not (study / "results").exists()
    assert not planned.unknown
    assert 0 < planned.shortest < planned.longest


def test_searches_in_standard_deviations_are_measured(study: Path) -> None:
    """`+mean` gives nats per token, so the searches need standard deviations."""
    change(
        study,
        ("order = 1 }", 'order = 1, transform = "mean" }'),
        ("restarts = 1\nmax_changes = 2", "max_changes = 2\nenough = 0.1"),
    )
    planned = plan(study)
    stages = {stage.stage: stage for stage in planned.stages}
    assert stages["triplets"].basis == "measured", planned


def test_run_records_units_of_work(study: Path) -> None:
    """Witness: the tables. A run that uses only the store records no further unit."""
    path = study / "results" / "contstim.sqlite.times.json"
    old = json.loads(path.read_text())["times"]
    n_sentences = len(set(read_stimuli(study / "results" / "natural.txt")))
    scored_units = {name: entry["units"] for name, entry in old.items() if "score " in name}
    assert len(scored_units) == 2
    assert min(scored_units.values()) >= n_sentences
    (searched_units,) = (entry["units"] for name, entry in old.items() if "search " in name)
    assert searched_units == len(read_triplets(study / "results" / "triplets.csv"))
    run(study, first="triplets")
    new = json.loads(path.read_text())["times"]
    assert {n: m["units"] for n, m in new.items()} == {n: m["units"] for n, m in old.items()}


def test_training_times_are_measured(new_study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = 'lstm = { train = "lstm", hidden = 8, embedding = 8, epochs = 99, batch_size = 8 }'
    change(new_study, ("[vocabulary]", f"{network}\n[vocabulary]"))
    unmeasured = estimate(new_study)
    assert unmeasured.unknown == ("model lstm",)
    assert all(bool(stage.reason) == (stage.basis == "unknown") for stage in unmeasured.stages)
    parsed, times = read_study(new_study), Times(new_study / "times.json")
    monkeypatch.setattr(probe, "_TRAINING", 0.05)
    monkeypatch.setattr(
        probe, "print_measurement", lambda key, units, s: times.add(key, units=units, seconds=s)
    )
    with chdir(new_study):
        (stage,) = (stage for stage in parsed.stages if stage.name == "model lstm")
        assert isinstance(stage.step, TrainNetwork)
        probe._probe_training(stage.step, new_study)
        estimates = TimeEstimates(parsed, StudyNumbers(parsed), 50, times)
        shortest, _, basis, _ = estimates.of_stage(stage)
    assert basis == "measured"
    assert times.get(training_key(stage.step)).units < 0.5  # of all steps
    assert (shortest or 0) > 0.05


def test_times_of_incomplete_searches_are_ranges(study: Path) -> None:
    """By hand, for 4 triplets: 3 in 12 s are sufficient; 1 or none in 5 s gives a range."""
    parsed = read_study(study)
    models = tuple(model.specification for model in parsed.models)
    with chdir(study):
        stages = {stage.name: stage for stage in parsed.stages}
        step = stages["triplets"].step
        assert isinstance(step, SearchTriplets)
        key = search_key(step.question().resolved, *models)
        ranges = []
        for number, (units, seconds) in enumerate(((3, 12.0), (1, 5.0), (0, 5.0))):
            times = Times(study / f"{number}.json")
            for model in models:
                times.add(f"score {model}", units=1000, seconds=0)
            times.add(key, units=units, seconds=seconds)
            estimates = TimeEstimates(parsed, StudyNumbers(parsed), 50, times)
            ranges.append([seconds or 0 for seconds in estimates.of_stage(stages["triplets"])[:2]])
    assert ranges[0] == pytest.approx([16.0, 16.0])
    assert 0 < ranges[1][0] < 20.0 < ranges[1][1]
    assert 0 < ranges[2][0] < ranges[2][1]


def test_planned_sentences_equal_those_of_the_run(study: Path) -> None:
    n_run = len(set(read_stimuli(study / "results" / "natural.txt")))
    n_text = len((study / "more.txt").read_text("utf-8").splitlines())
    supply = read_supply(study)
    assert (supply.number, supply.in_text, supply.found_sentences) == (n_run, n_text, None)
    shutil.rmtree(study / "results")
    supply = read_supply(study)
    assert supply.found_sentences is not None
    assert (supply.number, supply.in_text, supply.path) == (n_run, n_text, Path("more.txt"))
    assert not supply.may_be_fewer
    lines = [*supply.found_sentences.lines(StudyNumbers(read_study(study)).needed_sentences)]
    assert [lines[n].split()[0] for n in (0, -1)] == [f"{n_text:,}", f"{n_run:,}"]
    assert {line.rsplit(": ", 1)[1] for line in lines} == {"enough"}


def count_disagreements(log_probs: np.ndarray) -> tuple[tuple[str, str, int], ...]:
    """Witness: SciPy's ranks, and a count for each order of the two models."""
    ranks = rankdata(log_probs, axis=0) / len(log_probs)
    below, above = (ranks < 0.5).T, (ranks >= 0.5).T
    return (
        ("bigram", "unigram", int((below[0] & above[1]).sum())),
        ("unigram", "bigram", int((below[1] & above[0]).sum())),
    )


def test_disagreements_are_counted_in_the_scores(study: Path) -> None:
    assert estimate(study).admissible == ()
    scores = ScoreTable.from_file(study / "results" / "scores.csv").log_probs
    change(study, ("per_pair = 3\n[triplets]", "per_pair = 90\n[triplets]"))
    planned = estimate(study)
    assert planned.admissible == count_disagreements(scores)
    smallest = min(number for *_, number in planned.admissible)
    assert any(f"about {smallest} natural sentences" in caution for caution in planned.cautions)
    change(study, ("per_pair = 90", "per_pair = 3\nagreeing = true"))
    planned = estimate(study)
    counts_above = (rankdata(scores, axis=0) >= len(scores) / 2).sum(axis=0).tolist()
    assert [number for *_, number in planned.admissible] == counts_above[::-1]
    # Old scores do not count if a run would select other sentences
    change(study, ('words = "8"', 'words = "7-9"'))
    assert estimate(study).admissible == ()


def test_without_measurement_times_are_ranges(new_study: Path) -> None:
    planned = estimate(new_study)
    assert not planned.unknown
    assert {stage.basis for stage in planned.stages} == {"usual"}
    frame = planned.to_frame()
    assert list(frame["stage"]) == list(STAGES)
    columns = "stage state what because shortest longest basis reason"
    assert list(frame.columns) == columns.split()


def test_missing_sentences_are_counted(study: Path) -> None:
    natural = read_stimuli(study / "results" / "natural.txt")
    (study / "few.txt").write_text("".join(f"{s.text}\n" for s in natural[:23]))
    omit(study, "sentences")
    change(study, ("[triplets]", '[triplets]\nsentences = "few.txt"'))
    planned = estimate(study)
    # 4 triplets, 2 · 3 of natural pairs, 3 · (2 · 2 + 1) of fillers
    assert planned.numbers.needed_sentences == 4 + 6 + 15
    assert planned.supply is not None
    assert (planned.supply.number, planned.missing_sentences) == (23, 2)
    assert any("2 more" in caution for caution in planned.cautions)


def test_plan_and_run_report_a_text_that_is_too_short(study: Path) -> None:
    """The text has enough lines, but few of them have eight words."""
    texts = [sentence.text for sentence in read_stimuli(study / "results" / "natural.txt")[:9]]
    long_texts = [f"Now and then he says so to her again {number}." for number in range(90)]
    (study / "more.txt").write_text("\n".join((*texts, *long_texts)), "utf-8")
    planned = estimate(study)
    assert planned.supply is not None
    assert (planned.supply.number, planned.supply.in_text) == (9, 99)
    assert planned.missing_sentences == 25 - 9
    assert re.search("needs 25 natural.*more.txt has 9", " ".join(planned.cautions))
    with pytest.raises(InfeasibleError, match=r"needs 25 .*natural.txt has 9: give more"):
        run(study, last="select natural")


def test_plan_generates_inputs_in_memory(new_study: Path) -> None:
    change(
        new_study,
        ('"corpus.txt"', '"english:400"'),
        ('"more.txt"', '"english:200"'),
        ("[vocabulary]", 'lstm = { train = "lstm" }\n[vocabulary]'),
    )
    supply = read_supply(new_study)
    assert supply.may_be_fewer  # an LSTM does not know rare words
    assert not (new_study / "results").exists()
    change(new_study, ('lstm = { train = "lstm" }\n', ""))
    run(new_study, last="sentences")
    assert supply.number == len(set(read_stimuli(new_study / "results" / "natural.txt")))


@pytest.mark.parametrize("groups", [3, 6])
def test_smallest_p_value_of_planned_tests(study: Path, groups: int) -> None:
    change(
        study,
        ("groups = 3", f"groups = {groups}"),
        ("per_pair = 3\n[triplets]", f"per_pair = {groups}\n[triplets]"),
        ("per_pair = 4", "per_pair = 12"),
        ("per_pair = 3\nquantiles", f"per_pair = {groups}\nquantiles"),
    )
    planned = estimate(study)
    smallest_p = wilcoxon([1.0 + n for n in range(groups)], method="exact").pvalue
    n_tests = comb(2, 2) + 2  # two models, and each against the ceiling
    # Benjamini and Hochberg: significance is easiest if all tests are significant
    futile = smallest_p >= 0.05
    if futile:
        assert f" {n_tests} crossed tests of participants and items: " in planned.tests
        assert "no signed-rank test over groups" in planned.tests
    else:
        assert f" {n_tests} tests of {groups} groups" in planned.tests
        assert f"{smallest_p:.3g}" in planned.tests
    change(study, ("[analyze]", '[analyze]\nunits = "groups"'))
    assert ("no result can be significant" in join_cautions(study)) == futile


def test_plan_warns_of_too_few_candidates(study: Path) -> None:
    assert "3 triplets of each pair of models are selected from 4" in join_cautions(study)
    change(study, ("per_pair = 4", "per_pair = 6"))
    assert "are selected from" not in join_cautions(study)
    change(study, ("per_pair = 6", "per_pair = 3"), ("quantiles = 0", "quantiles = 3"))
    assert "the selection fails" in join_cautions(study)


def test_plan_warns_if_participant_numbers_differ(study: Path) -> None:
    """[power] has two participants in each of three groups, [simulate] has 12 in total."""
    (caution,) = (c for c in estimate(study).cautions if "participants" in c)
    assert "have 6 participants" in caution
    assert "has 12" in caution
    change(study, ("participants = 12\n", ""))
    parsed = read_study(study)
    with chdir(study):
        (stage,) = (stage for stage in parsed.stages if stage.name == "simulate")
    options = stage.step.options()
    assert options["participants"] == parsed.planned_participants == 6
    assert "participants" not in join_cautions(study)


def test_selection_inherits_rules_of_the_search(study: Path) -> None:
    """Nats and tags are those of [triplets], unless [select.triplets] sets other rules."""
    (study / "tags.csv").write_text("word,tag,count\nthe,AT0,1\n")
    search_rules = 'frame = "words"\ntags = "tags.csv"\nenough = 3'
    change(study, ('frame = "none"\nrestarts = 1', search_rules))

    def read_rules() -> tuple[object, object]:
        with chdir(study):
            (stage,) = (s for s in read_study(study).stages if s.name == "select triplets")
        values = {field.name: value for field, value in stage.step.values()}
        return values["enough"], str(values["tags"])

    assert read_rules() == (1, "tags.csv")
    change(study, ("enough = 1\n", ""))
    assert read_rules() == (3, "tags.csv")
    change(study, ("quantiles = 0", 'quantiles = 0\nobjective = "worst-rank"'))
    assert read_rules() == (None, "tags.csv")


def test_plan_uses_counts_of_model_pairs(study: Path) -> None:
    (study / "counts.csv").write_text("model_1,model_2,per_pair\nbigram,unigram,0\n")
    change(study, ("quantiles = 0", 'quantiles = 0\ncounts = "counts.csv"'))
    numbers = estimate(study).numbers
    assert numbers.selected == 0
    assert numbers.trials == 3 + 3 * (2 + 1)
    change(study, ("per_pair = 4", "per_pair = 1"))
    assert "2023 study searched" not in join_cautions(study)


def test_plan_suggests_a_feasible_word_cap(study: Path) -> None:
    """Witness: words except articles and prepositions, counted here."""
    change(
        study,
        ("per_pair = 3\nquantiles = 0", "per_pair = 60\nquantiles = 0\nword_cap = 3"),
        ("per_pair = 4", "per_pair = 60"),
    )

    def lemmas(words: Iterable[str]) -> set[str]:
        repeatable = {word.lower() for word in REPEATABLE_ENGLISH}
        return {*map(english_tags().lemma, {word.lower() for word in words} - repeatable)}

    n_words = len(lemmas(Vocabulary.load(study / "results" / "vocabulary.txt").words))
    natural = read_stimuli(study / "results" / "natural.txt")
    # 60 triplets of three sentences, and three sentences for each word
    share = 180 * fmean(len(lemmas(sentence.words)) for sentence in natural) / (3 * n_words)
    cautions = join_cautions(study)
    assert share > 1 / 3
    assert "[select.triplets] word_cap" in cautions
    assert f"capped words. This is {share:.0%} of the maximum" in cautions
    (suggested_cap,) = re.findall(r"Raise word_cap to (\d+)", cautions)
    change(study, ("word_cap = 3", f"word_cap = {suggested_cap}"))
    assert "[select.triplets] word_cap" not in join_cautions(study)


def test_scoring_time_is_estimated_from_units(study: Path) -> None:
    parsed = read_study(study)
    numbers, times = StudyNumbers(parsed), Times(study / "times.json")
    for model in parsed.models:
        times.add(f"load {model.specification}", units=2, seconds=2)
        times.add(f"score {model.specification}", units=30, seconds=3)
    with chdir(study):
        stages = {stage.name: stage for stage in parsed.stages}
        estimates = TimeEstimates(parsed, numbers, 50, times)
        natural_times, trial_times = (
            estimates.of_stage(stages[n]) for n in ("score sentences", "score trials")
        )
    assert natural_times[:2] == pytest.approx((12.0, 12.0))  # 2 * (1 + 50 * 0.1)
    assert trial_times[1] == pytest.approx(2 * (1 + numbers.new_sentences * 0.1))


def test_plan_counts_a_judge_of_natural_sentences(study: Path) -> None:
    number = read_supply(study).number
    shutil.rmtree(study / "results")
    path = study / "study.toml"
    path.write_text(f'judge = "hf:judge"\n{path.read_text("utf-8")}', "utf-8")
    assert read_supply(study).number == -(-number // 2)
    parsed, times = read_study(study), Times(study / "times.json")
    with chdir(study):
        (stage,) = (stage for stage in parsed.stages if stage.name == "sentences")
        estimates = TimeEstimates(parsed, StudyNumbers(parsed), 50, times)
        assert estimates.of_stage(stage)[2] == "unknown"
        times.add("score hf:judge", units=30, seconds=3)
        shortest, longest, *_ = estimates.of_stage(stage)
    assert shortest is not None
    assert longest is not None
    assert 10 < shortest < longest < 20  # 100 sentences, and a few seconds for other work


def test_text_of_durations() -> None:
    seconds = (0.0, 9.9, 40.2, 150.0, 3_000.0, 12_600.0, 259_200.0)
    texts = ["0.0 s", "9.9 s", "40 s", "2.5 min", "50 min", "3.5 h", "3.0 days"]
    assert [*map(duration, seconds)] == texts
    assert duration_range(480, 1_800) == "8.0 to 30 min"
    assert duration_range(50, 1_800) == "50 s to 30 min"
    assert duration_range(100, 110) == "about 1.7 min"
    assert duration_range(0, 4) == "about 4.0 s"


def test_plan_prints_its_numbers(new_study: Path) -> None:
    planned = estimate(new_study)
    output = contstim(new_study, "plan --no-measure").stdout
    assert all(stage in output for stage in STAGES)
    assert "contstim run --until model" in output
    needed, needed_by_use = planned.numbers.sentence_needs
    for row in (*needed_by_use, ("in all", 1, needed, needed)):
        assert re.search(
            r"\D+".join(f"{cell:,}" if cell != row[0] else row[0] for cell in row), output
        )
    assert planned.supply is not None
    assert f"{planned.supply.number:,} natural sentences" in output
    assert f"{planned.numbers.trials:,} trials for" in output
    assert planned.tests in output


def test_plan_of_a_finished_study_needs_no_better_estimate(study: Path) -> None:
    output = contstim(study, "plan --no-measure").stdout
    assert set(re.findall(r"\b(?:done|waits|to do)\b", output)) == {"done"}
    assert "better estimate" not in output
