"""An evaluation on minimal pairs as a folder of tables and figures with a page."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.evaluation.minimal_pairs.accuracies import OVERALL, contrasts
from contstim.evaluation.minimal_pairs.accuracy_figures import accuracy_figures
from contstim.evaluation.minimal_pairs.accuracy_tables import accuracy_tables
from contstim.evaluation.output_folder import finite_numbers, write_evaluation
from contstim.reporting.canvas import styled
from contstim.reporting.report import Bullets, Heading, Paragraph, Table
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from contstim.arrays import FloatArray
    from contstim.evaluation.minimal_pairs.accuracies import Accuracies
    from contstim.evaluation.minimal_pairs.evaluation import MinimalPairEvaluation
    from contstim.evaluation.minimal_pairs.pair_scores import PairScoring
    from contstim.evaluation.minimal_pairs.pairs import Method
    from contstim.models.base import Scorer
    from contstim.reporting.report import Part

_HOW_TIES_COUNT = {"wrong": "a tie is wrong", "half": "a tie counts one half"}
_SHOWN = 10


def write_minimal_pairs(
    evaluation: MinimalPairEvaluation,
    folder: Path | str,
    *,
    models: Sequence[Scorer] = (),
    data: Iterable[Path] = (),
    **facts: Any,
) -> None:
    """Write report.html and report.md, tables (CSV) and figures (PDF, PNG) into a folder.

    Tables: paradigms, phenomena, ties, pairs (every pair under every model), left_out, refusals,
    contrasts, profile, correlations, people, learning_curves, slopes; some have rows
    for some data only.

    Raises:
        InputError: a file cannot be written.
    """
    tables = accuracy_tables(evaluation)
    with styled():
        write_evaluation(
            folder,
            title="Minimal pairs",
            parts=_parts(evaluation),
            tables={name: table for name, table in tables.items() if table},
            figures=accuracy_figures(evaluation),
            models=models,
            data=data,
            ties=evaluation.ties,
            **facts,
        )


def _parts(evaluation: MinimalPairEvaluation) -> Iterator[Part]:
    yield Paragraph(
        f"A model is right where the good side of a pair has the higher score; "
        f"{_HOW_TIES_COUNT[evaluation.ties]}. Accuracies of phenomena and overall are means over "
        f"paradigms."
    )
    refusals = evaluation.scoring.refusals
    if refusals:
        yield Bullets([f"{refusal.method}: {refusal.reason}" for refusal in refusals])
    for method, accuracies in evaluation.accuracies.items():
        yield from _phenomena(method, accuracies)
    yield from _ties(evaluation.scoring)
    yield from _left_out(evaluation.scoring)
    yield from _people(evaluation)
    conditions = contrasts(evaluation.full) if evaluation.full else []
    if evaluation.full and conditions:
        rows = [
            [
                *(condition.contrast, condition.condition),
                f"{evaluation.full.pairs_of(condition.paradigms):,}",
                *with_intervals(means, evaluation.full.interval(condition.paradigms)),
            ]
            for condition, means in conditions
        ]
        header = ["contrast", "condition", "pairs", *evaluation.full.columns]
        yield from (Heading("Contrasts"), Table(header, rows, texts=2))
    if evaluation.curves:
        slopes = [
            [
                *(curve.phenomenon.replace("_", " "), method.value),
                *finite_numbers((curve.slope, curve.standard_error)),
            ]
            for method, curves in evaluation.curves.items()
            for curve in curves
        ]
        header = ["", "method", "slope per doubling", "standard error"]
        yield from (Heading("Learning curves"), Table(header, slopes, texts=2))


def _phenomena(method: Method, accuracies: Accuracies) -> Iterator[Part]:
    means, intervals = accuracies.means(), accuracies.intervals()
    members = {OVERALL: accuracies.paradigms, **accuracies.members}
    yield Heading(f"Accuracy, {method}")
    yield Paragraph(
        f"{counted(accuracies.pairs_of(), 'pair')} of "
        f"{counted(len(accuracies.paradigms), 'paradigm')}; in brackets 95 % intervals (Wilson's), "
        f"for other pairs of the same paradigms. Columns without intervals are others' results, on "
        f"pairs of their own number."
    )
    yield Table(
        ["", "pairs", *accuracies.columns],
        [
            [
                name.replace("_", " "),
                f"{accuracies.pairs_of(members[name]):,}",
                *with_intervals(values, intervals[name]),
            ]
            for name, values in means.items()
        ],
    )


def with_intervals(values: FloatArray, interval: FloatArray) -> list[str]:
    """Each column's accuracy with its interval, `0.480 (0.35-0.61)`.

    Without the interval, or altogether empty, where it is not finite.

    Args:
        values: (n_columns,).
        interval: (2, n_columns).
    """
    cells = []
    for value, low, high in zip(values.tolist(), *interval.tolist(), strict=True):
        number = f"{value:.3f}" if np.isfinite(value) else ""
        cells.append(
            f"{number} ({low:.2f}-{high:.2f})" if np.isfinite([value, low]).all() else number
        )
    return cells


def _ties(scoring: PairScoring) -> Iterator[Part]:
    lines = []
    for scores in scoring.by_method:
        counts = scores.ties.sum(axis=0)  # (n_models,)
        if not counts.any():
            continue
        under = ", ".join(f"{n:,} under {m}" for m, n in zip(scores.models, counts, strict=True))
        line = f"{scores.method}: {under}."
        # no model can be right about such a pair: they are named, since BLiMP has some
        same = Counter(p.paradigm for p in scores.pairs if p.is_degenerate(scores.method))
        if same:
            where = ", ".join(f"{paradigm} {n}" for paradigm, n in same.items())
            line += f" The same text on both sides: {counted(same.total(), 'pair')}, {where}."
        lines.append(line)
    if lines:
        yield from (Heading("Ties"), Bullets(lines))


def _left_out(scoring: PairScoring) -> Iterator[Part]:
    left_out = scoring.left_out
    if not left_out:
        return
    counts = ", ".join(
        f"{counted(scores.unread.total(), 'pair')} ({scores.method})"
        for scores in scoring.by_method
        if scores.unread
    )
    sentences = len({omission.sentence for omission in left_out})
    lines = [f"{omission.model}: {omission.reason}" for omission in left_out[:_SHOWN]]
    more = len(left_out) - _SHOWN
    yield Heading("Left out")
    yield Paragraph(
        f"Not every model can read {counted(sentences, 'sentence')}; left out with "
        f"{'it' if sentences == 1 else 'them'}: {counts or 'all pairs'}."
    )
    yield Bullets([*lines, *([f"and {more:,} more in left_out.csv"] if more > 0 else [])])


def _people(evaluation: MinimalPairEvaluation) -> Iterator[Part]:
    people = evaluation.published.people
    paradigms = evaluation.full.paradigms if evaluation.full else ()
    agreement = [people[paradigm] for paradigm in paradigms if paradigm in people]
    if not agreement:
        return
    individual = float(np.mean([paradigm.individual for paradigm in agreement]))
    majorities = sum(paradigm.majorities for paradigm in agreement)
    items = sum(paradigm.items for paradigm in agreement)
    yield Heading("People")
    yield Paragraph(
        f"In {counted(len(agreement), 'paradigm')} one person agrees with the labels in "
        f"{individual:.6f} of the choices, and the majority in {majorities:,} of "
        f"{counted(items, 'pair')}."
    )
