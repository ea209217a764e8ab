"""Several searches from one natural sentence, and what ends them."""

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


def run(
    losses: list[float], budget: SearchBudget, *, rows: int = 0, reports: bool = True
) -> SearchResult:
    """Searches with these losses, of so many passes each; the last loss stands for all later."""
    model: Any = TableModel(0)
    model.reports_passes = reports
    seeds: list[int] = []

    def search(seed: int) -> SearchResult:
        cost = {model.name: Cost(rows, rows, 1)}
        loss = losses[min(len(seeds), len(losses) - 1)]
        seeds.append(seed)
        alone = (SearchSummary(0, seed, loss, 0.0, 1, cost),)
        return SearchResult(natural=NATURAL, recipe="", costs=cost, searches=alone)

    found = best_of(search, (model,), 7, budget)
    assert [summary.seed for summary in found.searches] == seeds
    return found


@settings(max_examples=examples(5))
@given(seed=st.integers(0, 50), number=st.integers(2, 4), says=st.sampled_from(["exact", "bound"]))
def test_never_worse_than_the_single_search_with_the_same_seed(
    seed: int, number: int, says: str
) -> None:
    """Property; witness: each search by itself, with the seed that the history names."""

    def single(seed_alone: int) -> Any:
        pair = TableModel(seed, says), TableModel(seed + 100)
        return synthesize(*pair, NATURAL, SMALL, seed=seed_alone, restarts=SINGLE)

    pair = TableModel(seed, says), TableModel(seed + 100)
    budget = SearchBudget(number, patience=None)
    found = synthesize(*pair, NATURAL, SMALL, seed=seed, restarts=budget)
    alone = [single(summary.seed) for summary in found.searches]
    assert len(alone) == number
    assert found.searches[0].seed == seed
    assert len({summary.seed for summary in found.searches}) == number
    assert found.log_probs[1] == min(one.log_probs[1] for one in alone) <= alone[0].log_probs[1]
    assert found.synthetic in {one.synthetic for one in alone}
    assert [s.loss for s in found.searches] == [one.log_probs[1] for one in alone]
    for name, cost in found.costs.items():
        assert cost == sum((one.costs[name] for one in alone), Cost())
    again = synthesize(*pair, NATURAL, SMALL, seed=seed, restarts=budget)
    assert (again.synthetic, again.searches) == (found.synthetic, found.searches)


def test_more_searches_come_nearer_to_the_best_of_all_sentences() -> None:
    """Witness: every sentence of these words, scored by the models themselves."""
    natural = Sentence(("A", "b", "c"))
    single = several = best = 0.0
    for seed in range(5):
        accept, reject = TableModel(seed), TableModel(seed + 100)
        allowed = [
            Sentence((first, *rest))
            for first, rest in product(SMALL.initial, permutations(SMALL.inner, 2))
            if accept.score(Sentence((first, *rest))) >= accept.score(natural)
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
    """Witness: for every number of searches, whether those before are enough, by the definition."""
    budget = SearchBudget(searches, patience=patience, min_gain=min_gain)
    found = run(losses, budget)
    padded = losses + [losses[-1]] * searches

    def is_dry(n: int) -> bool:
        gains = [max(0, min(padded[:k]) - padded[k]) for k in range(1, n)]
        tail = gains[len(gains) - patience :] if patience else []
        return bool(patience and len(gains) >= patience and max(tail) < min_gain)

    expected = next(n for n in range(1, searches + 1) if n == searches or is_dry(n))
    assert len(found.searches) == expected
    assert found.end_of_searches == (ALL if expected == searches else DRY)
    assert [s.number for s in found.searches] == [*range(expected)]
    best = min(s.loss for s in found.searches)
    assert found.searches[0].loss - sum(s.gain for s in found.searches) == best


@given(rows=st.integers(0, 500), limit=st.integers(0, 2_000))
def test_passes_are_kept_within_the_budget(rows: int, limit: int) -> None:
    """Property: never exceeded but by the first search, and another would have exceeded them."""
    found = run([0.0], SearchBudget(9, patience=None, passes=limit), rows=rows)
    n_searches = len(found.searches)
    spent = sum(cost.rows for cost in found.costs.values())
    assert spent == n_searches * rows
    assert spent <= limit or n_searches == 1
    assert n_searches == 9 or spent + rows > limit
    expected = ALL if n_searches == 9 else PASSES
    assert found.end_of_searches == expected


def test_a_model_that_does_not_report_its_passes_is_taken_for_a_dear_one() -> None:
    budget = SearchBudget(9, passes=1_000)
    assert len(run([0.0], budget, reports=False).searches) == 1
    assert len(run([0.0], replace(budget, passes=None), reports=False).searches) == 6


@pytest.mark.parametrize(
    ("seconds", "number"), [(0.5, 1), (3.9, 1), (4.0, 2), (7.9, 3), (8.1, 4), (100.0, 6)]
)
def test_a_time_limit_is_kept_but_the_first_search_always_finishes(
    monkeypatch: pytest.MonkeyPatch, seconds: float, number: int
) -> None:
    """A clock by which every search takes two seconds; six searches end the patience of five."""
    now = iter(np.arange(0, 100, 2.0).tolist())
    monkeypatch.setattr(restarts, "monotonic", lambda: next(now))
    found = run([0.0], SearchBudget(seconds=seconds))
    assert len(found.searches) == number
    assert found.end_of_searches == (DRY if number == 6 else SECONDS)


def test_the_default_is_to_restart_where_searching_is_cheap(
    trained: Path, english: list[Sentence], unseen: list[Sentence]
) -> None:
    """Networks with few passes; n-gram models, the published way, unknown models search once."""
    cheap = TableModel(1), TableModel(2)
    for model in cheap:
        model.reports_passes = True
    found = synthesize(*cheap, NATURAL, WORDS, seed=1)
    assert found.budget == DEFAULT.restarts
    assert found.end_of_searches == DRY
    assert found.n_unsuccessful == 5
    words = Vocabulary.from_sentences(english, min_count=20)
    natural = next(s for s in unseen if not words.missing_words(s))
    trigram, bigram = (NgramModel(trained / f"{n}gram.arpa") for n in (3, 2))
    assert synthesize(trigram, bigram, natural, words, seed=1).budget == SINGLE
    published = synthesize(trigram, bigram, natural, words, recipe=RECIPES["golan2023"])
    assert len(published.searches) == 1
    unknown = synthesize(TableModel(1), TableModel(2), NATURAL, WORDS)
    assert len(unknown.searches) == 1
    assert unknown.end_of_searches == PASSES


def test_a_pair_disagrees_no_less_after_more_searches() -> None:
    """Witness: each search by itself."""
    models = TableModel(1), TableModel(51)
    found = synthesize_pair(*models, NATURAL, WORDS, seed=3, restarts=SearchBudget(3))
    alone = [
        synthesize_pair(*models, NATURAL, WORDS, seed=s.seed, restarts=SINGLE)
        for s in found.searches
    ]
    assert found.disagreement == max(one.disagreement for one in alone)
    assert [-s.loss for s in found.searches] == [pytest.approx(one.disagreement) for one in alone]


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
def test_senseless_budgets_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SearchBudget(**options)


def test_seeds_of_searches_differ() -> None:
    seeds = {seed_of_search(seed, number) for seed in range(50) for number in range(20)}
    assert len(seeds) == 50 * 20
    assert seed_of_search(2**56 + 1, 0) == 2**56 + 1
