"""The folder that an analysis writes: tables, figures, and a report page."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis import figures, reliability
from contstim.experiments.analysis.crossed import BOTH
from contstim.experiments.analysis.effects import Comparison, ModelMean, Result, Sampling, unit_kind
from contstim.experiments.analysis.families import CEILING
from contstim.experiments.analysis.intervals import (
    difference_ends,
    is_uninformative,
    not_estimable,
    number_text,
    range_text,
    sample_text,
    value_ends,
)
from contstim.experiments.analysis.ratings import DESCRIPTIONS, Scope
from contstim.experiments.analysis.tables import result_tables, training_texts_table, with_origin
from contstim.experiments.analysis.trivial_rivals import against_rivals
from contstim.experiments.responses.checks import HARMLESS
from contstim.files.files import write_text
from contstim.files.tables import write_table
from contstim.models.training_text import Contamination, contamination_warnings
from contstim.reporting.canvas import save, styled
from contstim.reporting.report import (
    Bullets,
    Details,
    Heading,
    Paragraph,
    Picture,
    Report,
    Table,
    strong,
)
from contstim.reporting.templates import passages, works_in
from contstim.wording import grouped, p_text, quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contstim.experiments.analysis.run import Analysis
    from contstim.reporting.report import Part, Value

_MAX_UNFOLDED = 3  # longer lists of comparisons or warnings are folded
_N_EXTREME = 5  # number of trials in each of the tables "Least sure" and "Most sure"


def report(
    analysis: Analysis,
    images: Mapping[str, bytes],
    *,
    title: str,
    seen: Mapping[str, Contamination | None] | None = None,
) -> Report:
    """Build the report page of an analysis.

    `images` is name of a figure → PNG. `seen` is model → overlap of the sentences with the model's
    training text, or None if the training text is unknown.
    """
    # Participants with harmless problems are included, but named, because their answers may lower
    # every measure and ceiling
    notable = grouped(
        (str(finding.problem), finding.participant)
        for finding in analysis.admission.report.findings
        if finding.problem in HARMLESS and finding.participant in analysis.ratings.participants
    )
    texts = passages(
        *(__package__, "page.md.jinja"),
        analysis=analysis,
        notable=notable,
        against=[
            f"{contradicted:,} of {trials:,} {condition}"
            for condition, (trials, contradicted) in analysis.orientations.items()
            if contradicted
        ],
        trivial=bool(analysis.rivals),
        dots=unit_kind(analysis.results[0].evaluation, analysis.sampling.units),
    )
    winner, why = verdict_texts(analysis)
    verdict = Paragraph((strong(winner), f" {why}"))
    parts: list[Part] = [verdict, _figure(analysis.main, images)]
    parts += [Paragraph(texts["bars"], note=True), *_preface(analysis, texts)]
    contaminated = contamination_warnings(seen or {}, "natural sentences")
    if cautions := [*filter(None, (*contaminated, texts["against"], *analysis.cautions))]:
        limits = quantity(len(cautions), "limit of these results", "limits of these results")
        parts.append(Details(limits, [Bullets(cautions)], is_open=len(cautions) <= _MAX_UNFOLDED))
    parts.append(Heading("In detail"))
    for result in figures.results_with_figures(analysis):
        about = DESCRIPTIONS[result.scope].capitalize()
        parts.append(Details(about, [*_scope(result, analysis, images)]))
    for kind in ("agreement", "dominance", "roles", "ranks"):
        if names := [name for name in images if name.split("-")[0] == kind]:
            pictures = [Picture(name, images[name], name) for name in names]
            parts.append(Details(kind.capitalize(), [Paragraph(texts[kind], note=True), *pictures]))
    parts += _paradigms(analysis)
    parts += _choices(analysis, texts)
    if "reliability" in images:
        reliability_parts = [*_reliability(analysis, texts, images["reliability"])]
        parts.append(Details("Confidence of people in each trial", reliability_parts))
    parts += [*_failures(analysis), Details("Methods", [*map(Paragraph, methods_text(analysis))])]
    return Report(title, parts, warning=analysis.origin.warning)


def _figure(result: Result, images: Mapping[str, bytes]) -> Picture:
    name = f"{result.measure.name}-{result.scope}"
    return Picture(name, images[name], f"{result.measure.label}: {DESCRIPTIONS[result.scope]}")


def _preface(analysis: Analysis, texts: Mapping[str, str]) -> Iterator[Part]:
    excluded = analysis.admission.excluded
    yield Paragraph(texts["who"])
    if excluded:
        table = Table(("left out", "why"), [*excluded.items()], texts=2)
        yield Details("Excluded participants, with reasons", [table])
    yield from map(Paragraph, filter(None, [texts["notable"]]))
    names = figures.names_in_figures(analysis).items()
    if short := [(label, name) for name, label in names if label != name]:
        yield Details(
            "Names of models in figures", [Table(("in figures", "model"), short, texts=2)]
        )


def _scope(result: Result, analysis: Analysis, images: Mapping[str, bytes]) -> Iterator[Part]:
    sampling = analysis.sampling
    values, differences = value_ends(result.measure), difference_ends(result.measure)
    holm = sampling.correction == "holm"
    level, adjusted = f"{sampling.level:.0%}", "p (Holm)" if holm else "q"
    family_level = level
    if result.comparisons:
        family_level = f"{100 * (1 - max(test.alpha for test in result.comparisons)):.3g}%"

    def test_cells(test: Comparison, mark: str = "") -> tuple[float, str, str]:
        shown_p = p_text(test.p_holm if holm else test.q_value) + mark * test.significant
        shown_p = shown_p if test.testable else "untestable"
        return test.difference, range_text(test.interval, differences), shown_p

    if result is not analysis.main:  # its figure is at the top of the page
        yield _figure(result, images)
    ceilings = {row.first: row for row in result.comparisons if row.second == CEILING}
    rows: list[tuple[Value, ...]] = []
    for row in sorted(result.models, key=lambda row: -row.value):
        test = ceilings.get(row.model)
        above = test is not None and test.difference > 0
        to_ceiling = test_cells(test, " (above)" if above else "*") if test else ("–", "–", "–")
        rows.append((*_value_cells(row, values), *to_ceiling, f"{row.n_trials:,}"))
    to_ceiling_header = ("to the ceiling", family_level, adjusted)
    header = ("model", result.measure.name, level, "ceiling", *to_ceiling_header, "trials")
    yield Table(header, rows)
    for test in result.comparisons[:1]:
        text = f"{adjusted}: {test.test}; {test.correction}; {test.family}."
        if family_level != level:
            text += f" Intervals of differences ({family_level}) are corrected in the same way."
        yield Paragraph(text, note=True)
    for note, n in Counter(x.note for x in result.intervals if x.note).items():
        yield Paragraph(
            f"In {quantity(n, 'interval')} of values or differences: {note}.", note=True
        )
    if unknown := not_estimable(result):
        yield Paragraph(unknown, note=True)
    yield Paragraph(_verdict(result, str(sampling.units)))
    if rivals := analysis.rivals_of(result):
        rival_rows = [(*_value_cells(row, values), f"{row.n_trials:,}") for row in rivals.models]
        yield Table(("trivial rival (not a model)", *header[1:4], "trials"), rival_rows)
        yield Paragraph(against_rivals(rivals, sampling.units))
    if pairs := [test for test in result.comparisons if test.second != CEILING]:
        lines = [(x.first, x.second, *test_cells(x), x.verdict) for x in pairs]
        columns = ("model", "minus", "difference", family_level, adjusted, "verdict")
        title = (
            f"All pairs of models: {quantity(len(pairs), 'difference')}, with intervals and tests"
        )
        yield Details(title, [Table(columns, lines, texts=2)], is_open=len(pairs) <= _MAX_UNFOLDED)


def _paradigms(analysis: Analysis) -> Iterator[Part]:
    rows = [
        (
            *(row["paradigm"], row["judge"], row["prefers_acceptable"], row["value"]),
            *(range_text(row["interval"], (0.0, 1.0)), f"{row['n_trials']:,}"),
            row["interval"].note,
        )
        for row in analysis.paradigms
    ]
    header = ("paradigm", "judge", "prefers the acceptable", "people agree")
    further = (f"{analysis.sampling.level:.0%}", "trials", "note")
    if rows:
        title = "Minimal pairs: people, models and the grammar"
        yield Details(title, [Table((*header, *further), rows, texts=2, notes=1)])


def _verdict(result: Result, units: str) -> str:
    ordered = [row.model for row in sorted(result.models, key=lambda row: -row.value)]
    equivalences = [
        f"{first} ≈ {second}"
        for first, second in combinations(ordered, 2)
        if second in result.equivalent_to(first)
    ]
    equivalences += [
        f"{model} ≈ its ceiling" for model in ordered if model in result.equivalent_to(CEILING)
    ]
    texts = passages(
        *(__package__, "verdict.md.jinja"),
        units=units,
        cannot=result.detectability.cannot(units),
        unless=result.detectability.unless(),
        below=[model for model in ordered if model in result.below_ceiling()],
        beats=[
            f"{model} > {', '.join(beaten for beaten in ordered if beaten in worse)}"
            for model in ordered
            if (worse := result.beaten_by(model))
        ],
        alike=equivalences,
        margin=result.comparisons[0].smallest_effect if result.comparisons else 0.0,
    )
    return texts["verdict"]


def _choices(analysis: Analysis, texts: Mapping[str, str]) -> Iterator[Part]:
    unanimity = [
        (row["condition"], f"{agreed:,}", f"{trials:,}", f"{agreed / trials:.1%}")
        for row in analysis.unanimity
        for agreed, trials in [(row["near_unanimous"], row["trials"])]
    ]
    agree = f"trials on which {analysis.unanimous:.0%} agree"
    table = Table(("condition", agree, "trials", "share"), unanimity)
    yield Details("Near-unanimity", [table])
    level = f"{analysis.sampling.level:.0%}"
    rows = [
        (
            *(DESCRIPTIONS[row["scope"]], row["model"], slope.value),
            f"{number_text(slope.low)} … {number_text(slope.high)}",
            *(p_text(slope.p_value), f"{row['choices']:,}", row["note"]),
        )
        for row in analysis.regressions
        for slope in [row["estimate"]]
    ]
    header = ("trials", "model", "log odds per nat", level, "p", "choices", "note")
    note, table = Paragraph(texts["regressions"], note=True), Table(header, rows, texts=2, notes=1)
    yield Details("Choices by log-probability ratio", [note, table])


def _reliability(analysis: Analysis, texts: Mapping[str, str], image: bytes) -> Iterator[Part]:
    judged, scale = reliability.judged_trials(analysis.ratings), analysis.ratings.scale
    yield Paragraph(texts["reliability"], note=True)
    yield Picture("reliability", image, "shrunken mean ratings of all trials, by condition")
    conditions = [
        (
            *(condition, f"{len(trials):,}", reliability.mean_reliability(trials)),
            f"{np.mean([r.sureness >= reliability.SURE for *_, r in trials]):.1%}",
        )
        for condition, trials in judged.items()
    ]
    likely = f"preference with a probability of {reliability.SURE:.0%}"
    yield Table(("condition", "trials", "reliability", likely), conditions)
    # The least certain trials first; of equally certain trials, those nearest to the middle
    ordered = sorted(
        (row for trials in judged.values() for row in trials),
        key=lambda row: (row[2].sureness, abs(row[2].shrunken_rating - scale.middle)),
    )
    surest = ordered[::-1][: max(0, min(_N_EXTREME, len(ordered) - _N_EXTREME))]
    header = ("trial", "sentence", "preferred by", "likely preferred", "rating", "shrunken")
    for heading, chosen in (("Least sure", ordered[:_N_EXTREME]), ("Most sure", surest)):
        rows: list[tuple[Value, ...]] = []
        for trial, rated, item in chosen:
            sides = np.sign(rated - scale.middle)
            people = [f"{(sides == side).sum():,} of {len(rated):,}" for side in (-1, 1)]
            shares = [f"{share:.1%}" for share in (1 - item.sure_of_2, item.sure_of_2)]
            means = (float(rated.mean()), item.shrunken_rating)
            rows.append((trial.trial_id, trial.sentence_1.text, people[0], shares[0], *means))
            rows.append(("", trial.sentence_2.text, people[1], shares[1], "", ""))
        if rows:  # with few trials, all of them are among the least certain
            yield Heading(heading, level=3)
            yield Table(header, rows, texts=2)


def _failures(analysis: Analysis) -> Iterator[Part]:
    # A failure has two rows, one for each sentence. Only the first row names the models, to show
    # that both rows belong together (see `Table`).
    header = ("model", "rival", "sentence", "log p, model", "log p, rival", "people")
    for scope, failures in groupby(analysis.failures, key=itemgetter("scope")):
        rows: list[tuple[Value, ...]] = []
        for row in failures:
            names = (row["model"], row["rival"])
            for side in ("people_prefer", "model_prefers"):
                log_probs = (row[f"log_prob_{side}_{judge}"] for judge in ("model", "rival"))
                rows.append((*names, row[side], *log_probs, f"{row[f'chose_{side}']:,}"))
                names = ("", "")
        yield Details(f"Where models fail: {DESCRIPTIONS[scope]}", [Table(header, rows, texts=3)])


def _value_cells(row: ModelMean, ends: tuple[float, float]) -> tuple[Value, ...]:
    bounds = f"{number_text(row.lower)} – {number_text(row.upper)}"
    return row.model, row.value, range_text(row.interval, ends), bounds


def verdict_texts(analysis: Analysis) -> tuple[str, str]:
    """Return two texts: which model is best, and why.

    The second text states the model's values, the tests, and the limits of the tests.
    """
    result, sampling = analysis.main, analysis.sampling
    best, *runners_up = sorted(result.models, key=lambda row: -row.value)
    first, names = best.model, [row.model for row in runners_up]
    tests = {
        row.second if row.first == first else row.first: row
        for row in result.comparisons
        if first in (row.first, row.second)
    }
    rivals, second = analysis.rivals_of(result), tests.get(names[0]) if names else None
    trivial = [row for row in rivals.comparisons if row.first == first] if rivals else []
    equal = [row.second for row in trivial if not (row.significant and row.difference > 0)]
    worse = result.beaten_by(first)
    interval_text = range_text(best.interval, value_ends(result.measure))
    texts = passages(
        *(__package__, "headline.md.jinja"),
        analysis=analysis,
        best=best,
        measure=result.measure.name.replace("-cosine", " cosine"),
        value=number_text(best.value),
        interval=f"{sampling.level:.0%} interval {interval_text}",
        others=names,
        worse=[name for name in names if name in worse],
        untold=[name for name in names if name not in worse],
        alike=[name for name in names if name in result.equivalent_to(first)],
        lead=_lead(second, first, result, sampling) if second else "",
        cannot=result.detectability.cannot(str(sampling.units)),
        ceiling=number_text(best.lower) if CEILING in tests else "",
        below=first in result.below_ceiling(),
        rivals=equal,
    )
    return texts["winner"], texts["why"]


def _lead(test: Comparison, first: str, result: Result, sampling: Sampling) -> str:
    sign = 1 if test.first == first else -1
    low, high = sorted(sign * end for end in (test.interval.low, test.interval.high))
    holm = sampling.correction == "holm"
    name, p_value = ("p (Holm)", test.p_holm) if holm else ("q", test.q_value)
    text = p_text(p_value)
    test_text = f", {name} {text if text[0] == '<' else f'= {text}'}" if test.testable else ""
    is_corrected = test.alpha < 1 - sampling.level - 1e-9
    wider = ", wider because several differences are tested," if is_corrected else ""
    level = f"{100 * (1 - test.alpha):.3g}% interval{wider}"
    interval = f"{level} {number_text(low)} … {number_text(high)}"
    if is_uninformative(test.interval, difference_ends(result.measure)):
        interval = f"{level} not estimable from {sample_text(result)}"
    difference = number_text(sign * test.difference)
    runner_up = test.second if sign > 0 else test.first
    return f"{difference} more than {runner_up}, the next ({interval}{test_text})"


def methods_text(analysis: Analysis) -> tuple[str, ...]:
    """Return paragraphs for a methods section; the last lists the references.

    The paragraphs state the settings of this analysis, and the numbers of people, groups and
    contrasts.
    """
    intervals = [interval for result in analysis.results for interval in result.intervals]
    freedom = [x.degrees_of_freedom for x in intervals if math.isfinite(x.degrees_of_freedom)]
    notes = Counter(interval.note for interval in intervals if interval.note)
    texts = passages(
        *(__package__, "methods.md.jinja"),
        analysis=analysis,
        families=Counter(
            (len(result.comparisons), sum(row.second != CEILING for row in result.comparisons))
            for result in analysis.results
        ),
        tests=sum(len(result.comparisons) for result in analysis.results),
        level=f"{analysis.sampling.level:.0%}",
        freedom=f"{min(freedom):.1f} to {max(freedom):.1f}" if freedom else "",
        notes={note: f"{number:,} of {len(intervals):,}" for note, number in notes.items()},
        rivals=[*dict.fromkeys(row.model for r in analysis.rivals for row in r.models)],
        natural_synthetic=Scope.ACCEPT in {result.scope for result in analysis.results},
        narrower=any(interval.population != BOTH for interval in intervals),
    )
    return (*texts.values(), f"References: {' '.join(works_in(' '.join(texts.values())))}")


def write_analysis(
    analysis: Analysis,
    folder: Path | str,
    *,
    title: str,
    pair: tuple[str, str] | None = None,
    seen: Mapping[str, Contamination | None] | None = None,
) -> list[Path]:
    """Write tables (CSV), figures (PDF and PNG), methods.md, and a self-contained report.html.

    If any participant was artificial, the page and every figure begin with a warning. Every table
    then has a column `simulated_participants`, for example with the cells `3 of 10`. Existing files
    with the same names are replaced. For `pair`, see `figures.drawings`; for `seen`, see `report`.

    Returns:
        Paths of tables, figures and methods text, without report.html.

    Raises:
        InputError: if a file cannot be written, or no trial compares the two models of `pair`.
    """
    folder = Path(folder)
    if pair:
        figures.require_rivals(analysis.ratings.trials, pair)
    seen = seen or {}
    files: list[Path] = []
    results = result_tables(analysis) | {"training_texts": training_texts_table(seen)}
    for name, columns in results.items():
        if columns:
            files.append(folder / "tables" / f"{name}.csv")
            write_table(files[-1], with_origin(columns, analysis.origin))
    images, warning = {}, analysis.origin.warning
    with styled():
        for name, figure in figures.drawings(analysis, pair):
            images[name] = save(figure, folder / "figures" / name, warning=warning)
            files += [folder / "figures" / f"{name}{ending}" for ending in (".pdf", ".png")]
    methods = ["# Statistics", warning, *methods_text(analysis)]
    files.append(folder / "methods.md")
    write_text(files[-1], "\n\n".join(filter(None, methods)) + "\n")
    write_text(folder / "report.html", report(analysis, images, title=title, seen=seen).html())
    return files
