"""Figures of an analysis.

The figures show how well each model predicts the ratings, how rivals differ, and how reliable
trials are. Rivals are two models that a trial targets. A scope is a set of trials on which models
are compared.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.agreement import rated_trials, rivals
from contstim.experiments.analysis.effects import Result, Units, unit_kind, units_of
from contstim.experiments.analysis.measures import ACCURACY
from contstim.experiments.analysis.ratings import DESCRIPTIONS, Ratings, Scope
from contstim.experiments.analysis.reliability import SURE, judged_trials, mean_reliability
from contstim.items.stimuli import CONTROVERSIAL, Condition, Trial
from contstim.reporting.canvas import BLACK, BLUE, GREY, ORANGE, SIZE, heat_map, new_figure, widest
from contstim.reporting.report import short_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from contstim.experiments.analysis.run import Analysis
    from contstim.items.scores import ScoreTable

_MIN_BAR_WIDTH = 3.7  # minimum width of the panel with the bars, inches
# The significance map is to the right of the bars. Its lines join models that differ significantly
_MAP_MARGIN = 0.5  # inches for the label of the first line of the map
_LINE_WIDTH = 0.17  # inches between two lines of the map
_DOT_SIZE = 3.5


def drawings(
    analysis: Analysis, pair: tuple[str, str] | None = None
) -> Iterator[tuple[str, Figure]]:
    """Yield the name and the figure of each result that the analysis has.

    `pair` are the two models in the figure of ranks, by default `best_rivals`.
    """
    names, random = names_in_figures(analysis), Condition.RANDOM_NATURAL
    models = [*names.values()]
    for result in results_with_figures(analysis):
        rivals = analysis.rivals_of(result)
        figure = consistency_figure(result, analysis.sampling.units, names, rivals)
        yield f"{result.measure.name}-{result.scope}", figure
    if random in analysis.agreement:
        title = "models that prefer the same sentence (%), random natural pairs"
        figure = heat_map(models, models, analysis.agreement[random], title=title)
        yield f"agreement-{random}", figure
    for condition, shares in analysis.dominance.items():
        title = f"people agree with the row's model (%), {condition.replace('-', ' ')} trials"
        rows, columns = "people agree with", "against"
        figure = heat_map(
            *(models, models, shares), title=title, middle=0.5, row_label=rows, column_label=columns
        )
        yield f"dominance-{condition}", figure
    if analysis.roles:
        shares = np.full((len(models), len(models)), np.nan)  # (accepting, rejecting)
        for role in analysis.roles:
            cell = tuple(analysis.ratings.models.index(role[side]) for side in ("accept", "reject"))
            shares[cell] = (role["prefer_synthetic"] + role["prefer_neither"] / 2) / role["ratings"]
        title = "people prefer the synthetic sentence (%)"
        rows, columns = "accepts the synthetic sentence", "rejects it"
        figure = heat_map(models, models, shares, title=title, row_label=rows, column_label=columns)
        yield "roles-natural-synthetic", figure
    if drawn := pair or best_rivals(analysis):
        yield "ranks", scatter_figure(analysis.ratings, analysis.scores, drawn, names)
    if sureness := sureness_figure(analysis.ratings):
        yield "reliability", sureness


def names_in_figures(analysis: Analysis) -> dict[str, str]:
    """Return model → name in figures, which is shorter if the model's name is long or a path."""
    models = analysis.ratings.models
    return dict(zip(models, short_names(models), strict=True))


def results_with_figures(analysis: Analysis) -> list[Result]:
    """Return the primary outcome, then the accuracy in each scope except `OVERALL`."""
    by_condition = [result for result in analysis.results if result.scope is not Scope.OVERALL]
    return [analysis.main, *(result for result in by_condition if result.measure is ACCURACY)]


def best_rivals(analysis: Analysis) -> tuple[str, str] | None:
    """Return the pair of models with the highest sum of values of the primary outcome.

    Only pairs that a controversial trial compares are considered; None if there are none.
    """
    values = {row.model: row.value for row in analysis.main.models}
    pairs = [pair for c in analysis.dominance for pair in rivals(analysis.ratings, c)]
    return max(pairs, key=lambda pair: sum(values[m] for m in pair), default=None)


def require_rivals(trials: Iterable[Trial], pair: tuple[str, str]) -> None:
    """Check that a controversial trial targets both models of a pair.

    Raises:
        InputError: if there is no such trial.
    """
    rival_pairs = {
        frozenset((t.model_1, t.model_2)) for t in trials if t.condition in CONTROVERSIAL
    }
    if frozenset(pair) not in rival_pairs:
        raise InputError(
            f"No trial compares {pair[0]!r} with {pair[1]!r}; compared pairs of models: "
            f"{'; '.join(sorted(' and '.join(sorted(names)) for names in rival_pairs)) or 'none'}."
        )


def consistency_figure(
    result: Result,
    units: Units | None,
    names: Mapping[str, str] | None = None,
    rivals: Result | None = None,
) -> Figure:
    """Draw a horizontal bar with an interval for each model, the best model on top.

    The noise ceiling of each model is grey.

    The lines on the right show significance. Each line connects a model (filled dot) to the models
    that are significantly worse (open dots). The first line connects the ceiling to the models that
    are significantly below it.

    `names` are model → name in the figure. Open dots on the bars are groups or participants,
    depending on `units` (`unit_kind`). `rivals` are the results of trivial rivals, which are simple
    rules that predict choices. Their bars are below the models, in another colour.
    """
    models = sorted(result.models, key=lambda judge: judge.value)
    order = [judge.model for judge in models]
    labels = [(names or {}).get(name, name) for name in order]
    # The worst model is at the height 0; trivial rivals are below the models
    judges = [
        (float(height), judge, result.evaluation, BLUE) for height, judge in enumerate(models)
    ]
    if rivals:
        below = sorted(rivals.models, key=lambda judge: -judge.value)
        judges += [(-1.5 - n, judge, rivals.evaluation, ORANGE) for n, judge in enumerate(below)]
        labels += [judge.model for judge in below]
    heights = [height for height, *_ in judges]
    title, label_width = DESCRIPTIONS[result.scope], widest(labels)
    cannot = result.detectability.cannot(str(units))
    open_dots = unit_kind(result.evaluation, units)
    right = (
        f"differences {cannot}"
        if cannot
        else "lines on the right: the filled dot is better than the open ones"
    )
    label = f"{result.measure.label}\ngrey: noise ceiling; open dots: {open_dots}; {right}"
    label += "; orange: trivial rivals" * bool(rivals)
    widths = [
        max(_MIN_BAR_WIDTH, widest([title, *label.split("\n")])),
        _MAP_MARGIN + _LINE_WIDTH * len(models),
    ]
    figure = new_figure(0.3 + label_width + sum(widths), 1.1 + 0.24 * (len(models) - min(heights)))
    bars, metro = figure.subplots(1, 2, sharey=True, gridspec_kw={"width_ratios": widths})
    # Models have different trials, so each has its own ceiling, drawn behind the bar
    for height, judge, *_ in judges:
        if np.isfinite(judge.lower):
            ceiling = (judge.lower, judge.upper)
            bars.fill_betweenx((height - 0.5, height + 0.5), *ceiling, color=GREY, lw=1, alpha=0.7)
    values = [judge.value for _, judge, *_ in judges]
    colours = [judge_row[-1] for judge_row in judges]
    bars.barh(heights, values, height=0.62, color=colours, alpha=0.75, lw=0)
    chance = (1 + result.measure.lowest) / 2
    bars.axvline(chance, color=BLACK, lw=0.6, ls=(0, (4, 3)))
    for height, judge, evaluation, _ in judges:
        limits = (judge.interval.low, judge.interval.high)
        if np.isfinite(limits[0]):
            bars.plot(limits, (height, height), color=BLACK, lw=1.1, solid_capstyle="butt")
        by_unit = units_of(evaluation, evaluation.values, units)  # (n_units, n_judges)
        dots = by_unit[:, evaluation.models.index(judge.model)]
        spread = height + np.linspace(-0.2, 0.2, len(dots)) if len(dots) > 1 else [height]
        bars.plot(dots, spread, "o", ms=2, mfc="white", mec=BLACK, mew=0.5)
    _draw_significance(metro, order, result)
    bars.set_yticks(heights, labels)
    bars.set_ylim(min(heights) - 0.6, len(models) - 0.4)
    bars.set_xlabel(label)
    bars.set_title(title, loc="left", fontsize="medium")
    return figure


def _draw_significance(axes: Axes, names: list[str], result: Result) -> None:
    axes.set_axis_off()
    lines = [("ceiling", len(names) - 0.5, result.below_ceiling())]
    lines += [(name, row, result.beaten_by(name)) for row, name in reversed([*enumerate(names)])]
    # The line of a model starts at this model; the line of the noise ceiling starts at the top.
    # Each line ends at the most distant worse model
    for column, (name, top, worse) in enumerate([line for line in lines if line[2]]):
        rows = sorted(names.index(model) for model in worse)
        span = (min(rows[0], top), max(rows[-1], top))
        axes.plot((column, column), span, color=BLACK, lw=0.8, zorder=1)
        axes.plot([column] * len(rows), rows, "o", ms=_DOT_SIZE, mfc="white", mec=BLACK, mew=0.8)
        if name == "ceiling":
            axes.plot(column, top, "s", ms=_DOT_SIZE, color=GREY, mec=BLACK, mew=0.6, clip_on=False)
            axes.text(column, top + 0.25, name, rotation=45, va="bottom", size=SIZE - 1)
        else:
            axes.plot(column, top, "o", ms=_DOT_SIZE, color=BLACK)
    axes.set_xlim(-0.7, len(names) + 0.3)


def scatter_figure(
    ratings: Ratings,
    scores: ScoreTable,
    pair: tuple[str, str],
    names: Mapping[str, str] | None = None,
) -> Figure:
    """Draw a panel for each condition with trials that target both models of the pair.

    The coordinates of a sentence are its ranks under the two models, divided by the number of
    scored sentences. A line connects the two sentences of a trial. The sentence that most
    people prefer is blue, the other one orange; both are grey if equally many people prefer each.
    """
    conditions = [c for c in CONTROVERSIAL if set(pair) in map(set, rivals(ratings, c))]
    ranks = [f"rank under {(names or {}).get(model, model)}" for model in pair]
    labels = ("preferred by most people", "the other sentence")
    side = max(2.3, 0.3 + widest(ranks))
    across = max(0.5 + side * max(1, len(conditions)), 1.2 + widest(["".join(labels)]))
    figure = new_figure(across, 0.6 + side)
    panels, tied = figure.subplots(1, max(1, len(conditions)), squeeze=False)[0], False
    # (n_sentences, 2): fractional ranks under both models, x and y
    rank_table = scores.ranks()[:, [scores.models.index(model) for model in pair]]
    for axes, condition in zip(panels, conditions, strict=False):
        for trial, rated in rated_trials(ratings, condition):
            if {trial.model_1, trial.model_2} != set(pair):
                continue
            points = rank_table[scores.rows_of((trial.sentence_1, trial.sentence_2))]  # (2, 2)
            axes.plot(*points.T, color=GREY, lw=0.6, zorder=1)
            majority = np.sign(np.sign(rated - ratings.scale.middle).sum())
            tied |= bool(majority == 0)
            for point, preferred in zip(points, (-1, 1), strict=True):
                colour = GREY if majority == 0 else BLUE if majority == preferred else ORANGE
                marker = "o" if majority == preferred else "s"
                axes.plot(*point, marker, ms=4, color=colour, mec=BLACK, mew=0.4, clip_on=False)
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        axes.set(xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
        axes.set_title(condition.replace("-", " "), loc="left", fontsize="medium")
        axes.set_xlabel(ranks[0])
    panels[0].set_ylabel(ranks[1])
    _draw_legend(
        figure,
        {"marker": "o", "color": BLUE, "mec": BLACK, "label": labels[0]},
        {"marker": "s", "color": ORANGE, "mec": BLACK, "label": labels[1]},
        *[{"marker": "s", "color": GREY, "mec": BLACK, "label": "preferred equally"}] * tied,
    )
    return figure


def _draw_legend(figure: Figure, *marks: dict[str, Any]) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], ls="", ms=4, mew=0.4, **mark) for mark in marks]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)


def sureness_figure(ratings: Ratings) -> Figure | None:
    """Draw the shrunken ratings of all trials by condition, and the reliability of mean ratings.

    A shrunken rating is a mean rating, moved towards the middle of the scale. The `sureness` of a
    trial is the probability that people in general prefer sentence_1, or that they prefer
    sentence_2, whichever is higher. If it is at least `SURE`, the dot of the trial is filled. The
    vertical position within a row has no meaning. Return None if no reliability can be estimated.
    """
    judged = judged_trials(ratings)
    if not judged:
        return None
    names = [condition.replace("-", " ") for condition in judged]
    heading = "reliability"
    legend = f"preference is certain to {SURE:.0%} or more", "less certain"
    across = max(3.4, widest(["  ".join(legend)]) - widest(names))
    figure = new_figure(0.6 + widest(names) + across + widest([heading]), 1.5 + 0.42 * len(judged))
    axes = figure.subplots()
    axes.axvline(ratings.scale.middle, color=BLACK, lw=0.6, ls=(0, (4, 3)))
    annotate = partial(axes.annotate, xycoords=("axes fraction", "data"), va="center")
    for row, trials in enumerate(judged.values()):
        shrunken = np.array([reliability.shrunken_rating for *_, reliability in trials])
        sure = np.array([reliability.sureness >= SURE for *_, reliability in trials])
        # Multiples of the golden ratio, modulo 1, fill the row evenly and separate neighbours
        heights = row + 0.56 * ((np.arange(len(trials)) * 0.618034) % 1 - 0.5)
        axes.plot(shrunken[~sure], heights[~sure], "o", ms=2.5, mfc="white", mec=GREY, mew=0.7)
        axes.plot(shrunken[sure], heights[sure], "o", ms=2.5, color=BLUE, mew=0)
        annotate(f"{mean_reliability(trials):.2f}", (1.02, row))
    annotate(heading, (1.02, -0.75), style="italic")
    first, *_, last = answers = ratings.scale.answers
    margin = (last - first) / 25
    axes.set(xlim=(first - margin, last + margin), ylim=(len(judged) - 0.4, -0.6))
    axes.set_xticks(answers[:: 1 if ratings.scale.buttons else 10])
    axes.set_yticks(range(len(judged)), names)
    axes.set_xlabel(
        f"shrunken mean rating ({first}: certainly sentence 1, {last}: certainly sentence 2)"
    )
    _draw_legend(
        figure,
        {"marker": "o", "color": BLUE, "label": legend[0]},
        {"marker": "o", "color": GREY, "mfc": "white", "label": legend[1]},
    )
    return figure
