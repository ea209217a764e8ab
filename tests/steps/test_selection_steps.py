"""Steps that choose stimuli and make trials of them, called from Python.

Witness of records: the files of the folder. Inputs are those that stood there before, outputs those
that came after, without the record itself.
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
from contstim.optimization.selection.question import MinimalPairQuestion, Objective
from contstim.reporter import SILENT, forwarding
from contstim.reporting.report import Table
from contstim.steps.design import MakeDesign
from contstim.steps.selection import (
    PairSettings,
    SelectionSettings,
    SelectMinimalPairs,
    SelectPairs,
    SelectTriplets,
)
from contstim.steps.simulation import SimulatePower
from contstim.words.sentence import Sentence
from tests.experiments.stimuli import MODELS, some_pairs, some_triplets
from tests.optimization.selection.tables import random_table
from tests.steps.records import files_of, record_of

NO_FILLERS: dict[str, Any] = {"groups": 2, "random_per_group": 0, "catch_per_group": 0}
FEW: dict[str, Any] = {"participants": 2, "simulations": 3}


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def require_record_of_all(out: Path, before: set[str]) -> None:
    written = files(out.parent) - before - {f"{out.name}.meta.json"}
    assert files_of(out) == (before, written)


def scores_of_trials(path: Path) -> None:
    """Scores of all sentences of the pairs below."""
    sides = [s for pair in some_pairs(4) for s in (pair.sentence_1, pair.sentence_2)]
    sentences = tuple(s if isinstance(s, Sentence) else Sentence.parse(str(s)) for s in sides)
    values = np.random.default_rng(0).normal(-40, 5, (len(sentences), len(MODELS)))
    ScoreTable(sentences, MODELS, values).write(path)


def test_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores, exclude, out = (tmp_path / name for name in ("s.csv", "old.txt", "pairs.csv"))
    table = random_table()
    table.write(scores)
    assert table.sentences is not None
    exclude.write_text(f"{table.sentences[0].text}\n")
    before = files(tmp_path)
    settings = PairSettings(per_pair=2, exclude=(exclude,))
    selection = SelectPairs(scores=scores, out=out, settings=settings).run()
    assert [pair.trial_id for pair in read_pairs(out)] == [p.trial_id for p in selection.pairs]
    assert len(selection.pairs) == 3 * 2
    require_record_of_all(out, before)
    assert capsys.readouterr() == ("", "")


def test_a_question_against_a_statement_is_told(tmp_path: Path) -> None:
    """Witness: end marks of the table that is written; the questions are random ones."""
    table, out = random_table(), tmp_path / "pairs.csv"
    asked = [replace(s, end="?.."[n % 3]) for n, s in enumerate(table.sentences or ())]
    replace(table, sentences=tuple(asked)).write(tmp_path / "s.csv")
    settings = PairSettings(per_pair=3, same_length=True, agreeing=True)
    said: list[str] = []
    select = SelectPairs(scores=tmp_path / "s.csv", out=out, settings=settings)
    select.run(forwarding(SILENT, say=said.append))
    ends = [{str(p.sentence_1)[-1], str(p.sentence_2)[-1]} for p in read_pairs(out)]
    mixed = ends.count({"?", "."})
    assert 0 < mixed < 9
    assert f"In {mixed} of 9 pairs a question is paired with a statement" in " ".join(said)


def test_triplets_are_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    candidates, out = tmp_path / "t.csv", tmp_path / "chosen.csv"
    write_table(candidates, columns_of(Triplet, some_triplets(4)))
    before = files(tmp_path)
    settings = SelectionSettings(per_pair=2, quantiles=1)
    selection = SelectTriplets(triplets=candidates, out=out, settings=settings).run()
    assert len(read_triplets(out)) == len(selection.triplets) > 0
    require_record_of_all(out, before)
    assert capsys.readouterr() == ("", "")
    cap = SelectionSettings(uncapped=candidates)
    with pytest.raises(InputError, match="`uncapped` needs `word_cap`"):
        SelectTriplets(triplets=candidates, out=out, settings=cap).run()


@pytest.mark.parametrize(
    ("objective", "told"),
    [
        ("controversiality", "less often than a random selection"),
        ("worst-rank", "prefers triplets with many nats"),
    ],
)
def test_numbers_against_choosing_by_nats_are_of_what_was_measured(
    tmp_path: Path, objective: Objective, told: str
) -> None:
    """Witness: the table in docs/design.md, which has `controversiality` and no `worst-rank`."""
    write_table(tmp_path / "t.csv", columns_of(Triplet, some_triplets(2)))
    settings = SelectionSettings(per_pair=1, quantiles=1, objective=objective)
    SelectTriplets(triplets=tmp_path / "t.csv", out=tmp_path / "o.csv", settings=settings).run()
    (warned,) = record_of(tmp_path / "o.csv")["warnings"]
    assert told in warned
    assert (".66 against .85" in warned) is (objective == "controversiality")


@pytest.fixture
def unpainted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are empty files: those of designs and power are drawn in other tests."""
    for step in ("design", "simulation"):
        monkeypatch.setattr(f"contstim.steps.{step}.write_figure", lambda _make, path: path.touch())


@pytest.mark.usefixtures("unpainted")
def test_a_summary_counts_no_nats_by_another_limit_than_the_selection(tmp_path: Path) -> None:
    triplets, out = tmp_path / "t.csv", tmp_path / "trials.csv"
    write_table(triplets, columns_of(Triplet, some_triplets(4)))
    MakeDesign(out=out, triplets=triplets, **NO_FILLERS).run()
    text = Path(f"{out}.summary.md").read_text()
    assert "smaller drop in log-probability, nats" in text
    assert "on both sides" not in text


@pytest.mark.usefixtures("unpainted")
def test_a_design_and_its_power(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs, scores, out = (tmp_path / name for name in ("pairs.csv", "s.csv", "trials.csv"))
    write_table(pairs, columns_of(Pair, some_pairs(4)))
    before = files(tmp_path)
    design = MakeDesign(out=out, pairs=pairs, **NO_FILLERS, seed=3).run()
    assert [trial.trial_id for trial in read_trials(out)] == [t.trial_id for t in design.trials]
    require_record_of_all(out, before)
    scores_of_trials(scores)
    (tmp_path / "alone").mkdir()
    stem = tmp_path / "alone" / "study"
    SimulatePower(trials=out, scores=scores, out=stem, **FEW, seed=3).run()
    alone = tmp_path / "alone" / "study.power.csv"
    assert "(study.power.png)" in alone.with_suffix(".md").read_text()
    endings = ("power.csv", "power-sizes.csv", "power.md", "power.png")
    written = {f"study.{ending}" for ending in endings}
    assert files_of(alone) == ({"../trials.csv", "../s.csv"}, written)
    assert capsys.readouterr() == ("", "")


def test_trials_without_scores_are_not_simulated(tmp_path: Path) -> None:
    pairs, scores, out = (tmp_path / name for name in ("pairs.csv", "s.csv", "trials.csv"))
    write_table(pairs, columns_of(Pair, some_pairs(4)))
    random_table().write(scores)  # of other sentences
    with pytest.raises(InputError, match="Set `sentences`"):
        MakeDesign(out=out, pairs=pairs).run()
    MakeDesign(out=out, pairs=pairs, **NO_FILLERS).run()
    before = files(tmp_path)
    with pytest.raises(InputError):
        SimulatePower(trials=out, scores=scores, out=out, **FEW).run()
    assert files(tmp_path) == before


@pytest.mark.usefixtures("unpainted")
def test_one_rejection_changes_the_trials_that_showed_the_item(tmp_path: Path) -> None:
    """Three rounds on the trials; tables before and after are compared row by row."""
    scores, pairs, triplets, natural = (
        tmp_path / name for name in ("s.csv", "pairs.csv", "t.csv", "natural.csv")
    )
    random_table(160).write(scores)
    random_table(160).write(natural)
    write_table(triplets, columns_of(Triplet, some_triplets(8, MODELS[:2])))
    chosen, trials = tmp_path / "chosen.csv", tmp_path / "trials.csv"
    selecting = SelectionSettings(per_pair=4, quantiles=0)
    designing: dict[str, Any] = {
        "groups": 4,
        "random_per_group": 2,
        "catch_per_group": 1,
        "twins": True,
    }
    steps: tuple[Any, ...] = (
        SelectPairs(scores=scores, out=pairs, settings=PairSettings(per_pair=4)),
        SelectTriplets(triplets=triplets, out=chosen, settings=selecting),
        MakeDesign(
            out=trials, pairs=pairs, triplets=chosen, sentences=natural, **designing, seed=1
        ),
    )
    reviews: tuple[Path, ...] = ()
    for condition in (None, *list(Condition)[:2], Condition.RANDOM_NATURAL):
        before = read_trials(trials) if condition else ()
        gone: set[str] = set()
        if condition:
            first = next(t for t in before if t.condition == condition and t.source_id not in gone)
            gone = {first.trial_id, first.source_id or first.trial_id}
            reviews = (*reviews, tmp_path / f"review-{len(reviews)}.csv")
            rows = (
                replace(item, decision=Decision("reject" if item.item_id == first.trial_id else ""))
                for item in undecided_items(before, "Ann")
            )
            write_review(reviews[-1], rows)
        for step in steps:
            replace(step, review=reviews).run()
        after = read_trials(trials)
        stay = {t for t in before if not gone & {t.trial_id, t.source_id}}
        assert stay <= {*after}
        assert not gone & {name for t in after for name in (t.trial_id, t.source_id)}
        assert not before or len(after) == len(before)


def test_minimal_pairs_are_selected_with_their_verdicts(tmp_path: Path) -> None:
    """Witness: verdicts counted pair by pair; what reviewers reject is chosen no more."""
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
    before = files(tmp_path)
    settings = MinimalPairQuestion(per_pair=4)
    step = SelectMinimalPairs(pairs=tmp_path / "pairs.csv", out=out, settings=settings)
    selection = step.run()
    assert read_controversial_minimal_pairs(out) == selection.pairs
    require_record_of_all(out, before)
    right = scores.log_probs[:, 0] > scores.log_probs[:, 1]
    alone = (right[:, 0] & ~right[:, 1]).sum(), (right[:, 1] & ~right[:, 0]).sum()
    (table,) = step.work(SILENT).parts
    assert isinstance(table, Table)
    assert list(table.rows) == [("a", "b", 80, *alone, 0)]
    assert "only model 1 prefers the acceptable one" in table.header
    trials = [replace(pair_trial(pair), group=1) for pair in selection.pairs]
    first = replace(undecided_items(trials)[0], decision=Decision.REJECT, reviewer="r")
    write_review(tmp_path / "review.csv", [first])
    again = replace(step, review=(tmp_path / "review.csv",)).run()
    assert selection.pairs[0] not in again.pairs
    assert len(again.pairs) == 4
