"""What people see of a trial: two sentences without end marks and six buttons."""

from __future__ import annotations

from contstim.sentence import Sentence

QUESTION = "Which of the two sentences is more likely to come up in English, and how sure are you?"
BUTTONS = (
    "very confident: left",
    "confident: left",
    "somewhat confident: left",
    "somewhat confident: right",
    "confident: right",
    "very confident: right",
)
"""From left (1) to right (6)."""


def displayed(text: str) -> str:
    """The words joined by single spaces, without the end mark.

    Raises:
        SentenceError: the text has no words.
    """
    return Sentence.parse(text).bare
