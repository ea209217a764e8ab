"""People and items of simulated experiments: calibrated to measured people, by kind of trial.

Two figures of a kind of trial say most of what an experiment will show there: how often people
choose as a model does (its accuracy), and how often they agree with one another (the noise
ceiling). The first fixes how strong the model's signal is, the second how much items vary beyond
it:

    accuracy   <-  signal              the stronger, the more often people choose as models do
    ceiling    <-  signal, items       what people share; items vary by as much as makes it up
    answers    <-  people, noise       what they do not share

How much items vary is known of the 2023 study itself, so that its ceilings are not asked.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.measures import signed_ranks
from contstim.experiments.analysis.ratings import Scope
from contstim.experiments.design import golan2023
from contstim.experiments.design.population import AS_MEASURED, CLOSE, DISTANT, Population
from contstim.files.documents import read_text
from contstim.files.records import record_path
from contstim.files.tables import cells_by_name, needed_columns, read_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from contstim.experiments.design.population import ScopedPreferences, TrialPreferences
    from contstim.files.arrays import BoolArray, FloatArray

_KINDS = (Scope.RANDOM, Scope.NATURAL, Scope.SYNTHETIC, Scope.MINIMAL, Scope.REJECT, Scope.ACCEPT)
_BEST = "the model that people followed most"
_LOWEST, _HIGHEST = 0.51, 0.99  # where all people of a small pilot agree, nearly all people do
_MOST_ITEMS = 8.0  # standard deviation of items beyond which people agree on every item
_RIDGE = (0.0005, 0.05)  # keeps models that say much the same from weights of contrary sign
_CLOSE = 0.01  # how far accuracies and ceilings may lie from what was measured


@dataclass(frozen=True)
class MeasuredKind:
    """Measurements of people on one kind of trials.

    Attributes:
        ceiling: how often one person agrees with the majority of the others, on the trials of the
            model that people followed most.
        accuracy: share of their choices that this model predicts.
        rivals: the accuracies of other models on their own trials, descending.
        raters: how many people saw each trial.
        items: how much items vary beyond what that model says, in standard deviations of single
            answers, what other models say of them included; None: by as much as makes up the
            ceiling.
        of_models: model → accuracy, of every model, where the study evaluated them.
        ceilings: model → ceiling on its own trials, likewise.
    """

    ceiling: float
    accuracy: float
    rivals: Sequence[float]
    raters: int
    items: float | None = None
    of_models: Mapping[str, float] = field(default_factory=dict)
    ceilings: Mapping[str, float] = field(default_factory=dict)


def _published() -> dict[Scope, MeasuredKind]:
    kinds = {
        Scope(name): MeasuredKind(ceiling, best, rivals, golan2023.PUBLISHED_RATERS, items)
        for name, (ceiling, items, (best, *rivals)) in golan2023.PUBLISHED_KINDS.items()
    }
    # Nobody was shown minimal pairs: pairs of natural sentences come nearest
    return {**kinds, Scope.MINIMAL: kinds[Scope.NATURAL]}


@dataclass(frozen=True)
class MeasuredPeople:
    """Measurements of people that simulated people are calibrated to.

    Attributes:
        kinds: by kind of trial.
        following: standard deviation of how far people follow models, as a share of the mean.
        source: where this was measured.
        best: the model that people followed most.
        simulated: whether participants of that study were artificial.
    """

    kinds: Mapping[Scope, MeasuredKind] = field(default_factory=_published)
    following: float = golan2023.PUBLISHED_FOLLOWING
    source: str = "experiment 1 of Golan et al. (2023), on the trials of GPT-2, " + _BEST
    best: str = "GPT-2"
    simulated: bool = False

    def with_random(self, ceiling: float) -> MeasuredPeople:
        """The same with another ceiling on random natural pairs."""
        source = f"{self.source} (random natural pairs: {ceiling:g}, as given)"
        random = replace(self.kinds[Scope.RANDOM], ceiling=ceiling, items=None)
        return replace(self, kinds={**self.kinds, Scope.RANDOM: random}, source=source)

    def knows(self, study: ScopedPreferences) -> bool:
        """True if every model of a design was evaluated, on every kind of its trials."""
        return all(
            model in self.kinds[scope].of_models
            for scope in _KINDS
            if scope in study.evaluates
            for model, own in zip(study.every.models, study.evaluates[scope].T, strict=True)
            if own.any()
        )


def read_measured(folder: Path | str) -> MeasuredPeople:
    """Measurements of people in a pilot or an earlier study, from what `analyze` wrote of it.

    Noise ceilings are those of the model with the highest accuracy over all trials, on its own
    trials. Kinds of trials that it lacks have the published ones.

    Args:
        folder: with tables/models.csv and tables/groups.csv.

    Raises:
        InputError: a table is missing or damaged, or has no noise ceiling of that model.
    """
    tables = Path(folder) / "tables"
    models = _rows(tables / "models.csv", ("scope", "measure", "model", "value", "lower"))
    groups = _rows(tables / "groups.csv", ("n_participants",))
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
            f"{folder} does not hold what `analyze` writes of an experiment: {error}. Give the "
            "folder that it wrote."
        ) from error
    lacking = [str(scope) for scope in kinds if not np.isfinite(ceilings[scope][best])]
    if lacking or not kinds:
        raise InputError(
            f"{folder} has no noise ceilings of {best} for {', '.join(lacking) or 'any trials'}: "
            "they need two participants or more in a group."
        )
    # Nobody is compared with others where a participant is alone.
    raters = round(float(np.mean([size for size in sizes if size > 1])))
    measured, notes, published = {}, [], _published()
    for scope in kinds:
        limited = {name: min(max(x, _LOWEST), _HIGHEST) for name, x in ceilings[scope].items()}
        if limited[best] != ceilings[scope][best]:
            notes.append(f"; {scope}: {limited[best]:g} in place of {ceilings[scope][best]:g}")
        of_models = accuracies[scope]
        rivals = sorted((x for name, x in of_models.items() if name != best), reverse=True)
        rivals = rivals or list(published[scope].rivals)
        both = (limited[best], of_models[best])
        measured[scope] = MeasuredKind(*both, rivals, raters, None, of_models, limited)
    if others := [str(scope) for scope in _KINDS if scope not in kinds]:
        notes.append(f"; {', '.join(others)}, which it lacks: as published")
    record = record_path(Path(folder) / "report.html")
    facts = json.loads(read_text(record)) if record.is_file() else {}
    return MeasuredPeople(
        {**published, **measured},
        source=f"{folder}, on the trials of {best}, {_BEST}{''.join(notes)}",
        best=best,
        simulated=bool(isinstance(facts, dict) and facts.get("simulated_participants", 0)),
    )


def _rows(path: Path, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    table = read_table(path)
    needed_columns(path, table, columns)
    return cells_by_name(table)


Populations: TypeAlias = "dict[Scope, list[Population]]"


def calibrate(
    study: ScopedPreferences, measured: MeasuredPeople
) -> tuple[Populations, list[tuple[Scope, str]]]:
    """People who choose as models do, and agree with one another, as often as measured people.

    Where every model was measured on every kind of trial, people follow all models, weighted so
    that each predicts them as well as it did there. Else each model in turn is planted: people
    follow it alone, and on its own trials it predicts them as well as the best model of the
    measured study did. Its rivals are distant, or close: people follow them too, weighted so that
    they lie as far behind it as others did behind the best; the more often a model prefers the same
    sentence as the planted one, the closer. With fewer or more models than were measured, their
    accuracies are spread alike. A model's signal is the signed rank of its ratio among the trials
    of a kind.

    Where natural stands against synthetic, a planted model with distant rivals has one weight, by
    the trials in which it rejects the synthetic sentence; items vary as people agree where it
    accepts that, and where it rejects it.

    Returns:
        Scope → the people, with the scope's trials: those whom each model in turn predicts best,
        with distant and with close rivals; or a single population, whom each model predicts as well
        as in the pilot. And (scope, name of the population) whose ceiling or accuracy cannot be
        had; close rivals come as near to theirs as scores allow, and are not listed.

    Raises:
        InputError: a ceiling is not between .5 and 1, or fewer than two raters saw a trial.
    """
    kinds = [scope for scope in _KINDS if scope in study.evaluates]
    for scope in kinds:
        known = measured.kinds[scope]
        if not 0.5 < known.ceiling < 1 or known.raters < 2:
            raise InputError(
                "A noise ceiling is more than .5 and less than 1, and compares 2 participants or "
                f"more; that of {scope} is {known.ceiling:g}, with {known.raters}."
            )
    if measured.knows(study):
        fits = {(AS_MEASURED, ""): _as_measured(study, measured, kinds)}
    else:
        names = study.every.models
        fits = {(name, DISTANT): _planted(study, measured, name, kinds) for name in names}
        fits |= {(name, CLOSE): _among_rivals(study, measured, name, kinds) for name in names}
    populations: Populations = {scope: [] for scope in study.evaluates}
    unreached: list[tuple[Scope, str]] = []
    for (name, rivals), of_kinds in fits.items():
        # All trials together: each as in its own kind; where natural stands against synthetic, in
        # between what was fitted to models that accept and to those that reject in these trials.
        signal, item_sd, counts = np.zeros((3, len(study.every.groups)))
        for scope, (own_signal, own_sd, reached) in of_kinds:
            people = Population(name, own_signal, own_sd, measured.following, rivals)
            populations[scope].append(people)
            unreached += [] if reached or rivals == CLOSE else [(scope, name)]
            rows = study.rows(scope)
            signal[rows] += own_signal
            item_sd[rows] += own_sd
            counts[rows] += 1
        if Scope.OVERALL in populations:
            every = Population(name, signal / counts, item_sd / counts, measured.following, rivals)
            populations[Scope.OVERALL].append(every.of_trials(study.rows(Scope.OVERALL)))
    return populations, unreached


_OfTrials: TypeAlias = "tuple[FloatArray, FloatArray, bool]"
"""(n_trials,) signal and spread of items, and whether these people are as measured."""


def _planted(
    study: ScopedPreferences, measured: MeasuredPeople, name: str, kinds: Sequence[Scope]
) -> Iterator[tuple[Scope, _OfTrials]]:
    """People who follow one model."""
    model = study.every.models.index(name)
    rejecting: tuple[FloatArray, float] | None = None
    for scope in kinds:
        trials, known = study.of_scope(scope), measured.kinds[scope]
        # Where no trial targets the model, it is calibrated on those that target others.
        own = trials.evaluates[:, [model]]
        aim = _Aim(
            _signals(trials)[:, [model]],
            own if own.any() else ~own,
            np.array([known.accuracy]),
            known.ceiling,
            0,
            known,
            measured.following,
        )
        fixed = rejecting if scope is Scope.ACCEPT else None
        weights, spread, reached = _fit(aim, None if fixed is None else fixed[0])
        item_sd = np.full(len(aim.signals), spread)
        if fixed is not None:
            item_sd[~aim.own[:, 0]] = fixed[1]  # where it does not accept, it rejects
        if scope is Scope.REJECT:
            rejecting = weights, spread
        yield scope, (aim.signals @ weights, item_sd, reached)


def _as_measured(
    study: ScopedPreferences, measured: MeasuredPeople, kinds: Sequence[Scope]
) -> Iterator[tuple[Scope, _OfTrials]]:
    """People whom each model predicts as well as in the pilot."""
    for scope in kinds:
        trials, known = study.of_scope(scope), measured.kinds[scope]
        targeted = [m for m, own in enumerate(trials.evaluates.T) if own.any()]
        names, accuracies = [trials.models[m] for m in targeted], known.of_models
        judge = measured.best if measured.best in names else max(names, key=lambda n: accuracies[n])
        aim = _Aim(
            _signals(trials)[:, targeted],
            trials.evaluates[:, targeted],
            np.array([accuracies[name] for name in names]),
            known.ceilings.get(judge, known.ceiling),
            names.index(judge),
            known,
            measured.following,
        )
        weights, spread, reached = _fit(aim)
        yield scope, (aim.signals @ weights, np.full(len(aim.signals), spread), reached)


def _among_rivals(
    study: ScopedPreferences, measured: MeasuredPeople, name: str, kinds: Sequence[Scope]
) -> Iterator[tuple[Scope, _OfTrials]]:
    """People who follow one model most, and others nearly as far; see `calibrate`."""
    models, sides = study.every.models, study.every.sides
    alike = (sides == sides[:, [models.index(name)]]).mean(axis=0)
    others = [other for other in models if other != name]
    others.sort(key=lambda other: -alike[models.index(other)])
    # Of as many rivals as were measured, exactly their accuracies
    places = 1 - (np.arange(len(others)) + 0.5) / len(others)
    aimed = {}
    for scope in kinds:
        known = measured.kinds[scope]
        rivals = np.quantile(known.rivals, places, method="hazen").tolist()
        of_models = {name: known.accuracy, **dict(zip(others, rivals, strict=True))}
        aimed[scope] = replace(known, of_models=of_models, ceilings={})
    return _as_measured(study, replace(measured, kinds=aimed, best=name), kinds)


_Fitted: TypeAlias = "tuple[FloatArray, float, bool]"
"""The weight of each model, (n_models,), the standard deviation of items, and success."""


@dataclass(frozen=True, eq=False)
class _Aim:
    """Target of the calibration of people to one kind of trials.

    Attributes:
        signals: (n_trials, n_models).
        own: (n_trials, n_models), which trials evaluate which model.
        accuracies: (n_models,).
        ceiling: the lower noise ceiling, on the trials of model `judge`.
        judge: its index.
        known: raters, and how much items vary beyond what model `judge` says.
        following: how people differ.
    """

    signals: FloatArray
    own: BoolArray
    accuracies: FloatArray
    ceiling: float
    judge: int
    known: MeasuredKind
    following: float

    def population(self, weights: FloatArray, item_sd: float) -> Population:
        """People who follow models by such weights."""
        items = np.full(len(self.signals), item_sd)
        return Population("", self.signals @ weights, items, self.following)

    def misses(self, weights: FloatArray, item_sd: float) -> FloatArray:
        """(n_models,) accuracies less what they should be."""
        p = self.population(weights, item_sd).choice_probabilities()
        accuracies: FloatArray = 0.5 + (p - 0.5) @ self.sides / self.own.sum(axis=0)
        return accuracies - self.accuracies

    @cached_property
    def sides(self) -> FloatArray:
        """(n_trials, n_models) which sentences models prefer; 0 in trials that are not theirs."""
        return np.sign(self.signals) * self.own

    def solved(self, residuals: Callable[[FloatArray], Sequence[FloatArray]]) -> FloatArray:
        """Weights, (n_models,), for which residuals are least."""
        from scipy.optimize import least_squares

        start = np.full(len(self.accuracies), 1.0 / len(self.accuracies))
        weights: FloatArray = least_squares(lambda w: np.concatenate(residuals(w)), start).x
        return weights


def _fit(aim: _Aim, weights: FloatArray | None = None) -> _Fitted:
    """Weights of the models by their accuracies, and the spread of items.

    Args:
        aim: what should come out.
        weights: (n_models,), if they are fixed; accuracies are then not looked at.
    """
    if aim.known.items is None:
        return _fit_to_ceiling(aim, weights)
    # What other models say of items is a part of how much they vary beyond the judge
    total, of_judge = aim.known.items, aim.signals[:, aim.judge]
    along = of_judge @ aim.signals / max(float(of_judge @ of_judge), 1e-12)
    beside = aim.signals - np.outer(of_judge, along)

    def parts(weights: FloatArray) -> tuple[float, float]:
        told = float(np.sqrt(np.square(beside @ weights).mean()))
        return told - total, float(np.sqrt(max(0.0, total**2 - told**2)))

    def residuals(weights: FloatArray) -> list[FloatArray]:
        excess, untold = parts(weights)
        return [aim.misses(weights, untold), _RIDGE[0] * weights, np.array([max(0.0, excess)])]

    if weights is not None:
        return weights, parts(weights)[1], True
    fitted = aim.solved(residuals)
    untold = parts(fitted)[1]
    return fitted, untold, bool(np.abs(aim.misses(fitted, untold)).max() < _CLOSE)


def _fit_to_ceiling(aim: _Aim, weights: FloatArray | None) -> _Fitted:
    """The spread of items by the noise ceiling."""
    from scipy.optimize import brentq

    judged = np.flatnonzero(aim.own[:, aim.judge])

    def best_weights(item_sd: float, ridge: float) -> FloatArray:
        if weights is not None:
            return weights
        return aim.solved(lambda w: [aim.misses(w, item_sd), ridge * w])

    def excess(item_sd: float, ridge: float = _RIDGE[0]) -> float:
        people = aim.population(best_weights(item_sd, ridge), item_sd).of_trials(judged)
        return people.lower_ceiling(aim.known.raters) - aim.ceiling

    # The ceiling grows with the spread of items, from what models' signals alone make up. Where
    # these alone make up more, weights of contrary sign do: a firmer ridge keeps them smaller.
    item_sd, ridge = 0.0, _RIDGE[0]
    if excess(0.0) < 0:
        item_sd = _MOST_ITEMS
        if excess(item_sd) > 0:
            item_sd = float(brentq(excess, 0.0, _MOST_ITEMS, xtol=1e-6))
    elif weights is None and excess(0.0, _RIDGE[1]) < 0:
        ridge = float(np.exp(brentq(lambda r: excess(0.0, np.exp(r)), *np.log(_RIDGE), xtol=0.01)))
    fitted = best_weights(item_sd, ridge)
    close = weights is not None or np.abs(aim.misses(fitted, item_sd)).max() < _CLOSE
    return fitted, item_sd, bool(close and abs(excess(item_sd, ridge)) < _CLOSE)


def _signals(trials: TrialPreferences) -> FloatArray:
    """(n_trials, n_models): signed ranks of ratios among these trials, from -1 to 1."""
    return signed_ranks(trials.differences.T).T / len(trials.differences)
