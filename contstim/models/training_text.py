"""The sentences that a model was trained on, as hashes in a file beside it, eight bytes each.

A model knows the sentences of its training text by heart: their scores measure memory, not skill.
So `score` writes into its record the hashes of the scored sentences that stand in each model's
training text, and every command that reads the scores can count them among the sentences it uses.

A sentence is in the training text if the text holds the same words in the same order. Case,
punctuation, end marks and spacing do not count, since texts are split and cleaned in many ways.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from array import array
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import InputError, ModelError
from contstim.files.arrays import read_npy
from contstim.files.documents import read_json_object
from contstim.files.files import writing
from contstim.files.records import record_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from contstim.files.arrays import BoolArray
    from contstim.reporter import Reporter
    from contstim.words.sentence import Sentence

    Hashes = NDArray[np.uint64]

_IN_A_FOLDER = "training_sentences.npy"
_WORD = re.compile(r"\w+")


def training_text_beside(model: Path | str) -> Path | None:
    """The hashes of the training text beside a model's file or in its folder; None if none."""
    path = training_text_path(model).absolute()
    return path if path.is_file() else None


def in_training_text(text: Path, sentences: Sequence[Sentence]) -> BoolArray:
    """Mask of the sentences that a training text holds, (n_sentences,).

    Args:
        text: its hashes, sorted numbers in NumPy's format.
        sentences: which to look for.

    Raises:
        ModelError: the file cannot be read, or is something else.
    """
    try:
        hashes = read_npy(text)
        # Binary search below gives wrong answers, and no error, where they do not rise
        if hashes.ndim != 1 or hashes.dtype != np.uint64 or (hashes[1:] <= hashes[:-1]).any():
            raise InputError("it is not a list of rising hashes")
    except InputError as error:
        raise ModelError(
            f"{text} does not hold the hashes of a training text ({error}). Train the model anew, "
            f"or remove the file."
        ) from error
    asked = sentence_hashes(sentences)
    # the row where each hash would stand; behind the last row, 0 is a stand-in
    rows = np.searchsorted(hashes, asked)
    equal: BoolArray = np.append(hashes, np.uint64(0))[rows] == asked
    return equal & (rows < len(hashes))


def training_text_path(model: Path | str) -> Path:
    """Path of the hashes of a model's training text: beside its file, or in its folder."""
    path = Path(model)
    return path / _IN_A_FOLDER if path.is_dir() else Path(f"{path}.sentences.npy")


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


_ENTRY = "training_text"  # of a record: model -> sentences, found, hashes


@dataclass(frozen=True)
class Contamination:
    """The sentences of a study that stand in the training text of a model.

    Attributes:
        model: its name.
        sentences: number of different sentences of the study.
        hashes: of those that stand in the training text, as hexadecimal numbers.
    """

    model: str
    sentences: int
    hashes: tuple[str, ...]

    @property
    def share(self) -> float:
        """Share of the sentences that stand in the training text."""
        return len(self.hashes) / self.sentences if self.sentences else 0.0


def contamination(
    texts: Mapping[str, Path | None], sentences: Iterable[Sentence]
) -> dict[str, Contamination | None]:
    """The sentences that each model was trained on; None for a model without a training text.

    Args:
        texts: the training text of each model, by the model's name.
        sentences: those of the study; repeated ones count once.

    Raises:
        ModelError: the hashes of a training text are damaged.
    """
    distinct = list(dict.fromkeys(sentences))
    results: dict[str, Contamination | None] = dict.fromkeys(texts)
    for name, text in texts.items():
        if text is not None:
            among = compress(distinct, in_training_text(text, distinct))
            results[name] = Contamination(name, len(distinct), tuple(map(_hex, among)))
    return results


def contamination_facts(
    results: Mapping[str, Contamination | None],
) -> dict[str, dict[str, dict[str, Any] | None]]:
    """The entry of a record, as `read_contamination` reads it."""
    entry: dict[str, dict[str, Any] | None] = dict.fromkeys(results)
    for name, result in results.items():
        if result is not None:
            hashes = list(result.hashes)
            entry[name] = {"sentences": result.sentences, "found": len(hashes), "hashes": hashes}
    return {_ENTRY: entry}


def read_contamination(
    scores: Path | str, models: Iterable[str], sentences: Iterable[Sentence]
) -> dict[str, Contamination | None]:
    """The contamination of some of the sentences of a table of scores, from the record beside it.

    None for all models if there is no record, or a record without such an entry.
    """
    hashes = dict.fromkeys(map(_hex, sentences))
    results: dict[str, Contamination | None] = dict.fromkeys(models)
    try:
        entry = read_json_object(record_path(scores))[_ENTRY]
        recorded = {model: set(entry[model]["hashes"]) for model in results if entry.get(model)}
    # Records warn of what they say; one that is missing or damaged takes no scores away
    except (InputError, KeyError, TypeError, AttributeError):
        return results
    for model, in_text in recorded.items():
        among = tuple(value for value in hashes if value in in_text)
        results[model] = Contamination(model, len(hashes), among)
    return results


def contamination_warnings(
    results: Mapping[str, Contamination | None], what: str = "sentences"
) -> list[str]:
    """Warnings, one for all models that were trained on the same of the sentences.

    Args:
        results: by the model's name.
        what: a name for the sentences, such as `selected sentences`.
    """
    # By the very sentences: models trained on one text are warned of in one line
    groups: dict[tuple[str, ...], list[Contamination]] = {}
    for result in results.values():
        if result is not None and result.hashes:
            groups.setdefault(result.hashes, []).append(result)
    return [
        f"{len(hashes):,} of {group[0].sentences:,} {what} ({100 * group[0].share:.1f} %) stand in "
        f"the training text of {', '.join(result.model for result in group)}: such scores measure "
        f"memory. Leave these sentences out ('contstim sentences --exclude TEXT')."
        for hashes, group in groups.items()
    ]


def tell_contamination(
    results: Mapping[str, Contamination | None], reporter: Reporter, what: str = "sentences"
) -> dict[str, dict[str, dict[str, Any] | None]]:
    """Warn of sentences that models were trained on; the entry of a record."""
    for warning in contamination_warnings(results, what):
        reporter.warn(warning)
    return contamination_facts(results)


def _hex(sentence: Sentence) -> str:
    return f"{sentence_hash(sentence):016x}"
