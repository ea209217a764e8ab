"""The power of a whole design, as a page and as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.inference import THESE_ITEMS, Reach, family_cautions
from contstim.experiments.analysis.scopes import Scope
from contstim.experiments.design.calibration import Ceilings, Noise, calibrate
from contstim.experiments.design.discoveries import family_reach
from contstim.experiments.design.power import Power, simulate_power, thin, thinned
from contstim.experiments.design.simulated import preferences_by_scope
from contstim.reporting.report import Heading, Paragraph, Report, Table, code, strong
from contstim.tables import frame_of
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pandas import DataFrame

    from contstim.experiments.design.simulated import TrialPreferences
    from contstim.reporting.report import Part, Value
    from contstim.scores import ScoreTable
    from contstim.stimuli import Trial

_RATES = (0.8, 0.9, 0.95)
_SHARES = (8, 4, 2)
_COLUMNS = (
    *("scope", "planted", "model"),
    *("expected_accuracy", "significantly_better", "planted_first"),
)


@dataclass(frozen=True, eq=False)
class DesignPower:
    """The power of each kind of trial of a design.

    Attributes:
        models: their names, planted or compared.
        noise: of the participants where each model is planted.
        ceilings: the noise ceilings that they were calibrated to.
        groups: how many groups are simulated.
        participants: in each group.
        alpha: false discovery rate.
        scopes: what each kind of trial shows by itself, and all together (`overall`).
        smaller: scope → trials a group that it would have in a smaller experiment → how often the
            planted model is significantly better, averaged over all comparisons.
        reach: scope → what its family of tests can find, whatever people answer.
    """

    models: tuple[str, ...]
    noise: Noise
    ceilings: Ceilings
    groups: int
    participants: int
    alpha: float
    scopes: Mapping[Scope, Power]
    smaller: Mapping[Scope, Mapping[int, float]]
    reach: Mapping[Scope, Reach]

    @property
    def units(self) -> str:
        """What the tests compare: groups, or participants where there is one group."""
        return "groups" if self.groups > 1 else "participants"

    @property
    def cautions(self) -> tuple[str, ...]:
        """What limits the tests: too few units, or participants who all see the same items."""
        items = [THESE_ITEMS] if self.units == "participants" else []
        return (*family_cautions(self.reach.items(), self.units, self.alpha), *items)

    def to_frame(self) -> DataFrame:
        """A row for each scope, planted model and model; see `power_table`."""
        return frame_of(power_table(self))


def design_power(
    trials: Iterable[Trial],
    table: ScoreTable,
    *,
    ceilings: Ceilings | None = None,
    groups: int | None = None,
    participants: int = 10,
    simulations: int = 1000,
    alpha: float = 0.05,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> DesignPower:
    """Simulate an experiment with each model in turn as the human, by kind of trial.

    Args:
        trials: a design's.
        table: scores of all the trials' sentences under the models to be compared; catch trials
            need none.
        ceilings: lower noise ceilings that participants' noise is calibrated to, by kind of trial;
            by default those of the 2023 study.
        groups: see `simulate_power`.
        participants: see `simulate_power`.
        simulations: see `simulate_power`.
        alpha: see `simulate_power`.
        seed: see `simulate_power`.
        progress: told how many of how many simulations are done.

    Raises:
        InputError: a sentence or model has no scores, there are fewer than two models or no trials
            but catch trials, or a ceiling is impossible.
    """
    if len(table.models) < 2:
        raise InputError(
            "Power is simulated for two or more models; there are scores of "
            f"{', '.join(table.models)}. Score the trials under all models to be compared."
        )
    ceilings = ceilings or Ceilings()
    preferences = preferences_by_scope(trials, table)
    noise = calibrate(preferences, ceilings)
    # Each kind of trials with all its trials (None), and in smaller experiments with some a group.
    kinds = {scope: preferences.of_scope(scope) for scope in preferences.evaluates}
    runs = [(scope, size) for scope, kind in kinds.items() for size in (None, *_sizes(kind))]
    results: dict[tuple[Scope, int | None], Power] = {}
    for done, (scope, size) in enumerate(runs):
        if progress is not None:
            progress(done, len(runs))
        kind, kind_noise = kinds[scope], noise.of_trials[preferences.rows(scope)]
        if size is not None:
            rows = thinned(kind, size, seed=seed)
            kind, kind_noise = thin(kind, size, seed=seed), kind_noise[rows]
        results[scope, size] = simulate_power(
            kind,
            kind_noise,
            groups=groups,
            participants=participants,
            # averaged over all comparisons, smaller experiments need fewer simulations
            simulations=simulations if size is None else max(1, simulations // 4),
            alpha=alpha,
            seed=seed,
        )
    groups = groups or 1 + int(preferences.every.groups.max())
    return DesignPower(
        table.models,
        noise,
        ceilings,
        groups,
        participants,
        alpha,
        {scope: results[scope, None] for scope in kinds},
        {s: {n: results[s, n].mean_better for n in _sizes(kind)} for s, kind in kinds.items()},
        {s: family_reach(kind, groups, participants, alpha) for s, kind in kinds.items()},
    )


def _sizes(comparisons: TrialPreferences) -> list[int]:
    least = int(np.bincount(comparisons.groups).min())
    return sorted({least // share for share in _SHARES} - {0})


def power_table(power: DesignPower) -> dict[str, list[Any]]:
    """Columns scope, planted, model, expected_accuracy, significantly_better, planted_first.

    `significantly_better` is empty where the model is the planted one, and where so few groups
    cannot make anything significant.
    """
    rows = [
        (
            str(scope),
            planted,
            model,
            float(result.accuracy[i, j]),
            "" if i == j or power.reach[scope].cannot(power.units) else float(result.better[i, j]),
            float(result.first[i]),
        )
        for scope, result in power.scopes.items()
        for i, planted in enumerate(power.models)
        for j, model in enumerate(power.models)
    ]
    return {name: [row[place] for row in rows] for place, name in enumerate(_COLUMNS)}


def power_report(power: DesignPower) -> Report:
    """The power of a design as a page; what limits its tests comes first."""
    # Where no test can be significant, a rate of 0 would be misread: the page says so in its place.
    scopes = power.scopes.items()
    first: list[tuple[Value, ...]] = []
    significant: list[tuple[Value, ...]] = []
    for scope, result in scopes:
        needed = (result.trials_needed(rate) or "more" for rate in _RATES)
        trials, often = result.first_by_trials.shape[1], float(result.first.mean())
        first.append((scope, trials, often, *needed))
        cannot, smaller = power.reach[scope].cannot(power.units), power.smaller[scope]
        significant += [(scope, size, cannot or rate) for size, rate in smaller.items()]
        significant.append((scope, "all", cannot or result.mean_better))
    accuracy: list[tuple[Value, ...]] = [
        (model, *(float(result.accuracy[i, i]) for _, result in scopes))
        for i, model in enumerate(power.models)
    ]
    return Report(
        "Power of the experiment",
        (
            *(Paragraph((strong(caution),)) for caution in power.cautions),
            *_assumptions(power),
            Heading("Does the planted model come first?"),
            Paragraph(
                "How often it has the highest accuracy with all trials, and how many trials "
                "suffice for that to happen at a given rate, averaged over planted models."
            ),
            Table(("scope", "trials", "first", *(f"trials for {r:.0%}" for r in _RATES)), first),
            Heading("Is it significantly better?"),
            Paragraph(
                "Share of comparisons of the planted model with another one that become "
                "significant in its favour, by trials that a group sees."
            ),
            Table(("scope", "trials a group", "significant"), significant),
            Heading("Expected accuracy of the planted model"),
            Table(("planted", *(str(scope) for scope, _ in scopes)), accuracy),
        ),
    )


def _assumptions(power: DesignPower) -> Iterator[Part]:
    simulations = max(result.simulations for result in power.scopes.values())
    yield Paragraph(
        (
            f"Each of {counted(len(power.models), 'model')} in turn is planted as the human: "
            f"{counted(power.groups, 'group')} of {counted(power.participants, 'participant')} "
            "prefer what it prefers, with normal noise on the difference in log-probability. "
            f"{counted(simulations, 'simulated experiment')} a model, each analysed as the real "
            "one will be. Items are those of the design. ",
            *(code("overall"), " is all trials but catch trials."),
        )
    )
    yield Paragraph(
        "What is assumed: people are one of these models but for the noise, and on the trials "
        "that evaluate it they agree with one another as often as people did in "
        f"{power.ceilings.source} ({counted(power.ceilings.raters, 'participant')} a trial). Real "
        "people are none of the models, and items differ in much that no model says, so that real "
        "experiments show less: take these numbers as what the design could show at best. (On 36 "
        "natural controversial pairs of the 2023 study such a simulation names the planted model "
        ".99 of the time; real answers, drawn anew, name their first model .49 of the time.)"
    )
    noise = [
        (scope, power.ceilings.values[scope], f"{nats.min():.1f} to {nats.max():.1f}")
        for scope, nats in power.noise.of_scopes.items()
    ]
    yield Table(("scope", "noise ceiling", "noise (nats)"), noise)
    if Scope.ACCEPT in power.scopes:
        yield Paragraph(
            (
                code(Scope.ACCEPT),
                ": a model that accepts a synthetic sentence finds it about as likely as the "
                "natural one, and people who agree there follow something else than such "
                "differences. Simulated ones follow them, however small.",
            )
        )
    if power.noise.unreached:
        named = ", ".join(f"{model} in {scope}" for scope, model in power.noise.unreached)
        yield Paragraph(
            f"No noise lets people agree as often as that with these planted: {named}. There they "
            "follow the model without noise."
        )
