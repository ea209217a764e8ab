"""Origin of answers: artificial participants are counted, and named wherever answers go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contstim.experiments.responses.table import Response


@dataclass(frozen=True)
class ResponseOrigin:
    """Who gave a table of responses.

    Attributes:
        people: how many participants have no answer that is marked as simulated.
        simulated: how many have one or more.
    """

    people: int
    simulated: int

    @property
    def share(self) -> str:
        """Share of artificial participants among all, such as `3 of 10`."""
        return f"{self.simulated:,} of {self.people + self.simulated:,}"

    @property
    def warning(self) -> str:
        """Warning above every result of these responses; empty where people gave all."""
        if not self.simulated:
            return ""
        if not self.people:
            everybody = (
                "The only participant was"
                if self.simulated == 1
                else f"All {self.simulated:,} participants were"
            )
            return f"Artificial participants: no person answered. {everybody} simulated."
        others = "one is a person" if self.people == 1 else f"{self.people:,} are people"
        simulated = f"{self.share} participants were simulated"
        return f"Artificial participants: {simulated}; the other {others}."


def origin_of(responses: Iterable[Response]) -> ResponseOrigin:
    """Count people and artificial participants."""
    # One marked answer is enough: who let a page answer for them is not a person to an analysis
    marked: dict[str, bool] = {}
    for response in responses:
        marked[response.participant] = marked.get(response.participant, False) | response.simulated
    return ResponseOrigin(len(marked) - sum(marked.values()), sum(marked.values()))
