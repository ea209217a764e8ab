"""The folder that an analysis writes: tables, figures, and a page to read."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis.families import CEILING
from contstim.experiments.analysis.figures import (
    FIGURES,
    drawings,
    names_in_figures,
    require_rivals,
    shown,
)
from contstim.experiments.analysis.methods import methods_text
from contstim.experiments.analysis.reliability import (
    SURE,
    by_sureness,
    judged_trials,
    mean_reliability,
)
from contstim.experiments.analysis.scopes import DESCRIPTIONS
from contstim.experiments.analysis.tables import result_tables, training_texts_table
from contstim.experiments.responses.checks import Problem
from contstim.files import write_text
from contstim.models.training_text import contamination_warnings
from contstim.reporting.canvas import save, styled
from contstim.reporting.report import Details, Heading, Paragraph, Picture, Report, Table
from contstim.scale import Scale
from contstim.tables import write_table
from contstim.wording import counted, p_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contstim.experiments.analysis.effects import Result
    from contstim.experiments.analysis.intervals import Interval
    from contstim.experiments.analysis.run import Analysis
    from contstim.models.training_text import Contamination
    from contstim.reporting.report import Part

_FEW = 3  # comparisons that are shown unfolded
_EXTREMES = 5  # trials that people are least, and most, sure of


def report(
    analysis: Analysis,
    images: Mapping[str, bytes],
    *,
    title: str,
    seen: Mapping[str, Contamination | None] | None = None,
) -> Report:
    """The results as a page.

    Args:
        analysis: what `analyze` returned.
        images: figures as PNG, by name.
        title: the page's heading.
        seen: which of the sentences stand in the training text of each model.
    """
    parts = [*_preface(analysis, seen or {})]
    for result in shown(analysis):
        parts += _scope(result, analysis, images)
    for kind in FIGURES:
        names = [name for name in images if name.split("-")[0] == kind.name]
        if names and kind.about:  # what is not explained here stands beside its table
            parts += [Heading(kind.name.capitalize()), Paragraph(kind.about, note=True)]
            parts += [Picture(name, images[name], name) for name in names]
    parts += _choices(analysis)
    if "reliability" in images:
        parts += _reliability(analysis, images["reliability"])
    parts += [*_failures(analysis), Heading("How this was computed")]
    parts += map(Paragraph, methods_text(analysis))
    return Report(title, parts, warning=analysis.origin.warning)


def _preface(analysis: Analysis, seen: Mapping[str, Contamination | None]) -> Iterator[Part]:
    """Who took part, and what a reader has to know before any result."""
    ratings, excluded = analysis.ratings, analysis.admission.excluded
    answers = sum(group.ratings.size for group in ratings.groups)
    people, groups = len(ratings.participants), len(ratings.groups)
    pairs = sum(len(group.trials) for group in ratings.groups)
    is_choice = ratings.scale is Scale.CHOICE
    yield Paragraph(
        f"{counted(people, 'participant')} in {counted(groups, 'group')} gave "
        f"{counted(answers, 'choice' if is_choice else 'rating')} of "
        f"{counted(pairs, 'sentence pair')}. Compared: "
        f"{counted(len(ratings.models), 'model')}. Left out: "
        f"{counted(len(excluded), 'participant')}{':' if excluded else '.'}"
    )
    if excluded:
        yield Table(("left out", "why"), [(e.participant, e.reason) for e in excluded], texts=2)
    # Whoever gives one rating throughout is left out by catch trials, if by anything. Those who are
    # not are named, since their answers lower every measure and ceiling.
    uniform = analysis.admission.report.of(Problem.ONE_RATING)
    remaining = [
        finding.participant for finding in uniform if finding.participant in ratings.participants
    ]
    if remaining:
        yield Paragraph(f"Gave the same rating on every trial, and count: {', '.join(remaining)}.")
    for warning in contamination_warnings(seen, "natural sentences"):
        yield Paragraph(warning, note=True)
    short = {name: label for name, label in names_in_figures(analysis).items() if label != name}
    if short:
        yield Paragraph("Figures call models by shorter names:", note=True)
        yield Table(
            ("in figures", "model"), [(label, name) for name, label in short.items()], texts=2
        )
    against = [row for row in analysis.orientations if row.contradicted]
    if against:
        counts = ", ".join(
            f"{row.contradicted:,} of {row.trials:,} {row.condition}" for row in against
        )
        yield Paragraph(
            f"Trials whose scores contradict the roles of their models: {counts}. There a model "
            "does not prefer the sentence that it should by the order of models and sentences, so "
            "that natural pairs among them say nothing about which of their two models is right. "
            "Unless they were selected so (select natural --agreeing), models may be exchanged, or "
            "the scores those of other models.",
            note=True,
        )
    for caution in analysis.cautions:
        yield Paragraph(caution, note=True)


def _scope(result: Result, analysis: Analysis, images: Mapping[str, bytes]) -> Iterator[Part]:
    yield Heading(DESCRIPTIONS[result.scope].capitalize())
    name = f"{result.measure.name}-{result.scope}"
    yield Picture(name, images[name], f"{result.measure.label}: {DESCRIPTIONS[result.scope]}")
    against = {row.first: row for row in result.comparisons if row.second == CEILING}
    level = f"{analysis.sampling.level:.0%}"
    holm = analysis.sampling.correction == "holm"
    adjusted = "p (Holm)" if holm else "q"
    decided = _level_of_decisions(result, analysis)
    header = ("model", result.measure.name, level, "ceiling", "to the ceiling", decided, adjusted)
    rows = []
    for row in sorted(result.models, key=lambda row: -row.value):
        to_ceiling = ("–", "–", "–")  # where the family has no such contrast
        if test := against.get(row.model):
            above = " (above)" if test.difference > 0 else "*"
            mark = above if test.significant else ""
            q_value = p_text(test.p_holm if holm else test.q_value) + mark
            q_value = q_value if test.testable else "untestable"
            to_ceiling = _number(test.difference), _range(test.interval), q_value
        ceilings = f"{_number(row.lower)} – {_number(row.upper)}"
        mean = (row.model, _number(row.value), _range(row.interval), ceilings)
        rows.append((*mean, *to_ceiling, f"{row.n_trials:,}"))
    yield Table((*header, "trials"), rows)
    for test in result.comparisons[:1]:
        about = f"{adjusted}: {test.test}; {test.correction}; {test.family}."
        if analysis.sampling.intervals == "corrected":
            about += (
                " Intervals of differences are at the level at which this family decides: a "
                "difference is significant if and only if its interval leaves out 0."
            )
        else:
            about += (
                " Intervals are percentiles that belong to no test: a significant difference may "
                "have one that contains 0."
            )
        yield Paragraph(about, note=True)
    notes = dict.fromkeys(interval.note for interval in result.intervals if interval.note)
    if notes:
        yield Paragraph(f"Intervals: {'; '.join(notes)}.", note=True)
    yield Paragraph(_verdict(result, str(analysis.sampling.units)))
    pairs = [test for test in result.comparisons if test.second != CEILING]
    if pairs:
        lines = [
            (
                test.first,
                test.second,
                _number(test.difference),
                _range(test.interval),
                p_text(test.p_holm if holm else test.q_value) if test.testable else "–",
                test.verdict,
            )
            for test in pairs
        ]
        columns = ("model", "less", "difference", decided, adjusted, "verdict")
        about = f"Every two models: {counted(len(pairs), 'difference')}, with intervals and tests"
        yield Details(about, [Table(columns, lines, texts=2)], is_open=len(pairs) <= _FEW)


def _level_of_decisions(result: Result, analysis: Analysis) -> str:
    """The level of the intervals of differences, such as 99.4%."""
    sampling = analysis.sampling
    if sampling.intervals == "percentile" or not result.comparisons:
        return f"{sampling.level:.0%}"
    return f"{100 * (1 - max(test.alpha for test in result.comparisons)):.3g}%"


def _verdict(result: Result, units: str) -> str:
    cannot = result.detectability.cannot(units)
    ordered = [row.model for row in sorted(result.models, key=lambda row: -row.value)]
    margin = result.comparisons[0].smallest_effect if result.comparisons else 0.0
    alike = [
        f"{first} ≈ {second}"
        for place, first in enumerate(ordered)
        for second in ordered[place + 1 :]
        if second in result.equivalent_to(first)
    ]
    alike += [f"{model} ≈ its ceiling" for model in ordered if model in result.at_ceiling()]
    equivalent = f" Shown to differ by less than {margin:g}: {'; '.join(alike) or 'none'}."
    if cannot:
        # With so few units "none" would read as if it had been looked for and not seen
        shown_alike = equivalent if alike else ""
        return (
            f"Models below the noise ceiling and differences between models {cannot}.{shown_alike}"
        )
    below = [model for model in ordered if model in result.below_ceiling()]
    beats = [
        f"{model} > {', '.join(other for other in ordered if other in worse)}"
        for model in ordered
        if (worse := result.beaten_by(model))
    ]
    # "None" means little where several tests had to come out as clearly as they can: say so.
    limit = result.detectability.unless()
    none = f"none (none can be {limit})" if limit and not below and not beats else "none"
    return (
        f"Significantly below the noise ceiling: {', '.join(below) or none}. "
        f"Significant differences between models: {'; '.join(beats) or none}."
        + (" All this holds for these very items." if units == "participants" else "")
        + equivalent
    )


def _choices(analysis: Analysis) -> Iterator[Part]:
    """Choices of people: together, and by each model's log-probability ratios."""
    yield Heading("Near-unanimity")
    yield Table(
        ("condition", f"trials on which {analysis.unanimous:.0%} agree", "trials", "share"),
        [
            (
                str(row.condition),
                f"{row.near_unanimous:,}",
                f"{row.trials:,}",
                f"{row.near_unanimous / row.trials:.1%}",
            )
            for row in analysis.unanimity
        ],
    )
    yield Heading("Choices by log-probability ratio")
    yield Paragraph(
        "Logistic regression, without intercept, of choices on a model's log-probability ratio: "
        "log odds per nat, standard errors clustered by participants and by trials. Which sentence "
        "of a trial comes first makes no difference. P-values are those of single tests, not "
        "adjusted.",
        note=True,
    )
    level = f"{analysis.sampling.level:.0%}"
    yield Table(
        ("trials", "model", "log odds per nat", level, "p", "choices", "note"),
        [
            (
                DESCRIPTIONS[row.scope],
                row.model,
                _number(row.estimate.value, 4),
                f"{_number(row.estimate.low, 4)} … {_number(row.estimate.high, 4)}",
                p_text(row.estimate.p_value),
                f"{row.choices:,}",
                row.note,
            )
            for row in analysis.regressions
        ],
        texts=2,
        notes=1,
    )


def _reliability(analysis: Analysis, image: bytes) -> Iterator[Part]:
    """Sureness of people by condition, and the trials that they are least and most sure of."""
    judged = judged_trials(analysis.ratings)
    middle = analysis.ratings.scale.middle
    yield Heading("How sure people are of each trial")
    yield Paragraph(
        f"Answers are {analysis.ratings.scale.meaning}. The mean rating of a trial, drawn towards "
        "the middle of the scale by as much as is chance (empirical Bayes, by condition). "
        "Reliability: the share of the variance of mean ratings that is not chance. A trial that "
        "nobody is sure of cannot tell models apart. All trials are in trials.csv.",
        note=True,
    )
    yield Picture("reliability", image, "shrunken mean ratings of all trials, by condition")
    yield Table(
        ("condition", "trials", "reliability", f"{SURE:.0%} sure of a preference"),
        [
            (
                str(condition),
                f"{len(trials):,}",
                _number(mean_reliability(trials), 2),
                f"{np.mean([r.sureness >= SURE for *_, r in trials]):.1%}",
            )
            for condition, trials in judged.items()
        ],
    )
    ordered = by_sureness(judged)
    extremes = {
        "Least sure": ordered[:_EXTREMES],
        "Most sure": ordered[::-1][: max(0, min(_EXTREMES, len(ordered) - _EXTREMES))],
    }
    for heading, rows in extremes.items():
        if not rows:
            continue  # so few trials that all are among the least sure
        yield Heading(heading, level=3)
        yield Table(
            ("trial", "sentence", "preferred by", "likely preferred", "rating", "shrunken"),
            [
                (
                    trial.trial_id if place == 0 else "",
                    (trial.sentence_1.text, trial.sentence_2.text)[place],
                    f"{int(((rated > middle) == bool(place)).sum()):,} of {len(rated):,}",
                    f"{(1 - reliability.sure_of_2, reliability.sure_of_2)[place]:.1%}",
                    _number(float(rated.mean()), 2) if place == 0 else "",
                    _number(reliability.shrunken_rating, 2) if place == 0 else "",
                )
                for trial, rated, reliability in rows
                for place in (0, 1)
            ],
            texts=2,
        )


def _failures(analysis: Analysis) -> Iterator[Part]:
    # A failure is two rows, one a sentence: names stand in the first, so that the second belongs to
    # it (see `Table`).
    for scope, rows in groupby(analysis.failures, key=lambda failure: failure.scope):
        yield Heading(f"Where models fail: {DESCRIPTIONS[scope]}")
        yield Table(
            ("model", "rival", "sentence", "log p, model", "log p, rival", "people"),
            [
                (
                    failure.model if place == 0 else "",
                    failure.rival if place == 0 else "",
                    (failure.people_prefer, failure.model_prefers)[place],
                    _number(failure.log_probs[place], 2),
                    _number(failure.log_probs[2 + place], 2),
                    f"{failure.choices[place]:,}",
                )
                for failure in rows
                for place in (0, 1)
            ],
            texts=3,
        )


def _number(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else "–"


def _range(interval: Interval) -> str:
    return f"{_number(interval.low)} … {_number(interval.high)}"


def write_analysis(
    analysis: Analysis,
    folder: Path | str,
    *,
    title: str,
    pair: tuple[str, str] | None = None,
    seen: Mapping[str, Contamination | None] | None = None,
) -> list[Path]:
    """Write tables (CSV), figures (PDF and PNG), methods.md and report.html, which stands alone.

    Where participants were artificial, the page and every figure say so first, and every table has
    a column `simulated_participants`, such as `3 of 10`.

    Args:
        analysis: what `analyze` found.
        folder: made where it is missing; files of the same names are replaced.
        title: the page's heading.
        pair: two models whose sentences to draw; by default the most consistent rivals.
        seen: which of the sentences stand in the training text of each model.

    Returns:
        The tables, figures and text that stand beside report.html.

    Raises:
        InputError: a file cannot be written, or no trial sets the pair against each other.
    """
    folder = Path(folder)
    if pair:
        require_rivals([t for group in analysis.ratings.groups for t in group.trials], pair)
    seen = seen or {}
    files: list[Path] = []
    results = result_tables(analysis) | {"training_texts": training_texts_table(seen)}
    for name, columns in results.items():
        if columns and analysis.origin.simulated:
            # Said in every row: rows are copied, sorted and joined, and a file's name is lost.
            rows = len(next(iter(columns.values())))
            columns |= {"simulated_participants": [analysis.origin.share] * rows}
        if columns:
            files.append(folder / "tables" / f"{name}.csv")
            write_table(files[-1], columns)
    images = {}  # PNG by name: the page holds the very images that are written
    with styled():
        for name, figure in drawings(analysis, pair):
            path, warning = folder / "figures" / name, analysis.origin.warning
            images[name] = save(figure, path, warning=warning)
            files += [path.with_name(f"{name}{ending}") for ending in (".pdf", ".png")]
    told = ["# Statistics", analysis.origin.warning, *methods_text(analysis)]
    files.append(folder / "methods.md")
    write_text(files[-1], "\n\n".join(filter(None, told)) + "\n")
    write_text(folder / "report.html", report(analysis, images, title=title, seen=seen).html())
    return files
