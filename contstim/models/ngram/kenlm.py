"""Conditional probabilities as KenLM gives them, from its own binary files.

KenLM trusts every number in a file: a binary file of order 0 ends the process, since memory is
reserved by these numbers. So the announced numbers are compared with the size of the file
beforehand. The content of a binary file has no checksum, so damage inside it is not noticed.
"""

from __future__ import annotations

import struct
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import ModelError
from contstim.models.ngram.tables import MAX_ORDER, SPECIAL_WORDS, UNKNOWN
from contstim.models.vocabularies import spellings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contstim.files.arrays import FloatArray
    from contstim.words.sentence import Sentence

_BINARY = b"mmap lm http://kheafield.com/code"
_HEADER_BYTES = 1 << 16  # a header is much shorter
_SANITY = 88  # bytes that tell KenLM whether a binary file was made for this machine
_LONGEST_MESSAGE = 300  # characters of what KenLM says
_FIXED = struct.Struct("<B3xfiB3xI")  # order, multiplier, kind, has words, version


def is_binary(path: Path) -> bool:
    """True if a file is one of KenLM's binary files."""
    with path.open("rb") as file:
        return file.read(len(_BINARY)) == _BINARY


def _check(path: Path) -> None:
    """Refuse a binary file that could end the process when KenLM reads it.

    Raises:
        ModelError: if it is damaged.
    """
    with path.open("rb") as file:
        counts = _announced(path, file.read(_HEADER_BYTES))
    if not 1 <= len(counts) <= MAX_ORDER:
        raise ModelError(
            f"{path} announces n-grams of {len(counts)} lengths; KenLM has n-grams of 1 to "
            f"{MAX_ORDER} words."
        )
    if not counts[0] or max(counts) > path.stat().st_size:
        numbers = ", ".join(f"{count:,}" for count in counts)
        raise ModelError(
            f"{path} is damaged: it announces {numbers} n-grams of order 1 and so on, none or more "
            f"than it can hold."
        )


def _announced(path: Path, start: bytes) -> list[int]:
    """The numbers in the header of a binary file: fixed ones, and one for each order."""
    end = _SANITY + _FIXED.size
    order, multiplier, *_ = _FIXED.unpack_from(start.ljust(end, b"\0"), _SANITY)
    if len(start) < end + 8 * order:
        raise ModelError(f"{path} is cut off: the header of a binary file does not end.")
    if not 1.0 <= multiplier <= 100.0:  # nan neither
        raise ModelError(f"{path} is damaged: its hash tables would be {multiplier:g} times full.")
    return list(struct.unpack_from(f"<{order}Q", start, end))


class KenlmQuery:
    """Conditional probabilities from KenLM.

    Args:
        path: a binary file of KenLM, or an ARPA file that KenLM can read.

    Raises:
        ModelError: if the kenlm package is not installed, or cannot read the file.
    """

    def __init__(self, path: Path) -> None:
        self._model = _load(path)
        self.order = int(self._model.order)  # KenLM calls a unigram model order 2

    def log10_probs(self, sentence: Sentence) -> list[float]:
        """See `NgramTables.log10_probs`."""
        # KenLM gives (log10 probability, n-gram length, unknown?) for each word, and for </s>
        return [term[0] for term in self._model.full_scores(self._plain(sentence))]

    def totals(
        self, sentences: Sequence[Sentence], starts: Sequence[int] | None = None, *, end: bool
    ) -> FloatArray:
        """See `NgramTables.totals`."""
        full_scores = self._model.full_scores
        totals = np.zeros(len(sentences))
        for number, sentence in enumerate(sentences):
            start = 0 if starts is None else starts[number]
            # Not `sum`, which does not round every sum to float64 in Python 3.12 and later
            total = 0.0
            for term in islice(full_scores(self._plain(sentence), eos=end), start, None):
                total += term[0]
            totals[number] = total
        return totals

    def holds(self, word: str) -> bool:
        """See `NgramTables.holds`."""
        return self._spelled(word) in self._model

    def _plain(self, sentence: Sentence) -> str:
        """The words for KenLM; `<s>` and `</s>` in a text are unknown words, not boundaries."""
        bare, unknown = sentence.bare, SPECIAL_WORDS[UNKNOWN]
        if bare.isascii() and "<" not in bare and "'" not in bare:
            return bare
        words = map(self._spelled, sentence.words)
        return " ".join(unknown if word in SPECIAL_WORDS else word for word in words)

    def _spelled(self, word: str) -> str:
        """A word as the model spells it."""
        known = (spelling for spelling in (word, *spellings(word)) if spelling in self._model)
        return next(known, word)


def _load(path: Path) -> Any:
    try:
        import kenlm
    except ImportError as error:
        raise ModelError(
            f"{path} is a binary file of KenLM's, and the kenlm package is not installed: pip "
            f"install 'contstim[kenlm]', which needs a C++ compiler and CMake; or give the ARPA "
            f"file that it came from."
        ) from error
    if is_binary(path):
        _check(path)
    config = kenlm.Config()
    config.show_progress = False
    config.arpa_complain = kenlm.ARPALoadComplain.NONE
    try:
        return kenlm.Model(str(path), config)
    except (OSError, RuntimeError, ValueError, MemoryError) as error:
        # The end of its message says what is wrong, after the path and a place in its code
        reason = " ".join(str(error).split())[-_LONGEST_MESSAGE:].rstrip(".")
        raise ModelError(f"KenLM cannot read {path}: {reason}.") from error
