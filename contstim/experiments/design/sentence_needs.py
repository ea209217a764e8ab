"""Number of natural sentences that a study needs, before any is scored or searched from."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.files.tables import frame_of

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class SentenceNeeds:
    """The needs of a study for natural sentences, one a use, and their sum in the last row.

    Attributes:
        rows: the use (triplets, natural pairs, random pairs, catch trials, in all), how many model
            pairs or groups need their own, how many each, and how many that are.
    """

    rows: tuple[tuple[str, int, int, int], ...]

    @property
    def in_all(self) -> int:
        """Number of sentences that the study needs."""
        return self.rows[-1][3]

    def to_frame(self) -> DataFrame:
        """The needs as a table of pandas: use, times, each, needed."""
        names = ("use", "times", "each", "needed")
        return frame_of(dict(zip(names, map(list, zip(*self.rows, strict=True)), strict=True)))


def sentences_needed(
    models: int,
    *,
    triplets_per_pair: int = 100,
    pairs_per_pair: int = 10,
    groups: int = 10,
    random_per_group: int = 3,
    catch_per_group: int = 12,
) -> SentenceNeeds:
    """The fewest natural sentences that a study can be made of where each serves once.

    Every triplet that is searched starts from a sentence of its own; a natural pair and a random
    pair take two, a catch trial one. Pairs and triplets are chosen apart and may share sentences,
    which the summary of a design counts. This is the least: controversial natural pairs are better
    the more sentences there are to choose from.

    Args:
        models: how many models are compared, every two of them.
        triplets_per_pair: triplets that are searched for each pair of models.
        pairs_per_pair: natural pairs for each pair of models.
        groups: of participants.
        random_per_group: random natural pairs for each group.
        catch_per_group: catch trials for each group.

    Raises:
        InputError: fewer than two models, or a negative number.
    """
    if models < 2:
        raise InputError(f"Two models can be compared, {models} cannot: ask for at least 2.")
    numbers = (triplets_per_pair, pairs_per_pair, groups, random_per_group, catch_per_group)
    if min(numbers) < 0:
        raise InputError(f"A study has 0 or more of everything, not {min(numbers)}.")
    model_pairs = comb(models, 2)
    uses = (
        ("triplets", model_pairs, triplets_per_pair),
        ("natural pairs", model_pairs, 2 * pairs_per_pair),
        ("random pairs", groups, 2 * random_per_group),
        ("catch trials", groups, catch_per_group),
    )
    total = sum(times * each for _, times, each in uses)
    rows = [(use, times, each, times * each) for use, times, each in uses]
    return SentenceNeeds((*rows, ("in all", 1, total, total)))
