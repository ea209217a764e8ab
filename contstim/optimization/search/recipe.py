"""A recipe: a way to search, under a name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contstim.optimization.search.perturbation import Perturbation
    from contstim.optimization.search.proposers import Proposer


@dataclass(frozen=True)
class Recipe:
    """A way to search for a controversial sentence.

    Attributes:
        name: what it is called on the command line and in records.
        proposer: how a better word is found.
        perturbation: how new starts are made; None for a single round.
    """

    name: str
    proposer: Proposer
    perturbation: Perturbation | None = None
