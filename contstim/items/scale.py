"""The scale on which people answer a trial."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contstim.files.arrays import FloatArray

DEGREES = 3  # into which a slider's answers are grouped on either side


class Scale(StrEnum):
    """Scale of answers on two sentences: how sure people are, which they choose, or a slider.

    Answers are whole numbers that go from sentence_1 to sentence_2 (from the left to the right, as
    people saw them). Only a slider has one in the middle, which prefers neither.
    """

    CONFIDENCE = "confidence"
    CHOICE = "choice"
    SLIDER = "slider"

    @property
    def answers(self) -> range:
        """All answers, from the surest of sentence_1 to the surest of sentence_2."""
        return _ANSWERS[self][0]

    @property
    def meaning(self) -> str:
        """The numbers and what they say, such as `1 (sentence_1) or 2 (sentence_2)`."""
        return _ANSWERS[self][1]

    @property
    def middle(self) -> float:
        """The number between those that prefer sentence_1 and those that prefer sentence_2."""
        return (self.answers[0] + self.answers[-1]) / 2

    @property
    def sure(self) -> range:
        """The answers that prefer sentence_2, the least sure one first."""
        return range(int(self.middle) + 1, self.answers[-1] + 1)

    @property
    def buttons(self) -> range:
        """The answers that people press a button for; none on a slider."""
        return range(0) if self is Scale.SLIDER else self.answers

    @property
    def is_graded(self) -> bool:
        """True if answers say how sure people are."""
        return len(self.sure) > 1

    @property
    def answer_name(self) -> str:
        """Name of an answer: a rating or a choice."""
        return "rating" if self.is_graded else "choice"

    def preferred(self, answer: float) -> int:
        """The sentence that an answer prefers, 1 or 2; 0 for neither."""
        return 0 if answer == self.middle else 1 + (answer > self.middle)

    def mirrored(self, answer: int) -> int:
        """The answer seen from the other sentence; what is not on the scale stays as it is."""
        return round(2 * self.middle) - answer if answer in self.answers else answer

    def grouped(self, answers: FloatArray) -> FloatArray:
        """Answers as models of ordered ratings take them: a slider's in three degrees a side."""
        import numpy as np

        if self.buttons:
            return answers
        distance = answers - self.middle
        degree = np.ceil(np.abs(distance) * DEGREES / len(self.sure))
        # 1 to 16 from the middle, 17 to 33, 34 to 50: each is called by its last answer
        farthest = np.floor(degree * len(self.sure) / DEGREES)
        return self.middle + np.sign(distance) * farthest


_ANSWERS = {
    Scale.CONFIDENCE: (
        range(1, 7),
        "1 (very confident in sentence_1) to 6 (very confident in sentence_2)",
    ),
    Scale.CHOICE: (range(1, 3), "1 (sentence_1) or 2 (sentence_2)"),
    Scale.SLIDER: (range(101), "0 (sentence_1) to 100 (sentence_2), 50 for neither"),
}
