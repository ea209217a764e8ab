"""Correlations between models' scores and people's ratings of single sentences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.evaluation.criteria import scatter_figure
from contstim.evaluation.folder import Findings, page_table, table_of
from contstim.evaluation.judged_scores import ScoredJudgements
from contstim.evaluation.scores import LeftOut
from contstim.files.tables import columns_of, frame_of
from contstim.items.correlation import pearson, spearman
from contstim.reporting.report import Paragraph
from contstim.wording import quantity

if TYPE_CHECKING:
    from pandas import DataFrame

    from contstim.evaluation.acceptability import Judgements
    from contstim.evaluation.folder import Row
    from contstim.evaluation.judged_scores import JudgedScores
    from contstim.files.arrays import BoolArray


_NORMAL_QUANTILE = 1.959964  # 97.5 % quantile of the standard normal distribution
INTERVALS = {
    "pearson": "Fisher's z",
    "spearman": "Fisher's z with the variance of Bonett & Wright (2000)",
    "kendall": "Fisher's z with the variance of Fieller, Hartley & Pearson (1957)",
}
"""Coefficient → method of its 95 % interval."""


@dataclass(frozen=True, eq=False)
class RatingEvaluation(ScoredJudgements):
    """Scores and ratings of the same sentences; the sentences form no pairs."""

    @property
    def compared(self) -> BoolArray:
        """Mask of sentences with a rating and a score under every model, shape (n_sentences,)."""
        both = np.column_stack([self.sentence_judgements, self.sentence_scores])
        mask: BoolArray = np.logical_and.reduce(np.isfinite(both), axis=1)
        return mask

    def correlations(self) -> list[Row]:
        """Compute Pearson's r, Spearman's rho, Kendall's tau-b, and the 95 % interval of each.

        There is a row for each model. All rows are about the same sentences (see `compared`).

        All values are nan if scores or ratings are constant. Intervals are also nan for fewer than
        five sentences.
        """
        from scipy.stats import kendalltau

        ratings, n = self.sentence_judgements[self.compared], int(self.compared.sum())
        rows: list[Row] = []
        for model, scores in zip(self.models, self.sentence_scores[self.compared].T, strict=True):
            rho = spearman(scores, ratings)
            tau = math.nan if math.isnan(rho) else float(kendalltau(scores, ratings).statistic)
            row: Row = {"model": model, "sentences": n}
            for name, value, variance in (
                ("pearson", pearson(scores, ratings), 1 / (n - 3) if n > 4 else math.nan),
                ("spearman", rho, (1 + rho**2 / 2) / (n - 3) if n > 4 else math.nan),
                ("kendall", tau, 0.437 / (n - 4) if n > 4 else math.nan),
            ):
                low, high = _interval(value, variance)
                row |= {name: value, f"{name}: low": low, f"{name}: high": high}
            rows.append(row)
        return rows

    def to_frame(self) -> DataFrame:
        """Return the table of correlations.csv as a data frame."""
        return frame_of(table_of(self.correlations()))


def _interval(value: float, variance: float) -> tuple[float, float]:
    """Compute the 95 % interval of a coefficient, from the variance of its Fisher's z."""
    with np.errstate(divide="ignore"):  # z is infinite for a coefficient of 1 or -1
        distance = _NORMAL_QUANTILE * math.sqrt(variance)
        low, high = np.tanh(np.arctanh(value) + np.array([-distance, distance]))
    return float(low), float(high)


def evaluate_ratings(judgements: Judgements, scores: JudgedScores) -> RatingEvaluation:
    """Combine scores and ratings of the same sentences; require at least three sentences.

    Raises:
        InputError: if fewer than three sentences have a rating and a score under every model.
    """
    evaluation = RatingEvaluation(judgements, scores, scores.values, judgements.values)
    n = int(evaluation.compared.sum())
    if n < 3:
        raise InputError(
            f"{quantity(n, 'sentence')} of {len(judgements.sentences):,} have a rating and a score "
            "under every model; a correlation needs 3 sentences. Rate more sentences in `data`."
        )
    return evaluation


def rating_findings(evaluation: RatingEvaluation) -> Findings:
    """Prepare correlations as a page, a figure, and tables.

    correlations    coefficients and their intervals by model
    sentences       rating and scores of each sentence
    left_out        sentences without a score, with reasons
    """
    judgements = evaluation.judgements
    scores = zip(evaluation.models, evaluation.sentence_scores.T.tolist(), strict=True)
    tables = {
        "correlations": table_of(evaluation.correlations()),
        "sentences": {
            "id": list(judgements.sentences),
            "sentence": [sentence.text for sentence in judgements.texts],
            "rating": judgements.values.tolist(),
            **dict(scores),
        },
        "left_out": columns_of(LeftOut, evaluation.scores.left_out),
    }
    summary = page_table(tables["correlations"])
    n_sentences, n_compared = len(judgements.sentences), int(evaluation.compared.sum())
    methods = [f"{name}: {method}" for name, method in INTERVALS.items()]
    paragraph = Paragraph(
        f"{n_compared:,} of {quantity(n_sentences, 'sentence')} have a rating and a score "
        "under every model. Brackets contain 95 % intervals, which generalise to other "
        f"sentences of the same kind. Methods of the intervals: {'; '.join(methods)}."
    )
    return Findings(
        "Ratings",
        summary,
        (paragraph, summary),
        tables,
        lambda: {"scatter": scatter_figure(evaluation, unit="score", judgement="rating")},
        {
            "data_files": [path.name for path in evaluation.files],
            "sentences": n_sentences,
            "sentences_compared": n_compared,
            "intervals": methods,
        },
    )
