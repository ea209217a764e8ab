"""Scales on which participants answer a trial."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contstim.files.arrays import FloatArray

DEGREES = 3  # number of groups of answers on each side of a slider's middle, see `Scale.grouped`


class Scale(StrEnum):
    """Scale of answers to two sentences: a confidence rating, a choice, or a slider.

    Answers are whole numbers. Low answers prefer sentence_1, high answers sentence_2. On the
    screen, low answers prefer the left sentence. So if sentence_2 is on the left, the answer is
    mirrored before it is stored. Only a slider has an answer without preference.
    """

    CONFIDENCE = "confidence"
    CHOICE = "choice"
    SLIDER = "slider"

    @property
    def answers(self) -> range:
        """All answers, from most confident in sentence_1 to most confident in sentence_2."""
        return _ANSWERS[self][0]

    @property
    def meaning(self) -> str:
        """Explanation of the answers, for example `1 (sentence_1) or 2 (sentence_2)`."""
        return _ANSWERS[self][1]

    @property
    def middle(self) -> float:
        """Midpoint between the answers for sentence_1 and the answers for sentence_2."""
        return (self.answers[0] + self.answers[-1]) / 2

    @property
    def sentence_2_answers(self) -> range:
        """Answers that prefer sentence_2, in order of increasing confidence."""
        return range(int(self.middle) + 1, self.answers[-1] + 1)

    @property
    def buttons(self) -> range:
        """Answers that have a button on the page; empty for a slider."""
        return range(0) if self is Scale.SLIDER else self.answers

    @property
    def is_graded(self) -> bool:
        """True if answers express degrees of preference; False for a choice."""
        return len(self.sentence_2_answers) > 1

    @property
    def answer_name(self) -> str:
        """Name of an answer: a rating or a choice."""
        return "rating" if self.is_graded else "choice"

    def preferred(self, answer: float) -> int:
        """Return the sentence that an answer prefers, 1 or 2; 0 for neither."""
        return 0 if answer == self.middle else 1 + (answer > self.middle)

    def mirrored(self, answer: int) -> int:
        """Return the answer that expresses the same preference after the sentences swap positions.

        A value that is not an answer on this scale is returned unchanged.
        """
        return round(2 * self.middle) - answer if answer in self.answers else answer

    def grouped(self, answers: FloatArray) -> FloatArray:
        """Reduce a slider's answers to few values, for ordinal models.

        `DEGREES` values remain on each side of the middle. Answers on the scales `confidence` and
        `choice` are returned unchanged.
        """
        import numpy as np

        if self.buttons:
            return answers
        distance = answers - self.middle
        degree = np.ceil(np.abs(distance) * DEGREES / len(self.sentence_2_answers))
        # Distances from the middle form the groups 1 to 16, 17 to 33, and 34 to 50. Replace each
        # distance by the largest distance of its group
        farthest = np.floor(degree * len(self.sentence_2_answers) / DEGREES)
        return self.middle + np.sign(distance) * farthest


_ANSWERS = {
    Scale.CONFIDENCE: (
        range(1, 7),
        "1 (very confident in sentence_1) to 6 (very confident in sentence_2)",
    ),
    Scale.CHOICE: (range(1, 3), "1 (sentence_1) or 2 (sentence_2)"),
    Scale.SLIDER: (range(101), "0 (sentence_1) to 100 (sentence_2), 50 for neither"),
}
