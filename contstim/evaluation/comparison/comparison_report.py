"""A comparison of models as a folder of tables and figures with a page."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

from contstim.evaluation.comparison.agreement import (
    Disagreement,
    ModelAgreement,
    disagreements,
    model_agreements,
)
from contstim.evaluation.output_folder import write_evaluation
from contstim.reporting.canvas import BLUE, GREY, new_figure, styled, widest
from contstim.reporting.heat_map import agreement_map
from contstim.reporting.names import short_names
from contstim.reporting.report import Bullets, Heading, Paragraph, Table, code, emphasis
from contstim.tables import columns_of
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from contstim.models.base import Scorer
    from contstim.reporting.report import Part
    from contstim.scores import ScoreTable

_PANELS, _IN_A_ROW = 12, 4
_SHOWN = 3


def write_comparison(
    table: ScoreTable,
    folder: Path | str,
    *,
    top: int,
    left_out: Mapping[str, str],
    commands: Sequence[str],
    models: Sequence[Scorer] = (),
    data: Iterable[Path] = (),
    **facts: Any,
) -> None:
    """Write comparison, disagreements, scores and left_out (.csv), two figures, and the page.

    Args:
        table: two models or more.
        folder: made where it is missing.
        top: how many sentences to list for each ordered pair of models.
        left_out: sentences that are not compared, with the reason.
        commands: what sets the models against each other.
        models: where scores came from models.
        data: the files that were read.
        facts: for the record.

    Raises:
        ScoreError: there are fewer than two sentences.
        InputError: a file cannot be written.
    """
    agreements, most = model_agreements(table), disagreements(table, top)
    with styled():
        write_evaluation(
            folder,
            title="How alike the models order sentences",
            parts=_parts(table, agreements, most, left_out, commands),
            tables={
                "comparison": columns_of(ModelAgreement, agreements),
                "disagreements": columns_of(Disagreement, most),
                "scores": {"sentence": list(map(str, table.sentences or ()))}
                | dict(zip(table.models, table.log_probs.T, strict=True)),
                "left_out": {"sentence": list(left_out), "reason": list(left_out.values())},
            },
            figures={"agreement": agreement_map(table), "ranks": ranks_figure(table)},
            models=models,
            data=data,
            **facts,
        )


def ranks_figure(table: ScoreTable) -> Figure:
    """A panel for each pair of models (the first twelve): every sentence at its two ranks."""
    pairs = list(combinations(range(len(table.models)), 2))[:_PANELS]
    rows = -(-len(pairs) // _IN_A_ROW)
    columns = min(len(pairs), _IN_A_ROW)
    # fractional ranks, (n_sentences, n_models), up to 1 for the likeliest sentence
    ranks, names = table.ranks(), short_names(table.models)
    side = max(2.0, 0.5 + widest(names))
    figure = new_figure(0.3 + side * columns, 0.4 + side * rows)
    panels = figure.subplots(rows, columns, squeeze=False).flat
    for axes, (i, j) in zip(panels, pairs, strict=False):
        axes.plot((0, 1), (0, 1), color=GREY, lw=0.8)
        axes.plot(ranks[:, i], ranks[:, j], "o", ms=2, color=BLUE, alpha=0.4, mew=0)
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=(0, 1), yticks=(0, 1))
        axes.set_xlabel(f"rank under\n{names[i]}", fontsize="small")
        axes.set_ylabel(f"rank under\n{names[j]}", fontsize="small")
    # the last row of the grid need not be full
    for axes in list(figure.axes)[len(pairs) :]:
        axes.set_axis_off()
    return figure


def _parts(
    table: ScoreTable,
    agreements: Sequence[ModelAgreement],
    most: Sequence[Disagreement],
    left_out: Mapping[str, str],
    commands: Sequence[str],
) -> Iterator[Part]:
    yield Paragraph(
        (
            f"{counted(len(table.log_probs), 'sentence')}. ",
            emphasis("agreement"),
            ": the share of all pairs of sentences that both order alike (ties count one half).",
        )
    )
    yield Table(
        ("models", "spearman", "kendall", "pearson", "agreement"),
        [
            (f"{a.model_1}, {a.model_2}", a.spearman, a.kendall, a.pearson, a.agreement)
            for a in agreements
        ],
    )
    yield Heading("Where they part")
    for pair in combinations(table.models, 2):
        for lower, higher in (pair, pair[::-1]):
            between = [d for d in most if (d.model_1, d.model_2) == (lower, higher)][:_SHOWN]
            if between:
                yield Paragraph((code(lower), " ranks lower than ", code(higher), ":"))
                yield Bullets(
                    [f"{d.sentence} ({d.rank_1:.2f} against {d.rank_2:.2f})" for d in between]
                )
    if left_out:
        yield Paragraph(f"Left out: {counted(len(left_out), 'sentence')} (left_out.csv).")
    if commands:
        yield Heading("Set them against each other")
        yield Bullets([(code(command),) for command in commands])
