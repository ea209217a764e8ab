"""From a text to a model file: an ARPA file, word counts, hashes of the sentences, a record."""

from __future__ import annotations

import hashlib
from array import array
from typing import TYPE_CHECKING

import numpy as np

from contstim.models.ngram.arpa import write_arpa
from contstim.models.ngram.estimate import Estimate, estimate
from contstim.models.ngram.tables import SPECIAL_WORDS
from contstim.models.training_text import (
    sentence_hash,
    training_text_path,
    write_training_text,
)
from contstim.models.word_list import WordList, counts_path
from contstim.records import write_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from contstim.sentence import Sentence


def train_ngram(
    sentences: Iterable[Sentence], order: int, out: Path | str, *, text: Path | None = None
) -> Estimate:
    """Estimate an n-gram model and write it as `out`; beside it counts, hashes, and a record.

    Args:
        sentences: the text, which may be a stream.
        order: length of the longest n-grams.
        out: the ARPA file.
        text: the file that the sentences come from, of which the record has a checksum.

    Raises:
        InputError: the order is not 1 to 6, or the file cannot be written.
        CorpusError: see `estimate`.
    """
    digest, hashes = hashlib.sha256(), array("Q")

    # the text may be a stream, which can be read once only: it is hashed as the estimator reads it
    def hashed() -> Iterator[Sentence]:
        for sentence in sentences:
            digest.update(f"{sentence.text}\n".encode())
            hashes.append(sentence_hash(sentence))
            yield sentence

    trained = estimate(hashed(), order)
    write_arpa(trained.tables, out)
    first = len(SPECIAL_WORDS)  # before it are ids that are no words of the text
    counts = (trained.initial_counts.tolist(), trained.inner_counts.tolist())
    words = WordList(trained.tables.words[first:], *(tuple(each[first:]) for each in counts))
    words.write(counts_path(out))
    write_training_text(out, np.frombuffer(hashes, np.uint64))
    write_record(
        out,
        [text],
        [counts_path(out), training_text_path(out)],
        order=order,
        smoothing="interpolated modified Kneser-Ney",
        discounts=trained.discounts,
        ngrams=[len(table.keys) for table in trained.tables.orders],
        text_sha256=digest.hexdigest(),
    )
    return trained
