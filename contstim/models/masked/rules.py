"""The pseudo-log-likelihood rules: what is hidden while each token is asked for.

Salazar, Liang, Nguyen & Kirchhoff (2020) hide one token at a time (`pll-original`). Kauf & Ivanova
(2023, *A better way to do masked language model scoring*, equations 1 to 4) hide more, because the
later tokens of a word give its earlier ones away. Every token counts, the end mark among them;
special tokens never do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contstim.models.masked.plan import Plan
from contstim.models.words import SPECIAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from contstim.arrays import BoolArray, IntArray
    from contstim.models.masked.plan import Pattern

    Hides = Callable[[IntArray, IntArray], BoolArray]


def _original(token: IntArray, word_of: IntArray) -> BoolArray:
    """The token alone."""
    return np.equal(_places(word_of), token)


def _word_l2r(token: IntArray, word_of: IntArray) -> BoolArray:
    """The token and the later tokens of its word."""
    return np.equal(word_of, word_of[token]) & np.greater_equal(_places(word_of), token)


def _whole_word(token: IntArray, word_of: IntArray) -> BoolArray:
    """All tokens of its word."""
    return np.equal(word_of, word_of[token])


def _sentence_l2r(token: IntArray, word_of: IntArray) -> BoolArray:
    """The token and all to its right; the closing special token too, as in the authors' code."""
    return np.greater_equal(_places(word_of), token)


HIDES: dict[str, Hides] = {
    "pll-original": _original,
    "pll-word-l2r": _word_l2r,
    "pll-whole-word": _whole_word,
    "pll-sentence-l2r": _sentence_l2r,
}


def pll_plan(rule: str, pattern: Pattern) -> Plan:
    """The plan of a pseudo-log-likelihood rule: one question for each token of the text."""
    word_of = np.array(pattern)
    token = np.flatnonzero(word_of != SPECIAL)
    hidden, row = np.unique(HIDES[rule](token[:, None], word_of), axis=0, return_inverse=True)
    return Plan(hidden, row.reshape(-1), token, np.ones(len(token)))


def _places(word_of: IntArray) -> IntArray:
    return np.arange(len(word_of))
