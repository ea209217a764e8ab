"""Ratings drawn from a mixed model with known parameters."""

from dataclasses import replace

import numpy as np

from contstim.experiments.analysis.ratings import GroupRatings, Ratings
from contstim.files.arrays import FloatArray
from contstim.items.scale import Scale
from tests.experiments.stimuli import new_trial

THRESHOLDS = np.array([-1.4, -0.6, 0.0, 0.6, 1.4])


def draw_ratings(
    seed: int,
    *,
    groups: int = 2,
    people: int = 8,
    trials: int = 15,
    slopes: tuple[float, ...] = (0.05, 0.0),
    spread: float = 0.8,
    leaning: float = 0.3,
    following: float = 0.0,
) -> Ratings:
    """Draw ratings by thresholds on a hidden value with normal noise.

    `people` and `trials` are numbers in each group. `slopes` are those of models a, b, … per nat;
    ratios have a standard deviation of 20 nats. The other arguments are standard deviations:
    `spread` of trials beyond the ratios, `leaning` of participants' bias to the left, `following`
    of their slopes, as a share of the slope.
    """
    rng = np.random.default_rng(seed)
    group_ratings = []
    for number in range(1, groups + 1):
        ratios = rng.normal(0, 20, (len(slopes), trials))
        tastes = np.array(slopes) * (1 + following * rng.normal(size=(people, len(slopes))))
        left = np.random.default_rng([seed, number]).choice([1.0, 2.0], (people, trials))
        towards_2 = rng.normal(0, leaning, (people, 1)) * (2 * left - 3)
        hidden = tastes @ ratios + towards_2 + rng.normal(0, spread, trials)
        hidden = hidden + rng.normal(size=hidden.shape)
        rated = np.searchsorted(THRESHOLDS, hidden).astype(np.float64)
        group_ratings.append(build_group(number, 1 + rated, ratios, left))
    return Ratings(tuple("abcdefghi"[: len(slopes)]), tuple(group_ratings))


def code_choices(ratings: Ratings, first: int, second: int, scale: Scale) -> Ratings:
    """Replace ratings by the preferred sentences, coded `first` and `second`."""
    groups = [
        replace(
            group,
            trials=tuple(replace(trial, scale=scale) for trial in group.trials),
            ratings=np.where(group.preferences > 0, float(second), float(first)),
        )
        for group in ratings.groups
    ]
    return Ratings(ratings.models, tuple(groups))


def build_group(
    number: int, ratings: FloatArray, ratios: FloatArray, left: FloatArray | None = None
) -> GroupRatings:
    """Build a group of random pairs; sentence_1 has log-probability -100."""
    people, trials = ratings.shape
    log_probs = np.stack([np.full(ratios.shape, -100.0), -100.0 + ratios], axis=-1)
    return GroupRatings(
        number,
        tuple(
            new_trial(f"t{number}-{n}", number, f"First g{number}x{n}.", f"Second g{number}x{n}.")
            for n in range(trials)
        ),
        tuple(f"g{number}p{n}" for n in range(people)),
        ratings,
        np.zeros(ratings.shape) if left is None else left,
        log_probs,
    )
