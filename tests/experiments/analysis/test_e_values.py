"""E-values of pairwise judgements, and verdicts that are valid at every look."""

from itertools import combinations
from math import log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.errors import InputError
from contstim.experiments.analysis.e_values import (
    Answer,
    Match,
    log_e_values,
    matches_of,
    read_answers,
    verdict_of,
)

ALPHA = 0.05


def new_match(x: list[float], a: str = "a", b: str = "b") -> Match:
    return Match(a, b, np.array(x, np.float64), np.ones(len(x)))


@given(st.lists(st.floats(-1, 1), max_size=30))
def test_e_value_is_the_mean_of_eight_products(x: list[float]) -> None:
    """Witness: the formula, one factor after the other."""
    for n in range(len(x) + 1):
        products = []
        for bet in (0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 0.95):
            product = 1.0
            for value in x[:n]:
                product *= 1 + bet * value
            products.append(product)
        expected = sum(products) / 8
        assert np.exp(log_e_values(np.array(x))[n]) == pytest.approx(expected, rel=1e-12)


def test_outcomes_are_means_over_participants_of_a_list() -> None:
    """By hand."""
    rows = [
        ("ann", "a", "b", "a", "1"),
        ("ann", "b", "a", "a", "1"),
        ("ann", "a", "b", "tie", "1"),
        ("ben", "a", "b", "b", "1"),
        ("cat", "a", "b", "a", ""),
        ("dan", "a", "c", "c", ""),
    ]
    ab, ac, bc = matches_of([Answer(*row) for row in rows])
    assert ab.x == pytest.approx([(2 / 3 - 1) / 2, 1])
    assert ab.people.tolist() == [2, 1]
    assert ab.share == pytest.approx((1 + ((2 / 3 - 1) / 2 + 1) / 2) / 2)
    assert (ac.x.tolist(), bc.x.tolist(), bc.share) == ([-1], [], 0.5)


def test_winner_needs_more_evidence_than_a_beaten_model() -> None:
    # Without data on c, E of b against a is enough to drop a from three models, not to win
    n = next(n for n in range(1, 99) if log_e_values(np.ones(n))[-1] >= log(2 / ALPHA))
    matches = [new_match([-1.0] * n), new_match([], "a", "c"), new_match([1.0] * n, "b", "c")]
    verdict = verdict_of(matches, ALPHA)
    assert (verdict.beaten, verdict.surviving, verdict.winner) == ({"a": "b", "c": "b"}, ["b"], "")
    x = [1.0] * 2 * n
    matches = [new_match([-1.0] * 2 * n), new_match([], "a", "c"), new_match(x, "b", "c")]
    assert verdict_of(matches, ALPHA).winner == "b"
    cycle = [new_match([1.0] * 9), new_match([-1.0] * 9, "a", "c"), new_match([1.0] * 9, "b", "c")]
    assert verdict_of(cycle, ALPHA).text.startswith("No model beats all others")
    assert verdict_of([new_match([0.2])], ALPHA).text == "Undecided between a, b."


def test_equal_model_is_rarely_dropped_at_any_look() -> None:
    """Planted: three equal models.

    Counting five participants of a list singly breaks the guarantee.
    """
    rng = np.random.default_rng(1)
    n_worlds, n_lists, limit = 400, 40, log(2 / ALPHA)

    def share_dropped(*, singly: bool) -> float:
        n_dropped = 0
        for _ in range(n_worlds):
            outcomes_of_matches = []
            for _ in combinations(range(3), 2):
                items = rng.normal(0, 0.4, (n_lists, 1))  # shared by the participants of a list
                people = np.clip(items + rng.normal(0, 0.3, (n_lists, 5)), -1, 1)
                outcomes_of_matches.append(people.ravel() if singly else people.mean(axis=1))
            # The first model takes part in two of the matches
            n_dropped += any(log_e_values(-x).max() >= limit for x in outcomes_of_matches[:2])
        return n_dropped / n_worlds

    error = 2 * np.sqrt(ALPHA * (1 - ALPHA) / n_worlds)
    assert share_dropped(singly=False) <= ALPHA + error
    assert share_dropped(singly=True) > 0.2


def test_interval_contains_the_mean_and_shrinks() -> None:
    rng = np.random.default_rng(2)
    widths, n_covering = {}, 0
    for n in (20, 200):
        for _ in range(50):
            x = rng.choice([-1.0, 0.0, 1.0], n, p=[0.2, 0.2, 0.6])
            low, high = new_match(x.tolist()).interval(ALPHA)
            n_covering += low <= 0.4 <= high
            widths[n] = high - low
    assert n_covering >= 95
    assert widths[200] < widths[20] / 2
    assert new_match([]).interval(ALPHA) == (-1, 1)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("p,a,a,a,", "must differ"),
        ("p,a,b,c,", "must be a, b or tie, got c"),
        ("p,a,b,a,1\np,a,b,a,2", "p must have one list"),
    ],
)
def test_invalid_answers_are_rejected(tmp_path: Path, row: str, message: str) -> None:
    path = tmp_path / "answers.csv"
    path.write_text(f"participant,model_a,model_b,preferred,list\n{row}\n")
    with pytest.raises(InputError, match=message):
        read_answers(path)
