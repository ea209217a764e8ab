"""Trials of hostile sentences."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from contstim.items.stimuli import Trial
from contstim.testing.platform import HOSTILE
from contstim.words.sentence import Sentence
from tests.experiments.responses.experiment import make_trials

EVALUATED = ("[[Choices]] [1, 2, 3]", "[[PageBreak]]", "A \\n in a text.", "1984.")
"""Those that PsychoPy would not show as they are."""


def write_rows(
    path: Path,
    rows: Sequence[Mapping[str, object]],
    columns: Sequence[str] = (),
    *,
    delimiter: str = ",",
    end: str = "",
) -> Path:
    """Write a table as platforms do, with a byte order mark; by default all columns of the rows."""
    columns = columns or list(dict.fromkeys(key for row in rows for key in row))
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
        file.write(end)
    return path


def hostile_trials(*, brackets: bool = True) -> list[Trial]:
    """Two groups, every condition; some sentences hostile, both sides."""
    texts = [text for text in HOSTILE if brackets or text not in EVALUATED]
    trials = make_trials()
    for n, text in enumerate(texts):
        trial = trials[n]
        odd = Sentence.parse(text)
        trials[n] = replace(trial, sentence_1=odd) if n % 2 else replace(trial, sentence_2=odd)
    return trials
