"""Sentences that a careless export would lose, run, or let run."""

from __future__ import annotations

from dataclasses import replace

from contstim.sentence import Sentence
from contstim.stimuli import Trial
from tests.experiments.responses.experiment import make_trials

SENTENCES = (
    "She said \"no\", then: 'yes', twice.",
    "A line\nbroken in\r\nthe middle.",
    "<script>alert('x')</script> runs & <b>shouts</b>.",
    '=HYPERLINK("http://x.example","click here") now.',
    "+1 and -1 make @SUM(A1:A9) of it!",
    "-2 is less than 1; or is it?",
    "@home, everyone sleeps.",
    "${q://QID1/ChoiceTextEntryValue} costs $5 & more.",
    "Ich möchte 中文, ελληνικά, עברית und 🦊 lesen.",
    "&amp; and &#60; are *not* _markup_ # here | `there`~",
    "'; DROP TABLE responses; --",
    "100% of rows, %2C included, came\tback.",
    "(all of it)",
    "NA.",
    " ".join(["word"] * 1_999) + " ended.",
)
"""The last has ten thousand characters."""


def hostile_trials(*, brackets: bool = True) -> list[Trial]:
    """Two groups, every condition; some sentences hostile, both sides."""
    texts = [*SENTENCES]
    if brackets:
        texts += ["[[Choices]] [1, 2, 3]", "[[PageBreak]]", "A \\n in a text.", "1984."]
    trials = make_trials()
    for n, text in enumerate(texts):
        trial = trials[n]
        odd = Sentence.parse(text)
        trials[n] = replace(trial, sentence_1=odd) if n % 2 else replace(trial, sentence_2=odd)
    return trials
