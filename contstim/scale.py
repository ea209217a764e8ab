"""The scale on which people answer a trial."""

from __future__ import annotations

from enum import StrEnum


class Scale(StrEnum):
    """Scale of answers on two sentences: how sure people are of one, or which one they choose.

    Answers are whole numbers that go from sentence_1 to sentence_2 (from the left to the right, as
    people saw them). There is none in the middle: each prefers a sentence.
    """

    CONFIDENCE = "confidence"
    CHOICE = "choice"

    @property
    def answers(self) -> range:
        """All answers, from the surest of sentence_1 to the surest of sentence_2."""
        return range(1, 7) if self is Scale.CONFIDENCE else range(1, 3)

    @property
    def middle(self) -> float:
        """The number between those that prefer sentence_1 and those that prefer sentence_2."""
        return (self.answers[0] + self.answers[-1]) / 2

    @property
    def meaning(self) -> str:
        """The numbers and what they say, such as `1 (sentence_1) or 2 (sentence_2)`."""
        first, last = self.answers[0], self.answers[-1]
        if self is Scale.CHOICE:
            return f"{first} (sentence_1) or {last} (sentence_2)"
        return f"{first} (very confident in sentence_1) to {last} (very confident in sentence_2)"

    def preferred(self, answer: float) -> int:
        """The sentence that an answer prefers, 1 or 2."""
        return 1 + (answer > self.middle)

    def mirrored(self, answer: int) -> int:
        """The answer seen from the other sentence; what is not on the scale stays as it is."""
        return round(2 * self.middle) - answer if answer in self.answers else answer
