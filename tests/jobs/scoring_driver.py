"""Scores sentences by two workers and prints how many scores are kept; a program to be killed.

Usage: python scoring_driver.py MODEL SENTENCES OUT

Each line is the number of scores that are in the store by then.
"""

import sys
from pathlib import Path

from contstim.models.loading import Loading
from contstim.reporter import Reporter
from contstim.steps.execution import ScoringExecution
from contstim.steps.scoring import ScoreSentences


class Telling(Reporter):
    def progress(self, what: str, done: float, total: float | None, note: str = "") -> None:
        del total, note
        assert what == "scores"
        print(int(done), flush=True)


if __name__ == "__main__":
    model, sentences, out = sys.argv[1:]
    ScoreSentences(
        models=(model,),
        sentences=Path(sentences),
        out=Path(out),
        execution=ScoringExecution(executor="processes", workers=2),
        loading=Loading(device="cpu"),
    ).run(Telling())
