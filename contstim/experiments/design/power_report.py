"""The power of a design as a page, as tables and as a figure."""

from __future__ import annotations

from bisect import bisect_left
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis.families import FALSE_DISCOVERY_RATE
from contstim.experiments.analysis.tables import rows_table
from contstim.experiments.design.golan2023 import WORTH
from contstim.experiments.design.population import AS_MEASURED
from contstim.reporting.canvas import BLACK, BLUE, GREY, ORANGE, new_figure
from contstim.reporting.report import Heading, Paragraph, Report, Table, strong
from contstim.reporting.templates import passages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from matplotlib.figure import Figure

    from contstim.experiments.analysis.tables import Columns
    from contstim.experiments.design.power import DesignPower, Power
    from contstim.experiments.design.simulated_tests import Precision
    from contstim.reporting.report import Part, Picture, Value

_RATES = (0.8, 0.9, 0.95)
_MOST_GROUPS = 4096
_FACTORS = (0.25, 0.5, 1, 2, 4, 8)
_ACROSS = 3
_DIFFERENCES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_SHOWN = (0.008, 1.0)
ALTERNATIVE = (
    "The smallest difference of accuracies that is found in 80 % of experiments, by participants: "
    "where these rate the items that there are, and where they rate new items in new groups"
)


def power_report(power: DesignPower, picture: Picture | None = None) -> Report:
    """The power of a design as a page; what limits its tests comes first.

    Args:
        power: what was simulated.
        picture: what `power_figure` drew, if anything.
    """
    told = passages(
        *(__package__, "power.md.jinja"),
        power=power,
        worth=WORTH,
        rate=FALSE_DISCOVERY_RATE,
        best=_best(power),
        simulations=max(scope.planned.simulations for scope in power.scopes.values()),
        effect=f"{power.smallest_effect:g}",
    )
    cautions = (Paragraph((strong(caution),)) for caution in power.cautions)
    return Report(
        "Power of the experiment",
        (
            *cautions,
            *_assumptions(power, told),
            *_first(power, told),
            *_sizes(power, told),
            *([] if picture is None else [picture]),
            *_smallest(power, told),
            *_accuracies(power),
        ),
    )


def _best(power: DesignPower) -> str:
    return "the best model" if power.as_measured else "the planted model"


def _assumptions(power: DesignPower, told: Mapping[str, str]) -> Iterator[Part]:
    """Whom people follow, the aims of the calibration, and where they were missed."""
    rows: list[tuple[Value, ...]] = []
    for scope, people in power.populations.items():
        if known := power.measured.kinds.get(scope):
            items = np.concatenate([population.item_sd for population in people])
            spread = " to ".join(sorted({f"{items.min():.2f}", f"{items.max():.2f}"}))
            ceiling = ("–", "–") if known.items is not None else (known.ceiling, f"{known.raters}")
            measured = known.of_models.values() if power.as_measured else known.rivals
            best = () if power.as_measured else (known.accuracy,)
            ends = f"{min(measured):.3f} to {max(measured):.3f}"
            rows.append((scope, *ceiling, *best, ends, spread))
    rivals = () if power.as_measured else ("of close rivals",)
    header = ("scope", "noise ceiling", "raters", "accuracy", *rivals, "spread of items")
    yield from map(Paragraph, filter(None, (told["people"], told["rivals"])))
    yield Table(header, rows)
    yield Paragraph(told["spread"], note=True)
    yield from map(Paragraph, filter(None, (told["unreached"],)))


def _first(power: DesignPower, told: Mapping[str, str]) -> Iterator[Part]:
    """Rate at which the best model comes first, and is significantly better."""
    first: list[tuple[Value, ...]] = []
    significant: list[tuple[Value, ...]] = []
    for scope, of_scope in power.scopes.items():
        planned = of_scope.planned
        needed = (_needed(planned, rate) for rate in _RATES)
        trials, chance = len(planned.mean_first_by_trials), 1 / len(planned.models)
        first.append((scope, trials, _span(planned.range_first), chance, *needed))
        significant += [(scope, n, _span(rates)) for n, rates in of_scope.smaller.items()]
        significant.append((scope, "all", _span(planned.range_better)))
    yield Heading(f"Does {_best(power)} come first?")
    yield Paragraph(told["first"])
    rates = (f"trials for {rate:.0%}" for rate in _RATES)
    yield Table(("scope", "trials", "first", "chance", *rates), first)
    yield Heading("Is it significantly better?")
    yield Paragraph(told["better"])
    yield Table(("scope", "trials a group", "significant"), significant)


def _needed(result: Power, rate: float) -> str:
    """Trials from which on the favourite comes first that often, by what is assumed of rivals."""
    every = len(result.mean_first_by_trials)
    numbers = sorted(part.trials_needed(rate) or every + 1 for part in result.parts)
    texts = [f"{n:,}" if n <= every else f"more than {every:,}" for n in numbers]
    return " to ".join(dict.fromkeys(texts))


def _sizes(power: DesignPower, told: Mapping[str, str]) -> Iterator[Part]:
    """Gain from twice the people, or twice the items."""
    groups, each = power.groups, power.participants
    sizes = ((groups, each), (groups, 2 * each), (2 * groups, each))
    yield Heading("More people, or more items?")
    yield Paragraph(told["sizes"])
    rows: list[tuple[Value, ...]] = []
    for scope, of_scope in power.scopes.items():
        every = (*of_scope.sizes, of_scope.planned)
        results = {(size.groups, size.participants): size for size in every}
        detectable = [of_scope.precision.detectable(*size) for size in sizes]
        differ = np.isfinite(detectable).all() and detectable[1] != detectable[2]
        buy = ("items" if detectable[2] < detectable[1] else "people") if differ else "–"
        rates = (_span(results[size].range_better) for size in sizes)
        rows.append((scope, *rates, *detectable, strong(buy)))
    # The same tests in all scopes: they depend on numbers of groups alone.
    tests = [results[size].units for size in sizes]
    names = [f"{n_groups} × {people}" for n_groups, people in sizes]
    shares = (f"significant, {name} ({test})" for name, test in zip(names, tests, strict=True))
    yield Table(("scope", *shares, *(f"found from, {name}" for name in names), "buy"), rows)
    yield Paragraph(told["names"], note=True)
    if len(set(tests)) > 1:
        yield Paragraph((strong(told["tests"]),))


def _smallest(power: DesignPower, told: Mapping[str, str]) -> Iterator[Part]:
    """The smallest effect of interest: whether it would be found, or its absence be shown."""
    effect = power.smallest_effect
    yield Heading(f"A difference of {effect:g}: found if it is there, ruled out if it is not?")
    rows: list[tuple[Value, ...]] = []
    for scope, of_scope in power.scopes.items():
        error, least, _, *rates = of_scope.single_test(of_scope.planned, effect).values()
        standard_error = f"{error:.4f}" if np.isfinite(error) else "–"
        rows.append((scope, standard_error, least, *rates, *_groups_for(of_scope.precision, power)))
    single = ("standard error", "found from", f"finds {effect:g}", "shows equivalence")
    enough = ("groups to find it in 80 %", "groups to rule it out in 80 %")
    yield Table(("scope", *single, *enough), rows)
    yield Paragraph(told["smallest"])


def _groups_for(precision: Precision, power: DesignPower) -> list[Value]:
    """Groups for which a difference is found, and its absence shown, in 80 % of experiments."""
    needed: list[Value] = []
    for rate in (precision.power, precision.equivalence):

        def reached(groups: int, rate: Callable[[float, int, int], float] = rate) -> float:
            return rate(power.smallest_effect, groups, power.participants)

        numbers = range(1, _MOST_GROUPS + 1)
        enough = 1 + bisect_left(numbers, True, key=lambda n: reached(n) >= _RATES[0])
        if not np.isfinite(reached(power.groups)):
            needed.append("–")
        else:
            needed.append(f"{enough:,}" if enough in numbers else f"more than {_MOST_GROUPS:,}")
    return needed


def _accuracies(power: DesignPower) -> Iterator[Part]:
    planned = [of_scope.planned for of_scope in power.scopes.values()]
    names = dict.fromkeys(people.name for result in planned for people in result.populations)
    yield Heading(f"Expected accuracy of {_best(power)}")
    yield Table(
        ("people follow", *map(str, power.scopes)),
        [(name, *(_accuracy(result, name) for result in planned)) for name in names],
    )


def _accuracy(result: Power, name: str) -> str:
    people = [population for population in result.populations if population.name == name]
    if not people:
        return "–"  # no trial of this kind evaluates the model
    accuracies = [float(each.accuracy[each.favourite]) for each in people]
    text = _span((min(accuracies), max(accuracies)))
    return f"{result.models[people[0].favourite]} {text}" if name == AS_MEASURED else text


def _span(rates: tuple[float, float]) -> str:
    return " to ".join(dict.fromkeys(f"{rate:.3f}" for rate in rates))


def power_table(power: DesignPower) -> Columns:
    """A row for each scope, population, and model that is compared with another.

    `people` is the planted model, whose comparisons alone are listed, with distant and with close
    `rivals`, or `AS_MEASURED`.
    `significantly_better` is how often the test is significant in favour of `model`; `first` how
    often that is the model with the highest accuracy, empty where it is not expected to be.
    """
    return rows_table(
        {
            "scope": scope,
            "people": people.name,
            "rivals": people.rivals,
            "model": model,
            "other": other,
            "expected_accuracy": float(people.accuracy[i]),
            "expected_other": float(people.accuracy[j]),
            "significantly_better": float(people.better[i, j]),
            "first": people.first if i == people.favourite else "",
        }
        for scope, of_scope in power.scopes.items()
        for people in of_scope.planned.populations
        for (i, model), (j, other) in permutations(enumerate(of_scope.planned.models), 2)
        if people.name in (model, AS_MEASURED)
    )


def size_table(power: DesignPower) -> Columns:
    """A row for each scope and size of the experiment, as planned first.

    Rates have a low and a high end: with a planted model, by what is assumed of its rivals.
    `significantly_better` is an average over comparisons of the favourite with another model. What
    follows `first` is of one crossed test at .05 of two models that differ by as much, or do not.
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
    """For each scope, the smallest difference found, by participants and what they rate."""
    from matplotlib.ticker import NullLocator

    rows = -(-len(power.scopes) // _ACROSS)
    figure = new_figure(2.9 * _ACROSS, 2.2 * rows + 0.6)
    panels = figure.subplots(rows, _ACROSS, squeeze=False, sharex=True, sharey=True).ravel()
    each, groups = power.participants, power.groups
    # Whole people and whole groups; as planned stands in both lines.
    people = sorted({max(1, round(factor * each)) for factor in _FACTORS})
    more = sorted({max(1, round(factor * groups)) for factor in _FACTORS})
    for panel, (scope, of_scope) in zip(panels, power.scopes.items(), strict=False):
        precision = of_scope.precision
        # Before anything is drawn: limits cannot be found where no difference can be
        panel.set(title=str(scope), xscale="log", yscale="log", ylim=_SHOWN)
        for sizes, colour, label in (
            ([(groups, n) for n in people], ORANGE, "more people for the same items"),
            ([(n, each) for n in more], BLUE, "more groups, with items of their own"),
        ):
            found = [precision.detectable(*size) for size in sizes]
            panel.plot([g * n for g, n in sizes], found, "o-", color=colour, ms=3, label=label)
        planned, label = precision.detectable(groups, each), "as planned"
        panel.plot(groups * each, planned, "o", color=BLACK, ms=6, zorder=3, label=label)
        label = f"smallest effect of interest, {power.smallest_effect:g}"
        panel.axhline(power.smallest_effect, color=GREY, ls="--", label=label)
        if not np.isfinite(planned):
            panel.text(0.5, 0.5, "none can be found", ha="center", transform=panel.transAxes)
        for axis, places in ((panel.xaxis, [each * n for n in more]), (panel.yaxis, _DIFFERENCES)):
            axis.set_ticks(places, [f"{place:,g}" for place in places])
            axis.set_minor_locator(NullLocator())
    for panel in panels[len(power.scopes) :]:
        panel.set_visible(False)
    figure.supxlabel("participants in all")
    figure.supylabel("smallest difference of accuracies\nfound in 80 % of experiments")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False)
    return figure
