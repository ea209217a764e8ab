"""A recipe: a way to search, under a name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from contstim.optimization.proposals import Candidates, Proposer


@dataclass(frozen=True)
class Recipe:
    """A way to search for a controversial sentence.

    Attributes:
        name: what it is called on the command line and in records.
        proposer: how a better word is found, given the words that may stand in a sentence.
    """

    name: str
    proposer: Callable[[Candidates], Proposer]
