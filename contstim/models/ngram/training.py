"""From a text to a model file: an ARPA file, the word counts, and a record of both."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from contstim.models.ngram.arpa import write_arpa
from contstim.models.ngram.counts import write_counts
from contstim.models.ngram.estimate import Estimate, estimate
from contstim.records import write_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from contstim.sentence import Sentence


def train_ngram(sentences: Iterable[Sentence], order: int, out: Path | str) -> Estimate:
    """Estimate an n-gram model and write it as `out`, with counts and a record beside it.

    Raises:
        InputError: the order is not 1 to 6, or the file cannot be written.
        CorpusError: see `estimate`.
    """
    digest = hashlib.sha256()
    trained = estimate(_hashed(sentences, digest), order)
    write_arpa(trained.tables, out)
    write_counts(out, trained)
    write_record(
        out,
        order=order,
        smoothing="interpolated modified Kneser-Ney",
        discounts=trained.discounts,
        ngrams=[len(table.keys) for table in trained.tables.orders],
        text_sha256=digest.hexdigest(),
    )
    return trained


def _hashed(sentences: Iterable[Sentence], digest: hashlib._Hash) -> Iterator[Sentence]:
    for sentence in sentences:
        digest.update(f"{sentence.text}\n".encode())
        yield sentence
