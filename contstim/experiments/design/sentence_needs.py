"""Number of natural sentences that a study needs, before scoring or searching."""

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
    """The natural sentences that a study needs: one row per use, and the sum in the last row.

    Attributes:
        rows: the use (triplets, natural pairs, random pairs, catch trials, in all), the number of
            model pairs or groups, the number of sentences for each, and their product.
    """

    rows: tuple[tuple[str, int, int, int], ...]

    @property
    def in_all(self) -> int:
        """Number of sentences that the study needs."""
        return self.rows[-1][3]

    def to_frame(self) -> DataFrame:
        """Return a pandas table with the columns use, times, each, needed."""
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
    """Return the minimum number of natural sentences for a study that uses each sentence once.

    A triplet and a catch trial use one sentence, a natural pair and a random pair two. Pairs and
    triplets are selected separately and may share sentences, which the summary of a design counts.
    This is a minimum: triplets and natural pairs improve with the number of candidate sentences.

    Args:
        models: number of models, which are compared in pairs.
        triplets_per_pair: number of triplets for each pair of models.
        pairs_per_pair: number of natural pairs for each pair of models.
        groups: number of groups of participants.
        random_per_group: number of random natural pairs for each group.
        catch_per_group: number of catch trials for each group.

    Raises:
        InputError: if there are fewer than two models, or a number is negative.
    """
    if models < 2:
        raise InputError(f"models must be at least 2, got {models}.")
    numbers = (triplets_per_pair, pairs_per_pair, groups, random_per_group, catch_per_group)
    if min(numbers) < 0:
        raise InputError(f"All numbers must be at least 0, got {min(numbers)}.")
    model_pairs = comb(models, 2)
    uses = (
        ("triplets", model_pairs, triplets_per_pair),
        ("natural pairs", model_pairs, 2 * pairs_per_pair),
        ("random pairs", groups, 2 * random_per_group),
        ("catch trials", groups, catch_per_group),
    )
    total = sum(times * n_each for _, times, n_each in uses)
    rows = [(use, times, n_each, times * n_each) for use, times, n_each in uses]
    return SentenceNeeds((*rows, ("in all", 1, total, total)))
