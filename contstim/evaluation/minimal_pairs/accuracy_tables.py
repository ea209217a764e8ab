"""The tables of an evaluation on minimal pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.evaluation.benchmark_scores import LeftOut
from contstim.evaluation.minimal_pairs.accuracies import contrasts
from contstim.evaluation.minimal_pairs.pair_scores import MethodRefusal
from contstim.evaluation.minimal_pairs.pairs import Method
from contstim.evaluation.minimal_pairs.profile import Bin
from contstim.evaluation.minimal_pairs.published_results import HumanAgreement
from contstim.evaluation.output_folder import finite_numbers
from contstim.tables import columns_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.arrays import FloatArray
    from contstim.evaluation.minimal_pairs.accuracies import Accuracies
    from contstim.evaluation.minimal_pairs.evaluation import MinimalPairEvaluation
    from contstim.evaluation.minimal_pairs.pair_scores import PairScores
    from contstim.models.base import Continuation
    from contstim.sentence import Sentence

    Columns = dict[str, list[Any]]


def accuracy_tables(evaluation: MinimalPairEvaluation) -> dict[str, Columns]:
    """Every table by its name; tables that there is nothing to tell in have no columns.

    Cells are empty where there is no number.
    """
    scoring, full = evaluation.scoring, evaluation.full
    people = evaluation.published.people
    accuracies = evaluation.accuracies
    tables: dict[str, Columns] = {
        "paradigms": _stacked(_paradigms(s, accuracies[s.method]) for s in scoring.by_method),
        "phenomena": _stacked(_phenomena(*item) for item in accuracies.items()),
        "ties": _stacked(map(_ties, scoring.by_method)),
        "pairs": _stacked(map(_pairs, scoring.by_method)),
        "left_out": columns_of(LeftOut, scoring.left_out),
        "refusals": columns_of(MethodRefusal, scoring.refusals),
        "contrasts": _contrasts(full) if full else {},
        "profile": columns_of(Bin, evaluation.profile),
        "correlations": {"model": list(full.columns)} | _by_column(full, full.correlations())
        if full and len(full.columns) > 1
        else {},
        "people": {"paradigm": list(people)} | columns_of(HumanAgreement, people.values()),
    }
    if evaluation.curves:
        curves = [
            (method.value, curve)
            for method, of_method in evaluation.curves.items()
            for curve in of_method
        ]
        points = [  # each curve once for each size
            (method, curve, size)
            for method, curve in curves
            for size in range(len(curve.sentences))
        ]
        tables["learning_curves"] = {
            "method": [method for method, _, _ in points],
            "phenomenon": [curve.phenomenon for _, curve, _ in points],
            "sentences": [curve.sentences[size] for _, curve, size in points],
            "words": [curve.words[size] for _, curve, size in points],
            "accuracy": [curve.accuracies[size] for _, curve, size in points],
            "accuracy_low": finite_numbers(curve.lows[size] for _, curve, size in points),
            "accuracy_high": finite_numbers(curve.highs[size] for _, curve, size in points),
        }
        tables["slopes"] = {
            "method": [method for method, _ in curves],
            "phenomenon": [curve.phenomenon for _, curve in curves],
            "slope_per_doubling": [curve.slope for _, curve in curves],
            "standard_error": finite_numbers(curve.standard_error for _, curve in curves),
        }
    return tables


def _stacked(tables: Iterable[Columns]) -> Columns:
    """One table under the other; cells of columns that one lacks are empty."""
    listed = list(tables)
    names = dict.fromkeys(name for table in listed for name in table)
    stacked: Columns = {name: [] for name in names}
    for table in listed:
        n_rows = len(next(iter(table.values())))
        for name, column in stacked.items():
            column += table.get(name, [""] * n_rows)
    return stacked


def _by_column(accuracies: Accuracies, values: FloatArray) -> Columns:
    """A column of the table for each column of values, (n_rows, n_columns)."""
    cells = map(finite_numbers, values.T.tolist())
    return dict(zip(accuracies.columns, cells, strict=True))


def _limits(accuracies: Accuracies, limits: FloatArray) -> Columns:
    """Columns `MODEL: low` and `MODEL: high` of what was judged; limits (2, n_rows, n_columns)."""
    return {
        f"{name}: {side}": finite_numbers(limits[place, :, column].tolist())
        for column, name in enumerate(accuracies.columns[: accuracies.judged])
        for place, side in enumerate(("low", "high"))
    }


def _paradigms(scores: PairScores, accuracies: Accuracies) -> Columns:
    return {
        "method": [scores.method.value] * len(accuracies.paradigms),
        "phenomenon": list(accuracies.phenomena),
        "paradigm": list(accuracies.paradigms),
        "pairs": accuracies.n_pairs.tolist(),
        "unread": [scores.unread[paradigm] for paradigm in accuracies.paradigms],
        **_by_column(accuracies, accuracies.values),
        **_limits(accuracies, accuracies.limits()),
    }


def _phenomena(method: Method, accuracies: Accuracies) -> Columns:
    means = accuracies.means()
    # in the order of `means`: overall, then each phenomenon
    members = [accuracies.paradigms, *accuracies.members.values()]
    return {
        "method": [method.value] * len(means),
        "phenomenon": list(means),
        "paradigms": list(map(len, members)),
        "pairs": list(map(accuracies.pairs_of, members)),
        **_by_column(accuracies, np.stack(list(means.values()))),
        **_limits(accuracies, np.stack(list(accuracies.intervals().values()), axis=1)),
    }


def _ties(scores: PairScores) -> Columns:
    """Paradigms with ties: of how many pairs both sides are the same text, and under each model."""
    identical = np.array([pair.is_degenerate(scores.method) for pair in scores.pairs])
    paradigms = np.array([pair.paradigm for pair in scores.pairs])
    ties = scores.ties
    with_ties = sorted({str(name) for name in paradigms[ties.any(axis=1)]})
    counts = [ties[paradigms == name].sum(axis=0).tolist() for name in with_ties]
    return {
        "method": [scores.method.value] * len(with_ties),
        "paradigm": with_ties,
        "identical": [int(identical[paradigms == name].sum()) for name in with_ties],
        **{model: [row[i] for row in counts] for i, model in enumerate(scores.models)},
    }


def _pairs(scores: PairScores) -> Columns:
    sides: list[Sequence[Sentence | Continuation]] = [
        pair.sides
        if scores.method is Method.FULL_SENTENCE
        else pair.continuations(scores.method) or ()
        for pair in scores.pairs
    ]
    columns: Columns = {
        "method": [scores.method.value] * len(scores.pairs),
        "paradigm": [pair.paradigm for pair in scores.pairs],
        "pair_id": [pair.pair_id for pair in scores.pairs],
        # a continuation's text has a line break where the prefix ends
        "good": [good.text.replace("\n", " | ") for good, _ in sides],
        "bad": [bad.text.replace("\n", " | ") for _, bad in sides],
    }
    for i, model in enumerate(scores.models):
        columns[f"{model}: good"] = scores.log_probs[:, 0, i].tolist()
        columns[f"{model}: bad"] = scores.log_probs[:, 1, i].tolist()
    return columns


def _contrasts(accuracies: Accuracies) -> Columns:
    rows = contrasts(accuracies)
    n = len(accuracies.columns)
    # `reshape` also where there is no row, and an empty array would have one axis only
    means = np.array([values for _, values in rows]).reshape(-1, n)
    intervals = [accuracies.interval(condition.paradigms) for condition, _ in rows]
    return {
        "contrast": [condition.contrast for condition, _ in rows],
        "condition": [condition.condition for condition, _ in rows],
        "paradigms": [len(condition.paradigms) for condition, _ in rows],
        "pairs": [accuracies.pairs_of(condition.paradigms) for condition, _ in rows],
        **_by_column(accuracies, means),
        # (n_rows, 2, n_columns) -> (2, n_rows, n_columns)
        **_limits(accuracies, np.array(intervals).reshape(-1, 2, n).transpose(1, 0, 2)),
    }
