"""Settings of artificial participants. Light: commands read it first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from contstim.experiments.design.golan2023 import PUBLISHED_CEILING, PUBLISHED_RATERS
from contstim.options import Help


@dataclass(frozen=True, kw_only=True)
class SimulationSettings:
    """Options of artificial participants: how many rate trials, and how well."""

    participants: Annotated[
        int | None,
        Help(
            f"Participants in all; by default {PUBLISHED_RATERS} in each group, in a study as many "
            "as [power] plans.",
            at_least=1,
        ),
    ] = None
    noise: Annotated[
        float | None,
        Help(
            "Standard deviation of what is added to log-probability ratios, nats; by default what "
            "gives --ceiling on the random natural pairs.",
            at_least=0,
        ),
    ] = None
    ceiling: Annotated[
        float, Help("How often a person agrees with the majority of nine others there.")
    ] = PUBLISHED_CEILING
    lapses: Annotated[
        float, Help("The share of trials rated without looking.", at_least=0, at_most=1)
    ] = 0.02

    def in_all(self, groups: int) -> int:
        """Participants in all, of so many groups."""
        return self.participants or groups * PUBLISHED_RATERS
