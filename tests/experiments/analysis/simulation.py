"""Experiments whose truth is known: people follow one model with a given probability."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from contstim.experiments.responses.table import Response
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Condition, Kind, Trial
from tests.experiments.stimuli import new_trial

N, S1, S2 = Kind.NATURAL, Kind.SYNTHETIC_1, Kind.SYNTHETIC_2
TARGETED = (
    (Condition.NATURAL_CONTROVERSIAL, (N, N)),
    (Condition.NATURAL_SYNTHETIC, (N, S1)),
    (Condition.NATURAL_SYNTHETIC, (N, S2)),
    (Condition.SYNTHETIC_SYNTHETIC, (S1, S2)),
)


@dataclass(frozen=True)
class Experiment:
    """What `analyze` takes."""

    trials: tuple[Trial, ...]
    responses: tuple[Response, ...]
    scores: ScoreTable


def simulate(
    models: Sequence[str] = ("a", "b", "c"),
    groups: Sequence[int] = (4, 4, 4),
    *,
    each: int = 2,
    conditions: Collection[Condition] = tuple(Condition),
    follow: float = 0.85,
    seed: int = 0,
) -> Experiment:
    """Everybody follows the first model with a probability; catch trials are always right.

    `groups` are participants of each group, `each` trials for each pair of models and kind of
    trial, and untargeted trials by twelve; `follow` is the probability.
    """
    rng = np.random.default_rng(seed)
    trials = tuple(
        trial for g in range(1, len(groups) + 1) for trial in _trials(models, g, each, conditions)
    )
    texts = [text for trial in trials for text in (trial.sentence_1, trial.sentence_2)]
    log_probs = -rng.gamma(9, 6, (len(texts), len(models)))
    for row, trial in enumerate(trials):
        if trial.condition is Condition.CATCH:
            log_probs[2 * row] = log_probs[2 * row + 1] + 30
    ratios = log_probs[1::2, 0] - log_probs[::2, 0]
    responses = []
    for group, people in enumerate(groups, start=1):
        own = [n for n, trial in enumerate(trials) if trial.group == group]
        for person in range(people):
            for position, n in enumerate(rng.permutation(own), start=1):
                steps = int(rng.integers(0, 3))
                catch = trials[n].condition is Condition.CATCH
                second = (ratios[n] > 0) == (rng.random() < follow) and not catch
                about = (f"g{group}p{person}", group, trials[n].trial_id)
                rating, left = 4 + steps if second else 3 - steps, int(rng.integers(1, 3))
                responses.append(Response(*about, rating, left, position, 1000.0))
    return Experiment(trials, tuple(responses), ScoreTable(tuple(texts), tuple(models), log_probs))


def _trials(
    models: Sequence[str], group: int, each: int, conditions: Collection[Condition]
) -> list[Trial]:
    made = [
        (condition, kinds, pair)
        for pair in combinations(models, 2)
        for condition, kinds in TARGETED
        for _ in range(each)
    ]
    for condition, kind_2 in ((Condition.RANDOM_NATURAL, N), (Condition.CATCH, Kind.SHUFFLED)):
        made += [(condition, (N, kind_2), ("", ""))] * 12
    return [
        new_trial(
            *(f"trial-{group}-{n}", group, f"First g{group}x{n}.", f"Second g{group}x{n}."),
            *(condition, models_of, kinds),
        )
        for n, (condition, kinds, models_of) in enumerate(made)
        if condition in conditions
    ]
