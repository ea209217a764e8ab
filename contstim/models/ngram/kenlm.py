"""Conditional probabilities computed by KenLM from its binary files.

KenLM does not check the numbers in a file before it allocates memory. For example, a binary file of
order 0 kills the process. So the counts in the header are first compared with the size of the file.
The content of a binary file has no checksum, so damage inside it is not detected.
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
_SANITY = 88  # bytes by which KenLM checks that a binary file fits this machine
_LONGEST_MESSAGE = 300  # characters of KenLM's message
_FIXED = struct.Struct("<B3xfiB3xI")  # order, multiplier, kind, has words, version


def is_binary(path: Path) -> bool:
    """Return True if a file is a KenLM binary file."""
    with path.open("rb") as file:
        return file.read(len(_BINARY)) == _BINARY


def _check_header(path: Path) -> None:
    """Refuse a binary file that could kill the process when KenLM reads it.

    Raises:
        ModelError: if the file is damaged.
    """
    with path.open("rb") as file:
        counts = _header_counts(path, file.read(_HEADER_BYTES))
    if not 1 <= len(counts) <= MAX_ORDER:
        raise ModelError(
            f"{path} has n-grams of {len(counts)} lengths, but the maximum order is {MAX_ORDER}."
        )
    if not counts[0] or max(counts) > path.stat().st_size:
        numbers = ", ".join(f"{count:,}" for count in counts)
        raise ModelError(
            f"{path} is damaged: its header has impossible numbers of n-grams, {numbers}."
        )


def _header_counts(path: Path, start: bytes) -> list[int]:
    """Return the number of n-grams of each order from the header of a binary file."""
    end = _SANITY + _FIXED.size
    order, multiplier, *_ = _FIXED.unpack_from(start.ljust(end, b"\0"), _SANITY)
    if len(start) < end + 8 * order:
        raise ModelError(f"{path} is truncated: the header of the binary file is incomplete.")
    if not 1.0 <= multiplier <= 100.0:  # also refuses nan
        raise ModelError(f"{path} is damaged: its hash tables would be {multiplier:g} times full.")
    return list(struct.unpack_from(f"<{order}Q", start, end))


class KenlmQuery:
    """Conditional probabilities from KenLM.

    Args:
        path: a KenLM binary file, or an ARPA file that KenLM can read.

    Raises:
        ModelError: if the kenlm package is not installed or cannot read the file.
    """

    def __init__(self, path: Path) -> None:
        self._model = _load(path)
        self.order = int(self._model.order)  # 2 for a unigram model

    def log10_probs(self, sentence: Sentence) -> list[float]:
        """See `NgramTables.log10_probs`."""
        # KenLM returns (log10 probability, n-gram length, is unknown) for each word and for </s>
        return [term[0] for term in self._model.full_scores(self._words_for_kenlm(sentence))]

    def totals(
        self, sentences: Sequence[Sentence], starts: Sequence[int] | None = None, *, end: bool
    ) -> FloatArray:
        """See `NgramTables.totals`."""
        full_scores = self._model.full_scores
        totals = np.zeros(len(sentences))
        for i, sentence in enumerate(sentences):
            start = 0 if starts is None else starts[i]
            # Not `sum`, whose partial sums are more precise than float64 since Python 3.12
            total = 0.0
            for term in islice(full_scores(self._words_for_kenlm(sentence), eos=end), start, None):
                total += term[0]
            totals[i] = total
        return totals

    def holds(self, word: str) -> bool:
        """See `NgramTables.holds`."""
        return self._spelling(word) in self._model

    def _words_for_kenlm(self, sentence: Sentence) -> str:
        """Return the words for KenLM; `<s>` and `</s>` in a text become unknown words."""
        bare, unknown = sentence.bare, SPECIAL_WORDS[UNKNOWN]
        if bare.isascii() and "<" not in bare and "'" not in bare:
            return bare
        words = map(self._spelling, sentence.words)
        return " ".join(unknown if word in SPECIAL_WORDS else word for word in words)

    def _spelling(self, word: str) -> str:
        """Return the model's spelling of a word; the word itself if it is unknown."""
        known_spellings = (
            spelling for spelling in (word, *spellings(word)) if spelling in self._model
        )
        return next(known_spellings, word)


def _load(path: Path) -> Any:
    try:
        import kenlm
    except ImportError as error:
        raise ModelError(
            f"{path} is a KenLM binary file, but the package kenlm is not installed: pip "
            "install 'contstim[kenlm]', which needs a C++ compiler and CMake; or use the "
            "original ARPA file."
        ) from error
    if is_binary(path):
        _check_header(path)
    config = kenlm.Config()
    config.show_progress = False
    config.arpa_complain = kenlm.ARPALoadComplain.NONE
    try:
        return kenlm.Model(str(path), config)
    except (OSError, RuntimeError, ValueError, MemoryError) as error:
        # The reason is at the end of KenLM's message, after the path and the line of its code
        reason = " ".join(str(error).split())[-_LONGEST_MESSAGE:].rstrip(".")
        raise ModelError(f"KenLM cannot read {path}: {reason}.") from error
