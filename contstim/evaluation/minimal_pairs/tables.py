"""The tables of an evaluation on minimal pairs."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.evaluation.minimal_pairs.accuracies import contrasts
from contstim.evaluation.minimal_pairs.pairs import Method
from contstim.evaluation.minimal_pairs.profile import Bin

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.arrays import FloatArray
    from contstim.evaluation.minimal_pairs.accuracies import Accuracies
    from contstim.evaluation.minimal_pairs.comparison import Comparison
    from contstim.evaluation.minimal_pairs.curves import Curve
    from contstim.evaluation.minimal_pairs.evaluation import Evaluation, Known
    from contstim.models.base import Continuation
    from contstim.sentence import Sentence

    Table = dict[str, list[Any]]


def known_numbers(values: Iterable[float]) -> list[float | str]:
    """Numbers with unknown ones as empty cells."""
    return [value if np.isfinite(value) else "" for value in values]


def with_interval(value: float, low: float, high: float) -> str:
    """An accuracy with its interval, `0.480 (0.35-0.61)`; without one or both where unknown."""
    if not np.isfinite(value):
        return ""
    return f"{value:.3f}" + (f" ({low:.2f}-{high:.2f})" if np.isfinite(low) else "")


def cells(values: FloatArray, interval: FloatArray) -> list[str]:
    """`with_interval` of each column; values (n_columns,), interval (2, n_columns)."""
    return [with_interval(*map(float, one)) for one in zip(values, *interval, strict=True)]


def _limits(found: Accuracies, limits: FloatArray) -> Table:
    """Columns `MODEL: low` and `MODEL: high` of what was judged; limits (2, n_rows, n_columns)."""
    judged = len(found.columns) if found.judged is None else found.judged
    return {
        f"{name}: {side}": known_numbers(limits[place, :, column].tolist())
        for column, name in enumerate(found.columns[:judged])
        for place, side in enumerate(("low", "high"))
    }


def tables_of(evaluation: Evaluation) -> dict[str, Table]:
    """Every table by its name, with or without rows; unknown numbers are empty cells."""
    compared, found = evaluation.compared, evaluation.found
    full = found.get(Method.FULL_SENTENCE)
    return {
        "paradigms": _stacked(_paradigms(one, found[one.method]) for one in compared.made),
        "phenomena": _stacked(_phenomena(method, one) for method, one in found.items()),
        "ties": _stacked(_ties(one) for one in compared.made),
        "pairs": _stacked(_pairs(one) for one in compared.made),
        "left_out": _rows(compared.left_out, ("sentence", "model", "reason")),
        "refusals": _rows(compared.refusals, ("model", "method", "reason")),
        "contrasts": _contrasts(full) if full else {},
        "profile": _rows(evaluation.bins, [field.name for field in fields(Bin)]),
        "correlations": _correlations(full) if full and len(full.columns) > 1 else {},
        "people": _people(evaluation.known),
        "learning_curves": _stacked(_curves(*item) for item in evaluation.curves.items()),
        "slopes": _stacked(_slopes(*item) for item in evaluation.curves.items()),
    }


def _rows(items: Iterable[object], names: Sequence[str]) -> Table:
    listed = list(items)
    return {name: [getattr(item, name) for item in listed] for name in names}


def _stacked(tables: Iterable[Table]) -> Table:
    """One table under the other; cells of columns that one lacks are empty."""
    listed = list(tables)
    names = dict.fromkeys(name for table in listed for name in table)
    stacked: Table = {name: [] for name in names}
    for table in listed:
        n_rows = len(next(iter(table.values())))
        for name, column in stacked.items():
            column += table.get(name, [""] * n_rows)
    return stacked


def _paradigms(one: Comparison, found: Accuracies) -> Table:
    columns = dict(zip(found.columns, map(known_numbers, found.values.T.tolist()), strict=True))
    return {
        "method": [one.method.value] * len(found.paradigms),
        "phenomenon": list(found.phenomena),
        "paradigm": list(found.paradigms),
        "pairs": found.n_pairs.tolist(),
        "unread": [one.unread[paradigm] for paradigm in found.paradigms],
        **columns,
        **_limits(found, found.limits()),
    }


def _phenomena(method: Method, found: Accuracies) -> Table:
    means = found.means()
    values = np.stack(list(means.values()))
    counts = [found.phenomena.count(name) for name in means]
    return {
        "method": [method.value] * len(means),
        "phenomenon": list(means),
        "paradigms": [len(found.paradigms), *counts[1:]],
        "pairs": [found.pairs_of(), *map(found.pairs_of, found.members().values())],
        **dict(zip(found.columns, map(known_numbers, values.T.tolist()), strict=True)),
        **_limits(found, np.stack(list(found.intervals().values()), axis=1)),
    }


def _ties(one: Comparison) -> Table:
    """Paradigms with ties: of how many pairs both sides are the same text, and under each model."""
    same = np.array([pair.asks_nothing(one.method) for pair in one.pairs])
    names = np.array([pair.paradigm for pair in one.pairs])
    tied = one.ties
    some = sorted({str(name) for name in names[tied.any(axis=1)]})
    counts = [tied[names == name].sum(axis=0).tolist() for name in some]
    return {
        "method": [one.method.value] * len(some),
        "paradigm": some,
        "identical": [int(same[names == name].sum()) for name in some],
        **{model: [row[i] for row in counts] for i, model in enumerate(one.models)},
    }


def _pairs(one: Comparison) -> Table:
    full = one.method is Method.FULL_SENTENCE
    sides: tuple[list[str], list[str]] = ([], [])
    for pair in one.pairs:
        both: Sequence[Sentence | Continuation] = (pair.good, pair.bad)
        both = both if full else pair.continuations(one.method) or ()
        for side, what in zip(sides, both, strict=True):
            side.append(what.text.replace("\n", " | "))
    columns: Table = {
        "method": [one.method.value] * len(one.pairs),
        "paradigm": [pair.paradigm for pair in one.pairs],
        "pair_id": [pair.pair_id for pair in one.pairs],
        "good": sides[0],
        "bad": sides[1],
    }
    for i, model in enumerate(one.models):
        columns[f"{model}: good"] = one.log_probs[:, 0, i].tolist()
        columns[f"{model}: bad"] = one.log_probs[:, 1, i].tolist()
    return columns


def _contrasts(found: Accuracies) -> Table:
    rows = contrasts(found)
    columns = np.array([values for _, values in rows]).reshape(-1, len(found.columns)).T
    intervals = [found.interval(one.paradigms) for one, _ in rows]
    limits = np.array(intervals).reshape(-1, 2, len(found.columns)).transpose(1, 0, 2)
    return {
        "contrast": [one.contrast for one, _ in rows],
        "condition": [one.condition for one, _ in rows],
        "paradigms": [len(one.paradigms) for one, _ in rows],
        "pairs": [found.pairs_of(one.paradigms) for one, _ in rows],
        **dict(zip(found.columns, map(known_numbers, columns.tolist()), strict=True)),
        **_limits(found, limits),
    }


def _correlations(found: Accuracies) -> Table:
    values = found.correlations().T.tolist()
    return {
        "model": list(found.columns),
        **dict(zip(found.columns, map(known_numbers, values), strict=True)),
    }


def _people(known: Known) -> Table:
    names = ("individual", "majorities", "items", "answers")
    return {"paradigm": list(known.people), **_rows(known.people.values(), names)}


def _curves(method: Method, made: Sequence[Curve]) -> Table:
    rows = [
        (method.value, curve.phenomenon, *point)
        for curve in made
        for point in zip(
            curve.sentences,
            curve.words,
            curve.accuracies,
            known_numbers(curve.lows),
            known_numbers(curve.highs),
            strict=True,
        )
    ]
    about = ("method", "phenomenon", "sentences", "words")
    names = (*about, "accuracy", "accuracy_low", "accuracy_high")
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def _slopes(method: Method, made: Sequence[Curve]) -> Table:
    return {
        "method": [method.value] * len(made),
        "phenomenon": [curve.phenomenon for curve in made],
        "slope_per_doubling": [curve.slope for curve in made],
        "standard_error": known_numbers(curve.standard_error for curve in made),
    }
