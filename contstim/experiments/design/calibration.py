"""How noisy simulated people are: calibrated to measured people, by kind of trial."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.scopes import Scope
from contstim.experiments.design.golan2023 import PUBLISHED_CEILINGS
from contstim.experiments.design.simulated import calibrate_noise
from contstim.tables import read_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contstim.arrays import FloatArray
    from contstim.experiments.design.simulated import ScopedPreferences

_KINDS = (Scope.RANDOM, Scope.NATURAL, Scope.SYNTHETIC, Scope.REJECT, Scope.ACCEPT)
_BEST = "the model that people followed most"


@dataclass(frozen=True)
class Ceilings:
    """How often one person agrees with the majority of the others, by kind of trial.

    Attributes:
        values: scope → lower noise ceiling, on the trials of the model that people followed most.
        raters: how many people saw each trial there.
        source: where they were measured.
    """

    values: Mapping[Scope, float] = field(
        default_factory=lambda: {Scope(name): value for name, value in PUBLISHED_CEILINGS.items()}
    )
    raters: int = 10
    source: str = "experiment 1 of Golan et al. (2023), on the trials of GPT-2, " + _BEST

    def with_random(self, value: float) -> Ceilings:
        """The same with another ceiling on random natural pairs."""
        source = f"{self.source} (random natural pairs: {value:g}, as given)"
        return replace(self, values={**self.values, Scope.RANDOM: value}, source=source)


def read_ceilings(folder: Path | str) -> Ceilings:
    """The lower noise ceilings of a pilot or an earlier study, from what `analyze` wrote of it.

    They are those of the model with the highest accuracy over all trials, on its own trials. Kinds
    of trials that it lacks have the published ones.

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
    try:
        # The best model by accuracy over all trials: of the models, people follow it most.
        rows = [row for row in models if row["measure"] == "accuracy"]
        overall = {row["model"]: float(row["value"]) for row in rows if row["scope"] == "overall"}
        best = max(overall, key=lambda name: overall[name])
        measured = {
            Scope(row["scope"]): float(row["lower"]) for row in rows if row["model"] == best
        }
        raters = round(float(np.mean([float(row["n_participants"]) for row in groups])))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{folder} does not hold what `analyze` writes of an experiment: {error}. Give the "
            "folder that was its --out."
        ) from error
    measured = {scope: value for scope, value in measured.items() if scope in _KINDS}
    lacking = [str(scope) for scope, value in measured.items() if not np.isfinite(value)]
    if lacking or not measured:
        raise InputError(
            f"{folder} has no noise ceilings of {best} for {', '.join(lacking) or 'any trials'}: "
            "they need two participants or more in a group."
        )
    source = f"{folder}, on the trials of {best}, {_BEST}"
    return Ceilings({**Ceilings().values, **measured}, raters, source)


def _rows(path: Path, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    table = read_table(path)
    missing = [name for name in columns if name not in table]
    if missing:
        raise InputError(
            f"{path} lacks the columns {', '.join(missing)}: it is not a table of `analyze`."
        )
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


@dataclass(frozen=True, eq=False)
class Noise:
    """The noise of simulated people, for each model that may be planted as the human.

    Attributes:
        of_trials: (n_trials, n_models) standard deviation, nats.
        of_scopes: scope → (n_models,) the same by kind of trial.
        unreached: (scope, model) whose ceiling no noise gives: there people follow the model
            wherever it prefers a sentence, and still agree less often.
    """

    of_trials: FloatArray
    of_scopes: Mapping[Scope, FloatArray]
    unreached: tuple[tuple[Scope, str], ...]


def calibrate(study: ScopedPreferences, ceilings: Ceilings) -> Noise:
    """The noise under which people agree on a planted model's own trials as measured people did.

    On random pairs these are all trials. In controversial conditions the noise that gives the
    ceiling on the trials that target the planted model is that of the whole condition; where
    natural stands against synthetic, trials in which it accepts the synthetic sentence have one
    noise, all others that of those in which it rejects it.

    Raises:
        InputError: a ceiling is not between .5 and 1, or fewer than two raters saw a trial.
    """
    every = study.every
    of_trials = np.full(every.differences.shape, np.nan)
    of_scopes: dict[Scope, FloatArray] = {}
    unreached = []
    for scope in _KINDS:
        if scope not in study.evaluates:
            continue
        evaluates = study.evaluates[scope]  # (n_trials, n_models)
        rows, ceiling = evaluates.any(axis=1), ceilings.values[scope]
        of_scopes[scope] = np.empty(len(every.models))
        for m, model in enumerate(every.models):
            # Where no trial targets the model, noise is calibrated on those that target others.
            mine = evaluates[:, m] if evaluates[:, m].any() else rows
            differences = every.differences[mine, m]
            try:
                noise = calibrate_noise(differences, ceiling, raters=ceilings.raters)
            except InputError:
                if not 0.5 < ceiling < 1 or ceilings.raters < 2:
                    raise
                # The ceiling is possible, but ties keep people from agreeing so often: next to no
                # noise, a millionth of the largest difference.
                finite = np.abs(differences[np.isfinite(differences)])
                noise = 1e-6 * (float(finite.max(initial=0.0)) or 1.0)
                unreached.append((scope, model))
            of_scopes[scope][m] = noise
            # REJECT comes before ACCEPT in `_KINDS` and fills all trials of their condition; those
            # in which the model accepts are then filled again.
            of_trials[evaluates[:, m] if scope is Scope.ACCEPT else rows, m] = noise
    return Noise(of_trials, of_scopes, tuple(unreached))
