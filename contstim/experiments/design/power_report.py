"""The power of a design as a page, as tables and as a figure."""

from __future__ import annotations

from bisect import bisect_left
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis.families import FALSE_DISCOVERY_RATE
from contstim.experiments.analysis.tables import Columns, rows_table
from contstim.experiments.design.population import AS_MEASURED, WORTH
from contstim.reporting.canvas import BLACK, BLUE, GREY, ORANGE, new_figure
from contstim.reporting.report import Heading, Paragraph, Report, Table, strong
from contstim.reporting.templates import passages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from matplotlib.figure import Figure

    from contstim.experiments.design.power import DesignPower, Power
    from contstim.reporting.report import Part, Picture, Value

_TARGET_RATES = (0.8, 0.9, 0.95)
_MAX_GROUPS = 4096
_FACTORS = (0.25, 0.5, 1, 2, 4, 8)
_N_COLUMNS = 3
_DIFFERENCES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_Y_LIMITS = (0.008, 1.0)
ALTERNATIVE = (
    "Smallest difference of accuracies that is detected with a power of 80 %, by number of "
    "participants, for the same items and for new items in new groups"
)


def power_report(power: DesignPower, picture: Picture | None = None) -> Report:
    """Build the page on the power of a design; warnings are at its top."""
    texts = passages(
        *(__package__, "power.md.jinja"),
        power=power,
        worth=WORTH,
        rate=FALSE_DISCOVERY_RATE,
        best=_best_name(power),
        simulations=max(scope.planned.simulations for scope in power.scopes.values()),
        effect=f"{power.smallest_effect:g}",
    )
    cautions = (Paragraph((strong(caution),)) for caution in power.cautions)
    return Report(
        "Power of the experiment",
        (
            *cautions,
            *_assumptions(power, texts),
            *_first_parts(power, texts),
            *_size_parts(power, texts),
            *([] if picture is None else [picture]),
            *_smallest_effect_parts(power, texts),
            *_accuracies(power),
        ),
    )


def _best_name(power: DesignPower) -> str:
    return "the best model" if power.as_measured else "the planted model"


def _assumptions(power: DesignPower, texts: Mapping[str, str]) -> Iterator[Part]:
    rows: list[tuple[Value, ...]] = []
    for scope, people in power.populations.items():
        if kind := power.measured.kinds.get(scope):
            items = np.concatenate([population.item_sd for population in people])
            spread = " to ".join(sorted({f"{items.min():.2f}", f"{items.max():.2f}"}))
            to_ceiling = kind.items is None
            ceiling = (kind.ceiling, f"{kind.raters}") if to_ceiling else ("–", "–")
            measured = kind.of_models.values() if power.as_measured else kind.rivals
            best = () if power.as_measured else (kind.accuracy,)
            ends = f"{min(measured):.3f} to {max(measured):.3f}"
            rows.append((scope, *ceiling, *best, ends, spread))
    rivals = () if power.as_measured else ("of close rivals",)
    header = ("scope", "noise ceiling", "raters", "accuracy", *rivals, "spread of items")
    yield from map(Paragraph, filter(None, (texts["people"], texts["rivals"])))
    yield Table(header, rows)
    yield Paragraph(texts["spread"], note=True)
    yield from map(Paragraph, filter(None, (texts["unreached"],)))


def _first_parts(power: DesignPower, texts: Mapping[str, str]) -> Iterator[Part]:
    first: list[tuple[Value, ...]] = []
    significant: list[tuple[Value, ...]] = []
    for scope, of_scope in power.scopes.items():
        planned = of_scope.planned
        needed = (_needed_trials_text(planned, rate) for rate in _TARGET_RATES)
        trials, chance = len(planned.mean_first_by_trials), 1 / len(planned.models)
        first.append((scope, trials, _rates_text(planned.range_first), chance, *needed))
        significant += [(scope, n, _rates_text(rates)) for n, rates in of_scope.smaller.items()]
        significant.append((scope, "all", _rates_text(planned.range_better)))
    yield Heading(f"Does {_best_name(power)} come first?")
    yield Paragraph(texts["first"])
    rates = (f"trials for {rate:.0%}" for rate in _TARGET_RATES)
    yield Table(("scope", "trials", "first", "chance", *rates), first)
    yield Heading(f"Is {_best_name(power)} significantly better?")
    yield Paragraph(texts["better"])
    yield Table(("scope", "trials a group", "significant"), significant)


def _needed_trials_text(result: Power, rate: float) -> str:
    """Format `Power.trials_needed`, as a range if distant and close rivals give two numbers."""
    n_trials = len(result.mean_first_by_trials)
    numbers = sorted(part.trials_needed(rate) or n_trials + 1 for part in result.parts)
    texts = [f"{n:,}" if n <= n_trials else f"more than {n_trials:,}" for n in numbers]
    return " to ".join(dict.fromkeys(texts))


def _size_parts(power: DesignPower, texts: Mapping[str, str]) -> Iterator[Part]:
    groups, per_group = power.groups, power.participants
    sizes = ((groups, per_group), (groups, 2 * per_group), (2 * groups, per_group))
    yield Heading("More people, or more items?")
    yield Paragraph(texts["sizes"])
    rows: list[tuple[Value, ...]] = []
    for scope, of_scope in power.scopes.items():
        all_sizes = (*of_scope.sizes, of_scope.planned)
        results = {(size.groups, size.participants): size for size in all_sizes}
        detectable = [of_scope.precision.detectable(*size) for size in sizes]
        differ = np.isfinite(detectable).all() and detectable[1] != detectable[2]
        buy = ("items" if detectable[2] < detectable[1] else "people") if differ else "–"
        rates = (_rates_text(results[size].range_better) for size in sizes)
        rows.append((scope, *rates, *detectable, strong(buy)))
    # The kind of test depends only on the size, so the kinds in the last scope are those of all
    # scopes
    tests = [results[size].units for size in sizes]
    names = [f"{n_groups} × {people}" for n_groups, people in sizes]
    shares = (f"significant, {name} ({test})" for name, test in zip(names, tests, strict=True))
    yield Table(("scope", *shares, *(f"detectable, {name}" for name in names), "add"), rows)
    yield Paragraph(texts["names"], note=True)
    if len(set(tests)) > 1:
        yield Paragraph((strong(texts["tests"]),))


def _smallest_effect_parts(power: DesignPower, texts: Mapping[str, str]) -> Iterator[Part]:
    effect = power.smallest_effect
    yield Heading(f"Can a difference of {effect:g} be detected, or excluded?")
    rows: list[tuple[Value, ...]] = []
    for scope, of_scope in power.scopes.items():
        error, least, _, *rates = of_scope.single_test(of_scope.planned, effect).values()
        standard_error = f"{error:.4f}" if np.isfinite(error) else "–"
        powers = (of_scope.precision.power, of_scope.precision.equivalence)
        needed = (_groups_for(rate, power) for rate in powers)
        rows.append((scope, standard_error, least, *rates, *needed))
    single = ("standard error", "detects from", f"detects {effect:g}", "shows equivalence")
    aims = (f"detect {effect:g}", "show equivalence")
    enough = tuple(f"groups to {aim} with power 80 %" for aim in aims)
    yield Table(("scope", *single, *enough), rows)
    yield Paragraph(texts["smallest"])


def _groups_for(rate: Callable[[float, int, int], float], power: DesignPower) -> str:
    """Format the smallest number of groups for which `rate` is at least the lowest target rate."""

    def reached(groups: int) -> float:
        return rate(power.smallest_effect, groups, power.participants)

    if not np.isfinite(reached(power.groups)):
        return "–"
    numbers = range(1, _MAX_GROUPS + 1)
    n_needed = 1 + bisect_left(numbers, True, key=lambda n: reached(n) >= _TARGET_RATES[0])
    return f"{n_needed:,}" if n_needed in numbers else f"more than {_MAX_GROUPS:,}"


def _accuracies(power: DesignPower) -> Iterator[Part]:
    planned = [of_scope.planned for of_scope in power.scopes.values()]
    names = dict.fromkeys(people.name for result in planned for people in result.populations)
    yield Heading(f"Expected accuracy of {_best_name(power)}")
    yield Table(
        ("people follow", *map(str, power.scopes)),
        [(name, *(_accuracy(result, name) for result in planned)) for name in names],
    )


def _accuracy(result: Power, name: str) -> str:
    people = [population for population in result.populations if population.name == name]
    if not people:
        return "–"  # no trial of this scope evaluates the planted model
    accuracies = [float(population.accuracy[population.favourite]) for population in people]
    text = _rates_text((min(accuracies), max(accuracies)))
    return f"{result.models[people[0].favourite]} {text}" if name == AS_MEASURED else text


def _rates_text(rates: tuple[float, float]) -> str:
    return " to ".join(dict.fromkeys(f"{rate:.3f}" for rate in rates))


def power_table(power: DesignPower) -> Columns:
    """Return a row for each scope, population, and ordered pair of models.

    `people` is `AS_MEASURED`, or the planted model, which simulated people follow most. With a
    planted model, the column `model` contains only this model, and each pair has two rows: one for
    distant and one for close `rivals` (see `population`). `significantly_better` is the rate at
    which the test is significant in favour of `model`. `first` is the rate at which `model` has the
    highest accuracy; `first` is empty for all models except the favourite
    (`PopulationPower.favourite`).
    """
    return rows_table(
        {
            "scope": scope,
            "people": people.name,
            "rivals": people.rivals,
            "model": model,
            "other": rival,
            "expected_accuracy": float(people.accuracy[i]),
            "expected_other": float(people.accuracy[j]),
            "significantly_better": float(people.better[i, j]),
            "first": people.first if i == people.favourite else "",
        }
        for scope, of_scope in power.scopes.items()
        for people in of_scope.planned.populations
        for (i, model), (j, rival) in permutations(enumerate(of_scope.planned.models), 2)
        if people.name in (model, AS_MEASURED)
    )


def size_table(power: DesignPower) -> Columns:
    """Return a row for each scope and size of the experiment, with the planned size first.

    Each rate has two columns, its minimum and maximum over distant and close rivals (`population`).
    The rate `significantly_better` is a mean over all comparisons of the favourite (the planted or
    best model) with other models. Columns after `first_high` are results of one crossed test of
    people and items, at .05 (`ScopePower.single_test`).
    """
    return rows_table(
        {
            "scope": scope,
            "groups": size.groups,
            "participants_per_group": size.participants,
            "participants": size.groups * size.participants,
            "test": size.units,
            "significantly_better_low": better[0],
            "significantly_better_high": better[1],
            "first_low": first[0],
            "first_high": first[1],
            **{name: "" if np.isnan(x) else x for name, x in tests.items()},
        }
        for scope, of_scope in power.scopes.items()
        for size in (of_scope.planned, *of_scope.sizes)
        for better, first in [(size.range_better, size.range_first)]
        for tests in [of_scope.single_test(size, power.smallest_effect)]
    )


def power_figure(power: DesignPower) -> Figure:
    """Draw the smallest detectable difference against the number of participants, by scope."""
    from matplotlib.ticker import NullLocator

    rows = -(-len(power.scopes) // _N_COLUMNS)
    figure = new_figure(2.9 * _N_COLUMNS, 2.2 * rows + 0.6)
    panels = figure.subplots(rows, _N_COLUMNS, squeeze=False, sharex=True, sharey=True).ravel()
    per_group, groups = power.participants, power.groups
    # Numbers of people and groups are rounded; both lines contain the planned size
    people = sorted({max(1, round(factor * per_group)) for factor in _FACTORS})
    group_numbers = sorted({max(1, round(factor * groups)) for factor in _FACTORS})
    for panel, (scope, of_scope) in zip(panels, power.scopes.items(), strict=False):
        precision = of_scope.precision
        # Automatic limits fail if no difference is detectable
        panel.set(title=str(scope), xscale="log", yscale="log", ylim=_Y_LIMITS)
        for sizes, colour, label in (
            ([(groups, n) for n in people], ORANGE, "more people for the same items"),
            ([(n, per_group) for n in group_numbers], BLUE, "more groups, with new items"),
        ):
            detectable = [precision.detectable(*size) for size in sizes]
            panel.plot([g * n for g, n in sizes], detectable, "o-", color=colour, ms=3, label=label)
        planned, label = precision.detectable(groups, per_group), "as planned"
        panel.plot(groups * per_group, planned, "o", color=BLACK, ms=6, zorder=3, label=label)
        label = f"smallest effect of interest, {power.smallest_effect:g}"
        panel.axhline(power.smallest_effect, color=GREY, ls="--", label=label)
        if not np.isfinite(planned):
            panel.text(0.5, 0.5, "none detectable", ha="center", transform=panel.transAxes)
        for axis, ticks in (
            (panel.xaxis, [per_group * n for n in group_numbers]),
            (panel.yaxis, _DIFFERENCES),
        ):
            axis.set_ticks(ticks, [f"{tick:,g}" for tick in ticks])
            axis.set_minor_locator(NullLocator())
    for panel in panels[len(power.scopes) :]:
        panel.set_visible(False)
    figure.supxlabel("participants in total")
    figure.supylabel("smallest difference of accuracies\ndetected in 80 % of experiments")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False)
    return figure
