"""Rank correlations, agreement on pairs, and the sentences of most disagreement."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from contstim.correlation import pearson

if TYPE_CHECKING:
    from contstim.scores import ScoreTable


@dataclass(frozen=True)
class ModelAgreement:
    """Agreement of two models on the order of the same sentences.

    Attributes:
        model_1: a model.
        model_2: another.
        spearman: Pearson's r of average ranks; nan where a model gives all the same score.
        kendall: Kendall's tau-a.
        pearson: of the scores themselves, over rows where both are finite.
        agreement: the share of all pairs of sentences that both order alike; a pair that one of
            them ties counts one half.
    """

    model_1: str
    model_2: str
    spearman: float
    kendall: float
    pearson: float
    agreement: float


@dataclass(frozen=True)
class Disagreement:
    """A sentence that one model ranks much higher than another.

    Attributes:
        model_1: ranks it lower.
        model_2: ranks it higher.
        sentence: the sentence.
        rank_1: its fractional rank under model_1, in (0, 1].
        rank_2: the same under model_2.
        log_prob_1: its score under model_1, nats.
        log_prob_2: the same under model_2.
    """

    model_1: str
    model_2: str
    sentence: str
    rank_1: float
    rank_2: float
    log_prob_1: float
    log_prob_2: float


def model_agreements(table: ScoreTable) -> tuple[ModelAgreement, ...]:
    """Every pair of models of a table, in the order of its columns.

    Raises:
        ScoreError: there are fewer than two sentences.
    """
    agreement, ranks = table.agreement(), table.ranks()
    return tuple(
        ModelAgreement(
            table.models[i],
            table.models[j],
            spearman=pearson(ranks[:, i], ranks[:, j]),
            # a pair ordered alike adds 1 to tau-a's sum and 1 to agreement's; otherwise -1 and 0
            kendall=float(2 * agreement[i, j] - 1),
            pearson=pearson(table.log_probs[:, i], table.log_probs[:, j]),
            agreement=float(agreement[i, j]),
        )
        for i, j in combinations(range(len(table.models)), 2)
    )


def disagreements(table: ScoreTable, top: int) -> tuple[Disagreement, ...]:
    """For every ordered pair of models the sentences with the greatest gain in rank, best first.

    Only sentences that model_2 ranks higher than model_1; ties in the order of the table.
    """
    # Ranks, not scores: models whose scores have other units or scales are compared alike.
    ranks, texts = table.ranks(), list(map(str, table.sentences or ()))
    return tuple(
        Disagreement(
            table.models[i],
            table.models[j],
            texts[row],
            *(float(ranks[row, model]) for model in (i, j)),
            *(float(table.log_probs[row, model]) for model in (i, j)),
        )
        for pair in combinations(range(len(table.models)), 2)
        for i, j in (pair, pair[::-1])
        for gain in [ranks[:, j] - ranks[:, i]]  # (n_sentences,)
        for row in np.argsort(-gain, kind="stable")[:top]
        if gain[row] > 0
    )
