"""Training sentences of a model, stored as 8-byte hashes in a file.

If the model is a folder, the file is in this folder. Otherwise, it is next to the model's file.

A model may have memorised its training sentences, so its scores of these sentences may mislead.
When sentences are scored, the record of the score table (a JSON file next to the table) gets an
entry for each model. The entry lists the hashes of the scored sentences that are in the model's
training text. Later commands, such as the selection of pairs, use the entry to warn about training
sentences among their own sentences.

A sentence is in the training text if the text has a sentence with the same words in the same order.
Case, spacing and punctuation (including the full stop) are ignored, since texts are split and
cleaned in many ways.
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
from contstim.files.arrays import BoolArray, read_npy
from contstim.files.documents import read_json_object
from contstim.files.files import writing
from contstim.files.records import record_path
from contstim.wording import grouped

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from contstim.reporter import Reporter
    from contstim.words.sentence import Sentence

    Hashes = NDArray[np.uint64]

_FILE_IN_FOLDER = "training_sentences.npy"
_WORD = re.compile(r"\w+")


def training_text_beside(model: Path | str) -> Path | None:
    """Return the path of a model's training hashes; None if there is no such file."""
    path = training_text_path(model).absolute()
    return path if path.is_file() else None


def in_training_text(text: Path, sentences: Sequence[Sentence]) -> BoolArray:
    """Return a mask of the sentences whose hashes are in a file, (n_sentences,).

    Raises:
        ModelError: if the file cannot be read or does not contain sorted hashes.
    """
    try:
        hashes = read_npy(text)
        # Without ascending order, the binary search below would give wrong results
        if hashes.ndim != 1 or hashes.dtype != np.uint64 or (hashes[1:] <= hashes[:-1]).any():
            raise InputError("it is not a sorted list of hashes")
    except InputError as error:
        raise ModelError(
            f"{text} does not contain the hashes of a training text ({error}). Train the "
            "model again, or remove the file."
        ) from error
    sought = sentence_hashes(sentences)
    n_smaller = np.searchsorted(hashes, sought)  # number of smaller hashes in the file
    return np.greater(np.searchsorted(hashes, sought, side="right"), n_smaller)


def training_text_path(model: Path | str) -> Path:
    """Return the path for a model's training hashes, next to the model's file or in its folder."""
    path = Path(model)
    return path / _FILE_IN_FOLDER if path.is_dir() else Path(f"{path}.sentences.npy")


def write_training_text(model: Path | str, hashes: Hashes) -> None:
    """Write the hashes of training sentences next to a model or into its folder.

    Raises:
        InputError: if the file cannot be written.
    """
    with writing(training_text_path(model)) as partial, partial.open("wb") as file:
        np.save(file, np.unique(hashes), allow_pickle=False)


def sentence_hashes(sentences: Iterable[Sentence]) -> Hashes:
    """Return a hash of the words of each sentence, (n_sentences,)."""
    return np.frombuffer(array("Q", map(sentence_hash, sentences)), np.uint64)


def sentence_hash(sentence: Sentence) -> int:
    """Return a hash of a sentence's words.

    Two sentences with different words almost always have different hashes.
    """
    # NFKC combines letters with their accents and splits ligatures. If a sentence has neither
    # letters nor digits, its punctuation is hashed, since no words would remain
    plain = unicodedata.normalize("NFKC", sentence.bare).casefold()
    words = " ".join(_WORD.findall(plain)) or plain
    digest = hashlib.blake2b(words.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


# Key of a record. Its value maps each model to an object with the keys `sentences`, `found` and
# `hashes`
_ENTRY = "training_text"


@dataclass(frozen=True)
class Contamination:
    """Sentences of a study that are in the training text of a model.

    Attributes:
        sentences: number of distinct sentences of the study.
        hashes: hexadecimal hashes of the sentences that are in the training text.
    """

    model: str
    sentences: int
    hashes: tuple[str, ...]

    @property
    def share(self) -> float:
        """Proportion of the study's sentences that are in the training text, 0 to 1."""
        return len(self.hashes) / self.sentences if self.sentences else 0.0


def contamination(
    texts: Mapping[str, Path | None], sentences: Iterable[Sentence]
) -> dict[str, Contamination | None]:
    """Return which of the sentences are in each model's training text.

    A model whose training text is unknown has the value None. `texts` maps the name of each model
    to its file of training hashes, or to None. Duplicate sentences count once.

    Raises:
        ModelError: if the hashes of a training text are damaged.
    """
    distinct = list(dict.fromkeys(sentences))
    results: dict[str, Contamination | None] = dict.fromkeys(texts)
    for name, text in texts.items():
        if text is not None:
            trained_on = compress(distinct, in_training_text(text, distinct))
            results[name] = Contamination(name, len(distinct), tuple(map(_hex, trained_on)))
    return results


def read_contamination(
    scores: Path | str, models: Iterable[str], sentences: Iterable[Sentence]
) -> dict[str, Contamination | None]:
    """Return which of the sentences are in each model's training text, from a score table's record.

    `scores` is the path of the table. A model that is not in the record has the value None. If the
    record is missing or damaged, all models have the value None.
    """
    hashes = dict.fromkeys(map(_hex, sentences))
    results: dict[str, Contamination | None] = dict.fromkeys(models)
    try:
        entry = read_json_object(record_path(scores))[_ENTRY]
        recorded = {model: set(entry[model]["hashes"]) for model in results if entry.get(model)}
    # No error for a missing or damaged record, which is needed only for a warning
    except (InputError, KeyError, TypeError, AttributeError):
        return results
    for model, in_text in recorded.items():
        common_hashes = tuple(value for value in hashes if value in in_text)
        results[model] = Contamination(model, len(hashes), common_hashes)
    return results


def contamination_warnings(
    results: Mapping[str, Contamination | None], noun: str = "sentences"
) -> list[str]:
    """Return warnings about sentences that are in training texts.

    If exactly the same sentences are in the training texts of several models, one warning names all
    these models.
    `noun` is a plural noun for the sentences, such as `selected sentences`.
    """
    groups = grouped((r.hashes, r) for r in results.values() if r is not None and r.hashes)
    return [
        f"{len(hashes):,} of {group[0].sentences:,} {noun} ({100 * group[0].share:.1f} %) occur in "
        f"the training text of {', '.join(result.model for result in group)}: their scores may "
        "reflect memorisation. Exclude these sentences ('contstim sentences --exclude TEXT')."
        for hashes, group in groups.items()
    ]


def tell_contamination(
    results: Mapping[str, Contamination | None], reporter: Reporter, noun: str = "sentences"
) -> dict[str, dict[str, dict[str, Any] | None]]:
    """Warn about sentences that are in training texts of models.

    Returns:
        Entry for the record of a score table; `read_contamination` reads it.
    """
    for warning in contamination_warnings(results, noun):
        reporter.warn(warning)
    entry: dict[str, dict[str, Any] | None] = dict.fromkeys(results)
    for name, result in results.items():
        if result is not None:
            hashes = list(result.hashes)
            entry[name] = {"sentences": result.sentences, "found": len(hashes), "hashes": hashes}
    return {_ENTRY: entry}


def _hex(sentence: Sentence) -> str:
    return f"{sentence_hash(sentence):016x}"
