"""Conditional probabilities as KenLM gives them, from ARPA files and its own binary files."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import ModelError
from contstim.models.ngram.precautions import check_file
from contstim.models.ngram.tables import SPECIAL_WORDS, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contstim.arrays import FloatArray
    from contstim.sentence import Sentence


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

    @property
    def order(self) -> int:
        """See `NgramQuery.order`; KenLM calls a unigram model order 2."""
        return int(self._model.order)

    def log10_probs(self, sentence: Sentence) -> list[float]:
        """See `NgramQuery.log10_probs`."""
        # KenLM gives (log10 probability, n-gram length, unknown?) for each word, and for </s>
        return [term[0] for term in self._model.full_scores(_plain(sentence))]

    def totals(
        self, sentences: Sequence[Sentence], starts: Sequence[int] | None = None, *, end: bool
    ) -> FloatArray:
        """See `NgramQuery.totals`."""
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
        """See `NgramQuery.holds`."""
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
        # KenLM's message may cite bytes that are not text; then Python could not decode it
        if isinstance(error, UnicodeDecodeError):
            message = error.object.decode("utf-8", "replace")
        else:
            message = str(error)
        # leave out what repeats the path, and the place in KenLM's code: "FILE:LINE in … threw …"
        message = re.sub(
            r"^Cannot read model '.*?' \((.*)\)$", r"\1", message.strip(), flags=re.DOTALL
        )
        message = re.sub(r"^.* threw [\w:]+(?: because `.*?')?\.\s*", "", message, flags=re.DOTALL)
        message = " ".join(re.sub(r"\s*Byte: \d+\s*$", "", message).split())
        reason = (message[:300] or "the file is not whole").rstrip(".")
        raise ModelError(f"KenLM cannot read {path}: {reason}.") from error
