"""Conditional probabilities as KenLM gives them, from ARPA files and its own binary files.

KenLM trusts every number in a file: an ARPA file that announces -5 n-grams, or a binary file of
order 0, ends the process, since memory is reserved by these numbers. So the announced numbers are
compared with the size of the file beforehand. The content of a binary file has no checksum: what is
damaged inside cannot be told.
"""

from __future__ import annotations

import struct
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import ModelError
from contstim.models.ngram.arpa import HEADER_BYTES, announced, read_content
from contstim.models.ngram.tables import MAX_ORDER, SPECIAL_WORDS, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contstim.arrays import FloatArray
    from contstim.sentence import Sentence

_BINARY = b"mmap lm http://kheafield.com/code"
_SHORTEST_LINE = 4  # bytes of an n-gram in an ARPA file: a digit, a tab, a letter, a line break
_DEFLATED = 1100  # how many bytes one compressed byte can stand for at most, in gzip
_SANITY = 88  # bytes that tell KenLM whether a binary file was made for this machine
_LONGEST_MESSAGE = 300  # characters of what KenLM says
_FIXED = struct.Struct("<B3xfiB3xI")  # order, multiplier, kind, has words, version


def is_binary(path: Path) -> bool:
    """True if a file is one of KenLM's binary files."""
    with path.open("rb") as file:
        return file.read(len(_BINARY)) == _BINARY


def check_file(path: Path) -> None:
    """Refuse a file that could end the process when KenLM reads it.

    Raises:
        ModelError: it is neither an ARPA file nor one of KenLM's, or is damaged; says where.
    """
    # The header of a compressed ARPA file lies inside
    start, compressed = read_content(path, HEADER_BYTES)
    most = path.stat().st_size
    if start.startswith(_BINARY):
        counts = _announced_by_binary(path, start)
    else:
        counts = announced(path, start)
        most = most * (_DEFLATED if compressed else 1) // _SHORTEST_LINE
    if not 1 <= len(counts) <= MAX_ORDER:
        raise ModelError(
            f"{path} announces n-grams of {len(counts)} lengths; here models have n-grams of 1 to "
            f"at most {MAX_ORDER} words."
        )
    if not counts[0] or max(counts) > most:
        numbers = ", ".join(f"{count:,}" for count in counts)
        raise ModelError(
            f"{path} is damaged: it announces {numbers} n-grams of order 1 and so on, none or more "
            f"than it can hold."
        )


def _announced_by_binary(path: Path, start: bytes) -> list[int]:
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
        path: an ARPA file or a binary file of KenLM's.

    Raises:
        ImportError: kenlm is not installed.
        ModelError: KenLM cannot read the file.
    """

    def __init__(self, path: Path) -> None:
        self._model = _load(path)
        self.order = int(self._model.order)  # KenLM calls a unigram model order 2

    def log10_probs(self, sentence: Sentence) -> list[float]:
        """See `NgramTables.log10_probs`."""
        # KenLM gives (log10 probability, n-gram length, unknown?) for each word, and for </s>
        return [term[0] for term in self._model.full_scores(_plain(sentence))]

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
            for term in islice(full_scores(_plain(sentence), eos=end), start, None):
                total += term[0]
            totals[number] = total
        return totals

    def holds(self, word: str) -> bool:
        """See `NgramTables.holds`."""
        return word in self._model


def _plain(sentence: Sentence) -> str:
    """The words for KenLM; `<s>` and `</s>` in a text are unknown words, not boundaries."""
    bare, unknown = sentence.bare, SPECIAL_WORDS[UNKNOWN]
    if "<" not in bare:
        return bare
    return " ".join(unknown if word in SPECIAL_WORDS else word for word in sentence.words)


def _load(path: Path) -> Any:
    import kenlm

    check_file(path)
    config = kenlm.Config()
    config.show_progress = False
    config.arpa_complain = kenlm.ARPALoadComplain.NONE
    try:
        return kenlm.Model(str(path), config)
    except (OSError, RuntimeError, ValueError, MemoryError) as error:
        # Its last words say what is wrong; before them stand the path, and the place in its code
        reason = " ".join(str(error).split())[-_LONGEST_MESSAGE:].rstrip(".")
        raise ModelError(f"KenLM cannot read {path}: {reason}.") from error
