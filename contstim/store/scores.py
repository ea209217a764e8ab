"""The score cache, keyed by model fingerprint and sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contstim.store.database import Database

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import FloatArray

# SQLite before 3.32 takes 999 values in one statement
_MOST_VARIABLES = 500


class Store(Database):
    """A study's database with its scores, open for writing by this process alone.

    Use it in a `with` statement. `TripletStore` keeps triplets in the same file.

    Raises:
        StoreError: another process writes it, it is damaged, or it is something else's database.
    """

    def log_probs(self, fingerprint: str, sentences: Sequence[str]) -> FloatArray:
        """Stored log-probabilities of sentences, (n,), nats; nan where there is none yet.

        Raises:
            StoreError: the file is damaged.
        """
        # Keyed by text: Sentence.text, or the words before and after of a continuation
        stored: dict[str, float] = {}
        for start in range(0, len(sentences), _MOST_VARIABLES):
            some = sentences[start : start + _MOST_VARIABLES]
            stored.update(
                self.rows(
                    "SELECT sentence, log_prob FROM score JOIN model ON model.id = score.model "
                    f"WHERE fingerprint = ? AND sentence IN ({','.join('?' * len(some))})",
                    (fingerprint, *some),
                )
            )
        return np.array([stored.get(s, np.nan) for s in sentences], dtype=np.float64)

    def save(
        self, fingerprint: str, convention: str, sentences: Sequence[str], log_probs: FloatArray
    ) -> None:
        """Keep log-probabilities (n,), nats, in one transaction: all of them or none.

        Raises:
            StoreError: the disk is full or the file cannot be written.
        """
        with self.transaction() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO model (fingerprint, convention) VALUES (?, ?)",
                (fingerprint, convention),
            )
            # The model's id is looked up in the statement: SELECT id, ?, ? is a row of the three
            # columns
            connection.executemany(
                "INSERT OR REPLACE INTO score SELECT id, ?, ? FROM model WHERE fingerprint = ?",
                [(s, p, fingerprint) for s, p in zip(sentences, log_probs.tolist(), strict=True)],
            )
