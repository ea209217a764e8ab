"""The results of an experiment as one page to read."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis.evaluation import ACCURACY, COSINE
from contstim.experiments.analysis.figures.drawings import names_in_figures
from contstim.experiments.analysis.inference import CEILING
from contstim.experiments.analysis.scopes import DESCRIPTIONS, Scope
from contstim.experiments.responses import Problem
from contstim.models.contamination import warnings_of
from contstim.reporting.report import Heading, Paragraph, Picture, Report, Table
from contstim.wording import counted, p_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contstim.experiments.analysis.effects import Comparison, Interval, Result
    from contstim.experiments.analysis.run import Analysis
    from contstim.models.contamination import Contamination
    from contstim.reporting.report import Part

_PAIRS = {
    "agreement": (
        "How often two models prefer the same sentence. Where models agree, people cannot tell "
        "which is better."
    ),
    "dominance": (
        "Trials made to set two models against each other: how often people side with the row's."
    ),
    "roles": "How often people prefer a synthetic sentence to the natural one it came from.",
    "ranks": (
        "The sentences of two rival models, by rank under each. A line joins the two sentences of "
        "a trial; blue circles: preferred by most people; orange squares: the other."
    ),
}


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
    return Report(
        title,
        (
            *_people(analysis),
            *(Paragraph(text, note=True) for text in warnings_of(seen or {}, "natural sentences")),
            *_names(analysis),
            *_orientation(analysis),
            *(Paragraph(caution, note=True) for caution in analysis.cautions),
            *(part for result in shown(analysis) for part in _scope(result, analysis, images)),
            *_pairs_of_models(images),
            *_unanimity(analysis),
            *_regressions(analysis),
            *_failures(analysis),
            *_methods(analysis),
        ),
        warning=analysis.origin.warning,
    )


def shown(analysis: Analysis) -> list[Result]:
    """What comes first: accuracy by condition and, over all trials, the cosine."""
    return [
        one
        for one in analysis.results
        if one.measure is (COSINE if one.scope is Scope.OVERALL else ACCURACY)
    ]


def _people(analysis: Analysis) -> Iterator[Part]:
    ratings, excluded = analysis.ratings, analysis.admission.excluded
    answers = sum(group.ratings.size for group in ratings.groups)
    people, groups = len(ratings.participants), len(ratings.groups)
    pairs = sum(len(group.trials) for group in ratings.groups)
    yield Paragraph(
        f"{counted(people, 'participant')} in {counted(groups, 'group')} gave "
        f"{counted(answers, 'rating')} of {counted(pairs, 'sentence pair')}. Compared: "
        f"{counted(len(ratings.models), 'model')}. Left out: "
        f"{counted(len(excluded), 'participant')}{':' if excluded else '.'}"
    )
    if excluded:
        yield Table(("left out", "why"), [(e.participant, e.reason) for e in excluded], texts=2)
    uniform = analysis.admission.report.of(Problem.ONE_RATING)
    kept = [one.participant for one in uniform if one.participant in ratings.participants]
    if kept:
        yield Paragraph(f"Gave the same rating on every trial, and count: {', '.join(kept)}.")


def _names(analysis: Analysis) -> Iterator[Part]:
    short = {name: own for name, own in names_in_figures(analysis).items() if own != name}
    if short:
        yield Paragraph("Figures call models by shorter names:", note=True)
        yield Table(("in figures", "model"), [(own, name) for name, own in short.items()], texts=2)


def _orientation(analysis: Analysis) -> Iterator[Part]:
    against = [one for one in analysis.orientations if one.contradicted]
    if against:
        counts = ", ".join(
            f"{one.contradicted:,} of {one.trials:,} {one.condition}" for one in against
        )
        yield Paragraph(
            f"Trials whose scores contradict the roles of their models: {counts}. There a model "
            "does not prefer the sentence that it should by the order of models and sentences. If "
            "these are many, models may be exchanged, or the scores those of other models.",
            note=True,
        )


def _scope(result: Result, analysis: Analysis, images: Mapping[str, bytes]) -> Iterator[Part]:
    yield Heading(DESCRIPTIONS[result.scope].capitalize())
    name = f"{result.measure.name}-{result.scope}"
    yield Picture(name, images[name], f"{result.measure.label}: {DESCRIPTIONS[result.scope]}")
    against = {one.first: one for one in result.comparisons if one.second == CEILING}
    level = f"{analysis.sampling.level:.0%}"
    yield Table(
        ("model", result.measure.name, level, "ceiling", "to the ceiling", level, "q", "trials"),
        [
            (
                one.model,
                _number(one.value),
                _range(one.interval),
                f"{_number(one.lower)} – {_number(one.upper)}",
                *_versus(against.get(one.model)),
                f"{one.n_trials:,}",
            )
            for one in sorted(result.models, key=lambda one: -one.value)
        ],
    )
    yield Paragraph(_verdict(result, str(analysis.sampling.units)))


def _versus(comparison: Comparison | None) -> tuple[str, str, str]:
    if comparison is None:
        return ("–", "–", "–")
    mark = "*" if comparison.significant else ""
    q_value = p_text(comparison.q_value) + mark if comparison.testable else "untestable"
    return _number(comparison.difference), _range(comparison.interval), q_value


def _verdict(result: Result, units: str) -> str:
    cannot = result.reach.cannot(units)
    if cannot:
        return f"Models below the noise ceiling and differences between models {cannot}."
    ordered = [one.model for one in sorted(result.models, key=lambda one: -one.value)]
    below = [model for model in ordered if model in result.below_ceiling()]
    beats = [
        f"{model} > {', '.join(other for other in ordered if other in worse)}"
        for model in ordered
        if (worse := result.beaten_by(model))
    ]
    limit = result.reach.unless()
    none = f"none (none can be {limit})" if limit and not below and not beats else "none"
    return (
        f"Significantly below the noise ceiling: {', '.join(below) or none}. "
        f"Significant differences between models: {'; '.join(beats) or none}."
        + (" All this holds for these very items." if units == "participants" else "")
    )


def _pairs_of_models(images: Mapping[str, bytes]) -> Iterator[Part]:
    for kind, text in _PAIRS.items():
        names = [name for name in images if name.split("-")[0] == kind]
        if names:
            yield Heading(kind.capitalize())
            yield Paragraph(text, note=True)
            yield from (Picture(name, images[name], name) for name in names)


def _unanimity(analysis: Analysis) -> Iterator[Part]:
    yield Heading("Near-unanimity")
    yield Table(
        ("condition", f"trials on which {analysis.unanimous:.0%} agree", "trials", "share"),
        [
            (
                str(one.condition),
                f"{one.near_unanimous:,}",
                f"{one.trials:,}",
                f"{one.near_unanimous / one.trials:.1%}",
            )
            for one in analysis.unanimity
        ],
    )


def _regressions(analysis: Analysis) -> Iterator[Part]:
    yield Heading("Choices by log-probability ratio")
    yield Paragraph(
        "Logistic regression, without intercept, of choices on a model's log-probability ratio: "
        "log odds per nat, standard errors clustered by participants and by trials. Which sentence "
        "of a trial comes first makes no difference.",
        note=True,
    )
    level = f"{analysis.sampling.level:.0%}"
    yield Table(
        ("trials", "model", "log odds per nat", level, "p", "choices", "note"),
        [
            (
                DESCRIPTIONS[one.scope],
                one.model,
                _number(one.estimate, 4),
                f"{_number(one.low, 4)} … {_number(one.high, 4)}",
                p_text(one.p_value),
                f"{one.choices:,}",
                one.note,
            )
            for one in analysis.regressions
        ],
        texts=2,
        notes=1,
    )


def _failures(analysis: Analysis) -> Iterator[Part]:
    for scope, rows in groupby(analysis.failures, key=lambda one: one.scope):
        yield Heading(f"Where models fail: {DESCRIPTIONS[scope]}")
        yield Table(
            ("model", "rival", "sentence", "log p, model", "log p, rival", "people"),
            [
                (
                    one.model if place == 0 else "",
                    one.rival if place == 0 else "",
                    (one.people_prefer, one.model_prefers)[place],
                    _number(one.log_probs[place], 2),
                    _number(one.log_probs[2 + place], 2),
                    f"{one.choices[place]:,}",
                )
                for one in rows
                for place in (0, 1)
            ],
            texts=3,
        )


def _methods(analysis: Analysis) -> Iterator[Part]:
    sampling = analysis.sampling
    yield Heading("How this was computed")
    yield Paragraph(
        "A model prefers the sentence of higher log-probability (nats); a tie counts one half. The "
        "signed-rank cosine also compares how sure model and people are (Golan et al. 2023, Eqs. "
        "7-11). The lower noise ceiling predicts each person from the others, the upper from "
        "everybody; both on the trials that evaluate the model. In controversial conditions these "
        "are the trials that target it."
    )
    yield Paragraph(
        f"Tests are Wilcoxon's signed-rank test over {sampling.units}; q is adjusted for the "
        f"false-discovery rate over all contrasts of a scope, * marks q < "
        f"{sampling.false_discovery_rate:g}. Intervals hold {sampling.level:.0%} of "
        f"{sampling.samples:,} bootstrap resamples of both participants and trials (seed "
        f"{sampling.seed})."
    )


def _number(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else "–"


def _range(interval: Interval) -> str:
    return f"{_number(interval.low)} … {_number(interval.high)}"
