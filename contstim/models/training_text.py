"""The sentences that a model was trained on, as hashes in a file beside it, eight bytes each.

A sentence is in the training text if the text holds the same words in the same order. Case,
punctuation, end marks and spacing do not count, since texts are split and cleaned in many ways.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import ModelError
from contstim.files import writing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from contstim.arrays import BoolArray
    from contstim.sentence import Sentence

    Hashes = NDArray[np.uint64]

_IN_A_FOLDER = "training_sentences.npy"
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class TrainingText:
    """The sentences of a training text, as hashes in a file.

    Attributes:
        path: the file, sorted numbers in NumPy's format.
    """

    path: Path

    @classmethod
    def beside(cls, model: Path | str) -> TrainingText | None:
        """The training text beside a model's file or in its folder; None if there is none."""
        path = training_text_path(model)
        return cls(path.absolute()) if path.is_file() else None

    def holds(self, sentences: Sequence[Sentence]) -> BoolArray:
        """Mask of the sentences that the text holds, (n_sentences,).

        Raises:
            ModelError: the file cannot be read, or is something else.
        """
        hashes = self._read()
        asked = sentence_hashes(sentences)
        # the row where each hash would stand; behind the last row, 0 is a stand-in
        rows = np.searchsorted(hashes, asked)
        equal: BoolArray = np.append(hashes, np.uint64(0))[rows] == asked
        return equal & (rows < len(hashes))

    def _read(self) -> Hashes:
        try:
            with self.path.open("rb") as file:
                # Read by hand: np.load would make room for as many numbers as the header claims
                version = np.lib.format.read_magic(file)
                if version != (1, 0):
                    raise ValueError("it is of another version")
                shape, _, dtype = np.lib.format.read_array_header_1_0(file)
                content = file.read()
            if len(shape) != 1 or dtype != np.uint64 or len(content) != 8 * shape[0]:
                raise ValueError("it is cut off, or not a list of hashes")
            hashes = np.frombuffer(content, np.uint64)
            # Binary search below gives wrong answers, and no error, where they do not rise
            if (hashes[1:] <= hashes[:-1]).any():
                raise ValueError("they do not rise")
            return hashes
        except (OSError, ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
            raise ModelError(
                f"{self.path} does not hold the hashes of a training text ({error}). Train the "
                f"model anew; or remove the file, and nothing is known of the text."
            ) from error


def training_text_path(model: Path | str) -> Path:
    """Path of the hashes of a model's training text: beside its file, or in its folder."""
    return training_text_of(Path(model), is_file=not Path(model).is_dir())


def training_text_of(model: Path, *, is_file: bool) -> Path:
    """Path of the hashes for a model that is not there yet, a file or a folder."""
    return Path(f"{model}.sentences.npy") if is_file else model / _IN_A_FOLDER


def write_training_text(model: Path | str, sentences: Iterable[Sentence] | Hashes) -> None:
    """Write the hashes of a model's training text, from its sentences or their hashes.

    Raises:
        InputError: the file cannot be written.
    """
    hashes = sentences if isinstance(sentences, np.ndarray) else sentence_hashes(sentences)
    with writing(training_text_path(model)) as partial, partial.open("wb") as file:
        np.save(file, np.unique(hashes), allow_pickle=False)


def sentence_hashes(sentences: Iterable[Sentence]) -> Hashes:
    """A hash of the words of each sentence, (n_sentences,)."""
    return np.frombuffer(array("Q", map(sentence_hash, sentences)), np.uint64)


def sentence_hash(sentence: Sentence) -> int:
    """A hash of the words: equal for sentences of the same words, hardly ever for others."""
    # NFKC joins letters with their accents and unfolds ligatures; a text without letters stands for
    # itself
    plain = unicodedata.normalize("NFKC", sentence.bare).casefold()
    words = " ".join(_WORD.findall(plain)) or plain
    digest = hashlib.blake2b(words.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")
