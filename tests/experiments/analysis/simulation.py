"""Simulated experiments: participants follow one model with a given probability."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from contstim.experiments.analysis.ratings import Ratings, gather
from contstim.experiments.analysis.run import Analysis, analyze
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
    """Arguments of `analyze`."""

    trials: tuple[Trial, ...]
    responses: tuple[Response, ...]
    scores: ScoreTable

    def gather(self) -> Ratings:
        return gather(self.trials, self.responses, self.scores)

    def analyze(self, **options: Any) -> Analysis:
        return analyze(self.trials, self.responses, self.scores, **options)


def simulate(
    models: Sequence[str] = ("a", "b", "c"),
    groups: Sequence[int] = (4, 4, 4),
    *,
    each: int = 2,
    conditions: Collection[Condition] = tuple(Condition),
    follow: float = 0.85,
    seed: int = 0,
) -> Experiment:
    """Simulate participants who follow the first model; they always pass catch trials.

    `groups` are numbers of participants, `each` is the number of trials for each pair of models and
    kind of trial. Each untargeted condition has twelve trials. `follow` is the probability of
    following.
    """
    rng = np.random.default_rng(seed)
    trials = tuple(
        trial
        for g in range(1, len(groups) + 1)
        for trial in _make_trials(models, g, each, conditions)
    )
    texts = [text for trial in trials for text in (trial.sentence_1, trial.sentence_2)]
    log_probs = -rng.gamma(9, 6, (len(texts), len(models)))
    for row, trial in enumerate(trials):
        if trial.condition is Condition.CATCH:
            log_probs[2 * row] = log_probs[2 * row + 1] + 30
    ratios = log_probs[1::2, 0] - log_probs[::2, 0]
    responses = []
    for group, people in enumerate(groups, start=1):
        indices = [n for n, trial in enumerate(trials) if trial.group == group]
        for person in range(people):
            for position, n in enumerate(rng.permutation(indices), start=1):
                steps = int(rng.integers(0, 3))
                catch = trials[n].condition is Condition.CATCH
                second = (ratios[n] > 0) == (rng.random() < follow) and not catch
                identifiers = (f"g{group}p{person}", group, trials[n].trial_id)
                rating, left = 4 + steps if second else 3 - steps, int(rng.integers(1, 3))
                responses.append(Response(*identifiers, rating, left, position, 1000.0))
    return Experiment(trials, tuple(responses), ScoreTable(tuple(texts), tuple(models), log_probs))


def _make_trials(
    models: Sequence[str], group: int, each: int, conditions: Collection[Condition]
) -> list[Trial]:
    specifications = [
        (condition, kinds, pair)
        for pair in combinations(models, 2)
        for condition, kinds in TARGETED
        for _ in range(each)
    ]
    for condition, kind_2 in ((Condition.RANDOM_NATURAL, N), (Condition.CATCH, Kind.SHUFFLED)):
        specifications += [(condition, (N, kind_2), ("", ""))] * 12
    return [
        new_trial(
            *(f"trial-{group}-{n}", group, f"First g{group}x{n}.", f"Second g{group}x{n}."),
            *(condition, pair_of_trial, kinds),
        )
        for n, (condition, kinds, pair_of_trial) in enumerate(specifications)
        if condition in conditions
    ]
