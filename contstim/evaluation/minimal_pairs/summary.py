"""The text of an evaluation on minimal pairs, as Markdown."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from contstim.evaluation.minimal_pairs.accuracies import OVERALL, contrasts
from contstim.evaluation.minimal_pairs.pairs import Method
from contstim.evaluation.minimal_pairs.tables import cells, known_numbers
from contstim.reporting.markdown import markdown_table
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contstim.evaluation.minimal_pairs.accuracies import Accuracies
    from contstim.evaluation.minimal_pairs.comparison import Comparison
    from contstim.evaluation.minimal_pairs.evaluation import Evaluation

_HOW_TIES_COUNT = {"wrong": "a tie is wrong", "half": "a tie counts one half"}
_SHOWN = 10


def summary(evaluation: Evaluation) -> str:
    """What the report says before it says what was run."""
    parts = [_opening(evaluation)]
    parts += [_phenomena(method, found) for method, found in evaluation.found.items()]
    parts += [_ties(evaluation.compared.made), _unread(evaluation), _people(evaluation)]
    full = evaluation.found.get(Method.FULL_SENTENCE)
    parts += [_contrasts(full)] if full else []
    parts += [_slopes(evaluation)]
    return "\n\n".join(part.strip() for part in parts if part)


def _opening(evaluation: Evaluation) -> str:
    text = (
        f"A model is right where the good side of a pair has the higher score; "
        f"{_HOW_TIES_COUNT[evaluation.ties]}. Accuracies of phenomena and overall are means over "
        f"paradigms."
    )
    refusals = [f"- {one.method}: {one.reason}" for one in evaluation.compared.refusals]
    return "\n\n".join(filter(None, (text, "\n".join(refusals))))


def _phenomena(method: Method, found: Accuracies) -> str:
    intervals = found.intervals()
    pairs = {OVERALL: found.pairs_of()}
    pairs |= {name: found.pairs_of(some) for name, some in found.members().items()}
    table = markdown_table(
        ("", "pairs", *found.columns),
        [
            (name.replace("_", " "), f"{pairs[name]:,}", *cells(values, intervals[name]))
            for name, values in found.means().items()
        ],
    )
    count = (
        f"{counted(found.pairs_of(), 'pair')} of {counted(len(found.paradigms), 'paradigm')}; in "
        "brackets 95 % intervals (Wilson's), for other pairs of the same paradigms. Columns "
        "without intervals are others' results, on pairs of their own number."
    )
    return f"## Accuracy, {method}\n\n{count}\n\n{table}"


def _ties(made: Iterable[Comparison]) -> str:
    lines = []
    for one in made:
        same = Counter(pair.paradigm for pair in one.pairs if pair.asks_nothing(one.method))
        counts = one.ties.sum(axis=0)
        if counts.any():
            told = ", ".join(f"{n:,} under {m}" for m, n in zip(one.models, counts, strict=True))
            where = ", ".join(f"{paradigm} {n}" for paradigm, n in same.items())
            lines.append(f"- {one.method}: {told}.")
            if same:
                lines[-1] += (
                    f" The same text on both sides: {counted(same.total(), 'pair')}, {where}."
                )
    return "## Ties\n\n" + "\n".join(lines) if lines else ""


def _unread(evaluation: Evaluation) -> str:
    left_out = evaluation.compared.left_out
    if not left_out:
        return ""
    counts = ", ".join(
        f"{counted(one.unread.total(), 'pair')} ({one.method})"
        for one in evaluation.compared.made
        if one.unread
    )
    sentences = len({one.sentence for one in left_out})
    lines = [f"- {one.model}: {one.reason}" for one in left_out[:_SHOWN]]
    more = len(left_out) - _SHOWN
    lines += [f"- and {more:,} more in left_out.csv"] if more > 0 else []
    return (
        f"## Left out\n\nNot every model can read {counted(sentences, 'sentence')}; left out with "
        f"{'it' if sentences == 1 else 'them'}: {counts or 'all pairs'}.\n\n" + "\n".join(lines)
    )


def _people(evaluation: Evaluation) -> str:
    full = evaluation.found.get(Method.FULL_SENTENCE)
    people = evaluation.known.people
    some = [people[name] for name in full.paradigms if name in people] if full else []
    if not some:
        return ""
    individual = float(np.mean([one.individual for one in some]))
    majorities, items = (
        sum(getattr(one, name) for one in some) for name in ("majorities", "items")
    )
    return (
        f"## People\n\nIn {counted(len(some), 'paradigm')} one person agrees with the labels in "
        f"{individual:.6f} of the choices, and the majority in {majorities:,} of "
        f"{counted(items, 'pair')}."
    )


def _contrasts(found: Accuracies) -> str:
    rows = [
        (
            *(one.contrast, one.condition, f"{found.pairs_of(one.paradigms):,}"),
            *cells(values, found.interval(one.paradigms)),
        )
        for one, values in contrasts(found)
    ]
    if not rows:
        return ""
    return "## Contrasts\n\n" + markdown_table(
        ("contrast", "condition", "pairs", *found.columns), rows
    )


def _slopes(evaluation: Evaluation) -> str:
    if not evaluation.curves:
        return ""
    rows = [
        (
            curve.phenomenon.replace("_", " "),
            method.value,
            *known_numbers((curve.slope, curve.standard_error)),
        )
        for method, made in evaluation.curves.items()
        for curve in made
    ]
    header = ("", "method", "slope per doubling", "standard error")
    return "## Learning curves\n\n" + markdown_table(header, rows)
