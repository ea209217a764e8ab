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
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from contstim.documents import read_text
from contstim.errors import InputError
from contstim.experiments.analysis.measures import signed_ranks
from contstim.experiments.analysis.scopes import Scope
from contstim.experiments.design.golan2023 import (
    PUBLISHED_ACCURACIES,
    PUBLISHED_CEILINGS,
    PUBLISHED_FOLLOWING,
    PUBLISHED_ITEMS,
    PUBLISHED_RATERS,
)
from contstim.experiments.design.population import AS_MEASURED, CLOSE, DISTANT, Population
from contstim.records import record_path
from contstim.tables import read_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contstim.arrays import BoolArray, FloatArray
    from contstim.experiments.design.simulated import ScopedPreferences, TrialPreferences

_PUBLISHED = PUBLISHED_ACCURACIES.items()
_KINDS = (Scope.RANDOM, Scope.NATURAL, Scope.SYNTHETIC, Scope.REJECT, Scope.ACCEPT)
_BEST = "the model that people followed most"
_LOWEST, _HIGHEST = 0.51, 0.99  # where all people of a small pilot agree, nearly all people do
_MOST_ITEMS = 8.0  # standard deviation of items beyond which people agree on every item
_RIDGE = (0.0005, 0.05)  # keeps models that say much the same from weights of contrary sign
_CLOSE = 0.01  # how far accuracies and ceilings may lie from what was measured


@dataclass(frozen=True)
class MeasuredPeople:
    """Measurements of people, by kind of trial, that simulated people are calibrated to.

    Attributes:
        ceilings: scope → how often one person agrees with the majority of the others, on the trials
            of the model that people followed most.
        accuracies: scope → share of their choices that this model predicts.
        rivals: scope → the accuracies of other models on their own trials, descending.
        items: scope → how much items vary beyond what that model says, in standard deviations of
            single answers, what other models say of them included; where it is lacking, by as much
            as makes up the ceiling.
        of_models: scope → model → the same of every model, where the study evaluated them.
        ceilings_of_models: scope → model → the ceiling on its own trials, likewise.
        raters: scope → how many people saw each trial there.
        following: standard deviation of how far people follow models, as a share of the mean.
        source: where this was measured.
        best: the model that people followed most.
        simulated: whether participants of that study were artificial.
    """

    ceilings: Mapping[Scope, float] = field(
        default_factory=lambda: {Scope(name): value for name, value in PUBLISHED_CEILINGS.items()}
    )
    accuracies: Mapping[Scope, float] = field(
        default_factory=lambda: {Scope(name): best for name, (best, *_) in _PUBLISHED}
    )
    rivals: Mapping[Scope, Sequence[float]] = field(
        default_factory=lambda: {Scope(name): rivals for name, (_, *rivals) in _PUBLISHED}
    )
    items: Mapping[Scope, float] = field(
        default_factory=lambda: {Scope(name): value for name, value in PUBLISHED_ITEMS.items()}
    )
    of_models: Mapping[Scope, Mapping[str, float]] = field(default_factory=dict)
    ceilings_of_models: Mapping[Scope, Mapping[str, float]] = field(default_factory=dict)
    raters: Mapping[Scope, int] = field(
        default_factory=lambda: {Scope(name): PUBLISHED_RATERS for name in PUBLISHED_CEILINGS}
    )
    following: float = PUBLISHED_FOLLOWING
    source: str = "experiment 1 of Golan et al. (2023), on the trials of GPT-2, " + _BEST
    best: str = "GPT-2"
    simulated: bool = False

    def with_random(self, value: float) -> MeasuredPeople:
        """The same with another ceiling on random natural pairs."""
        source = f"{self.source} (random natural pairs: {value:g}, as given)"
        ceilings = {**self.ceilings, Scope.RANDOM: value}
        return replace(
            self, ceilings=ceilings, items=_without(self.items, Scope.RANDOM), source=source
        )

    def knows(self, study: ScopedPreferences) -> bool:
        """True if every model of a design was evaluated, on every kind of its trials."""
        return all(
            model in self.of_models.get(scope, {})
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
    models, groups = (
        _rows(Path(folder) / "tables" / f"{name}.csv", columns)
        for name, columns in (
            ("models", ("scope", "measure", "model", "value", "lower")),
            ("groups", ("n_participants",)),
        )
    )
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
            "folder that was its --out."
        ) from error
    lacking = [str(scope) for scope in kinds if not np.isfinite(ceilings[scope][best])]
    if lacking or not kinds:
        raise InputError(
            f"{folder} has no noise ceilings of {best} for {', '.join(lacking) or 'any trials'}: "
            "they need two participants or more in a group."
        )
    # Nobody is compared with others where a participant is alone.
    raters = round(float(np.mean([size for size in sizes if size > 1])))
    notes = [
        f"; {scope}: {min(max(ceilings[scope][best], _LOWEST), _HIGHEST):g} in place of "
        f"{ceilings[scope][best]:g}"
        for scope in kinds
        if not _LOWEST <= ceilings[scope][best] <= _HIGHEST
    ]
    others = [str(scope) for scope in _KINDS if scope not in kinds]
    notes += [f"; {', '.join(others)}, which it lacks: as published"] if others else []
    for of_models in ceilings.values():
        for name, ceiling in of_models.items():
            of_models[name] = min(max(ceiling, _LOWEST), _HIGHEST)
    published = MeasuredPeople()
    return replace(
        published,
        ceilings={**published.ceilings, **{scope: ceilings[scope][best] for scope in kinds}},
        accuracies={**published.accuracies, **{scope: accuracies[scope][best] for scope in kinds}},
        rivals={**published.rivals, **_rivals({scope: accuracies[scope] for scope in kinds}, best)},
        items=_without(published.items, *kinds),
        of_models={scope: accuracies[scope] for scope in kinds},
        ceilings_of_models={scope: ceilings[scope] for scope in kinds},
        raters={**published.raters, **dict.fromkeys(kinds, raters)},
        source=f"{folder}, on the trials of {best}, {_BEST}{''.join(notes)}",
        best=best,
        simulated=bool(_record(Path(folder)).get("simulated_participants", 0)),
    )


def _without(items: Mapping[Scope, float], *scopes: Scope) -> dict[Scope, float]:
    return {scope: value for scope, value in items.items() if scope not in scopes}


def _rivals(of_models: Mapping[Scope, Mapping[str, float]], best: str) -> dict[Scope, list[float]]:
    """Accuracies of all models but the best, descending, where there are any."""
    others = {
        scope: sorted((x for name, x in values.items() if name != best), reverse=True)
        for scope, values in of_models.items()
    }
    return {scope: values for scope, values in others.items() if values}


def _record(folder: Path) -> dict[str, Any]:
    """Record that `analyze` wrote of itself; empty where it is gone."""
    path = record_path(folder / "report.html")
    if not path.is_file():
        return {}
    facts = json.loads(read_text(path))
    return facts if isinstance(facts, dict) else {}


def _rows(path: Path, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    table = read_table(path)
    missing = [name for name in columns if name not in table]
    if missing:
        raise InputError(
            f"{path} lacks the columns {', '.join(missing)}: it is not a table of `analyze`."
        )
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


@dataclass(frozen=True, eq=False)
class CalibratedPeople:
    """The people that experiments are simulated with.

    Attributes:
        populations: scope → those whom each model in turn predicts best, with distant and with
            close rivals; or a single one, whom each model predicts as well as in the pilot. Each
            has the scope's trials.
        unreached: (scope, name of the population) whose ceiling or accuracy cannot be had. Close
            rivals come as near to theirs as scores allow, and are not listed.
    """

    populations: Mapping[Scope, tuple[Population, ...]]
    unreached: tuple[tuple[Scope, str], ...]


def calibrate(study: ScopedPreferences, measured: MeasuredPeople) -> CalibratedPeople:
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

    Raises:
        InputError: a ceiling is not between .5 and 1, or fewer than two raters saw a trial.
    """
    kinds = [scope for scope in _KINDS if scope in study.evaluates]
    for scope in kinds:
        if not 0.5 < measured.ceilings[scope] < 1 or measured.raters[scope] < 2:
            raise InputError(
                "A noise ceiling is more than .5 and less than 1, and compares 2 participants or "
                f"more; that of {scope} is {measured.ceilings[scope]:g}, with "
                f"{measured.raters[scope]}."
            )
    if measured.knows(study):
        fits = {(AS_MEASURED, ""): _as_measured(study, measured, kinds)}
    else:
        names = study.every.models
        fits = {(name, DISTANT): _planted(study, measured, name, kinds) for name in names}
        fits |= {(name, CLOSE): _among_rivals(study, measured, name, kinds) for name in names}
    populations: dict[Scope, list[Population]] = {scope: [] for scope in study.evaluates}
    unreached: list[tuple[Scope, str]] = []
    for (name, rivals), of_kinds in fits.items():
        # All trials together: each as in its own kind; where natural stands against synthetic, in
        # between what was fitted to models that accept and to those that reject in these trials.
        signal, item_sd, counts = np.zeros((3, len(study.every.groups)))
        for scope, population, reached in of_kinds:
            populations[scope].append(replace(population, rivals=rivals))
            unreached += [] if reached or rivals == CLOSE else [(scope, name)]
            rows = study.rows(scope)
            signal[rows] += population.signal
            item_sd[rows] += population.item_sd
            counts[rows] += 1
        if Scope.OVERALL in populations:
            every = Population(name, signal / counts, item_sd / counts, measured.following, rivals)
            populations[Scope.OVERALL].append(every.of_trials(study.rows(Scope.OVERALL)))
    return CalibratedPeople({s: tuple(own) for s, own in populations.items()}, tuple(unreached))


def _planted(
    study: ScopedPreferences, measured: MeasuredPeople, name: str, kinds: Sequence[Scope]
) -> Iterator[tuple[Scope, Population, bool]]:
    """People who follow one model: scope, population, and whether it is as measured."""
    model = study.every.models.index(name)
    rejecting = None
    for scope in kinds:
        trials = study.of_scope(scope)
        # Where no trial targets the model, it is calibrated on those that target others.
        own = trials.evaluates[:, [model]]
        aim = _Aim(
            _signals(trials)[:, [model]],
            own if own.any() else ~own,
            np.array([measured.accuracies[scope]]),
            measured.ceilings[scope],
            0,
            measured.raters[scope],
            measured.items.get(scope),
        )
        accepting = scope is Scope.ACCEPT and rejecting is not None
        fitted = _fit(aim, measured, None if rejecting is None or not accepting else rejecting[0])
        item_sd = np.full(len(aim.signals), fitted.item_sd)
        if rejecting is not None and accepting:
            item_sd[~aim.own[:, 0]] = rejecting[1]  # where it does not accept, it rejects
        if scope is Scope.REJECT:
            rejecting = fitted.weights, fitted.item_sd
        signal = aim.signals @ fitted.weights
        yield scope, Population(name, signal, item_sd, measured.following), fitted.reached


def _as_measured(
    study: ScopedPreferences, measured: MeasuredPeople, kinds: Sequence[Scope]
) -> Iterator[tuple[Scope, Population, bool]]:
    """People whom each model predicts as well as in the pilot."""
    for scope in kinds:
        trials, of_models = study.of_scope(scope), measured.of_models[scope]
        targeted = [m for m, own in enumerate(trials.evaluates.T) if own.any()]
        names = [trials.models[m] for m in targeted]
        judge = measured.best if measured.best in names else max(names, key=lambda n: of_models[n])
        ceilings = measured.ceilings_of_models.get(scope, {})
        aim = _Aim(
            _signals(trials)[:, targeted],
            trials.evaluates[:, targeted],
            np.array([of_models[name] for name in names]),
            ceilings.get(judge, measured.ceilings[scope]),
            names.index(judge),
            measured.raters[scope],
            measured.items.get(scope),
        )
        fitted = _fit(aim, measured)
        signal, item_sd = aim.signals @ fitted.weights, np.full(len(aim.signals), fitted.item_sd)
        yield scope, Population(AS_MEASURED, signal, item_sd, measured.following), fitted.reached


def _among_rivals(
    study: ScopedPreferences, measured: MeasuredPeople, name: str, kinds: Sequence[Scope]
) -> Iterator[tuple[Scope, Population, bool]]:
    """People who follow one model most, and others nearly as far; see `calibrate`."""
    models, sides = study.every.models, np.sign(study.every.differences)
    alike = (sides == sides[:, [models.index(name)]]).mean(axis=0)
    others = [other for other in models if other != name]
    others.sort(key=lambda other: -alike[models.index(other)])
    # Of as many rivals as were measured, exactly their accuracies
    places = 1 - (np.arange(len(others)) + 0.5) / len(others)
    of_models = {
        scope: {
            name: measured.accuracies[scope],
            **dict(
                zip(
                    others,
                    np.quantile(measured.rivals[scope], places, method="hazen").tolist(),
                    strict=True,
                )
            ),
        }
        for scope in kinds
    }
    aimed = replace(measured, of_models=of_models, ceilings_of_models={}, best=name)
    for scope, population, reached in _as_measured(study, aimed, kinds):
        yield scope, replace(population, name=name), reached


@dataclass(frozen=True, eq=False)
class _Aim:
    """Target of the calibration of people to one kind of trials.

    Attributes:
        signals: (n_trials, n_models).
        own: (n_trials, n_models), which trials evaluate which model.
        accuracies: (n_models,).
        ceiling: the lower noise ceiling, on the trials of model `judge`.
        judge: its place.
        raters: how many people saw each trial where that was measured.
        beyond: how much items vary beyond what model `judge` says; None: by as much as makes up
            the ceiling.
    """

    signals: FloatArray
    own: BoolArray
    accuracies: FloatArray
    ceiling: float
    judge: int
    raters: int
    beyond: float | None


class _Fitted(NamedTuple):
    """The weight of each model, (n_models,), the standard deviation of items, and success."""

    weights: FloatArray
    item_sd: float
    reached: bool


def _fit(aim: _Aim, measured: MeasuredPeople, weights: FloatArray | None = None) -> _Fitted:
    """Weights of the models by their accuracies, and the spread of items by the noise ceiling.

    Args:
        aim: what should come out.
        measured: how people differ.
        weights: (n_models,), if they are fixed; accuracies are then not looked at.
    """
    from scipy.optimize import brentq, least_squares

    judged = np.flatnonzero(aim.own[:, aim.judge])
    signs, counts = np.sign(aim.signals) * aim.own, aim.own.sum(axis=0)

    def population(weights: FloatArray, item_sd: float) -> Population:
        items = np.full(len(aim.signals), item_sd)
        return Population("", aim.signals @ weights, items, measured.following)

    def misses(weights: FloatArray, item_sd: float) -> FloatArray:
        p = population(weights, item_sd).choice_probabilities()
        accuracies: FloatArray = 0.5 + (p - 0.5) @ signs / counts
        return accuracies - aim.accuracies

    def best_weights(item_sd: float, ridge: float = _RIDGE[0]) -> FloatArray:
        if weights is not None:
            return weights
        start = np.full(len(aim.accuracies), 1.0 / len(aim.accuracies))
        fitted: FloatArray = least_squares(
            lambda w: np.concatenate([misses(w, item_sd), ridge * w]), start
        ).x
        return fitted

    if aim.beyond is not None:
        # What other models say of items is a part of how much they vary beyond the judge
        total, of_judge = aim.beyond, aim.signals[:, aim.judge]
        along = of_judge @ aim.signals / max(float(of_judge @ of_judge), 1e-12)
        beside = aim.signals - np.outer(of_judge, along)

        def told(weights: FloatArray) -> float:
            return float(np.sqrt(np.square(beside @ weights).mean()))

        def untold(weights: FloatArray) -> float:
            return float(np.sqrt(max(0.0, total**2 - told(weights) ** 2)))

        if weights is None:
            weights = least_squares(
                lambda w: np.concatenate(
                    [misses(w, untold(w)), _RIDGE[0] * w, [max(0.0, told(w) - total)]]
                ),
                np.full(len(aim.accuracies), 1.0 / len(aim.accuracies)),
            ).x
            reached = bool(np.abs(misses(weights, untold(weights))).max() < _CLOSE)
        else:
            reached = True
        return _Fitted(weights, untold(weights), reached)

    def excess(item_sd: float, ridge: float = _RIDGE[0]) -> float:
        of_judged = population(best_weights(item_sd, ridge), item_sd).of_trials(judged)
        return of_judged.lower_ceiling(aim.raters) - aim.ceiling

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
    close = weights is not None or np.abs(misses(fitted, item_sd)).max() < _CLOSE
    return _Fitted(fitted, item_sd, bool(close and abs(excess(item_sd, ridge)) < _CLOSE))


def _signals(trials: TrialPreferences) -> FloatArray:
    """(n_trials, n_models): signed ranks of ratios among these trials, from -1 to 1."""
    return signed_ranks(trials.differences.T).T / len(trials.differences)
