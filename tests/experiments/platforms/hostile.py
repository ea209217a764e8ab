"""Trials with hostile sentences, and tables as platforms write them."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from contstim.items.stimuli import Trial
from contstim.testing.platform import HOSTILE
from contstim.words.sentence import Sentence
from tests.experiments.responses.experiment import make_trials

People = Mapping[str, str]
"""List of each participant, by name."""
EVALUATED = ("[[Choices]] [1, 2, 3]", "[[PageBreak]]", "A \\n in a text.", "1984.")
"""Sentences that PsychoPy would evaluate or change."""


def write_rows(
    path: Path,
    rows: Sequence[Mapping[str, object]],
    columns: Sequence[str] = (),
    *,
    delimiter: str = ",",
    end: str = "",
) -> Path:
    """Write a table with a byte order mark; by default with all columns of the rows."""
    columns = columns or list(dict.fromkeys(key for row in rows for key in row))
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
        file.write(end)
    return path


def hostile_trials(*, brackets: bool = True) -> list[Trial]:
    """Return trials of two groups and all conditions, some with a hostile sentence 1 or 2."""
    texts = [text for text in HOSTILE if brackets or text not in EVALUATED]
    trials = make_trials()
    for n, text in enumerate(texts):
        trial = trials[n]
        new = Sentence.parse(text)
        trials[n] = replace(trial, sentence_1=new) if n % 2 else replace(trial, sentence_2=new)
    return trials
