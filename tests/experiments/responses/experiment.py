"""A small experiment that the tests of this room simulate: two groups, every condition."""

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
    """Per group: two trials of each condition of 2023 but catch, with sentences of their own."""
    trials = []
    for group in range(1, groups + 1):
        conditions = [c for c in _KINDS if c is not Condition.CATCH for _ in range(2)]
        for n, condition in enumerate([*conditions, *[Condition.CATCH] * catch]):
            words = [f"{word}{group}x{n}" for word in _WORDS]
            first = " ".join(words).capitalize() + "."
            other = [*words[1:], words[0].capitalize()]
            if condition is not Condition.CATCH:
                other = ["Other", *other]
            targeted = condition not in (Condition.CATCH, Condition.RANDOM_NATURAL)
            trials.append(
                new_trial(
                    *(f"trial-{group}-{n}", group, first, " ".join(other), condition),
                    *(("gpt2", "rnn") if targeted else ("", ""), _KINDS[condition]),
                )
            )
    return trials


def make_responses(
    trials: list[Trial], participants: dict[str, int], seed: int = 1
) -> list[Response]:
    """Everyone rates every trial of their group in an order of their own, catch trials rightly."""
    chance = random.Random(seed)
    responses = []
    for participant, group in participants.items():
        own = [trial for trial in trials if trial.group == group]
        chance.shuffle(own)
        for position, trial in enumerate(own, start=1):
            top = 3 if trial.condition is Condition.CATCH else 6
            rating, left = chance.randint(1, top), chance.randint(1, 2)
            rt_ms = float(chance.randint(900, 9_000))
            responses.append(
                Response(participant, group, trial.trial_id, rating, left, position, rt_ms)
            )
    return responses


def scores_of(trials: list[Trial]) -> ScoreTable:
    """gpt2 (model_1) rejects sentence_1, rnn (model_2) sentence_2, or both the other way round.

    In natural-synthetic trials with synthetic_2, model_1 accepts the synthetic sentence.
    """
    log_probs: dict[Sentence, tuple[float, float]] = {}
    for n, trial in enumerate(trials):
        low, high = (-60.0 - n, -40.0), (-40.0, -60.0 - n)
        accepts_first = trial.kind_2 is Kind.SYNTHETIC_1
        log_probs[trial.sentence_1] = high if accepts_first else low
        log_probs[trial.sentence_2] = low if accepts_first else high
    return ScoreTable(tuple(log_probs), ("gpt2", "rnn"), np.array(list(log_probs.values())))
