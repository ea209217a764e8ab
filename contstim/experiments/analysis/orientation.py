"""Whether trials are what their condition says, and whether models play the roles they name."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.experiments.analysis.scopes import roles
from contstim.stimuli import CONTROVERSIAL, Condition, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contstim.arrays import FloatArray
    from contstim.experiments.analysis.ratings import Ratings
    from contstim.stimuli import Trial

_KINDS = {
    Condition.NATURAL_CONTROVERSIAL: ((Kind.NATURAL, Kind.NATURAL),),
    Condition.NATURAL_SYNTHETIC: (
        (Kind.NATURAL, Kind.SYNTHETIC_1),
        (Kind.NATURAL, Kind.SYNTHETIC_2),
    ),
    Condition.SYNTHETIC_SYNTHETIC: ((Kind.SYNTHETIC_1, Kind.SYNTHETIC_2),),
    Condition.RANDOM_NATURAL: ((Kind.NATURAL, Kind.NATURAL),),
    Condition.CATCH: ((Kind.NATURAL, Kind.SHUFFLED),),
}


@dataclass(frozen=True)
class Orientation:
    """How many trials of a condition the scores contradict; see `orientations`."""

    condition: Condition
    trials: int
    contradicted: int


def check_trials(trials: Iterable[Trial]) -> None:
    """Make sure that every trial is one of its condition, as `Trial` says.

    Raises:
        InputError: a controversial trial does not name two different models, another names one, or
            the kinds of sentences are not those of the condition.
    """
    for trial in trials:
        models = (trial.model_1, trial.model_2)
        stated = f"The trial {trial.trial_id!r} is {trial.condition}, so it"
        if trial.condition not in CONTROVERSIAL:
            if any(models):
                raise InputError(
                    f"{stated} sets no models against each other, but model_1 and model_2 are "
                    f"{models[0]!r} and {models[1]!r}; leave them empty, or correct the condition."
                )
        elif not all(models) or models[0] == models[1]:
            raise InputError(
                f"{stated} sets two models against each other, but model_1 and model_2 are "
                f"{models[0]!r} and {models[1]!r}; name both, or correct the condition."
            )
        allowed = _KINDS[trial.condition]
        if (trial.kind_1, trial.kind_2) not in allowed:
            raise InputError(
                f"{stated} compares {' or '.join(' with '.join(kinds) for kinds in allowed)}, but "
                f"kind_1 and kind_2 are {trial.kind_1} and {trial.kind_2}; correct them, or the "
                "condition."
            )


def orientations(ratings: Ratings) -> tuple[Orientation, ...]:
    """For each controversial condition, how many trials have models in roles they do not play.

    The scores contradict a pair of two natural or two synthetic sentences unless model_1 finds
    sentence_1 less likely than sentence_2, and model_2 finds it likelier; they contradict a
    natural-synthetic trial unless the model that rejects the synthetic sentence finds it less
    likely than the natural one.
    """
    trials: Counter[Condition] = Counter()
    contradicted: Counter[Condition] = Counter()
    for group in ratings.groups:
        for trial, ratios in zip(group.trials, group.ratios.T, strict=True):
            if trial.condition in CONTROVERSIAL:
                trials[trial.condition] += 1
                contradicted[trial.condition] += not _as_named(trial, ratings.models, ratios)
    return tuple(Orientation(c, trials[c], contradicted[c]) for c in CONTROVERSIAL if trials[c])


def _as_named(trial: Trial, models: tuple[str, ...], ratios: FloatArray) -> bool:
    """From how much likelier sentence_2 is under each model, (n_models,)."""
    if trial.condition is Condition.NATURAL_SYNTHETIC:
        return bool(ratios[models.index(roles(trial)[1])] < 0)
    first, second = (ratios[models.index(name)] for name in (trial.model_1, trial.model_2))
    return bool(first > 0 > second)
