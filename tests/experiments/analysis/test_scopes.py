"""Which trials evaluate which model, listed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from contstim.experiments.analysis.ratings import gather
from contstim.experiments.analysis.scopes import Scope, evaluates, roles, scope_mask, scopes_of
from contstim.sentence import Sentence
from contstim.stimuli import Condition, Kind, Trial
from tests.experiments.analysis.simulation import simulate


def trial(condition: Condition, kind_1: Kind, kind_2: Kind, models: str = "ab") -> Trial:
    model_1, model_2 = models[:1], models[1:]
    return Trial(
        "t",
        1,
        condition,
        model_1,
        model_2,
        Sentence.parse("One."),
        Sentence.parse("Two."),
        kind_1,
        kind_2,
        "",
    )


REJECTED_BY_A = trial(Condition.NATURAL_SYNTHETIC, Kind.NATURAL, Kind.SYNTHETIC_1)
REJECTED_BY_B = trial(Condition.NATURAL_SYNTHETIC, Kind.NATURAL, Kind.SYNTHETIC_2)
TRIALS = (
    trial(Condition.RANDOM_NATURAL, Kind.NATURAL, Kind.NATURAL, ""),
    trial(Condition.NATURAL_CONTROVERSIAL, Kind.NATURAL, Kind.NATURAL),
    trial(Condition.SYNTHETIC_SYNTHETIC, Kind.SYNTHETIC_1, Kind.SYNTHETIC_2),
    REJECTED_BY_A,
    REJECTED_BY_B,
    trial(Condition.CATCH, Kind.NATURAL, Kind.SHUFFLED, ""),
)


def test_model_1_rejects_synthetic_1_and_model_2_synthetic_2() -> None:
    """Eq. 4 and the columns of triplets.csv."""
    assert roles(REJECTED_BY_A) == ("b", "a")
    assert roles(REJECTED_BY_B) == ("a", "b")


@pytest.mark.parametrize(
    ("scope", "a", "c"),
    [
        (Scope.RANDOM, [0], [0]),
        (Scope.NATURAL, [1], []),
        (Scope.SYNTHETIC, [2], []),
        (Scope.ACCEPT, [4], []),
        (Scope.REJECT, [3], []),
        (Scope.OVERALL, [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]),
    ],
)
def test_trials_of_a_targeted_and_an_untargeted_model(
    scope: Scope, a: list[int], c: list[int]
) -> None:
    mask = scope_mask(TRIALS, scope, ("a", "c"))
    assert [np.flatnonzero(row).tolist() for row in mask] == [a, c]
    assert [evaluates(one, scope, "a") for one in TRIALS] == mask[0].tolist()


def test_catch_trials_count_overall_where_asked_for() -> None:
    """As published in 2023; everywhere else nothing changes."""
    for scope in Scope:
        plain, published = (scope_mask(TRIALS, scope, ("a", "c"), catch=c) for c in (False, True))
        assert (plain != published)[:, :-1].sum() == 0
        assert published[:, -1].all() == (scope is Scope.OVERALL)


def test_a_design_has_the_scopes_of_its_conditions() -> None:
    made = simulate(conditions=(Condition.NATURAL_CONTROVERSIAL, Condition.CATCH))
    ratings = gather(made.trials, made.responses, made.scores)
    assert scopes_of(ratings) == (Scope.NATURAL, Scope.OVERALL)
