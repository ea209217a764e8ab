"""Accuracy against what has nothing to do with the phenomenon (Warstadt et al. 2020, Fig. 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection

    from contstim.arrays import FloatArray
    from contstim.evaluation.minimal_pairs.comparison import Comparison, TieRule

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
    comparison: Comparison, ties: TieRule = "wrong", *, relative: Collection[str] = ()
) -> list[Bin]:
    """Accuracy in up to ten bins of equally many pairs, by model and feature.

    Pairs with the same value stay in one bin. Perplexity is exp(-log p / number of words), not
    tokens, so that models with different tokenizers share an axis. Pairs of whose good sentence a
    model gives probability zero have no finite value but of length, and are left out elsewhere.

    Args:
        comparison: of full sentences.
        ties: how ties count.
        relative: models whose scores are no log-probabilities of sentences, and which have neither
            perplexity nor log-probability.
    """
    correct, margins = comparison.correct(ties), np.abs(comparison.margins)
    lengths = np.array([len(pair.good) for pair in comparison.pairs], np.float64)
    bins = []
    for column, model in enumerate(comparison.models):
        good = comparison.log_probs[:, 0, column]
        features = {"length": lengths, "confidence": margins[:, column]}
        if model not in relative:
            with np.errstate(over="ignore"):
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
    inner = np.quantile(values, np.arange(1, _BINS) / _BINS, method="inverted_cdf")
    place = np.searchsorted(np.unique(inner), values, side="left")  # up to and with each quantile
    found = []
    for number in np.unique(place):
        inside = values[place == number]
        share = float(correct[place == number].mean())
        low, high, mean = (float(f(inside)) for f in (np.min, np.max, np.mean))
        limits = proportion_confint(share * len(inside), len(inside), method="wilson")
        found.append(Bin(model, feature, low, high, mean, len(inside), share, *map(float, limits)))
    return found
