"""The power of a whole design, as a page."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.design.population import AS_MEASURED
from contstim.reporting.report import Heading, Paragraph, Report, Table, code, strong
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from contstim.experiments.design.design_power import DesignPower
    from contstim.experiments.design.power import Power
    from contstim.experiments.design.precision import Precision
    from contstim.reporting.report import Part, Picture, Value

_RATES = (0.8, 0.9, 0.95)
_MOST_GROUPS = 4096


def power_report(power: DesignPower, picture: Picture | None = None) -> Report:
    """The power of a design as a page; what limits its tests comes first.

    Args:
        power: what was simulated.
        picture: what `draw_power` drew, if anything.
    """
    planned = {scope: of_scope.planned for scope, of_scope in power.scopes.items()}
    first: list[tuple[Value, ...]] = []
    significant: list[tuple[Value, ...]] = []
    for scope, result in planned.items():
        trials, chance = len(result.mean_first_by_trials), f"{1 / len(result.models):.3f}"
        needed = (_needed(result, rate) for rate in _RATES)
        first.append((scope, trials, _span(result.range_first), chance, *needed))
        smaller = power.scopes[scope].smaller.items()
        significant += [(scope, n, _span(rates)) for n, rates in smaller]
        significant.append((scope, "all", _span(result.range_better)))
    names = dict.fromkeys(p.name for result in planned.values() for p in result.populations)
    accuracy: list[tuple[Value, ...]] = [
        (name, *(_accuracy(result, name) for result in planned.values())) for name in names
    ]
    best = "the best model" if power.as_measured else "the planted model"
    return Report(
        "Power of the experiment",
        (
            *(Paragraph((strong(caution),)) for caution in power.cautions),
            *_assumptions(power),
            Heading(f"Does {best} come first?"),
            Paragraph(
                "How often it has the highest accuracy with all trials, and how many trials "
                "suffice for that to happen at a given rate."
            ),
            Table(
                ("scope", "trials", "first", "chance", *(f"trials for {r:.0%}" for r in _RATES)),
                first,
            ),
            Heading("Is it significantly better?"),
            Paragraph(
                f"Share of comparisons of {best} with another one that become significant in its "
                "favour, by trials that a group sees."
            ),
            Table(("scope", "trials a group", "significant"), significant),
            *_purchases(power),
            *([] if picture is None else [picture]),
            *_smallest(power),
            Heading(f"Expected accuracy of {best}"),
            Table(("people follow", *map(str, planned)), accuracy),
        ),
    )


def _span(rates: tuple[float, float]) -> str:
    low, high = (f"{rate:.3f}" for rate in rates)
    return low if low == high else f"{low} to {high}"


def _needed(result: Power, rate: float) -> str:
    """Trials from which on the favourite comes first that often, by what is assumed of rivals."""
    all_of_them = len(result.mean_first_by_trials)
    numbers = sorted(part.trials_needed(rate) or all_of_them + 1 for part in result.parts)
    texts = [f"{n:,}" if n <= all_of_them else f"more than {all_of_them:,}" for n in numbers]
    return " to ".join(dict.fromkeys(texts))


def _accuracy(result: Power, name: str) -> str:
    people = [population for population in result.populations if population.name == name]
    if not people:
        return "–"  # no trial of this kind evaluates the model
    values = sorted(float(each.accuracy[each.favourite]) for each in people)
    text = _span((values[0], values[-1]))
    return f"{result.models[people[0].favourite]} {text}" if name == AS_MEASURED else text


def _purchases(power: DesignPower) -> Iterator[Part]:
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
    names = [f"{groups_} × {people}" for groups_, people in sizes]
    # The same tests in all scopes: they depend on numbers of groups alone.
    tests = [results[size].units for size in sizes]
    yield Table(
        (
            "scope",
            *(f"significant, {name} ({test})" for name, test in zip(names, tests, strict=True)),
            *(f"found from, {name}" for name in names),
            "buy",
        ),
        rows,
    )
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


def _number(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else "–"


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


def _assumptions(power: DesignPower) -> Iterator[Part]:
    simulations = max(of_scope.planned.simulations for of_scope in power.scopes.values())
    tests = "signed-rank tests over groups" if power.units == "groups" else "crossed tests"
    if power.as_measured:
        whom = (
            "People follow all models, each by so much that it predicts as many choices as in "
            f"{power.measured.source}"
        )
    else:
        whom = (
            f"Each of {counted(len(power.models), 'model')} in turn is planted: people follow it "
            "most, and it predicts as many of their choices as the best model did in "
            f"{power.measured.source}"
        )
    yield Paragraph(
        (
            f"{whom}. Items vary beyond what models say: by as much as there or, where a noise "
            "ceiling is stated below, by as much as makes people agree with one another so often. "
            f"{counted(power.groups, 'group')} of "
            f"{counted(power.participants, 'participant')}, new people and new items in each of "
            f"{counted(simulations, 'simulated experiment')} of each kind (fewer for other sizes), "
            f"analysed with the defaults of analyze: {tests}, all pairs of models and noise "
            f"ceilings, a false-discovery rate of {power.alpha:g}. ",
            *(code("overall"), " is all trials but catch trials, as in analyze."),
        )
    )
    yield Paragraph(
        f"People differ in how far they follow models, by {power.measured.following:.0%} (standard "
        "deviation), as in experiment 1 of Golan et al. (2023)."
    )
    if not power.as_measured:
        yield Paragraph(
            "What decides is how close its rivals are, which nobody knows before: rates are given "
            "as ranges, between two assumptions. Close rivals lie as far behind the planted model "
            "as other models lay behind the best one where that was measured; two were within .01 "
            "of it on synthetic sentences in experiment 1 of Golan et al. (2023). Distant ones "
            "share with people only what they share with the planted model. For rivals as close "
            "as yours, give the analysis of a pilot (pilot), and see below for the smallest "
            "difference that the design finds."
        )
    rows: list[tuple[Value, ...]] = []
    for scope, populations in power.calibration.populations.items():
        if known := power.measured.kinds.get(scope):
            items = np.concatenate([people.item_sd for people in populations])
            spread = " to ".join(sorted({f"{items.min():.2f}", f"{items.max():.2f}"}))
            ceiling = (
                ("–", "–")
                if known.items is not None
                else (f"{known.ceiling:.3f}", f"{known.raters}")
            )
            aims = (
                (_ends(known.of_models.values()),)
                if power.as_measured
                else (f"{known.accuracy:.3f}", _ends(known.rivals))
            )
            rows.append((scope, *ceiling, *aims, spread))
    rivals = [] if power.as_measured else ["of close rivals"]
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


def _ends(values: Collection[float]) -> str:
    return f"{min(values):.3f} to {max(values):.3f}"
