"""Accuracy against what has nothing to do with the phenomenon (Warstadt et al. 2020, Fig. 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection

    from contstim.arrays import FloatArray
    from contstim.evaluation.minimal_pairs.pair_scores import PairScores, TieRule

FEATURES = {
    "length": "words of the good sentence",
    "perplexity": "perplexity per word of the good sentence",
    "log_prob": "log-probability of the good sentence (nats)",
    "confidence": "difference of log-probabilities (nats)",
}
"""What accuracy is shown against, and what it is."""

_BINS = 10


@dataclass(frozen=True)
class Bin:
    """Pairs that have about the same value of a feature.

    Attributes:
        model: whose accuracy.
        feature: one of `FEATURES`.
        low: the smallest value.
        high: the largest one.
        mean: of the values.
        pairs: how many.
        accuracy: the share in which the model prefers the good sentence.
        accuracy_low: lower end of its 95 % interval (Wilson's).
        accuracy_high: its upper end.
    """

    model: str
    feature: str
    low: float
    high: float
    mean: float
    pairs: int
    accuracy: float
    accuracy_low: float
    accuracy_high: float


def profile(
    scores: PairScores, ties: TieRule = "wrong", *, relative: Collection[str] = ()
) -> list[Bin]:
    """Accuracy in up to ten bins of equally many pairs, by model and feature.

    Pairs with the same value stay in one bin. Perplexity is exp(-log p / number of words), not
    tokens, so that models with different tokenizers share an axis. Pairs of whose good sentence a
    model gives probability zero have no finite value but of length, and are left out elsewhere.

    Args:
        scores: of full sentences.
        ties: how ties count.
        relative: models whose scores are not log-probabilities of sentences, and which have neither
            perplexity nor log-probability.
    """
    correct, margins = scores.correct(ties), np.abs(scores.margins)  # (n_pairs, n_models)
    lengths = np.array([len(pair.good) for pair in scores.pairs], np.float64)
    bins = []
    for column, model in enumerate(scores.models):
        good = scores.log_probs[:, 0, column]  # (n_pairs,), of the good side
        features = {"length": lengths, "confidence": margins[:, column]}
        if model not in relative:
            with np.errstate(over="ignore"):  # infinite ones are left out of the bins
                features["perplexity"] = np.exp(-good / lengths)
            features["log_prob"] = good
        for name in FEATURES:
            if name in features:
                bins += _bins(model, name, features[name], correct[:, column])
    return bins


def _bins(model: str, feature: str, values: FloatArray, correct: FloatArray) -> list[Bin]:
    from statsmodels.stats.proportion import proportion_confint

    finite = np.isfinite(values)
    values, correct = values[finite], correct[finite]
    if not len(values):
        return []
    # Nine deciles cut the values into ten bins. Those that coincide count once, so that ties share
    # a bin; a value belongs to the bin that ends with the first decile that is not below it.
    deciles = np.quantile(values, np.arange(1, _BINS) / _BINS, method="inverted_cdf")
    bin_of_pair = np.searchsorted(np.unique(deciles), values, side="left")
    bins = []
    for number in np.unique(bin_of_pair):
        inside = values[bin_of_pair == number]
        share = float(correct[bin_of_pair == number].mean())
        low, high = proportion_confint(share * len(inside), len(inside), method="wilson")
        bins.append(
            Bin(
                model,
                feature,
                low=float(inside.min()),
                high=float(inside.max()),
                mean=float(inside.mean()),
                pairs=len(inside),
                accuracy=share,
                accuracy_low=float(low),
                accuracy_high=float(high),
            )
        )
    return bins
