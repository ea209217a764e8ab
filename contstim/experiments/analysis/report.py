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
from contstim.models.contamination import contamination_warnings
from contstim.reporting.html import banner, heading, image, page, paragraph, table
from contstim.wording import counted, p_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contstim.experiments.analysis.effects import Comparison, Interval, Result
    from contstim.experiments.analysis.run import Analysis
    from contstim.models.contamination import Contamination

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
) -> str:
    """The page as HTML.

    Args:
        analysis: what was found.
        images: figures as PNG, by name.
        title: the page's heading.
        seen: which of the sentences stand in the training text of each model.
    """
    body = [
        *banner(analysis.origin.warning),
        *_people(analysis),
        *_training_texts(seen or {}),
        *_names(analysis),
        *_orientation(analysis),
        *(paragraph(caution, note=True) for caution in analysis.cautions),
        *(line for result in shown(analysis) for line in _scope(result, analysis, images)),
        *_pairs_of_models(images),
        *_unanimity(analysis),
        *_regressions(analysis),
        *_failures(analysis),
        *_methods(analysis),
    ]
    return page(title, body)


def shown(analysis: Analysis) -> list[Result]:
    """What comes first: accuracy by condition and, over all trials, the cosine."""
    return [
        one
        for one in analysis.results
        if one.measure is (COSINE if one.scope is Scope.OVERALL else ACCURACY)
    ]


def _people(analysis: Analysis) -> Iterator[str]:
    ratings, excluded = analysis.ratings, analysis.admission.excluded
    answers = sum(group.ratings.size for group in ratings.groups)
    people, groups = len(ratings.participants), len(ratings.groups)
    pairs = sum(len(group.trials) for group in ratings.groups)
    yield paragraph(
        f"{counted(people, 'participant')} in {counted(groups, 'group')} gave "
        f"{counted(answers, 'rating')} of {counted(pairs, 'sentence pair')}. Compared: "
        f"{counted(len(ratings.models), 'model')}. Left out: "
        f"{counted(len(excluded), 'participant')}{':' if excluded else '.'}"
    )
    if excluded:
        yield table(("left out", "why"), [(e.participant, e.reason) for e in excluded], texts=2)
    uniform = analysis.admission.report.of(Problem.ONE_RATING)
    kept = [one.participant for one in uniform if one.participant in ratings.participants]
    if kept:
        yield paragraph(f"Gave the same rating on every trial, and count: {', '.join(kept)}.")


def _training_texts(seen: Mapping[str, Contamination | None]) -> Iterator[str]:
    for warning in contamination_warnings(seen, "natural sentences"):
        yield paragraph(warning, note=True)


def _names(analysis: Analysis) -> Iterator[str]:
    short = {name: own for name, own in names_in_figures(analysis).items() if own != name}
    if short:
        yield paragraph("Figures call models by shorter names:", note=True)
        yield table(("in figures", "model"), [(own, name) for name, own in short.items()], texts=2)


def _orientation(analysis: Analysis) -> Iterator[str]:
    against = [one for one in analysis.orientations if one.contradicted]
    if against:
        counts = ", ".join(
            f"{one.contradicted:,} of {one.trials:,} {one.condition}" for one in against
        )
        yield paragraph(
            f"Trials whose scores contradict the roles of their models: {counts}. There a model "
            "does not prefer the sentence that it should by the order of models and sentences. If "
            "these are many, models may be exchanged, or the scores those of other models.",
            note=True,
        )


def _scope(result: Result, analysis: Analysis, images: Mapping[str, bytes]) -> Iterator[str]:
    yield heading(DESCRIPTIONS[result.scope].capitalize())
    name = f"{result.measure.name}-{result.scope}"
    yield image(images[name], f"{result.measure.label}: {DESCRIPTIONS[result.scope]}")
    against = {one.first: one for one in result.comparisons if one.second == CEILING}
    level = f"{analysis.sampling.level:.0%}"
    yield table(
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
    yield paragraph(_verdict(result, str(analysis.sampling.units)))


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


def _pairs_of_models(images: Mapping[str, bytes]) -> Iterator[str]:
    for kind, text in _PAIRS.items():
        names = [name for name in images if name.split("-")[0] == kind]
        if names:
            yield heading(kind.capitalize())
            yield paragraph(text, note=True)
            yield from (image(images[name], name) for name in names)


def _unanimity(analysis: Analysis) -> Iterator[str]:
    yield heading("Near-unanimity")
    yield table(
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


def _regressions(analysis: Analysis) -> Iterator[str]:
    yield heading("Choices by log-probability ratio")
    yield paragraph(
        "Logistic regression, without intercept, of choices on a model's log-probability ratio: "
        "log odds per nat, standard errors clustered by participants and by trials. Which sentence "
        "of a trial comes first makes no difference.",
        note=True,
    )
    level = f"{analysis.sampling.level:.0%}"
    yield table(
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


def _failures(analysis: Analysis) -> Iterator[str]:
    for scope, rows in groupby(analysis.failures, key=lambda one: one.scope):
        yield heading(f"Where models fail: {DESCRIPTIONS[scope]}")
        yield table(
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


def _methods(analysis: Analysis) -> Iterator[str]:
    sampling = analysis.sampling
    yield heading("How this was computed")
    yield paragraph(
        "A model prefers the sentence of higher log-probability (nats); a tie counts one half. The "
        "signed-rank cosine also compares how sure model and people are (Golan et al. 2023, Eqs. "
        "7-11). The lower noise ceiling predicts each person from the others, the upper from "
        "everybody; both on the trials that evaluate the model. In controversial conditions these "
        "are the trials that target it."
    )
    yield paragraph(
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
