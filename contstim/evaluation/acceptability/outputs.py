"""What an evaluation of acceptability leaves in its folder: tables, figures and a report."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.evaluation.acceptability.comparison import (
    counted,
    criteria_apart,
    delta_correlations,
    fits,
    models_apart,
    shares,
)
from contstim.evaluation.acceptability.figures import (
    correlation_figure,
    scatter_figure,
)
from contstim.evaluation.outputs import write_evaluation
from contstim.reporting.canvas import styled
from contstim.reporting.markdown import markdown_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from contstim.evaluation.acceptability.comparison import Apart, Share
    from contstim.evaluation.acceptability.evaluation import Evaluation
    from contstim.evaluation.scored import LeftOut
    from contstim.models.base import Scorer

    Columns = dict[str, list[Any]]

_MOST_ROWS = 30  # of a table in the report
_SHARE_COLUMNS = ("source", "phenomenon", "model", "criterion", "pairs", "met", "share", "disputed")


@dataclass(frozen=True)
class Origin:
    """Where the scores of an evaluation come from.

    Attributes:
        models: what was scored here.
        tables: the files from which the other scores were read.
        left_out: sentences without a score.
    """

    models: Sequence[Scorer] = ()
    tables: Sequence[Path] = ()
    left_out: Sequence[LeftOut] = ()


def write_acceptability(
    found: Evaluation,
    folder: Path | str,
    origin: Origin,
    *,
    title: str = "Acceptability",
    **facts: Any,
) -> None:
    """Write tables (CSV), figures (PNG and PDF) and report.md.

    criteria.csv        how many pairs meet each criterion under each model
    phenomena.csv       the same by phenomenon
    pairs.csv           each pair's deltas, and what it passes
    models_apart.csv    pairs on which two models differ
    criteria_apart.csv  pairs that pass one criterion and fail the other
    correlations.csv    Pearson's r between the deltas of people and models, empty if undefined
    fits.csv            scores of sentences against judgements
    excluded.csv        pairs that are not evaluated, and why
    left_out.csv        sentences without a score, and why

    Raises:
        InputError: a file cannot be written or read.
    """
    between_models, between_criteria = list(models_apart(found)), list(criteria_apart(found))
    tables = {
        "criteria": _share_table(shares(found)),
        "phenomena": _share_table(shares(found, "phenomenon")),
        "pairs": _pairs(found),
        "models_apart": _models_apart(found, between_models),
        "criteria_apart": _criteria_apart(found, between_criteria),
        "correlations": _correlations(found),
        "fits": _records(fits(found), ("model",)),
        "excluded": _excluded(found),
        "left_out": _records(origin.left_out, ("sentence", "model", "reason")),
    }
    with styled():
        write_evaluation(
            folder,
            title=title,
            summary=_summary(found, origin, between_models, between_criteria),
            tables=tables,
            figures={"correlations": correlation_figure(found), "scatter": scatter_figure(found)},
            models=origin.models,
            data=(*found.judgements.files, *origin.tables),
            data_files=[path.name for path in (*found.judgements.files, *origin.tables)],
            score_columns=list(found.models),
            **counts(found, origin),
            **facts,
        )


def counts(found: Evaluation, origin: Origin) -> dict[str, int]:
    """How much was evaluated, and what was not."""
    return {
        "sentences": len(found.judgements.sentences),
        "sentences_without_judgement": int(np.isnan(found.sentence_judgements).sum()),
        "sentences_without_score": len({one.sentence for one in origin.left_out}),
        "pairs": len(found.judgements.pairs),
        "pairs_evaluated": len(found.pairs),
        "pairs_disputed": int(found.disputed.sum()),
        **{f"pairs_excluded ({why})": n for why, n in found.excluded_for().items()},
    }


def _share_table(rows: Sequence[Share]) -> Columns:
    """Columns of counts; `disputed` are pairs that people judge the other way round."""
    return {name: [getattr(row, name) for row in rows] for name in _SHARE_COLUMNS}


def _records(rows: Iterable[Any], columns: Sequence[str]) -> Columns:
    cells = [asdict(row) for row in rows]
    names = list(cells[0]) if cells else columns
    return {name: [row[name] for row in cells] for name in names}


def _pairs(found: Evaluation) -> Columns:
    columns = _about(found, range(len(found.pairs)))
    for column, model in enumerate(found.models):
        columns[f"delta {model}"] = found.deltas[:, column].tolist()
    for criterion in found.criteria:
        met = found.met(criterion).astype(int)
        for column, model in enumerate(found.models):
            columns[f"{criterion.name} {model}"] = met[:, column].tolist()
    return columns


def _about(found: Evaluation, rows: Iterable[int]) -> Columns:
    """What each pair is, and what people and experts say of it."""
    chosen = list(rows)
    pairs = [found.pairs[row] for row in chosen]
    texts = [found.texts(pair) for pair in pairs]
    return {
        "source": [pair.source for pair in pairs],
        "phenomenon": [pair.phenomenon for pair in pairs],
        "acceptable_id": [pair.acceptable for pair in pairs],
        "unacceptable_id": [pair.unacceptable for pair in pairs],
        "acceptable": [good for good, _ in texts],
        "unacceptable": [bad for _, bad in texts],
        "delta_people": found.people[chosen].tolist(),
        "people_dispute_experts": found.disputed[chosen].astype(int).tolist(),
    }


def _models_apart(found: Evaluation, apart: Sequence[Apart]) -> Columns:
    deltas = {
        f"delta_{side}": [
            float(found.deltas[one.pair, found.models.index(getattr(one, side))]) for one in apart
        ]
        for side in ("passes", "fails")
    }
    return _sides(apart, "criterion") | deltas | _about(found, [one.pair for one in apart])


def _criteria_apart(found: Evaluation, apart: Sequence[Apart]) -> Columns:
    deltas = [float(found.deltas[one.pair, found.models.index(one.at)]) for one in apart]
    columns = _sides(apart, "model") | {"delta_model": deltas}
    return columns | _about(found, [one.pair for one in apart])


def _sides(apart: Sequence[Apart], at: str) -> Columns:
    return {
        at: [one.at for one in apart],
        "passes": [one.passes for one in apart],
        "fails": [one.fails for one in apart],
    }


def _correlations(found: Evaluation) -> Columns:
    names, matrix = delta_correlations(found)
    cells = [["" if np.isnan(r) else float(r) for r in column] for column in matrix.T]
    return {"": list(names)} | dict(zip(names, cells, strict=True))


def _excluded(found: Evaluation) -> Columns:
    columns = ("acceptable_id", "unacceptable_id", "reason")
    cells = [(o.pair.acceptable, o.pair.unacceptable, o.reason) for o in found.excluded]
    return {name: [row[i] for row in cells] for i, name in enumerate(columns)}


def _summary(
    found: Evaluation,
    origin: Origin,
    between_models: list[Apart],
    between_criteria: list[Apart],
) -> str:
    told = counts(found, origin)
    parts = [
        f"{told['pairs_evaluated']:,} of {told['pairs']:,} minimal pairs over "
        f"{told['sentences']:,} sentences. Not evaluated: "
        + ", ".join(f"{n:,} ({why})" for why, n in found.excluded_for().items())
        + f". {told['sentences_without_judgement']:,} sentences have no judgement, "
        f"{told['sentences_without_score']:,} no score. In {told['pairs_disputed']:,} evaluated "
        "pairs people do not prefer the sentence that experts accept.",
        _criteria(found),
    ]
    if {pair.source for pair in found.pairs} != {""}:
        parts += ["## By source", _grouped(found, "source")]
    phenomena = len({pair.phenomenon for pair in found.pairs})
    if 1 < phenomena <= _MOST_ROWS:
        parts += ["## By phenomenon", _grouped(found, "phenomenon")]
    elif phenomena > _MOST_ROWS:
        parts.append(f"phenomena.csv lists {phenomena:,} phenomena.")
    header = ("passes", "fails", "pairs", "of these disputed by people")
    for name, at, apart in (
        ("Pairs on which models differ", "criterion", between_models),
        ("Pairs on which criteria differ", "model", between_criteria),
    ):
        rows = counted(apart, found)
        if rows:
            parts += [f"## {name}", markdown_table((at, *header), rows[:_MOST_ROWS])]
    line = ("model", "sentences", "slope", "intercept", "Pearson", "Spearman")
    rows_of_fits = [tuple(asdict(fit).values()) for fit in fits(found)]
    parts += ["## Scores against judgements", markdown_table(line, rows_of_fits)]
    return "\n\n".join(parts)


def _criteria(found: Evaluation) -> str:
    names = [criterion.name for criterion in found.criteria]
    rows = [
        [model, *(_cell(row) for row in shares(found) if row.model == model)]
        for model in found.models
    ]
    return markdown_table(["model", *names], rows)


def _grouped(found: Evaluation, by: str) -> str:
    names = [criterion.name for criterion in found.criteria]
    rows: dict[tuple[str, ...], list[str]] = {}
    for row in shares(found, by):
        name = row.phenomenon if by == "phenomenon" else row.source
        rows.setdefault((name, row.model), []).append(_cell(row))
    return markdown_table([by, "model", *names], [[*name, *cells] for name, cells in rows.items()])


def _cell(row: Share) -> str:
    return f"{row.met:,} of {row.pairs:,} ({row.share:.1%})"
