"""Whether the findings of Kauf & Ivanova (2023) hold of a checkpoint that is here under both rules.

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
    from contstim.arrays import FloatArray
    from contstim.evaluation.desiderata.run import Desiderata

ORIGINAL, ADAPTED = "@pll-original", "@pll-word-l2r"
_SAMPLES, _SEED = 1000, 0
_FEWEST = 4


class Verdict(StrEnum):
    """What the numbers say of a finding."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Claim:
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


def claims(found: Desiderata) -> list[Claim]:
    """Every finding for every checkpoint that was evaluated under both rules."""
    names = [one.model for one in found.models]
    pairs = [
        (row, names.index(name.removesuffix(ORIGINAL) + ADAPTED))
        for row, name in enumerate(names)
        if name.endswith(ORIGINAL) and name.removesuffix(ORIGINAL) + ADAPTED in names
    ]
    return [claim for pair in pairs for claim in _claims(found, *pair)]


def _claims(found: Desiderata, original: int, adapted: int) -> list[Claim]:
    name, pair = found.models[original].model, (original, adapted)
    scores = [found.scores.column(found.models[row].model) for row in pair]
    words = [found.word_scores[row].scores.mean(axis=1) for row in pair]
    cases = [
        ("correlates less with length", [-one for one in scores], found.tokens[:, original]),
        ("correlates less with word frequency", words, found.zipfs),
    ]
    if found.reference:
        reference = found.scores.column(found.reference)
        cases.append(("correlates less with the causal model", scores, reference))
    results = [_less(name, finding, columns, target) for finding, columns, target in cases]
    split = found.word_scores[original].tokens > 1
    return [*results, _inflates(name, words[0][split], words[1][split])]


def _less(name: str, finding: str, columns: list[FloatArray], target: FloatArray) -> Claim:
    rows = np.stack([*columns, target])  # (3, n)
    rows = rows[:, np.isfinite(rows).all(axis=0)]
    if rows.shape[1] < _FEWEST or not np.ptp(rows, axis=1).all():
        return Claim(name, finding, *(math.nan,) * 4, Verdict.UNDECIDED)
    original, adapted = _correlation(rows[0], rows[2]), _correlation(rows[1], rows[2])
    drawn = rows[:, _resamples(rows.shape[1])]  # (3, samples, n)
    differences = _correlation(drawn[0], drawn[2]) - _correlation(drawn[1], drawn[2])
    low, high = np.nanpercentile(differences, (2.5, 97.5))
    a, b = float(original), float(adapted)
    return Claim(name, finding, a, b, float(low), float(high), _verdict(a < b, low, high))


def _inflates(name: str, original: FloatArray, adapted: FloatArray) -> Claim:
    """Mean score of words of several tokens; a word of one token has the same under both rules."""
    finding = "scores words of several tokens higher (nats)"
    if not len(original):
        return Claim(name, finding, *(math.nan,) * 4, Verdict.UNDECIDED)
    means = (original - adapted)[_resamples(len(original))].mean(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    a, b = float(original.mean()), float(adapted.mean())
    return Claim(name, finding, a, b, float(low), float(high), _verdict(a > b, low, high))


def _verdict(as_found: bool, low: float, high: float) -> Verdict:
    if not (low > 0 or high < 0):
        return Verdict.UNDECIDED
    return Verdict.HOLDS if as_found else Verdict.FAILS


def _resamples(n: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Rows drawn with replacement, (samples, n); the same for every claim about n rows."""
    return np.random.default_rng(_SEED).integers(0, n, (_SAMPLES, n))


def _correlation(x: FloatArray, y: FloatArray) -> FloatArray:
    """Pearson's r along the last axis; nan where a resample does not vary."""
    x, y = x - x.mean(axis=-1, keepdims=True), y - y.mean(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: FloatArray = (x * y).sum(axis=-1) / np.sqrt(
            (x * x).sum(axis=-1) * (y * y).sum(axis=-1)
        )
    return found
