"""Scores sentences by two workers and prints how many scores are kept; a program to be killed.

Usage: python scoring_driver.py MODEL SENTENCES OUT

Each line is the number of scores that are in the store by then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from contstim.models.base import Scorer
from contstim.models.loading import Loading
from contstim.steps.execution import ScoringExecution
from contstim.steps.scoring import score
from contstim.steps.watching import Watcher


class Telling(Watcher):
    @contextmanager
    def scoring(
        self, n_sentences: int, *, together: bool = False
    ) -> Iterator[Callable[[Scorer, int], None]]:
        del n_sentences
        assert together
        stored = 0

        def tell(model: Scorer, more: int) -> None:
            nonlocal stored
            del model
            stored += more
            print(stored, flush=True)

        yield tell


if __name__ == "__main__":
    model, sentences, out = sys.argv[1:]
    execution = ScoringExecution(executor="processes", workers=2)
    score(
        [model],
        Path(sentences),
        Path(out),
        execution=execution,
        loading=Loading(device="cpu"),
        watch=Telling(),
    )
