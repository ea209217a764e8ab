"""Calibration of simulated people and items to measured people, by kind of trial.

People's preferences are the sum of a signal, item effects and noise (see `population`). The signal
is the part that models predict. Item effects are the part that all people share and that the signal
does not predict. For each kind of trial, two measurements determine the sizes of the signal and of
the item effects. The accuracy is how often people choose as a model does. The noise ceiling is how
often people agree with one another.

    accuracy   <-  signal                  a stronger signal gives a higher accuracy
    ceiling    <-  signal, item effects    stronger signals and item effects give a higher ceiling

Differences between people are not fitted: they have the published size. The default measurements
are from Golan et al. (2023). They include the standard deviation of item effects, which is
therefore not fitted to the ceilings.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.measures import signed_ranks
from contstim.experiments.analysis.ratings import Scope
from contstim.experiments.design.population import (
    AS_MEASURED,
    CLOSE,
    DISTANT,
    PUBLISHED_FOLLOWING,
    PUBLISHED_KINDS,
    PUBLISHED_RATERS,
    Population,
)
from contstim.files.documents import read_json_object
from contstim.files.records import record_path
from contstim.files.tables import cells_by_name, needed_columns, read_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from contstim.experiments.design.population import TrialPreferences
    from contstim.files.arrays import BoolArray, FloatArray

_KINDS = (Scope.RANDOM, Scope.NATURAL, Scope.SYNTHETIC, Scope.MINIMAL, Scope.REJECT, Scope.ACCEPT)
_BEST = "the model that participants followed most"
_MIN_CEILING, _MAX_CEILING = 0.51, 0.99  # measured noise ceilings are limited to this range
_MAX_ITEM_SD = 8.0  # with a larger standard deviation of item effects, people agree on every item
# A weight is the strength with which people follow a model. Without a penalty on weights, two
# similar models could get large weights of opposite sign. This is the penalty's range
_RIDGE = (0.0005, 0.05)
_TOLERANCE = 0.01  # tolerated distance of accuracies and ceilings from their targets


@dataclass(frozen=True)
class MeasuredKind:
    """Measurements of people on one kind of trials.

    The best model is the model that people followed most over all trials.

    Attributes:
        ceiling: noise ceiling, that is, the rate at which one person agrees with the majority of
            the others; measured on the trials that evaluate the best model.
        accuracy: share of people's choices that the best model predicts.
        rivals: accuracies of all other models, each on the trials that evaluate it, descending.
        raters: number of people who saw each trial.
        items: standard deviation of the item effects that the best model does not predict. These
            effects may be predicted by other models. The unit is the standard deviation of the
            noise of single answers. If None, the value is fitted to the ceiling.
        of_models: model → accuracy of the model, for all models of a pilot; empty for published
            measurements.
        ceilings: model → noise ceiling on the trials that evaluate it, for the models of
            `of_models`.
    """

    ceiling: float
    accuracy: float
    rivals: Sequence[float]
    raters: int
    items: float | None = None
    of_models: Mapping[str, float] = field(default_factory=dict)
    ceilings: Mapping[str, float] = field(default_factory=dict)


def _published_kinds() -> dict[Scope, MeasuredKind]:
    kinds = {
        Scope(name): MeasuredKind(ceiling, best, rivals, PUBLISHED_RATERS, items)
        for name, (ceiling, items, best, *rivals) in PUBLISHED_KINDS.items()
    }
    # There are no data on minimal pairs. Natural controversial pairs are the most similar kind
    return {**kinds, Scope.MINIMAL: kinds[Scope.NATURAL]}


@dataclass(frozen=True)
class MeasuredPeople:
    """Measurements of people to which simulated people are calibrated.

    Attributes:
        kinds: scope (kind of trials) → measurements on these trials.
        following: standard deviation, between people, of the strength with which they follow
            models. The unit is the mean strength.
        source: description of the measured study, for reports.
        best: the model that people followed most.
        simulated: whether artificial participants took part in the measured study.
    """

    kinds: Mapping[Scope, MeasuredKind] = field(default_factory=_published_kinds)
    following: float = PUBLISHED_FOLLOWING
    source: str = "experiment 1 of Golan et al. (2023), on the trials of GPT-2, " + _BEST
    best: str = "GPT-2"
    simulated: bool = False

    def with_random(self, ceiling: float) -> MeasuredPeople:
        """Return the measurements with another noise ceiling of random pairs.

        The standard deviation of the item effects of random pairs is then fitted to this ceiling.
        """
        source = f"{self.source} (random natural pairs: {ceiling:g}, as given)"
        random = replace(self.kinds[Scope.RANDOM], ceiling=ceiling, items=None)
        return replace(self, kinds={**self.kinds, Scope.RANDOM: random}, source=source)

    def knows(self, study: TrialPreferences) -> bool:
        """Return True if all accuracies that `study` needs were measured.

        These are, for each kind of trials in `study`, the accuracies of all models that trials of
        this kind evaluate.
        """
        return all(
            self.kinds[scope].of_models.keys() >= {*study.of_scope(scope).with_trials().models}
            for scope in _KINDS
            if scope in study.scopes
        )


def read_measured(folder: Path | str) -> MeasuredPeople:
    """Read measurements of people from the output of `analyze` for a pilot or an earlier study.

    The best model has the highest accuracy over all trials. The noise ceiling of a kind of trials
    is read for the trials that evaluate the best model. For kinds of trials that the analysis
    lacks, the values published for 2023 are used.

    Raises:
        InputError: if a table is missing or damaged; if report.html.meta.json is damaged; or if the
            model with the highest accuracy has no noise ceiling.
    """
    tables = Path(folder) / "tables"
    models = _read_rows(tables / "models.csv", ("scope", "measure", "model", "value", "lower"))
    groups = _read_rows(tables / "groups.csv", ("n_participants",))
    accuracies: dict[Scope, dict[str, float]] = {}
    ceilings: dict[Scope, dict[str, float]] = {}
    try:
        for row in models:
            if row["measure"] == "accuracy":
                scope, name = Scope(row["scope"]), row["model"]
                accuracies.setdefault(scope, {})[name] = float(row["value"])
                ceilings.setdefault(scope, {})[name] = float(row["lower"])
        if not all(0 <= x <= 1 for of_scope in accuracies.values() for x in of_scope.values()):
            raise ValueError("an accuracy is not a share from 0 to 1")
        overall = accuracies[Scope.OVERALL]
        best = max(overall, key=lambda name: overall[name])
        kinds = [scope for scope in _KINDS if best in accuracies.get(scope, {})]
        sizes = [int(row["n_participants"]) for row in groups]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{folder} is not the output folder of `contstim analyze`: {error}. Name such a folder."
        ) from error
    missing = [str(scope) for scope in kinds if not np.isfinite(ceilings[scope][best])]
    if missing or not kinds:
        raise InputError(
            f"{folder} has no noise ceilings of {best} for {', '.join(missing) or 'any trials'}: "
            "noise ceilings need at least two participants per group."
        )
    raters = round(float(np.mean([size for size in sizes if size > 1])))
    measured_kinds, notes, published = {}, [], _published_kinds()
    for scope in kinds:
        limited = {
            name: min(max(x, _MIN_CEILING), _MAX_CEILING) for name, x in ceilings[scope].items()
        }
        if limited[best] != ceilings[scope][best]:
            notes.append(
                f"; noise ceiling of {scope} limited to {limited[best]:g} "
                f"(measured: {ceilings[scope][best]:g})"
            )
        of_models = accuracies[scope]
        rivals = sorted((x for name, x in of_models.items() if name != best), reverse=True)
        rivals = rivals or list(published[scope].rivals)
        best_values = (limited[best], of_models[best])
        measured_kinds[scope] = MeasuredKind(*best_values, rivals, raters, None, of_models, limited)
    if published_scopes := [str(scope) for scope in _KINDS if scope not in kinds]:
        notes.append(
            f"; {', '.join(published_scopes)} (not in this analysis): values published for 2023"
        )
    record = record_path(Path(folder) / "report.html")
    facts = read_json_object(record) if record.is_file() else {}
    return MeasuredPeople(
        {**published, **measured_kinds},
        source=f"{folder}, on the trials of {best}, {_BEST}{''.join(notes)}",
        best=best,
        simulated=bool(facts.get("simulated_participants", 0)),
    )


def _read_rows(path: Path, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    table = read_table(path)
    needed_columns(path, table, columns)
    return cells_by_name(table)


Populations: TypeAlias = "dict[Scope, list[Population]]"


def calibrate(
    study: TrialPreferences, measured: MeasuredPeople
) -> tuple[Populations, list[tuple[Scope, str]]]:
    """Calibrate simulated people to the measured noise ceilings and accuracies of models.

    A model's signal is the signed rank of its log-probability ratio among the trials of a kind. The
    weight of a model is the strength with which people follow its signal.

    If each model was measured on all kinds of trials that evaluate this model, people follow all
    models. The weights then give each model its measured accuracy.

    Otherwise, people follow one model most, the planted model; its rivals are the other models.
    Each model in turn is the planted model, once with distant and once with close rivals. In both
    cases, the planted model has the accuracy of the best measured model, on the trials that
    evaluate the planted model. With distant rivals, people follow only the planted model. With
    close rivals, people follow the other models too, with weights that produce the accuracies of
    the measured rivals. The rival that agrees most with the planted model gets the highest of these
    accuracies, and so on. If the study has more or fewer models than were measured, accuracies are
    interpolated.

    In natural-synthetic trials, a planted model with distant rivals has a single weight. This
    weight is fitted to the trials in which the model rejects the synthetic sentence. One standard
    deviation of item effects is fitted to these trials. A second standard deviation is fitted to
    the trials in which the model accepts the synthetic sentence.

    Returns:
        Two values. The first is scope (kind of trials) → populations for these trials. If people
        follow all models as in the pilot, each scope has a single population. Otherwise, each scope
        has two populations for each planted model: one with distant, one with close rivals.

        The second value lists populations that cannot reach the measured ceiling and accuracy, as
        (scope, name of the population). Populations with close rivals get the nearest possible
        values and are never listed.

    Raises:
        InputError: if a ceiling is not between .5 and 1, or fewer than two raters saw a trial.
    """
    kinds = [scope for scope in _KINDS if scope in study.scopes]
    for scope in kinds:
        measured_kind = measured.kinds[scope]
        if not 0.5 < measured_kind.ceiling < 1 or measured_kind.raters < 2:
            raise InputError(
                "A noise ceiling must be above .5 and below 1, and needs at least 2 raters for "
                f"each trial, got {measured_kind.ceiling:g} and {measured_kind.raters} for {scope}."
            )
    if measured.knows(study):
        fits = {(AS_MEASURED, ""): _fit_as_measured(study, measured, kinds)}
    else:
        names = study.models
        fits = {(name, DISTANT): _fit_planted(study, measured, name, kinds) for name in names}
        fits |= {(name, CLOSE): _fit_close_rivals(study, measured, name, kinds) for name in names}
    populations: Populations = {scope: [] for scope in study.scopes}
    unreached: list[tuple[Scope, str]] = []
    for (name, rivals), of_kinds in fits.items():
        # In the scope of all trials (`OVERALL`), each trial has the values that were fitted to its
        # kind. A natural-synthetic trial belongs to two kinds, `ACCEPT` and `REJECT`, so it has the
        # mean of two fits.
        signal, item_sd, counts = np.zeros((3, len(study.groups)))
        for scope, (kind_signal, kind_sd, reached) in of_kinds:
            people = Population(name, kind_signal, kind_sd, measured.following, rivals)
            populations[scope].append(people)
            unreached += [] if reached or rivals == CLOSE else [(scope, name)]
            rows = study.rows(scope)
            signal[rows] += kind_signal
            item_sd[rows] += kind_sd
            counts[rows] += 1
        if Scope.OVERALL in populations:
            overall = Population(
                name, signal / counts, item_sd / counts, measured.following, rivals
            )
            populations[Scope.OVERALL].append(overall.of_trials(study.rows(Scope.OVERALL)))
    return populations, unreached


# Signal and standard deviation of item effects, both (n_trials,); True if targets were reached
_TrialFit: TypeAlias = "tuple[FloatArray, FloatArray, bool]"


def _fit_planted(
    study: TrialPreferences, measured: MeasuredPeople, name: str, kinds: Sequence[Scope]
) -> Iterator[tuple[Scope, _TrialFit]]:
    model = study.models.index(name)
    rejecting: tuple[FloatArray, float] | None = None
    for scope in kinds:
        trials, measured_kind = study.of_scope(scope), measured.kinds[scope]
        # If no trial of this kind evaluates the model, the trials of other models are used
        evaluated = trials.evaluates[:, [model]]
        target = _Aim(
            _signals(trials)[:, [model]],
            evaluated if evaluated.any() else ~evaluated,
            np.array([measured_kind.accuracy]),
            0,
            measured_kind,
            measured.following,
        )
        fixed = rejecting if scope is Scope.ACCEPT else None
        weights, spread, reached = _fit(target, None if fixed is None else fixed[0])
        item_sd = np.full(len(target.signals), spread)
        if fixed is not None:
            # Where the model does not accept the synthetic sentence, the standard deviation is that
            # of the trials in which the model rejects it
            item_sd[~target.evaluates[:, 0]] = fixed[1]
        if scope is Scope.REJECT:
            rejecting = weights, spread
        yield scope, (target.signals @ weights, item_sd, reached)


def _fit_as_measured(
    study: TrialPreferences, measured: MeasuredPeople, kinds: Sequence[Scope]
) -> Iterator[tuple[Scope, _TrialFit]]:
    for scope in kinds:
        trials, measured_kind = study.of_scope(scope).with_trials(), measured.kinds[scope]
        names, accuracies = trials.models, measured_kind.of_models
        judge = measured.best if measured.best in names else max(names, key=lambda n: accuracies[n])
        ceiling = measured_kind.ceilings.get(judge, measured_kind.ceiling)
        target = _Aim(
            _signals(trials),
            trials.evaluates,
            np.array([accuracies[name] for name in names]),
            names.index(judge),
            replace(measured_kind, ceiling=ceiling),
            measured.following,
        )
        weights, spread, reached = _fit(target)
        yield scope, (target.signals @ weights, np.full(len(target.signals), spread), reached)


def _fit_close_rivals(
    study: TrialPreferences, measured: MeasuredPeople, name: str, kinds: Sequence[Scope]
) -> Iterator[tuple[Scope, _TrialFit]]:
    models, sides = study.models, study.sides
    agreement = (sides == sides[:, [models.index(name)]]).mean(axis=0)
    other_models = [other_model for other_model in models if other_model != name]
    other_models.sort(key=lambda other_model: -agreement[models.index(other_model)])
    # If there are as many rivals as measured rivals, the accuracies at these quantiles are exactly
    # the measured accuracies
    quantiles = 1 - (np.arange(len(other_models)) + 0.5) / len(other_models)
    kinds_by_scope = {}
    for scope in kinds:
        measured_kind = measured.kinds[scope]
        rivals = np.quantile(measured_kind.rivals, quantiles, method="hazen").tolist()
        of_models = {name: measured_kind.accuracy, **dict(zip(other_models, rivals, strict=True))}
        kinds_by_scope[scope] = replace(measured_kind, of_models=of_models, ceilings={})
    return _fit_as_measured(study, replace(measured, kinds=kinds_by_scope, best=name), kinds)


@dataclass(frozen=True, eq=False)
class _Aim:
    """Target values of the calibration of people on one kind of trials.

    Attributes:
        signals: (n_trials, n_models), see `_signals`.
        evaluates: (n_trials, n_models), True if the trial evaluates the model.
        accuracies: (n_models,), target accuracies.
        judge: index of a model. The target noise ceiling applies to the trials that evaluate this
            model.
        measured: measurements, of which only `ceiling`, `raters` and `items` are used.
        following: see `MeasuredPeople.following`.
    """

    signals: FloatArray
    evaluates: BoolArray
    accuracies: FloatArray
    judge: int
    measured: MeasuredKind
    following: float

    def population(self, weights: FloatArray, item_sd: float) -> Population:
        items = np.full(len(self.signals), item_sd)
        return Population("", self.signals @ weights, items, self.following)

    def misses(self, weights: FloatArray, item_sd: float) -> FloatArray:
        """Return accuracies minus their targets, (n_models,)."""
        p = self.population(weights, item_sd).choice_probabilities()
        accuracies: FloatArray = 0.5 + (p - 0.5) @ self.sides / self.evaluates.sum(axis=0)
        return accuracies - self.accuracies

    @cached_property
    def sides(self) -> FloatArray:
        """Models' preferences, (n_trials, n_models): 1 for sentence_2, -1 for sentence_1.

        The value is 0 if a trial does not evaluate a model.
        """
        return np.sign(self.signals) * self.evaluates

    def solve_weights(self, residuals: Callable[[FloatArray], Sequence[FloatArray]]) -> FloatArray:
        """Return the weights, (n_models,), with the smallest sum of squared residuals."""
        from scipy.optimize import least_squares

        start = np.full(len(self.accuracies), 1.0 / len(self.accuracies))
        return np.asarray(least_squares(lambda w: np.concatenate(residuals(w)), start).x)


def _fit(aim: _Aim, weights: FloatArray | None = None) -> tuple[FloatArray, float, bool]:
    """Fit the standard deviation of item effects, and the weights that give the target accuracies.

    With fixed `weights`, (n_models,), target accuracies are ignored.

    Returns:
        Weights of the models, (n_models,); standard deviation of item effects; and whether the
        targets were reached.
    """
    if aim.measured.items is None:
        return _fit_to_ceiling(aim, weights)
    # The measured standard deviation includes item effects that the model `judge` does not predict,
    # but other models do. These effects are subtracted, because the signal already contains them
    total, judge_signal = aim.measured.items, aim.signals[:, aim.judge]
    slopes = judge_signal @ aim.signals / max(float(judge_signal @ judge_signal), 1e-12)
    residual_signals = aim.signals - np.outer(judge_signal, slopes)

    def parts(weights: FloatArray) -> tuple[float, float]:
        predicted_sd = float(np.sqrt(np.square(residual_signals @ weights).mean()))
        return predicted_sd - total, float(np.sqrt(max(0.0, total**2 - predicted_sd**2)))

    def residuals(weights: FloatArray) -> list[FloatArray]:
        excess, remaining_sd = parts(weights)
        return [
            aim.misses(weights, remaining_sd),
            _RIDGE[0] * weights,
            np.array([max(0.0, excess)]),
        ]

    if weights is not None:
        return weights, parts(weights)[1], True
    fitted = aim.solve_weights(residuals)
    remaining_sd = parts(fitted)[1]
    return fitted, remaining_sd, bool(np.abs(aim.misses(fitted, remaining_sd)).max() < _TOLERANCE)


def _fit_to_ceiling(aim: _Aim, weights: FloatArray | None) -> tuple[FloatArray, float, bool]:
    from scipy.optimize import brentq

    judge_rows = np.flatnonzero(aim.evaluates[:, aim.judge])

    def best_weights(item_sd: float, ridge: float) -> FloatArray:
        if weights is not None:
            return weights
        return aim.solve_weights(lambda w: [aim.misses(w, item_sd), ridge * w])

    def excess(item_sd: float, ridge: float = _RIDGE[0]) -> float:
        people = aim.population(best_weights(item_sd, ridge), item_sd).of_trials(judge_rows)
        return people.lower_ceiling(aim.measured.raters) - aim.measured.ceiling

    # The ceiling increases with the standard deviation of item effects. If similar models have
    # large weights of opposite sign, the ceiling can be above the target even without item effects.
    # A stronger penalty (ridge) then reduces the weights.
    item_sd, ridge = 0.0, _RIDGE[0]
    if excess(0.0) < 0:
        item_sd = _MAX_ITEM_SD
        if excess(item_sd) > 0:
            item_sd = float(brentq(excess, 0.0, _MAX_ITEM_SD, xtol=1e-6))
    elif weights is None and excess(0.0, _RIDGE[1]) < 0:
        ridge = float(np.exp(brentq(lambda r: excess(0.0, np.exp(r)), *np.log(_RIDGE), xtol=0.01)))
    fitted = best_weights(item_sd, ridge)
    is_close = weights is not None or np.abs(aim.misses(fitted, item_sd)).max() < _TOLERANCE
    return fitted, item_sd, bool(is_close and abs(excess(item_sd, ridge)) < _TOLERANCE)


def _signals(trials: TrialPreferences) -> FloatArray:
    """Return signed ranks of each model's log-probability ratios, (n_trials, n_models), -1 to 1."""
    return signed_ranks(trials.differences.T).T / len(trials.differences)
