"""A small simulated experiment: two groups, all conditions."""

import random

import numpy as np

from contstim.experiments.responses.table import Response
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Condition, Kind, Trial
from contstim.words.sentence import Sentence
from tests.experiments.stimuli import new_trial

_KINDS = {
    Condition.NATURAL_CONTROVERSIAL: (Kind.NATURAL, Kind.NATURAL),
    Condition.NATURAL_SYNTHETIC: (Kind.NATURAL, Kind.SYNTHETIC_2),
    Condition.SYNTHETIC_SYNTHETIC: (Kind.SYNTHETIC_1, Kind.SYNTHETIC_2),
    Condition.RANDOM_NATURAL: (Kind.NATURAL, Kind.NATURAL),
    Condition.CATCH: (Kind.NATURAL, Kind.SHUFFLED),
}
_WORDS = "alpha beta gamma delta epsilon zeta eta theta".split()


def make_trials(groups: int = 2, catch: int = 12) -> list[Trial]:
    """Return for each group two trials of each condition of 2023 and `catch` catch trials.

    No sentence occurs in two trials.
    """
    trials = []
    for group in range(1, groups + 1):
        conditions = [c for c in _KINDS if c is not Condition.CATCH for _ in range(2)]
        for n, condition in enumerate([*conditions, *[Condition.CATCH] * catch]):
            words = [f"{word}{group}x{n}" for word in _WORDS]
            first = " ".join(words).capitalize() + "."
            second = [*words[1:], words[0].capitalize()]
            if condition is not Condition.CATCH:
                second = ["Other", *second]
            targeted = condition not in (Condition.CATCH, Condition.RANDOM_NATURAL)
            trials.append(
                new_trial(
                    *(f"trial-{group}-{n}", group, first, " ".join(second), condition),
                    *(("gpt2", "rnn") if targeted else ("", ""), _KINDS[condition]),
                )
            )
    return trials


def make_responses(trials: list[Trial], people: dict[str, int], seed: int = 1) -> list[Response]:
    """Return random ratings in random order; ratings of catch trials are right."""
    rng = random.Random(seed)
    rows = []
    for participant, group in people.items():
        shuffled_trials = [trial for trial in trials if trial.group == group]
        rng.shuffle(shuffled_trials)
        for position, trial in enumerate(shuffled_trials, start=1):
            highest_rating = 3 if trial.condition is Condition.CATCH else 6
            rating, left = rng.randint(1, highest_rating), rng.randint(1, 2)
            rt_ms = float(rng.randint(900, 9_000))
            rows.append(Response(participant, group, trial.trial_id, rating, left, position, rt_ms))
    return rows


def scores_of(trials: list[Trial]) -> ScoreTable:
    """Return scores that order the sentences of each trial oppositely in gpt2 and rnn.

    gpt2 (model_1) rejects sentence_1 and rnn (model_2) sentence_2, or, if sentence 2 is of kind
    synthetic_1, vice versa. With synthetic_2, model_1 accepts the synthetic sentence.
    """
    log_probs: dict[Sentence, tuple[float, float]] = {}
    for n, trial in enumerate(trials):
        low, high = (-60.0 - n, -40.0), (-40.0, -60.0 - n)
        accepts_first = trial.kind_2 is Kind.SYNTHETIC_1
        log_probs[trial.sentence_1] = high if accepts_first else low
        log_probs[trial.sentence_2] = low if accepts_first else high
    return ScoreTable(tuple(log_probs), ("gpt2", "rnn"), np.array(list(log_probs.values())))
