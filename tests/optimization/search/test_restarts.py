"""Several searches from one natural sentence, and when they end."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contstim.errors import InputError
from contstim.models.costs import Cost
from contstim.models.ngram.adapter import NgramModel
from contstim.optimization.search import restarts
from contstim.optimization.search.recipes import DEFAULT, RECIPES
from contstim.optimization.search.restarts import (
    ALL,
    DRY,
    PASSES,
    SECONDS,
    SINGLE,
    SearchBudget,
    SearchResult,
    SearchSummary,
    best_of,
    seed_of_search,
)
from contstim.optimization.search.synthesize import synthesize, synthesize_pair
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.examples import examples
from tests.optimization.search.toys import NATURAL, WORDS, TableModel

SMALL = Vocabulary(tuple("AEF"), tuple("bcdg"), frozenset())
LOSSES = st.lists(st.integers(-20, 0).map(lambda n: n / 4), min_size=1, max_size=12)


def run_searches(
    losses: list[float], budget: SearchBudget, *, rows: int = 0, reports: bool = True
) -> SearchResult:
    """Run searches with these losses and `rows` passes each; the last loss repeats."""
    model: Any = TableModel(0)
    model.reports_passes = reports
    seeds: list[int] = []

    def search(seed: int) -> SearchResult:
        cost = {model.name: Cost(rows, rows, 1)}
        loss = losses[min(len(seeds), len(losses) - 1)]
        seeds.append(seed)
        summaries = (SearchSummary(0, seed, loss, 0.0, 1, cost),)
        return SearchResult(
            natural=NATURAL, recipe="", costs=cost, searches=summaries, models=(), units=()
        )

    result = best_of(search, (model,), 7, budget)
    assert [summary.seed for summary in result.searches] == seeds
    return result


@settings(max_examples=examples(5))
@given(seed=st.integers(0, 50), number=st.integers(2, 4), says=st.sampled_from(["exact", "bound"]))
def test_results_are_not_worse_than_single_searches(seed: int, number: int, says: str) -> None:
    """Property. Witness: single searches with the recorded seeds."""

    def run_single(search_seed: int) -> Any:
        pair = TableModel(seed, says), TableModel(seed + 100)
        return synthesize(*pair, NATURAL, SMALL, seed=search_seed, restarts=SINGLE)

    pair = TableModel(seed, says), TableModel(seed + 100)
    budget = SearchBudget(number, patience=None)
    result = synthesize(*pair, NATURAL, SMALL, seed=seed, restarts=budget)
    single_results = [run_single(summary.seed) for summary in result.searches]
    assert len(single_results) == number
    assert result.searches[0].seed == seed
    assert len({summary.seed for summary in result.searches}) == number
    losses = [single.log_probs[1] for single in single_results]
    assert result.log_probs[1] == min(losses)
    assert result.synthetic in {single.synthetic for single in single_results}
    assert [s.loss for s in result.searches] == losses
    for name, cost in result.costs.items():
        assert cost == sum((single.costs[name] for single in single_results), Cost())
    repeated = synthesize(*pair, NATURAL, SMALL, seed=seed, restarts=budget)
    assert (repeated.synthetic, repeated.searches) == (result.synthetic, result.searches)


def test_more_searches_approach_the_best_sentence() -> None:
    """Witness: every sentence of these words, scored by the models."""
    natural = Sentence(("A", "b", "c"))
    single = several = best = 0.0
    for seed in range(5):
        accept, reject = TableModel(seed), TableModel(seed + 100)
        allowed = [
            Sentence((first, *inner))
            for first, inner in product(SMALL.initial, permutations(SMALL.inner, 2))
            if accept.score(Sentence((first, *inner))) >= accept.score(natural)
        ]
        lowest = min(reject.score(sentence) for sentence in allowed)
        losses = [
            synthesize(accept, reject, natural, SMALL, restarts=budget).log_probs[1]
            for budget in (SINGLE, SearchBudget(10, patience=None))
        ]
        assert losses[0] >= losses[1] >= lowest - 1e-9
        single, several, best = single + losses[0], several + losses[1], best + lowest
    assert single > several >= best - 1e-9


@given(
    losses=LOSSES,
    searches=st.integers(1, 12),
    patience=st.none() | st.integers(1, 4),
    min_gain=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_patience_and_number_end_the_searches(
    losses: list[float], searches: int, patience: int | None, min_gain: float
) -> None:
    """Witness: the definition, applied to every number of searches."""
    budget = SearchBudget(searches, patience=patience, min_gain=min_gain)
    result = run_searches(losses, budget)
    padded = losses + [losses[-1]] * searches

    def is_dry(n: int) -> bool:
        gains = [max(0, min(padded[:k]) - padded[k]) for k in range(1, n)]
        tail = gains[len(gains) - patience :] if patience else []
        return bool(patience and len(gains) >= patience and max(tail) < min_gain)

    expected = next(n for n in range(1, searches + 1) if n == searches or is_dry(n))
    assert len(result.searches) == expected
    assert result.end_of_searches == (ALL if expected == searches else DRY)
    assert [s.number for s in result.searches] == [*range(expected)]
    best = min(s.loss for s in result.searches)
    assert result.searches[0].loss - sum(s.gain for s in result.searches) == best


@given(rows=st.integers(0, 500), limit=st.integers(0, 2_000))
def test_passes_stay_within_the_budget(rows: int, limit: int) -> None:
    """Property: only the first search may exceed the limit; one more search would exceed it."""
    result = run_searches([0.0], SearchBudget(9, patience=None, passes=limit), rows=rows)
    n_searches = len(result.searches)
    spent = sum(cost.rows for cost in result.costs.values())
    assert spent == n_searches * rows
    assert spent <= limit or n_searches == 1
    assert n_searches == 9 or spent + rows > limit
    assert result.end_of_searches == (ALL if n_searches == 9 else PASSES)


def test_models_that_do_not_report_passes_count_as_expensive() -> None:
    budget = SearchBudget(9, passes=1_000)
    assert len(run_searches([0.0], budget, reports=False).searches) == 1
    assert len(run_searches([0.0], replace(budget, passes=None), reports=False).searches) == 6


@pytest.mark.parametrize(
    ("seconds", "number"), [(0.5, 1), (3.9, 1), (4.0, 2), (7.9, 3), (8.1, 4), (100.0, 6)]
)
def test_time_limits_apply_after_the_first_search(
    monkeypatch: pytest.MonkeyPatch, seconds: float, number: int
) -> None:
    """On this clock every search takes two seconds; patience ends the searches after six."""
    times = iter(np.arange(0, 100, 2.0).tolist())
    monkeypatch.setattr(restarts, "monotonic", lambda: next(times))
    result = run_searches([0.0], SearchBudget(seconds=seconds))
    assert len(result.searches) == number
    assert result.end_of_searches == (DRY if number == 6 else SECONDS)


def test_only_cheap_networks_restart_by_default(
    trained: Path, english: list[Sentence], unseen: list[Sentence]
) -> None:
    """N-gram models, the published recipe and models of unknown cost search once."""
    cheap_models = TableModel(1), TableModel(2)
    for model in cheap_models:
        model.reports_passes = True
    cheap_result = synthesize(*cheap_models, NATURAL, WORDS, seed=1)
    assert cheap_result.budget == DEFAULT.restarts
    assert cheap_result.end_of_searches == DRY
    assert cheap_result.n_unsuccessful == 5
    words = Vocabulary.from_sentences(english, min_count=20)
    natural = next(s for s in unseen if not words.missing_words(s))
    trigram, bigram = (NgramModel(trained / f"{n}gram.arpa") for n in (3, 2))
    assert synthesize(trigram, bigram, natural, words, seed=1).budget == SINGLE
    published = synthesize(trigram, bigram, natural, words, recipe=RECIPES["golan2023"])
    assert len(published.searches) == 1
    unknown_result = synthesize(TableModel(1), TableModel(2), NATURAL, WORDS)
    assert len(unknown_result.searches) == 1
    assert unknown_result.end_of_searches == PASSES


def test_more_searches_do_not_reduce_disagreement() -> None:
    """Witness: each search by itself."""
    models = TableModel(1), TableModel(51)
    result = synthesize_pair(*models, NATURAL, WORDS, seed=3, restarts=SearchBudget(3))
    single_results = [
        synthesize_pair(*models, NATURAL, WORDS, seed=s.seed, restarts=SINGLE).disagreement
        for s in result.searches
    ]
    assert result.disagreement == max(single_results)
    assert [-s.loss for s in result.searches] == pytest.approx(single_results)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"searches": 0}, "must be 1 or more, not 0"),
        ({"seconds": 0.0}, "above 0, not 0"),
        ({"seconds": float("nan")}, "above 0, not nan"),
        ({"seconds": float("inf")}, "must be a finite number, not inf"),
        ({"searches": 1, "seconds": 3.0}, "single search always finishes"),
        ({"patience": 0}, "`patience` must be 1 or more, not 0"),
        ({"min_gain": -0.5}, "`min_gain` must be 0 or more, not -0.5"),
        ({"min_gain": float("nan")}, "`min_gain` must be 0 or more, not nan"),
        ({"passes": -1}, "`passes` must be 0 or more, not -1"),
        ({"patience": None}, "Nothing ends the searches"),
        ({"patience": None, "passes": 9}, "Nothing ends the searches"),
    ],
)
def test_invalid_budgets_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SearchBudget(**options)


def test_seeds_of_searches_differ() -> None:
    seeds = {seed_of_search(seed, number) for seed in range(50) for number in range(20)}
    assert len(seeds) == 50 * 20
    assert seed_of_search(2**56 + 1, 0) == 2**56 + 1
