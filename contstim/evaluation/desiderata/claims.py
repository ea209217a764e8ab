"""Check of the findings of Kauf & Ivanova (2023) on a checkpoint that is here under both rules.

They find that `pll-original` correlates less with length, word frequency and a causal model than
`pll-word-l2r`, and that it inflates the scores of words of several tokens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contstim.arrays import FloatArray, IntArray
    from contstim.evaluation.desiderata.evaluation import Desiderata

ORIGINAL, ADAPTED = "@pll-original", "@pll-word-l2r"
_SAMPLES, _SEED = 1000, 0
_FEWEST = 4


class Verdict(StrEnum):
    """Verdict of the numbers on a finding."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class RuleClaim:
    """A finding, and what comes out here.

    Attributes:
        model: the checkpoint under `pll-original`.
        finding: what the paper says of it, against `pll-word-l2r`.
        original: the number under `pll-original`.
        adapted: the number under `pll-word-l2r`.
        low: end of the 95 % bootstrap interval of original less adapted, over sentences or words.
        high: the other end.
        verdict: `holds` where the numbers are ordered as in the paper and the interval leaves out
            zero, `does not hold` where they are ordered otherwise and it does, else `undecided`.
    """

    model: str
    finding: str
    original: float
    adapted: float
    low: float
    high: float
    verdict: Verdict


def check_claims(desiderata: Desiderata) -> Iterator[RuleClaim]:
    """Every finding for every checkpoint that was evaluated under both rules."""
    names = [model.model for model in desiderata.models]
    for original, name in enumerate(names):
        counterpart = name.removesuffix(ORIGINAL) + ADAPTED
        if not name.endswith(ORIGINAL) or counterpart not in names:
            continue
        both = (original, names.index(counterpart))
        scores = [desiderata.scores.column(names[row]) for row in both]
        words = [desiderata.word_scores[row].scores.mean(axis=1) for row in both]
        # longer sentences should be less likely, so that the negative score grows with length
        lengths, negated = desiderata.tokens[:, original], [-column for column in scores]
        yield _check_correlation(name, "correlates less with length", negated, lengths)
        finding = "correlates less with word frequency"
        yield _check_correlation(name, finding, words, desiderata.zipfs)
        if desiderata.reference:
            reference = desiderata.scores.column(desiderata.reference)
            finding = "correlates less with the causal model"
            yield _check_correlation(name, finding, scores, reference)
        # a word of one token has the same score under both rules, and says nothing here
        split = desiderata.word_scores[original].tokens > 1
        finding = "scores words of several tokens higher (nats)"
        yield _check_mean(name, finding, words[0][split], words[1][split])


def _check_mean(name: str, finding: str, original: FloatArray, adapted: FloatArray) -> RuleClaim:
    """Check that the first of two columns about the same words has the higher mean."""
    if not len(original):
        return RuleClaim(name, finding, *(math.nan,) * 4, Verdict.UNDECIDED)
    differences = (original - adapted)[_resamples(len(original))].mean(axis=1)  # (samples,)
    low, high = np.percentile(differences, (2.5, 97.5))
    a, b = float(original.mean()), float(adapted.mean())
    return RuleClaim(name, finding, a, b, float(low), float(high), _verdict(a > b, low, high))


def _check_correlation(
    name: str, finding: str, columns: Sequence[FloatArray], target: FloatArray
) -> RuleClaim:
    """Check that the first column correlates less with a target than the second."""
    rows = np.stack([*columns, target])  # (3, n)
    rows = rows[:, np.isfinite(rows).all(axis=0)]
    if rows.shape[1] < _FEWEST or not np.ptp(rows, axis=1).all():
        return RuleClaim(name, finding, *(math.nan,) * 4, Verdict.UNDECIDED)
    a, b = (float(_correlation(column, rows[2])) for column in rows[:2])
    # The same sentences are drawn for both columns, so that what they share falls out.
    drawn = rows[:, _resamples(rows.shape[1])]  # (3, samples, n)
    differences = _correlation(drawn[0], drawn[2]) - _correlation(drawn[1], drawn[2])
    low, high = np.nanpercentile(differences, (2.5, 97.5))
    return RuleClaim(name, finding, a, b, float(low), float(high), _verdict(a < b, low, high))


def _verdict(as_published: bool, low: float, high: float) -> Verdict:
    if not (low > 0 or high < 0):
        return Verdict.UNDECIDED
    return Verdict.HOLDS if as_published else Verdict.FAILS


def _resamples(n: int) -> IntArray:
    """Rows drawn with replacement, (samples, n); the same for every claim about n rows."""
    return np.random.default_rng(_SEED).integers(0, n, (_SAMPLES, n))


def _correlation(x: FloatArray, y: FloatArray) -> FloatArray:
    """Pearson's r along the last axis; nan where a resample does not vary."""
    x, y = x - x.mean(axis=-1, keepdims=True), y - y.mean(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation: FloatArray = (x * y).sum(axis=-1) / np.sqrt(
            (x * x).sum(axis=-1) * (y * y).sum(axis=-1)
        )
    return correlation
