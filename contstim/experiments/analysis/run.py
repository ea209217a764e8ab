"""The whole analysis of an experiment: from trials, responses and scores to results."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis import agreement as agreements
from contstim.experiments.analysis.crossed import BOTH
from contstim.experiments.analysis.effects import Result, Sampling, compare, suited_units
from contstim.experiments.analysis.families import (
    CEILING,
    THESE_ITEMS,
    every_contrast,
    family_cautions,
)
from contstim.experiments.analysis.measures import Measure, measures_of, require_measure
from contstim.experiments.analysis.ratings import Ratings, Scope, gather, scopes_of
from contstim.experiments.analysis.regression import regressions
from contstim.experiments.analysis.trivial_rivals import by_paradigm, judge_rivals
from contstim.experiments.responses.admission import Admission, Exclusions, admit
from contstim.files.tables import ShownAsTable
from contstim.items.stimuli import CONTROVERSIAL, Condition, Trial
from contstim.wording import grouped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pandas import DataFrame

    from contstim.experiments.analysis.families import ModelContrast
    from contstim.experiments.analysis.tables import Row
    from contstim.experiments.analysis.trivial_rivals import Preferences
    from contstim.experiments.responses.table import Response, ResponseOrigin
    from contstim.files.arrays import FloatArray
    from contstim.items.scores import ScoreTable


@dataclass(frozen=True, eq=False)
class Analysis(ShownAsTable):
    """All results of an experiment; conditions without trials are left out.

    Lists of rows are tables; see `to_frame`.

    Attributes:
        pairs: results for each pair of models, on the trials that compare these two models.
        agreement: condition → share of trials in which two models prefer the same sentence,
            (n_models, n_models).
        dominance: controversial condition → share of ratings that agree with the row's model
            rather than the column's model, (n_models, n_models).
        roles: how often people prefer a synthetic sentence to its natural sentence. Each row is for
            two models; one accepts the synthetic sentence, the other rejects it.
        unanimity: for each condition, the number of trials in which nearly all people (at least the
            share `unanimous`) prefer the same sentence.
        unanimous: minimum share for `unanimity`, 0 to 1.
        orientations: controversial condition → number of trials, and number of trials whose scores
            contradict the models' roles. A role states which sentence a model should prefer.
        regressions: regressions of choices on log-probability ratios, for each scope (set of
            trials) and model.
        rivals: results of the trivial rivals (simple rules such as word frequency), and of tests of
            each model against each rival; see `judge_rivals`.
        rivals_left_out: messages that explain why rivals or trials are left out.
        paradigms: agreement of people with models and with the grammar on minimal pairs; see
            `by_paradigm`.
        primary: measure whose value on all trials together is the primary outcome.
        limits: further warnings about the tests.
    """

    admission: Admission
    ratings: Ratings
    scores: ScoreTable
    sampling: Sampling
    results: tuple[Result, ...]
    pairs: list[Row]
    agreement: dict[Condition, FloatArray]
    dominance: dict[Condition, FloatArray]
    roles: list[Row]
    unanimity: list[Row]
    unanimous: float
    orientations: dict[Condition, tuple[int, int]]
    failures: list[Row]
    regressions: list[Row]
    rivals: tuple[Result, ...] = ()
    rivals_left_out: tuple[str, ...] = ()
    paradigms: list[Row] = field(default_factory=list)
    primary: Measure | None = None
    limits: tuple[str, ...] = ()

    @property
    def main(self) -> Result:
        """Result for all trials together, of the primary measure.

        If there is no primary measure, the last measure of the response scale is used.
        """
        return self.result(Scope.OVERALL, self.primary or measures_of(self.ratings.scale)[-1])

    @property
    def origin(self) -> ResponseOrigin:
        """Numbers of people and of artificial participants in the analysis."""
        return self.admission.origin

    @property
    def cautions(self) -> tuple[str, ...]:
        """Warnings about results and tests, for example about too few groups for a test."""
        units, rate = str(self.sampling.units), self.sampling.false_discovery_rate
        families = [(result.scope, result.detectability) for result in self.results]
        items = [THESE_ITEMS] if units == "participants" else []
        # Reason why an interval does not generalise to new people and new items → scopes (sets of
        # trials) with such intervals
        limits = grouped(
            (interval.note, str(result.scope))
            for result in self.results
            for interval in result.intervals
            if interval.population != BOTH
        )
        return (
            *filter(None, [*self.limits, self.admission.partial_note]),
            *_empty_answers(self.ratings),
            *family_cautions(families, units, rate),
            *items,
            *(f"{', '.join(dict.fromkeys(scopes))}: {note}." for note, scopes in limits.items()),
            *self.rivals_left_out,
        )

    def to_frame(self, name: str = "models") -> DataFrame:
        """Return one table of `write_analysis`, such as models, comparisons or participants.

        Raises:
            InputError: if there is no table of this name; the message lists the names.
        """
        from contstim.experiments.analysis.tables import named_frame, result_tables

        return named_frame(result_tables(self), name, "an analysis")

    def rivals_of(self, result: Result) -> Result | None:
        """Return the trivial rivals' result for the scope and measure of `result`, if it exists."""
        about = (result.scope, result.measure)
        return next((r for r in self.rivals if (r.scope, r.measure) == about), None)

    def result(self, scope: Scope, measure: Measure) -> Result:
        """Return the result of one measure in one scope.

        Raises:
            InputError: if the design has no trials of the scope, or the response scale does not
                permit the measure.
        """
        for result in self.results:
            if (result.scope, result.measure) == (scope, measure):
                return result
        require_measure(measure, self.ratings.scale)
        raise InputError(f"The design has no trials of the kind {scope}.")


def analyze(
    trials: Iterable[Trial],
    responses: Iterable[Response],
    scores: ScoreTable,
    *,
    contrasts: Sequence[ModelContrast] | None = None,
    exclusions: Exclusions | None = None,
    sampling: Sampling | None = None,
    unanimous: float = 0.9,
    worst: int = 5,
    rivals: tuple[Preferences, tuple[str, ...]] = ({}, ()),
    primary: Measure | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Analysis:
    """Analyse which model predicts people best, by the methods of Golan et al. (2023).

    Args:
        trials: trials of the design; see `read_trials`.
        responses: participants' responses; see `read_responses`.
        scores: log-probabilities of the trials' sentences under every model, nats.
        contrasts: the family of tests; by default all pairs of models, and each model against the
            lower noise ceiling.
        exclusions: rules for excluding participants, and whether unfinished sessions are used.
        sampling: units of the tests, confidence level of intervals, and correction for multiple
            tests. By default, the units are groups, if there are enough groups with different
            items. Otherwise, people and items are crossed random factors.
        unanimous: minimum share of people with the same preference in a nearly unanimous trial.
        worst: maximum number of failures (trials in which people contradict the model) to report
            for each model and scope.
        rivals: trivial rivals to report; see `trivial_rivals`.
        primary: measure whose value on all trials together is the primary outcome; by default the
            last measure of the scale.
        progress: called with the numbers of completed steps and of all steps.

    Raises:
        InputError: if responses, trials and scores do not match; if all participants are excluded;
            if all trials are catch trials; if the scale does not permit `primary`; or if a model is
            named `ceiling`.
    """
    if CEILING in scores.models:
        raise InputError(
            f"The name of a model must not be {CEILING!r}, which is the noise ceiling. Rename "
            "the model."
        )
    trials = tuple(trials)
    admission = admit(trials, tuple(responses), exclusions=exclusions)
    ratings = gather(trials, admission.responses, scores)
    if primary is not None:
        require_measure(primary, ratings.scale)
    all_ratings = ratings
    if admission.partial:
        all_ratings = gather(trials, admission.responses + admission.partial, scores, partial=True)
    sampling = sampling or Sampling()
    contrasts = contrasts or every_contrast(ratings.models)
    if sampling.units is None:
        sampling = replace(sampling, units=suited_units(ratings, contrasts, sampling))
    present = {trial.condition for trial in ratings.trials}
    if present == {Condition.CATCH}:
        raise InputError(
            "All trials are catch trials, which do not evaluate models. Analyse a design "
            "with other trials."
        )
    controversial = [condition for condition in CONTROVERSIAL if condition in present]
    measures, (preferences, rivals_left_out) = measures_of(ratings.scale), rivals
    steps = [(scope, measure) for scope in scopes_of(ratings) for measure in measures]
    results: list[Result] = []
    for step in steps:
        progress(len(results), len(steps))
        results.append(compare(ratings, *step, contrasts, sampling))
    progress(len(steps), len(steps))
    return Analysis(
        admission,
        ratings,
        scores,
        sampling,
        tuple(results),
        [
            row
            for c in controversial
            for m in measures
            for row in agreements.pair_results(ratings, c, m)
        ],
        {c: agreements.model_agreement(ratings, c) for c in Condition if c in present},
        {c: agreements.dominance(ratings, c) for c in controversial},
        agreements.role_preferences(ratings),
        agreements.near_unanimity(ratings, unanimous),
        unanimous,
        agreements.orientations(ratings),
        [
            row
            for scope in Scope
            if scope is not Scope.OVERALL
            for row in agreements.failures(ratings, scope, worst=worst)
        ],
        [*regressions(all_ratings, sampling.level)],
        tuple(filter(None, (judge_rivals(ratings, r, preferences, sampling) for r in results))),
        rivals_left_out,
        by_paradigm(ratings, sampling),
        primary,
    )


def _empty_answers(ratings: Ratings) -> Iterator[str]:
    values = np.unique(np.concatenate([group.ratings.ravel() for group in ratings.groups]))
    if len(values) == 1 and not ratings.n_missing:
        yield (
            f"Every rating is {values[0]:g}: results reflect the positions of the sentences, "
            "not preferences of people."
        )
    for row, model in enumerate(ratings.models):
        if not any(group.ratios[row].any() for group in ratings.groups):
            yield (
                f"{model} gives both sentences of every trial the same log-probability: its "
                "accuracy is always one half, and its signed-rank cosine always 0."
            )
