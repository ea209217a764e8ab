"""The power of a design as a page, as tables and as a figure."""

from __future__ import annotations

from bisect import bisect_left
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.experiments.design.population import AS_MEASURED
from contstim.reporting.canvas import BLACK, BLUE, GREY, ORANGE, new_figure
from contstim.reporting.report import Heading, Paragraph, Report, Table, code, strong
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from matplotlib.figure import Figure

    from contstim.experiments.design.power import DesignPower, Power
    from contstim.experiments.design.simulated_tests import Precision
    from contstim.reporting.report import Part, Picture, Value

_RATES = (0.8, 0.9, 0.95)
_MOST_GROUPS = 4096
_COLUMNS = (
    *("scope", "people", "rivals", "model", "other", "expected_accuracy", "expected_other"),
    *("significantly_better", "first"),
)
_SIZE_COLUMNS = (
    *("scope", "groups", "participants_per_group", "participants", "test"),
    *("significantly_better_low", "significantly_better_high", "first_low", "first_high"),
    *("standard_error", "detectable_difference"),
    *("smallest_effect", "detects_smallest_effect", "shows_equivalence"),
)
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
    cautions = (Paragraph((strong(caution),)) for caution in power.cautions)
    pictures = [] if picture is None else [picture]
    parts = (*cautions, *_assumptions(power), *_first(power), *_sizes(power), *pictures)
    return Report("Power of the experiment", (*parts, *_smallest(power), *_accuracies(power)))


def _best(power: DesignPower) -> str:
    return "the best model" if power.as_measured else "the planted model"


def _assumptions(power: DesignPower) -> Iterator[Part]:
    measured, planned = power.measured, [scope.planned for scope in power.scopes.values()]
    tests = "signed-rank tests over groups" if power.units == "groups" else "crossed tests"
    simulations = max(result.simulations for result in planned)
    if power.as_measured:
        whom = "People follow all models, each by so much that it predicts as many choices as in "
    else:
        whom = (
            f"Each of {counted(len(power.models), 'model')} in turn is planted: people follow it "
            "most, and it predicts as many of their choices as the best model did in "
        )
    yield Paragraph(
        (
            f"{whom}{measured.source}. Items vary beyond what models say: by as much as there or, "
            "where a noise ceiling is stated below, by as much as makes people agree with one "
            f"another so often. {counted(power.groups, 'group')} of "
            f"{counted(power.participants, 'participant')}, new people and new items in each of "
            f"{counted(simulations, 'simulated experiment')} of each kind (fewer for other sizes), "
            f"analysed with the defaults of analyze: {tests}, all pairs of models and noise "
            f"ceilings, a false-discovery rate of {power.alpha:g}. ",
            *(code("overall"), " is all trials but catch trials, as in analyze."),
        )
    )
    yield Paragraph(
        f"People differ in how far they follow models, by {measured.following:.0%} (standard "
        "deviation), as in experiment 1 of Golan et al. (2023)."
    )
    if not power.as_measured:
        yield Paragraph(
            "What decides is how close its rivals are, which nobody knows before: rates are given "
            "as ranges, between two assumptions. Close rivals lie as far behind the planted model "
            "as other models lay behind the best one where that was measured; two were within .01 "
            "of it on synthetic sentences in experiment 1 of Golan et al. (2023). Distant ones "
            "share with people only what they share with the planted model. For rivals as close "
            "as yours, give the analysis of a pilot, and see below for the smallest difference "
            "that the design finds."
        )
    rows: list[tuple[Value, ...]] = []
    for scope, people in power.calibration.populations.items():
        if known := measured.kinds.get(scope):
            items = np.concatenate([population.item_sd for population in people])
            spread = " to ".join(sorted({f"{items.min():.2f}", f"{items.max():.2f}"}))
            ceiling = ("–", "–")
            if known.items is None:
                ceiling = (f"{known.ceiling:.3f}", f"{known.raters}")
            aims = [f"{known.accuracy:.3f}", _ends(known.rivals)]
            if power.as_measured:
                aims = [_ends(known.of_models.values())]
            rows.append((scope, *ceiling, *aims, spread))
    rivals = () if power.as_measured else ("of close rivals",)
    yield Table(("scope", "noise ceiling", "raters", "accuracy", *rivals, "spread of items"), rows)
    note = "Spread of items: standard deviation beyond what models say, in that of single answers"
    if not power.as_measured:
        note += (
            "; the largest of these is beyond what the planted model says, of which close rivals "
            "tell a part. Where a model accepts the synthetic sentence, its accuracy is aimed at "
            "with close rivals alone"
        )
    yield Paragraph(f"{note}.", note=True)
    if power.calibration.unreached:
        named = ", ".join(f"{name} in {scope}" for scope, name in power.calibration.unreached)
        yield Paragraph(
            "Accuracy and noise ceiling cannot both be met, and the nearest values were taken: "
            f"{named}."
        )


def _first(power: DesignPower) -> Iterator[Part]:
    """Rate at which the best model comes first, and is significantly better."""
    first: list[tuple[Value, ...]] = []
    significant: list[tuple[Value, ...]] = []
    for scope, of_scope in power.scopes.items():
        planned = of_scope.planned
        trials, chance = len(planned.mean_first_by_trials), f"{1 / len(planned.models):.3f}"
        needed = map(_needed, repeat(planned), _RATES)
        first.append((scope, trials, _span(planned.range_first), chance, *needed))
        significant += [(scope, n, _span(rates)) for n, rates in of_scope.smaller.items()]
        significant.append((scope, "all", _span(planned.range_better)))
    yield Heading(f"Does {_best(power)} come first?")
    yield Paragraph(
        "How often it has the highest accuracy with all trials, and how many trials suffice for "
        "that to happen at a given rate."
    )
    rates = (f"trials for {rate:.0%}" for rate in _RATES)
    yield Table(("scope", "trials", "first", "chance", *rates), first)
    yield Heading("Is it significantly better?")
    yield Paragraph(
        f"Share of comparisons of {_best(power)} with another one that become significant in its "
        "favour, by trials that a group sees."
    )
    yield Table(("scope", "trials a group", "significant"), significant)


def _needed(result: Power, rate: float) -> str:
    """Trials from which on the favourite comes first that often, by what is assumed of rivals."""
    all_of_them = len(result.mean_first_by_trials)
    numbers = sorted(part.trials_needed(rate) or all_of_them + 1 for part in result.parts)
    texts = [f"{n:,}" if n <= all_of_them else f"more than {all_of_them:,}" for n in numbers]
    return " to ".join(dict.fromkeys(texts))


def _sizes(power: DesignPower) -> Iterator[Part]:
    """Gain from twice the people, or twice the items."""
    groups, each = power.groups, power.participants
    sizes = ((groups, each), (groups, 2 * each), (2 * groups, each))
    yield Heading("More people, or more items?")
    yield Paragraph(
        f"Another {counted(groups * each, 'participant')} can rate the same items, in the groups "
        "that there are, or new items, in new groups. What would either buy? The share of "
        "comparisons that become significant, and the smallest difference of accuracies that a "
        "single test at .05 finds in 80 % of experiments:"
    )
    rows: list[tuple[Value, ...]] = []
    buys = []
    for scope, of_scope in power.scopes.items():
        every = (*of_scope.sizes, of_scope.planned)
        results = {(size.groups, size.participants): size for size in every}
        detectable = [of_scope.precision.detectable(*size) for size in sizes]
        differ = np.isfinite(detectable).all() and detectable[1] != detectable[2]
        buys.append(("items" if detectable[2] < detectable[1] else "people") if differ else "–")
        rates = (_span(results[size].range_better) for size in sizes)
        rows.append((scope, *rates, *map(_number, detectable), strong(buys[-1])))
    # The same tests in all scopes: they depend on numbers of groups alone.
    tests = [results[size].units for size in sizes]
    names = [f"{groups_} × {people}" for groups_, people in sizes]
    shares = (f"significant, {name} ({test})" for name, test in zip(names, tests, strict=True))
    found = (f"found from, {name}" for name in names)
    yield Table(("scope", *shares, *found, "buy"), rows)
    advice = (
        " New items buy more on every kind of trial. Where participants are scarce, ask fewer in "
        "each group rather than leave out groups."
    )
    yield Paragraph(
        "Groups × participants in each: as planned, twice the people, twice the groups with items "
        "of their own; (groups): signed-rank tests over groups, (crossed): crossed tests, as "
        "analyze chooses them. A difference found is of one crossed test, not adjusted for others; "
        "–: the models cannot differ by so much, since they prefer the same sentence in too many "
        "trials, or too few trials tell how items scatter." + advice * (set(buys) == {"items"}),
        note=True,
    )
    if len(set(tests)) > 1:
        warning = (
            "The tests change with the number of groups, and signed-rank tests of few groups find "
            "less: to keep crossed tests, analyse with units: crossed."
        )
        yield Paragraph((strong(warning),))


def _smallest(power: DesignPower) -> Iterator[Part]:
    """The smallest effect of interest: whether it would be found, or its absence be shown."""
    effect = power.smallest_effect
    yield Heading(f"A difference of {effect:g}: found if it is there, ruled out if it is not?")
    rows: list[tuple[Value, ...]] = []
    for scope, of_scope in power.scopes.items():
        error, least, _, detects, shows = of_scope.single_test(of_scope.planned, effect)
        enough = _groups_for(of_scope.precision, power)
        rates = (_number(detects), _number(shows))
        rows.append((scope, _number(error, 4), _number(least), *rates, *enough))
    yield Table(
        (
            *("scope", "standard error", "found from", f"finds {effect:g}"),
            *("shows equivalence", "groups to find it in 80 %", "groups to rule it out in 80 %"),
        ),
        rows,
    )
    yield Paragraph(
        f"One crossed test at .05 of two models whose accuracies differ by {effect:g}; and, where "
        f"they do not differ, how often the 90 % interval lies within ±{effect:g}, so that the two "
        "are shown to be equivalent (two one-sided tests, Schuirmann 1987). Means over pairs of "
        "models. Single tests: analyze adjusts both over all contrasts of a kind of trials, which "
        "asks for more, unless few contrasts are planned. Groups of "
        f"{counted(power.participants, 'participant')}, with items of their own."
    )


def _groups_for(precision: Precision, power: DesignPower) -> list[Value]:
    """Groups for which a difference is found, and its absence shown, in 80 % of experiments."""
    needed: list[Value] = []
    for rate in (precision.power, precision.equivalence):

        def lacks(groups: int, rate: Callable[[float, int, int], float] = rate) -> bool:
            return rate(power.smallest_effect, groups, power.participants) < _RATES[0]

        few, enough = 0, 1
        while lacks(enough) and enough < _MOST_GROUPS:
            few, enough = enough, 2 * enough
        if not np.isfinite(rate(power.smallest_effect, power.groups, power.participants)):
            needed.append("–")
        elif lacks(enough):
            needed.append(f"more than {_MOST_GROUPS:,}")
        else:
            numbers = range(few + 1, enough + 1)
            needed.append(f"{numbers[bisect_left(numbers, 0, key=lambda n: -lacks(n))]:,}")
    return needed


def _accuracies(power: DesignPower) -> Iterator[Part]:
    planned = [of_scope.planned for of_scope in power.scopes.values()]
    names = dict.fromkeys(people.name for result in planned for people in result.populations)
    rows: list[tuple[Value, ...]] = [
        (name, *(_accuracy(result, name) for result in planned)) for name in names
    ]
    yield Heading(f"Expected accuracy of {_best(power)}")
    yield Table(("people follow", *map(str, power.scopes)), rows)


def _accuracy(result: Power, name: str) -> str:
    people = [population for population in result.populations if population.name == name]
    if not people:
        return "–"  # no trial of this kind evaluates the model
    values = sorted(float(each.accuracy[each.favourite]) for each in people)
    text = _span((values[0], values[-1]))
    return f"{result.models[people[0].favourite]} {text}" if name == AS_MEASURED else text


def _span(rates: tuple[float, float]) -> str:
    low, high = (f"{rate:.3f}" for rate in rates)
    return low if low == high else f"{low} to {high}"


def _ends(values: Collection[float]) -> str:
    return f"{min(values):.3f} to {max(values):.3f}"


def _number(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else "–"


def power_table(power: DesignPower) -> dict[str, list[Any]]:
    """A row for each scope, population, and model that is compared with another.

    `people` is the planted model, whose comparisons alone are listed, with distant and with close
    `rivals`, or `AS_MEASURED`.
    `significantly_better` is how often the test is significant in favour of `model`; `first` how
    often that is the model with the highest accuracy, empty where it is not expected to be.
    """
    rows = [
        (
            *(str(scope), people.name, people.rivals, model, other),
            *(float(people.accuracy[i]), float(people.accuracy[j])),
            float(people.better[i, j]),
            people.first if i == people.favourite else "",
        )
        for scope, of_scope in power.scopes.items()
        for people in of_scope.planned.populations
        for i, model in enumerate(of_scope.planned.models)
        if people.name in (model, AS_MEASURED)
        for j, other in enumerate(of_scope.planned.models)
        if i != j
    ]
    return dict(zip(_COLUMNS, map(list, zip(*rows, strict=True)), strict=True))


def size_table(power: DesignPower) -> dict[str, list[Any]]:
    """A row for each scope and size of the experiment, as planned first.

    Rates have a low and a high end: with a planted model, by what is assumed of its rivals.
    `significantly_better` is an average over comparisons of the favourite with another model. What
    follows `first` is of one crossed test at .05 of two models that differ by as much, or do not.
    """
    rows = [
        (
            *(str(scope), size.groups, size.participants, size.groups * size.participants),
            *(size.units, *size.range_better, *size.range_first),
            *("" if np.isnan(x) else x for x in of_scope.single_test(size, power.smallest_effect)),
        )
        for scope, of_scope in power.scopes.items()
        for size in (of_scope.planned, *of_scope.sizes)
    ]
    return dict(zip(_SIZE_COLUMNS, map(list, zip(*rows, strict=True)), strict=True))


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
            panel.plot(
                [g * n for g, n in sizes],
                [precision.detectable(*size) for size in sizes],
                "o-",
                color=colour,
                label=label,
                markersize=3,
            )
        planned = precision.detectable(groups, each)
        panel.plot(
            groups * each, planned, "o", color=BLACK, markersize=6, zorder=3, label="as planned"
        )
        panel.axhline(
            power.smallest_effect,
            color=GREY,
            linestyle="--",
            label=f"smallest effect of interest, {power.smallest_effect:g}",
        )
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
