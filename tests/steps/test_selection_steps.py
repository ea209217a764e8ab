"""Steps that select stimuli and design trials, called from Python.

Witness of the records: the files of the folder. Inputs are the files before the step; outputs are
the new files, except the record.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contstim.errors import InputError
from contstim.experiments.design.building import pair_trial
from contstim.files.tables import columns_of, write_table
from contstim.items.minimal_pair_scores import MinimalPairScores, SentencePair
from contstim.items.reviews import Decision, undecided_items, write_review
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import (
    Condition,
    Pair,
    Triplet,
    read_controversial_minimal_pairs,
    read_pairs,
    read_trials,
    read_triplets,
)
from contstim.optimization.selection.question import (
    MinimalPairQuestion,
    NaturalRules,
    Objective,
    TripletRules,
)
from contstim.reporter import SILENT, forwarding
from contstim.reporting.report import Table
from contstim.steps.design import MakeDesign
from contstim.steps.selection import SelectMinimalPairs, SelectPairs, SelectTriplets
from contstim.steps.simulation import SimulatePower
from contstim.words.sentence import Sentence
from tests.experiments.stimuli import MODELS, some_pairs, some_triplets
from tests.optimization.selection.tables import random_table
from tests.steps.records import files_of, record_of

NO_FILLERS: dict[str, Any] = {"groups": 2, "random_per_group": 0, "catch_per_group": 0}
FEW: dict[str, Any] = {"participants": 2, "simulations": 3}


def file_names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def assert_complete_record(out: Path, inputs: set[str]) -> None:
    outputs = file_names(out.parent) - inputs - {f"{out.name}.meta.json"}
    assert files_of(out) == (inputs, outputs)


def write_scores_of_trials(path: Path) -> None:
    """Write random scores of all sentences in the pairs below."""
    sides = [s for pair in some_pairs(4) for s in (pair.sentence_1, pair.sentence_2)]
    sentences = tuple(s if isinstance(s, Sentence) else Sentence.parse(str(s)) for s in sides)
    values = np.random.default_rng(0).normal(-40, 5, (len(sentences), len(MODELS)))
    ScoreTable(sentences, MODELS, values).write(path)


def test_pair_selection_and_its_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores, exclude, out = (tmp_path / name for name in ("s.csv", "old.txt", "pairs.csv"))
    table = random_table()
    table.write(scores)
    assert table.sentences is not None
    exclude.write_text(f"{table.sentences[0].text}\n")
    inputs = file_names(tmp_path)
    settings = NaturalRules(per_pair=2)
    selection = SelectPairs(scores=scores, out=out, settings=settings, exclude=(exclude,)).run()
    assert [pair.trial_id for pair in read_pairs(out)] == [p.trial_id for p in selection.pairs]
    assert len(selection.pairs) == 3 * 2
    assert_complete_record(out, inputs)
    assert capsys.readouterr() == ("", "")


def test_pairs_of_question_and_statement_are_reported(tmp_path: Path) -> None:
    """Witness: end marks in the output table; every third sentence is a question."""
    table, out = random_table(), tmp_path / "pairs.csv"
    sentences = [replace(s, end="?.."[n % 3]) for n, s in enumerate(table.sentences or ())]
    replace(table, sentences=tuple(sentences)).write(tmp_path / "s.csv")
    settings = NaturalRules(per_pair=3, same_length=True, agreeing=True)
    messages: list[str] = []
    select = SelectPairs(scores=tmp_path / "s.csv", out=out, settings=settings)
    select.run(forwarding(SILENT, say=messages.append))
    ends = [{str(p.sentence_1)[-1], str(p.sentence_2)[-1]} for p in read_pairs(out)]
    mixed = ends.count({"?", "."})
    assert 0 < mixed < 9
    assert f"In {mixed} of 9 pairs a question is paired with a statement" in " ".join(messages)


def test_selection_and_its_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    candidates, out = tmp_path / "t.csv", tmp_path / "chosen.csv"
    write_table(candidates, columns_of(Triplet, some_triplets(4)))
    inputs = file_names(tmp_path)
    settings = TripletRules(per_pair=2, quantiles=1)
    selection = SelectTriplets(triplets=candidates, out=out, settings=settings).run()
    assert len(read_triplets(out)) == len(selection.triplets) > 0
    assert_complete_record(out, inputs)
    assert capsys.readouterr() == ("", "")
    with pytest.raises(InputError, match="`uncapped` needs `word_cap`"):
        SelectTriplets(triplets=candidates, out=out, uncapped=candidates).run()


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        ("controversiality", "less often than a random selection"),
        ("worst-rank", "prefers triplets with large drops in nats"),
    ],
)
def test_warning_quotes_objective(tmp_path: Path, objective: Objective, expected: str) -> None:
    """Witness: the table in docs/design.md, which has figures for `controversiality` only."""
    write_table(tmp_path / "t.csv", columns_of(Triplet, some_triplets(2)))
    settings = TripletRules(per_pair=1, quantiles=1, objective=objective)
    SelectTriplets(triplets=tmp_path / "t.csv", out=tmp_path / "o.csv", settings=settings).run()
    (warning,) = record_of(tmp_path / "o.csv")["warnings"]
    assert expected in warning
    assert (".66 against .85" in warning) is (objective == "controversiality")


@pytest.fixture
def blank_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace figures by empty files; other tests check figures of designs and power."""
    for step in ("design", "simulation"):
        monkeypatch.setattr(f"contstim.steps.{step}.write_figure", lambda _make, path: path.touch())


@pytest.mark.usefixtures("blank_figures")
def test_summary_uses_the_threshold_of_the_selection(tmp_path: Path) -> None:
    triplets, out = tmp_path / "t.csv", tmp_path / "trials.csv"
    write_table(triplets, columns_of(Triplet, some_triplets(4)))
    MakeDesign(out=out, triplets=triplets, **NO_FILLERS).run()
    text = Path(f"{out}.summary.md").read_text()
    assert "smaller drop in log-probability, nats" in text
    assert "share with both drops" not in text


@pytest.mark.usefixtures("blank_figures")
def test_design_and_power_simulation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs, scores, out = (tmp_path / name for name in ("pairs.csv", "s.csv", "trials.csv"))
    write_table(pairs, columns_of(Pair, some_pairs(4)))
    inputs = file_names(tmp_path)
    design = MakeDesign(out=out, pairs=pairs, **NO_FILLERS, seed=3).run()
    assert [trial.trial_id for trial in read_trials(out)] == [t.trial_id for t in design.trials]
    assert_complete_record(out, inputs)
    write_scores_of_trials(scores)
    (tmp_path / "alone").mkdir()
    stem = tmp_path / "alone" / "study"
    SimulatePower(trials=out, scores=scores, out=stem, **FEW, seed=3).run()
    power_table = tmp_path / "alone" / "study.power.csv"
    assert "(study.power.png)" in power_table.with_suffix(".md").read_text()
    endings = ("power.csv", "power-sizes.csv", "power.md", "power.png")
    outputs = {f"study.{ending}" for ending in endings}
    assert files_of(power_table) == ({"../trials.csv", "../s.csv"}, outputs)
    assert capsys.readouterr() == ("", "")


def test_power_of_trials_without_scores_is_refused(tmp_path: Path) -> None:
    pairs, scores, out = (tmp_path / name for name in ("pairs.csv", "s.csv", "trials.csv"))
    write_table(pairs, columns_of(Pair, some_pairs(4)))
    random_table().write(scores)  # of other sentences
    with pytest.raises(InputError, match="Set `sentences`"):
        MakeDesign(out=out, pairs=pairs).run()
    MakeDesign(out=out, pairs=pairs, **NO_FILLERS).run()
    names = file_names(tmp_path)
    with pytest.raises(InputError):
        SimulatePower(trials=out, scores=scores, out=out, **FEW).run()
    assert file_names(tmp_path) == names


@pytest.mark.usefixtures("blank_figures")
def test_rejection_changes_only_trials_of_the_item(tmp_path: Path) -> None:
    """Three rounds of rejection; tables before and after are compared row by row."""
    scores, pairs, triplets, n = (
        tmp_path / name for name in ("s.csv", "pairs.csv", "t.csv", "natural.csv")
    )
    random_table(160).write(scores)
    random_table(160).write(n)
    write_table(triplets, columns_of(Triplet, some_triplets(8, MODELS[:2])))
    selected, trials = tmp_path / "chosen.csv", tmp_path / "trials.csv"
    selection_settings = TripletRules(per_pair=4, quantiles=0)
    options: dict[str, Any] = {
        "groups": 4,
        "random_per_group": 2,
        "catch_per_group": 1,
        "twins": True,
    }
    steps: tuple[Any, ...] = (
        SelectPairs(scores=scores, out=pairs, settings=NaturalRules(per_pair=4)),
        SelectTriplets(triplets=triplets, out=selected, settings=selection_settings),
        MakeDesign(out=trials, pairs=pairs, triplets=selected, sentences=n, **options, seed=1),
    )
    reviews: tuple[Path, ...] = ()
    for condition in (None, *list(Condition)[:2], Condition.RANDOM_NATURAL):
        old_trials = read_trials(trials) if condition else ()
        rejected_ids: set[str] = set()
        if condition:
            trial = next(t for t in old_trials if t.condition == condition)
            rejected_ids = {trial.trial_id, trial.source_id or trial.trial_id}
            reviews = (*reviews, tmp_path / f"review-{len(reviews)}.csv")
            rows = (
                replace(item, decision=Decision("reject" if item.item_id == trial.trial_id else ""))
                for item in undecided_items(old_trials, "Ann")
            )
            write_review(reviews[-1], rows)
        for step in steps:
            replace(step, review=reviews).run()
        new_trials = read_trials(trials)
        unaffected = {t for t in old_trials if not rejected_ids & {t.trial_id, t.source_id}}
        assert unaffected <= {*new_trials}
        assert not rejected_ids & {name for t in new_trials for name in (t.trial_id, t.source_id)}
        assert not old_trials or len(new_trials) == len(old_trials)


def test_minimal_pair_selection_and_its_verdicts(tmp_path: Path) -> None:
    """Witness: verdicts counted pair by pair. Rejected pairs are not selected again."""
    rng, out = np.random.default_rng(0), tmp_path / "minimal.csv"
    texts = [f"Word{n} runs." for n in range(80)]
    scores = MinimalPairScores(
        tuple(
            SentencePair(f"p{n % 2}", str(n), *map(Sentence.parse, (text, text.replace("s.", "."))))
            for n, text in enumerate(texts)
        ),
        ("a", "b"),
        rng.normal(-20, 3, (80, 2, 2)),
    )
    scores.write(tmp_path / "pairs.csv")
    inputs = file_names(tmp_path)
    settings = MinimalPairQuestion(per_pair=4)
    step = SelectMinimalPairs(pairs=tmp_path / "pairs.csv", out=out, settings=settings)
    selection = step.run()
    assert read_controversial_minimal_pairs(out) == selection.pairs
    assert_complete_record(out, inputs)
    is_right = scores.log_probs[:, 0] > scores.log_probs[:, 1]
    one_sided = (is_right[:, 0] & ~is_right[:, 1]).sum(), (is_right[:, 1] & ~is_right[:, 0]).sum()
    (table,) = step.work(SILENT).parts
    assert isinstance(table, Table)
    assert list(table.rows) == [("a", "b", 80, *one_sided, 0)]
    assert "only model 1 prefers the acceptable one" in table.header
    trials = [replace(pair_trial(pair), group=1) for pair in selection.pairs]
    rejection = replace(undecided_items(trials)[0], decision=Decision.REJECT, reviewer="r")
    write_review(tmp_path / "review.csv", [rejection])
    second_selection = replace(step, review=(tmp_path / "review.csv",)).run()
    assert selection.pairs[0] not in second_selection.pairs
    assert len(second_selection.pairs) == 4
