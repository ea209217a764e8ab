"""Whether trials are what their condition says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.stimuli import CONTROVERSIAL, Condition, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

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
