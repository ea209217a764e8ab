"""An evaluation of acceptability as a folder of tables and figures with a page."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.evaluation.acceptability.acceptability_figures import acceptability_figures
from contstim.evaluation.acceptability.results import (
    CriterionShare,
    Fit,
    count_discordant,
    criterion_shares,
    delta_correlations,
    discordant_criteria,
    discordant_models,
    fits,
)
from contstim.evaluation.benchmark_scores import LeftOut
from contstim.evaluation.output_folder import finite_numbers, write_evaluation
from contstim.reporting.canvas import styled
from contstim.reporting.report import Heading, Paragraph, Table
from contstim.tables import columns_of
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from contstim.evaluation.acceptability.evaluation import AcceptabilityEvaluation
    from contstim.evaluation.acceptability.results import Discordant
    from contstim.models.base import Scorer
    from contstim.reporting.report import Part

    Columns = dict[str, list[Any]]

_MOST_ROWS = 30  # of a table in the report


@dataclass(frozen=True)
class ScoreSources:
    """Sources of the scores of an evaluation.

    Attributes:
        models: what was scored here.
        tables: the files from which the other scores were read.
        left_out: sentences without a score.
    """

    models: Sequence[Scorer] = ()
    tables: Sequence[Path] = ()
    left_out: Sequence[LeftOut] = ()


def write_acceptability(
    evaluation: AcceptabilityEvaluation,
    folder: Path | str,
    sources: ScoreSources,
    *,
    title: str = "Acceptability",
    **facts: Any,
) -> None:
    """Write tables (CSV), figures (PNG and PDF), report.html and report.md.

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
    between_models = discordant_models(evaluation)
    between_criteria = discordant_criteria(evaluation)
    counts = count_sentences_and_pairs(evaluation, sources)
    files = (*evaluation.judgements.files, *sources.tables)
    with styled():
        write_evaluation(
            folder,
            title=title,
            parts=_parts(evaluation, counts, between_models, between_criteria),
            tables=_tables(evaluation, sources, between_models, between_criteria),
            figures=acceptability_figures(evaluation),
            models=sources.models,
            data=files,
            data_files=[path.name for path in files],
            score_columns=list(evaluation.models),
            **counts,
            **facts,
        )


def count_sentences_and_pairs(
    evaluation: AcceptabilityEvaluation, sources: ScoreSources
) -> dict[str, int]:
    """Numbers of sentences and pairs that were evaluated, and of those that were not."""
    return {
        "sentences": len(evaluation.judgements.sentences),
        "sentences_without_judgement": int(np.isnan(evaluation.sentence_judgements).sum()),
        "sentences_without_score": len({omission.sentence for omission in sources.left_out}),
        "pairs": len(evaluation.judgements.pairs),
        "pairs_evaluated": len(evaluation.pairs),
        "pairs_disputed": int(evaluation.disputed.sum()),
        **{f"pairs_excluded ({why})": n for why, n in evaluation.excluded_for().items()},
    }


def _tables(
    evaluation: AcceptabilityEvaluation,
    sources: ScoreSources,
    between_models: Sequence[Discordant],
    between_criteria: Sequence[Discordant],
) -> dict[str, Columns]:
    def delta(pair: Discordant, model: str) -> float:
        return float(evaluation.deltas[pair.pair, evaluation.models.index(model)])

    names, matrix = delta_correlations(evaluation)
    return {
        "criteria": _shares_table(criterion_shares(evaluation)),
        "phenomena": _shares_table(criterion_shares(evaluation, "phenomenon")),
        "pairs": evaluation.pairs_table(),
        "models_apart": {
            "criterion": [pair.at for pair in between_models],
            "passes": [pair.passes for pair in between_models],
            "fails": [pair.fails for pair in between_models],
            "delta_passes": [delta(pair, pair.passes) for pair in between_models],
            "delta_fails": [delta(pair, pair.fails) for pair in between_models],
            **evaluation.pair_columns([pair.pair for pair in between_models]),
        },
        "criteria_apart": {
            "model": [pair.at for pair in between_criteria],
            "passes": [pair.passes for pair in between_criteria],
            "fails": [pair.fails for pair in between_criteria],
            "delta_model": [delta(pair, pair.at) for pair in between_criteria],
            **evaluation.pair_columns([pair.pair for pair in between_criteria]),
        },
        "correlations": {
            "": list(names),
            **dict(zip(names, map(finite_numbers, matrix.T.tolist()), strict=True)),
        },
        "fits": columns_of(Fit, fits(evaluation)),
        "excluded": {
            "acceptable_id": [excluded.pair.acceptable for excluded in evaluation.excluded],
            "unacceptable_id": [excluded.pair.unacceptable for excluded in evaluation.excluded],
            "reason": [excluded.reason for excluded in evaluation.excluded],
        },
        "left_out": columns_of(LeftOut, sources.left_out),
    }


def _shares_table(shares: Sequence[CriterionShare]) -> Columns:
    columns = columns_of(CriterionShare, shares)
    # `share` is computed, and stands beside the numbers that it comes from
    disputed = columns.pop("disputed")
    return columns | {"share": [row.share for row in shares], "disputed": disputed}


def _parts(
    evaluation: AcceptabilityEvaluation,
    counts: dict[str, int],
    between_models: Sequence[Discordant],
    between_criteria: Sequence[Discordant],
) -> Iterator[Part]:
    yield Paragraph(
        f"{counts['pairs_evaluated']:,} of {counted(counts['pairs'], 'minimal pair')} over "
        f"{counted(counts['sentences'], 'sentence')}. Not evaluated: "
        + ", ".join(f"{n:,} ({why})" for why, n in evaluation.excluded_for().items())
        + f". Sentences without a judgement: {counts['sentences_without_judgement']:,}; without a "
        f"score: {counts['sentences_without_score']:,}. In "
        f"{counted(counts['pairs_disputed'], 'evaluated pair')} people do not prefer the sentence "
        "that experts accept."
    )
    yield _criteria_table(evaluation)
    if {pair.source for pair in evaluation.pairs} != {""}:
        yield from (Heading("By source"), _criteria_table(evaluation, by="source"))
    phenomena = len({pair.phenomenon for pair in evaluation.pairs})
    if 1 < phenomena <= _MOST_ROWS:
        yield from (Heading("By phenomenon"), _criteria_table(evaluation, by="phenomenon"))
    elif phenomena > _MOST_ROWS:
        yield Paragraph(f"phenomena.csv lists {phenomena:,} phenomena.")
    for heading, at, discordant in (
        ("Pairs on which models differ", "criterion", between_models),
        ("Pairs on which criteria differ", "model", between_criteria),
    ):
        rows = list(map(astuple, count_discordant(discordant, evaluation)))
        if rows:
            header = (at, "passes", "fails", "pairs", "of these disputed by people")
            yield from (Heading(heading), Table(header, rows[:_MOST_ROWS], texts=3))
    yield Heading("Scores against judgements")
    yield Table(
        ("model", "sentences", "slope", "intercept", "Pearson", "Spearman"),
        [
            (
                *(fit.model, fit.sentences),
                *finite_numbers((fit.slope, fit.intercept, fit.pearson, fit.spearman)),
            )
            for fit in fits(evaluation)
        ],
    )


def _criteria_table(evaluation: AcceptabilityEvaluation, by: str = "") -> Table:
    """A row for each model, or for each group and model, with a cell for each criterion."""
    about = ["source", "phenomenon"] if by == "phenomenon" else [by] if by else []
    if {pair.source for pair in evaluation.pairs} == {""}:
        about = [name for name in about if name != "source"]
    about.append("model")
    rows: dict[tuple[str, ...], list[str]] = {}
    for share in criterion_shares(evaluation, by):
        cell = f"{share.met:,} of {share.pairs:,} ({share.share:.1%})"
        # shares come criterion by criterion within a row, in the order of the table's columns
        rows.setdefault(tuple(getattr(share, name) for name in about), []).append(cell)
    names = [criterion.name for criterion in evaluation.criteria]
    return Table([*about, *names], [[*row, *cells] for row, cells in rows.items()], len(about))
