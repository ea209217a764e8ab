"""Regressions of an experiment: their invariance, and their cautions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from contstim.experiments.analysis.ratings import Ratings, gather
from contstim.experiments.analysis.regressions import regressions
from contstim.stimuli import Condition
from tests.experiments.analysis.simulation import simulate


def turned(ratings: Ratings, seed: int) -> Ratings:
    """The same experiment with the sentences of half of the trials, drawn at random, exchanged."""
    chance = np.random.default_rng(seed)
    groups = []
    for group in ratings.groups:
        turn = chance.random(len(group.trials)) < 0.5
        rated = np.where(turn, 7 - group.ratings, group.ratings)
        log_probs = np.where(turn[:, None], group.log_probs[..., ::-1], group.log_probs)
        groups.append(replace(group, ratings=rated, log_probs=log_probs))
    return replace(ratings, groups=tuple(groups))


@pytest.mark.parametrize("seed", range(5))
def test_which_sentence_is_sentence_1_makes_no_difference(seed: int) -> None:
    """Property, in every scope of a simulated experiment."""
    made = simulate(groups=(4, 4, 4), each=4, follow=0.7, seed=seed)
    ratings = gather(made.trials, made.responses, made.scores)
    plain, other = (list(regressions(r, 0.95)) for r in (ratings, turned(ratings, seed)))
    assert len(plain) == len(other) == 18
    for one, two in zip(plain, other, strict=True):
        for field in ("estimate", "standard_error", "low", "high", "p_value"):
            expected = getattr(one, field)
            assert getattr(two, field) == pytest.approx(expected, rel=1e-5, abs=1e-9, nan_ok=True)
        assert two.note == one.note
        assert two.typical_ratio == pytest.approx(one.typical_ratio)


def test_narrow_ratios_are_noted() -> None:
    """On random pairs the ratios are made a hundredth of what they are; the others stay."""
    made = simulate(groups=(6, 6), each=6, follow=0.7)
    ratings = gather(made.trials, made.responses, made.scores)
    groups = []
    for group in ratings.groups:
        narrow = [trial.condition is Condition.RANDOM_NATURAL for trial in group.trials]
        log_probs = np.where(np.array(narrow)[:, None], 0.01 * group.log_probs, group.log_probs)
        groups.append(replace(group, log_probs=log_probs))
    found = list(regressions(replace(ratings, groups=tuple(groups)), 0.95))
    noted = {one.scope for one in found if "per nat compares with no other" in one.note}
    assert noted == {"random-natural"}
    by_hand = np.concatenate(
        [g.ratios[0][[t.condition is Condition.RANDOM_NATURAL for t in g.trials]] for g in groups]
    )
    (own,) = (x for x in found if (x.scope, x.model) == ("random-natural", "a"))
    assert own.typical_ratio == pytest.approx(np.sqrt(np.mean(by_hand**2)))


def test_coefficients_that_rest_on_few_choices_are_noted() -> None:
    """People follow model a but in a few choices, which are counted here one by one."""
    made = simulate(conditions=(Condition.RANDOM_NATURAL,), follow=0.97, seed=3)
    ratings = gather(made.trials, made.responses, made.scores)
    against = sum(
        int((np.sign(group.ratings - 3.5) * np.sign(group.ratios[0]) < 0).sum())
        for group in ratings.groups
    )
    assert 0 < against < 10
    notes = {one.model: one.note for one in regressions(ratings, 0.95) if one.scope != "overall"}
    assert notes[
        "a"
    ] == f"{against} of 144 choices go against the model: the coefficient rests " + ("on these")
    assert notes["b"] == notes["c"] == ""
