"""What a platform says of one rating."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Answer:
    """One rating in the words of a platform.

    Attributes:
        where: file and row, for messages.
        participant: the platform's name of a person.
        group: empty where the platform does not say.
        trial_id: empty where the platform did not carry it.
        shown: the sentences (`Sentence.text`) left and right, or first and second; empty texts
            where the platform did not record them.
        rating: 1 (left) … 6 (right); 0 where a trial was shown and not rated.
        position: order of presentation, from 1; 0 unknown.
        rt_ms: nan unknown.
        about: what else the platform says of the trial, by our names; see `building`.
        marked: whether both sentences were recorded with an end mark of their own.
        simulated: whether an artificial participant answered.
    """

    where: str
    participant: str
    group: str
    trial_id: str
    shown: tuple[str, str]
    rating: int
    position: int
    rt_ms: float
    about: Mapping[str, str] = field(default_factory=dict)
    marked: bool = True
    simulated: bool = False

    @property
    def pair(self) -> frozenset[str]:
        """Both sentences, in no order."""
        return frozenset(self.shown)
