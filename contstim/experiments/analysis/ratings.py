"""Ratings of trials, the models' log-probabilities, and the trials that evaluate each model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.measures import log_ratios
from contstim.experiments.responses.checks import check_responses
from contstim.experiments.responses.table import UNRATED, Response
from contstim.files.tables import join_names
from contstim.items.stimuli import Condition, Kind, Trial
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.files.arrays import BoolArray, FloatArray
    from contstim.items.scale import Scale
    from contstim.items.scores import ScoreTable

TESTING = tuple(condition for condition in Condition if condition is not Condition.CATCH)
"""The conditions that evaluate models: all but catch trials, which test attention."""

_NAMED = 5  # maximum number of examples in a message


@dataclass(frozen=True, eq=False)
class GroupRatings:
    """Ratings of the participants of one group.

    Attributes:
        trials: the group's trials, in the order of the columns of `ratings`.
        participants: distinct names of the participants, in the order of the rows of `ratings`.
        ratings: (n_participants, n_trials), on the trials' scale; low ratings prefer sentence_1,
            high ratings prefer sentence_2; nan if missing.
        left: (n_participants, n_trials), sentence shown on the left, 1 or 2; 0 if not recorded.
        log_probs: (n_models, n_trials, 2), log-probabilities of sentence_1 and sentence_2, nats.
    """

    number: int
    trials: tuple[Trial, ...]
    participants: tuple[str, ...]
    ratings: FloatArray
    left: FloatArray
    log_probs: FloatArray

    @property
    def scale(self) -> Scale:
        """Scale of the ratings."""
        return self.trials[0].scale

    @cached_property
    def preferences(self) -> FloatArray:
        """Ratings in steps from the middle of the scale, (n_participants, n_trials).

        Negative values prefer sentence_1, positive values prefer sentence_2. Ratings without a
        preference and missing ratings are 0.
        """
        return np.nan_to_num(self.ratings - self.scale.middle)

    @cached_property
    def ratios(self) -> FloatArray:
        """Log-probability ratios of sentence_2 to sentence_1, (n_models, n_trials), nats."""
        return log_ratios(self.log_probs)


@dataclass(frozen=True, eq=False)
class Ratings:
    """All groups of an experiment, and the models that are evaluated.

    Attributes:
        models: names of the models, in the order of the first axis of `GroupRatings.log_probs`.
        groups: groups with at least one participant, in the order of their numbers.
    """

    models: tuple[str, ...]
    groups: tuple[GroupRatings, ...]

    @property
    def scale(self) -> Scale:
        """Scale of all ratings."""
        return self.groups[0].scale

    @property
    def participants(self) -> tuple[str, ...]:
        """Participants of all groups, in order of groups."""
        return tuple(name for group in self.groups for name in group.participants)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Trials of all groups, in order of groups."""
        return tuple(trial for group in self.groups for trial in group.trials)

    @property
    def n_trials(self) -> int:
        """Number of trials of all groups."""
        return sum(len(group.trials) for group in self.groups)

    @property
    def size(self) -> int:
        """Number of ratings that are not missing."""
        return sum(int(np.isfinite(group.ratings).sum()) for group in self.groups)

    @property
    def n_missing(self) -> int:
        """Number of missing ratings."""
        return sum(group.ratings.size for group in self.groups) - self.size

    @property
    def sided(self) -> int:
        """Number of ratings for which the sides of the sentences are recorded."""
        return sum(int((np.isfinite(g.ratings) & (g.left > 0)).sum()) for g in self.groups)


def gather(
    trials: Iterable[Trial],
    responses: Iterable[Response],
    scores: ScoreTable,
    *,
    partial: bool = False,
) -> Ratings:
    """Combine trials, responses and scores; sentences are matched by `Sentence.text`.

    Groups without responses are left out. With `partial`, participants need not have responded to
    all trials of their group.

    Raises:
        InputError: if there are no responses; if responses do not match the trials; if responses
            are missing and `partial` is false; if a sentence or a model of a trial has no scores;
            or if a trial does not fit its condition (`check_trials`).
    """
    trials, responses = tuple(trials), tuple(responses)
    if not responses:
        raise InputError("There are no responses to analyse.")
    report = check_responses(trials, responses)
    report.raise_errors()
    if report.unseen(responses) and not partial:
        raise InputError(
            "Only participants who saw every trial of their group can be analysed.\n"
            f"{report}\n`admit` excludes the other participants and names them."
        )
    trial_models = {model for trial in trials for model in (trial.model_1, trial.model_2)}
    if missing := sorted(trial_models - {"", *scores.models}):
        raise InputError(
            f"The trials name models without scores: {', '.join(missing)}; there are scores of "
            f"{', '.join(scores.models)}. Score the trials' sentences under every model, with "
            f"the same names."
        )
    answers = {
        (r.participant, r.trial_id): (np.nan if r.rating == UNRATED else r.rating, r.left)
        for r in responses
    }
    numbers = sorted({response.group for response in responses})
    trial_log_probs([trial for trial in trials if trial.group in numbers], scores)
    # `check_responses` ensures that all responses have the same scale. The trials get this scale,
    # because trials from a table without the column `scale` have the default scale instead.
    scale = responses[0].scale
    groups = []
    for number in numbers:
        group_trials = tuple(replace(t, scale=scale) for t in trials if t.group == number)
        people = tuple(dict.fromkeys(r.participant for r in responses if r.group == number))
        cells = [
            [answers.get((name, trial.trial_id), (np.nan, 0)) for trial in group_trials]
            for name in people
        ]
        rated, sides = np.moveaxis(np.array(cells, dtype=np.float64), -1, 0)
        log_probs = trial_log_probs(group_trials, scores)
        groups.append(GroupRatings(number, group_trials, people, rated, sides, log_probs))
    return Ratings(scores.models, tuple(groups))


def subset(ratings: Ratings, chosen: Sequence[BoolArray]) -> Ratings:
    """Return the ratings of some trials; groups without such trials are left out.

    `chosen` has an array for each group, (n_trials,): True for the trials to return.
    """
    groups = []
    for group, columns in zip(ratings.groups, chosen, strict=True):
        if columns.any():
            by_trial = ("ratings", "left", "log_probs")
            arrays = {name: getattr(group, name)[:, columns] for name in by_trial}
            groups.append(replace(group, trials=tuple(compress(group.trials, columns)), **arrays))
    return Ratings(ratings.models, tuple(groups))


def trial_log_probs(trials: Iterable[Trial], scores: ScoreTable) -> FloatArray:
    """Return log-probabilities of both sentences of each trial, (n_models, n_trials, 2), nats.

    Raises:
        InputError: if sentences have no scores; the message states their number and names some.
    """
    sentences = [sentence for trial in trials for sentence in (trial.sentence_1, trial.sentence_2)]
    missing = [s.text for s in dict.fromkeys(sentences) if s not in scores.rows]
    if missing:
        number, have = quantity(len(missing), "sentence"), "has" if len(missing) == 1 else "have"
        raise InputError(
            f"{number} of the trials {have} no scores: {join_names(map(repr, missing), _NAMED)}. "
            "Score the trials first (contstim score --sentences trials.csv), under every "
            "model of the comparison."
        )
    return scores.log_probs[scores.rows_of(sentences).reshape(-1, 2)].transpose(2, 0, 1)


class Scope(StrEnum):
    """A set of trials for each model, on which models are compared.

    In the scopes `RANDOM` and `OVERALL`, each trial evaluates every model. In all other scopes, a
    trial evaluates only its targets, the models model_1 and model_2 for which it was made. In a
    natural-synthetic trial, one model accepts the synthetic sentence, and the other model rejects
    it. The scope `ACCEPT` evaluates the accepting model, and the scope `REJECT` evaluates the
    rejecting model. Catch trials do not evaluate models. People who failed catch trials are
    excluded, so nearly all remaining answers to catch trials are correct.
    """

    RANDOM = "random-natural"
    NATURAL = "natural-controversial"
    SYNTHETIC = "synthetic-synthetic"
    MINIMAL = "minimal-pair"
    ACCEPT = "natural-synthetic-accept"
    REJECT = "natural-synthetic-reject"
    OVERALL = "overall"


DESCRIPTIONS = {
    Scope.RANDOM: "random natural pairs",
    Scope.NATURAL: "natural controversial pairs",
    Scope.SYNTHETIC: "synthetic controversial pairs",
    Scope.MINIMAL: "controversial minimal pairs",
    Scope.ACCEPT: "natural vs. synthetic, the model accepts the synthetic sentence",
    Scope.REJECT: "natural vs. synthetic, the model rejects the synthetic sentence",
    Scope.OVERALL: "all kinds of trials together",
}


def roles(trial: Trial) -> tuple[str, str]:
    """Return the models that accept and reject the synthetic sentence of a natural-synthetic trial.

    model_1 rejects synthetic_1, model_2 rejects synthetic_2.
    """
    if Kind.SYNTHETIC_1 in (trial.kind_1, trial.kind_2):
        return trial.model_2, trial.model_1
    return trial.model_1, trial.model_2


def evaluates(trial: Trial, scope: Scope, model: str) -> bool:
    """Return whether a trial evaluates a model in a scope."""
    if scope is Scope.OVERALL:
        return trial.condition in TESTING
    if trial.condition is Condition.NATURAL_SYNTHETIC:
        accepts, rejects = roles(trial)
        return (scope, model) in ((Scope.ACCEPT, accepts), (Scope.REJECT, rejects))
    # Each of the other scopes has the name of its condition
    is_target = scope is Scope.RANDOM or model in (trial.model_1, trial.model_2)
    return scope.value == trial.condition.value and is_target


def scope_mask(
    trials: Sequence[Trial], scope: Scope, models: Sequence[str], *, catch: bool = False
) -> BoolArray:
    """Return `evaluates` for all models and trials, (n_models, n_trials).

    With `catch`, catch trials with a shuffled sentence also evaluate models in the scope `OVERALL`,
    as in the study of 2023.
    """
    mask = np.array([[evaluates(trial, scope, model) for trial in trials] for model in models])
    if catch and scope is Scope.OVERALL:
        mask[:] = [trial.kind_1 is not Kind.INSTRUCTION for trial in trials]
    return mask


def scopes_of(ratings: Ratings) -> tuple[Scope, ...]:
    """Return the scopes in which some rated trial evaluates a model."""
    trials, models = ratings.trials, ratings.models
    return tuple(scope for scope in Scope if scope_mask(trials, scope, models).any())
