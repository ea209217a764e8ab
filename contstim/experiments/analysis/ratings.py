"""Who rated which trials, the models' log-probabilities, and which trials evaluate which model."""

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
from contstim.experiments.responses.table import UNRATED
from contstim.files.tables import listed
from contstim.items.stimuli import Condition, Kind
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.experiments.responses.table import Response
    from contstim.files.arrays import BoolArray, FloatArray
    from contstim.items.scale import Scale
    from contstim.items.scores import ScoreTable
    from contstim.items.stimuli import Trial

TESTING = tuple(condition for condition in Condition if condition is not Condition.CATCH)
"""The conditions that say something of models: catch trials only ask whether people attend."""

_NAMED = 5  # how many culprits a message names


@dataclass(frozen=True, eq=False)
class GroupRatings:
    """Ratings of the participants of one group, to whom every trial was shown.

    Attributes:
        number: the group's, as in its trials.
        trials: in the order of the columns below, all on the scale of the ratings.
        participants: distinct names.
        ratings: (n_participants, n_trials), on the trials' scale, for sentence_1 … sentence_2; nan
            where none was given in time.
        left: (n_participants, n_trials), 1 or 2, the sentence shown left; 0 where not recorded.
        log_probs: (n_models, n_trials, 2), nats, of sentence_1 and sentence_2.
    """

    number: int
    trials: tuple[Trial, ...]
    participants: tuple[str, ...]
    ratings: FloatArray
    left: FloatArray
    log_probs: FloatArray

    @property
    def scale(self) -> Scale:
        """Of the ratings."""
        return self.trials[0].scale

    @cached_property
    def preferences(self) -> FloatArray:
        """Ratings in steps from the middle of the scale, (n_participants, n_trials).

        Below 0 for sentence_1, above 0 for sentence_2; 0 for neither, also where none was given.
        """
        return np.nan_to_num(self.ratings - self.scale.middle)

    @cached_property
    def ratios(self) -> FloatArray:
        """Log-probability ratios of sentence_2 to sentence_1, (n_models, n_trials), nats."""
        return log_ratios(self.log_probs)


@dataclass(frozen=True, eq=False)
class Ratings:
    """All groups of an experiment, and the models that are put to the test.

    Attributes:
        models: names, in the order of the groups' first axis of log-probabilities.
        groups: in the order of their numbers; every group has a participant.
    """

    models: tuple[str, ...]
    groups: tuple[GroupRatings, ...]

    @property
    def scale(self) -> Scale:
        """Of all ratings."""
        return self.groups[0].scale

    @property
    def participants(self) -> tuple[str, ...]:
        """Everybody, group after group."""
        return tuple(name for group in self.groups for name in group.participants)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Those of all groups, group after group."""
        return tuple(trial for group in self.groups for trial in group.trials)

    @property
    def n_trials(self) -> int:
        """Trials of all groups."""
        return sum(len(group.trials) for group in self.groups)

    @property
    def size(self) -> int:
        """Ratings that were given."""
        return sum(int(np.isfinite(group.ratings).sum()) for group in self.groups)

    @property
    def missing(self) -> int:
        """Trials that were shown and not rated in time."""
        return sum(group.ratings.size for group in self.groups) - self.size

    @property
    def sided(self) -> int:
        """Number of ratings that say on which side the sentences were shown."""
        given = [np.isfinite(group.ratings) & (group.left > 0) for group in self.groups]
        return sum(int(sided.sum()) for sided in given)


def gather(
    trials: Iterable[Trial],
    responses: Iterable[Response],
    scores: ScoreTable,
    *,
    partial: bool = False,
) -> Ratings:
    """Bring trials, responses and scores together; sentences are matched by `Sentence.text`.

    Args:
        trials: of all groups. Groups that nobody answered are left out.
        responses: to every trial of their group by each participant, as `admit` keeps.
        scores: log-probabilities of all sentences, and the models to evaluate.
        partial: whether trials of the group may have no response.

    Raises:
        InputError: no responses, or responses that do not fit the trials or lack some of them; a
            sentence without scores; a model that trials name and the scores lack; a trial that is
            none of its condition (`check_trials`).
    """
    trials, responses = tuple(trials), tuple(responses)
    _check_complete(trials, responses, partial=partial)
    named = {model for trial in trials for model in (trial.model_1, trial.model_2)} - {""}
    missing = sorted(named - set(scores.models))
    if missing:
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
    scale = responses[0].scale  # that of all, as is checked; trials may not say theirs
    groups = []
    for number in numbers:
        seen = tuple(replace(t, scale=scale) for t in trials if t.group == number)
        people = tuple(dict.fromkeys(r.participant for r in responses if r.group == number))
        cells = [
            [answers.get((name, trial.trial_id), (np.nan, 0)) for trial in seen] for name in people
        ]
        theirs = np.array(cells, dtype=np.float64)
        rated, left = np.moveaxis(theirs, -1, 0)
        log_probs = trial_log_probs(seen, scores)
        groups.append(GroupRatings(number, seen, people, rated, left, log_probs))
    return Ratings(scores.models, tuple(groups))


def subset(ratings: Ratings, chosen: Sequence[BoolArray]) -> Ratings:
    """The same participants on a part of their trials; groups without any are left out.

    Args:
        ratings: who rated what.
        chosen: for each group, which trials, (n_trials,).
    """
    return Ratings(
        ratings.models,
        tuple(
            replace(
                group,
                trials=tuple(compress(group.trials, columns)),
                ratings=group.ratings[:, columns],
                left=group.left[:, columns],
                log_probs=group.log_probs[:, columns],
            )
            for group, columns in zip(ratings.groups, chosen, strict=True)
            if columns.any()
        ),
    )


def _check_complete(
    trials: Sequence[Trial], responses: Sequence[Response], *, partial: bool
) -> None:
    if not responses:
        raise InputError("There are no responses to analyse.")
    report = check_responses(trials, responses)
    report.raise_errors()
    if report.unseen(responses) and not partial:
        raise InputError(
            f"Only participants to whom every trial of their group was shown can be analysed.\n"
            f"{report}\n`admit` leaves out the others, and says whom."
        )


def trial_log_probs(trials: Iterable[Trial], scores: ScoreTable) -> FloatArray:
    """Log-probabilities of both sentences of each trial, (n_models, n_trials, 2), nats.

    Raises:
        InputError: some sentences have none; says how many different ones, and names some.
    """
    shown = [sentence for trial in trials for sentence in (trial.sentence_1, trial.sentence_2)]
    missing = [each.text for each in dict.fromkeys(shown) if each not in scores.rows]
    if missing:
        number, have = counted(len(missing), "sentence"), "has" if len(missing) == 1 else "have"
        raise InputError(
            f"{number} of the trials {have} no scores: {listed(map(repr, missing), _NAMED)}. Score "
            "the trials first (contstim score --sentences trials.csv), under every model to be "
            "compared."
        )
    rows = scores.rows_of(shown).reshape(-1, 2)
    return scores.log_probs[rows].transpose(2, 0, 1)


class Scope(StrEnum):
    """A set of trials for each model, on which models are compared.

    Random pairs and the overall result use all models and all such trials; in controversial
    conditions a model answers only for trials that target it, in the role it was given there. Catch
    trials evaluate no model: they decide who takes part, so that those who do agree on them,
    whatever a model says.
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
    """The models that accept and reject the synthetic sentence of a natural-synthetic trial.

    model_1 rejects synthetic_1, model_2 rejects synthetic_2.
    """
    if Kind.SYNTHETIC_1 in (trial.kind_1, trial.kind_2):
        return trial.model_2, trial.model_1
    return trial.model_1, trial.model_2


def evaluates(trial: Trial, scope: Scope, model: str) -> bool:
    """True if a trial is one of those that evaluate a model in a scope."""
    if scope is Scope.OVERALL:
        return trial.condition in TESTING
    if trial.condition is Condition.NATURAL_SYNTHETIC:
        accepts, rejects = roles(trial)
        return (scope, model) in ((Scope.ACCEPT, accepts), (Scope.REJECT, rejects))
    # Other scopes are named as their condition
    own = scope is Scope.RANDOM or model in (trial.model_1, trial.model_2)
    return scope.value == trial.condition.value and own


def scope_mask(
    trials: Sequence[Trial], scope: Scope, models: Sequence[str], *, catch: bool = False
) -> BoolArray:
    """`evaluates` for all models and trials, (n_models, n_trials).

    Args:
        trials: of a group.
        scope: which of them count.
        models: one a row.
        catch: whether catch trials count in the overall result, as published in 2023.
    """
    mask = np.array([[evaluates(trial, scope, model) for trial in trials] for model in models])
    if catch and scope is Scope.OVERALL:
        mask[:] = [trial.kind_1 is not Kind.INSTRUCTION for trial in trials]
    return mask


def pair_mask(
    trials: Sequence[Trial], condition: Condition, pair: tuple[str, str], models: Sequence[str]
) -> BoolArray:
    """The trials of a condition that set two models against each other, (n_models, n_trials)."""
    targets = [t.condition is condition and {t.model_1, t.model_2} == set(pair) for t in trials]
    return np.array([[model in pair and mine for mine in targets] for model in models])


def scopes_of(ratings: Ratings) -> tuple[Scope, ...]:
    """The scopes for which a design has trials."""
    trials, models = ratings.trials, ratings.models
    return tuple(scope for scope in Scope if scope_mask(trials, scope, models).any())
