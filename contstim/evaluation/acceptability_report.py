"""An evaluation of acceptability as a folder of tables and figures with a page."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.evaluation.criteria import (
    criteria_apart,
    criterion_shares,
    delta_correlations,
    fits,
    models_apart,
)
from contstim.evaluation.folder import Findings, page_table, table_of
from contstim.evaluation.scores import LeftOut
from contstim.files.tables import columns_of
from contstim.reporting.canvas import BLUE, ORANGE, heat_map, panels, widest
from contstim.reporting.report import Heading, Paragraph, Table, short_names
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from matplotlib.figure import Figure

    from contstim.evaluation.criteria import AcceptabilityEvaluation, Apart
    from contstim.evaluation.folder import Columns
    from contstim.evaluation.ratings import RatingEvaluation
    from contstim.reporting.report import Part

_MOST_ROWS = 30  # maximum number of rows of a table in the report
_ACROSS = 3  # panels in a row


def acceptability_findings(
    evaluation: AcceptabilityEvaluation, title: str = "Acceptability"
) -> Findings:
    """Prepare the results as a page, figures, and tables.

    criteria        number of pairs that meet each criterion under each model
    phenomena       the same by phenomenon
    pairs           deltas of each pair, and criteria that it meets
    models_apart    pairs on which two models differ
    criteria_apart  pairs that meet one criterion and not the other
    correlations    Pearson's r between the deltas of people and models, empty if undefined
    fits            scores of sentences against judgements
    excluded        excluded pairs, with reasons
    left_out        sentences without a score, with reasons
    """
    settings, tables = evaluation.settings, acceptability_tables(evaluation)
    left_out = {omission.sentence for omission in evaluation.scores.left_out}
    counts = {
        "sentences": len(evaluation.judgements.sentences),
        "sentences_without_judgement": int(np.isnan(evaluation.sentence_judgements).sum()),
        "sentences_without_score": len(left_out),
        "pairs": len(evaluation.judgements.pairs),
        "pairs_evaluated": len(evaluation.pairs),
        "pairs_disputed": int(evaluation.disputed.sum()),
        **{f"pairs_excluded ({why})": n for why, n in evaluation.excluded_for().items()},
    }
    scores = "as given" if settings.scores_as_given else "z-scores over all scored sentences"
    return Findings(
        title,
        criteria_table(evaluation),
        tuple(_parts(evaluation, counts, tables)),
        tables,
        partial(acceptability_figures, evaluation),
        {
            "data_files": [path.name for path in evaluation.files],
            "score_columns": list(evaluation.models),
            **counts,
            "scores_are": scores,
            "judgements_are": "z-scores" if settings.human_z_scores else "as given",
        },
    )


def acceptability_tables(evaluation: AcceptabilityEvaluation) -> dict[str, Columns]:
    """Compute all tables, by name."""
    names, matrix = delta_correlations(evaluation)
    rows = zip(names, matrix.tolist(), strict=True)
    return {
        "criteria": table_of(criterion_shares(evaluation)),
        "phenomena": table_of(criterion_shares(evaluation, "phenomenon")),
        "pairs": evaluation.table(),
        "models_apart": _difference_rows(
            evaluation, models_apart(evaluation), "criterion", "passes", "fails"
        ),
        "criteria_apart": _difference_rows(
            evaluation, criteria_apart(evaluation), "model", "model"
        ),
        "correlations": table_of({"": n} | dict(zip(names, r, strict=True)) for n, r in rows),
        "fits": table_of(fits(evaluation)),
        "excluded": {
            "acceptable_id": [pair.acceptable for pair, _ in evaluation.excluded],
            "unacceptable_id": [pair.unacceptable for pair, _ in evaluation.excluded],
            "reason": [reason for _, reason in evaluation.excluded],
        },
        "left_out": columns_of(LeftOut, evaluation.scores.left_out),
    }


def _difference_rows(
    evaluation: AcceptabilityEvaluation, pairs_by_kind: Apart, at: str, *deltas_of: str
) -> Columns:
    """Build a row for each pair that passes on one side and fails on the other.

    Args:
        evaluation: evaluation of the pairs.
        pairs_by_kind: row numbers of the pairs.
        at: column of the criterion (if models differ) or of the model (if criteria differ).
        deltas_of: columns with the names of the models whose deltas are included.
    """
    rows: list[dict[str, Any]] = []
    for kind, pairs in pairs_by_kind.items():
        about = dict(zip((at, "passes", "fails"), kind, strict=True))
        models = [(f"delta_{n}", evaluation.models.index(about[n])) for n in deltas_of]
        rows += [
            about | {"pair": pair, **{n: float(evaluation.deltas[pair, c]) for n, c in models}}
            for pair in pairs.tolist()
        ]
    columns = table_of(rows, (at, "passes", "fails", "pair", *(f"delta_{n}" for n in deltas_of)))
    return columns | evaluation.pair_columns(columns.pop("pair"))


def _parts(
    evaluation: AcceptabilityEvaluation, counts: Mapping[str, int], tables: Mapping[str, Columns]
) -> Iterator[Part]:
    yield Paragraph(
        f"{counts['pairs_evaluated']:,} of {quantity(counts['pairs'], 'minimal pair')}; "
        f"{quantity(counts['sentences'], 'sentence')}, "
        f"{counts['sentences_without_judgement']:,} of them without a judgement and "
        f"{counts['sentences_without_score']:,} without a score. Not evaluated: "
        + ", ".join(f"{n:,} ({why})" for why, n in evaluation.excluded_for().items())
        + (
            f". In {quantity(counts['pairs_disputed'], 'evaluated pair')} participants do not "
            "prefer the sentence that experts accept."
        )
    )
    yield criteria_table(evaluation)
    if {pair.source for pair in evaluation.pairs} != {""}:
        yield from (Heading("By source"), criteria_table(evaluation, by="source"))
    phenomena = len({pair.phenomenon for pair in evaluation.pairs})
    if 1 < phenomena <= _MOST_ROWS:
        yield from (Heading("By phenomenon"), criteria_table(evaluation, by="phenomenon"))
    elif phenomena > _MOST_ROWS:
        yield Paragraph(f"phenomena.csv lists {phenomena:,} phenomena.")
    for heading, at, pairs_by_kind in (
        ("Pairs on which models differ", "criterion", models_apart(evaluation)),
        ("Pairs on which criteria differ", "model", criteria_apart(evaluation)),
    ):
        rows = [
            (*kind, len(pairs), int(evaluation.disputed[pairs].sum()))
            for kind, pairs in pairs_by_kind.items()
            if len(pairs)
        ]
        if rows:
            header = (at, "passes", "fails", "pairs", "of these disputed by participants")
            yield from (Heading(heading), Table(header, rows[:_MOST_ROWS], texts=3))
    yield from (Heading("Scores against judgements"), page_table(tables["fits"]))


def criteria_table(evaluation: AcceptabilityEvaluation, by: str = "") -> Table:
    """Build a row for each model, or group and model, with a cell for each criterion."""
    about = ["source", "phenomenon"] if by == "phenomenon" else [by] if by else []
    if {pair.source for pair in evaluation.pairs} == {""}:
        about = [name for name in about if name != "source"]
    about.append("model")
    rows: dict[tuple[str, ...], list[str]] = {}
    for share in criterion_shares(evaluation, by):
        cell = f"{share['met']:,} of {share['pairs']:,} ({share['share']:.1%})"
        # Within a row, shares are in the order of the table's criteria
        rows.setdefault(tuple(share[name] for name in about), []).append(cell)
    header = [*about, *evaluation.met]
    return Table(header, [[*row, *cells] for row, cells in rows.items()], len(about))


def acceptability_figures(evaluation: AcceptabilityEvaluation) -> dict[str, Figure]:
    """Draw both figures, by file name."""
    return {"correlations": correlation_figure(evaluation), "scatter": scatter_figure(evaluation)}


def correlation_figure(evaluation: AcceptabilityEvaluation) -> Figure:
    """Draw Pearson's r between the deltas of people and models as a heat map."""
    names, matrix = delta_correlations(evaluation)
    short = short_names(names)
    title = "Correlation of differences within pairs"
    return heat_map(short, short, matrix, title=title, middle=0.0, numbers="decimals")


def scatter_figure(
    evaluation: AcceptabilityEvaluation | RatingEvaluation,
    *,
    unit: str = "z-score",
    judgement: str = "judgement",
) -> Figure:
    """Draw a panel for each model with a dot for each sentence, and the least-squares line.

    Args:
        evaluation: scores and judgements of the same sentences.
        unit: label of the axis of scores.
        judgement: label of the axis of judgements.
    """
    names = short_names(evaluation.models)
    side = max(2.2, 0.5 + widest(names))
    figure, grid = panels(len(names), _ACROSS, side, 2.1, sharey=True)
    judgements = evaluation.sentence_judgements
    dot = max(1.5, 40 / math.sqrt(len(judgements)))  # smaller dots for more sentences
    for column, (axes, line) in enumerate(zip(grid[0], fits(evaluation), strict=True)):
        scores = evaluation.sentence_scores[:, column]
        axes.plot(scores, judgements, ".", ms=dot, color=BLUE, alpha=0.35, mew=0, rasterized=True)
        if np.isfinite(line["slope"]):
            # The line covers the range of the scores; missing scores are nan
            ends = np.array([np.nanmin(scores), np.nanmax(scores)])
            axes.plot(ends, line["intercept"] + line["slope"] * ends, color=ORANGE, lw=1.2)
        axes.set_title(f"{names[column]}\nr = {line['pearson']:.2f}", loc="left", fontsize="small")
        axes.set_xlabel(unit)
    for axes in grid[0, ::_ACROSS]:
        axes.set_ylabel(judgement)
    return figure
