"""What a study found, pair by pair."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from contstim.store.triplets import State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contstim.stimuli import Triplet
    from contstim.store.triplets import TripletStore


@dataclass(frozen=True)
class PairStatistics:
    """One pair of models; means over its triplets, in nats, are None where there is no triplet.

    Triplets are those whose three sentences are all different.

    Attributes:
        model_1: as in the triplets.
        model_2: as in the triplets.
        triplets: how many were found.
        unchanged: natural sentences for which no search found anything, or both the same.
        failed: jobs that failed three times.
        inadmissible: natural sentences that one of the models finds impossible, and that others
            took the place of.
        missing: triplets wanted for which there was no sentence left.
        controversiality: mean of Eq. 4 of Golan et al. (2023).
        drop_1: mean of log p(natural | model_1) - log p(synthetic_1 | model_1).
        drop_2: the same for model_2.
        rows: sequences that passed through the two networks; what a network reads once when it has
            been loaded is among them, so that the number of workers shows in the last digits.
        tokens: tokens in them.
    """

    model_1: str
    model_2: str
    triplets: int
    unchanged: int
    failed: int
    inadmissible: int
    missing: int
    controversiality: float | None
    drop_1: float | None
    drop_2: float | None
    rows: int
    tokens: int


def pair_statistics(
    pairs: Sequence[tuple[str, str]], kept: TripletStore, missing: Mapping[tuple[str, str], int]
) -> tuple[PairStatistics, ...]:
    """Statistics of each pair of models, in the order given.

    Args:
        pairs: the models' names.
        kept: where the outcomes are.
        missing: triplets of each pair for which there was no sentence left.
    """
    triplets: defaultdict[tuple[str, str], list[Triplet]] = defaultdict(list)
    unchanged: Counter[tuple[str, str]] = Counter()
    for triplet in kept.triplets():
        pair = (triplet.model_1, triplet.model_2)
        if triplet.distinct:
            triplets[pair].append(triplet)
        else:
            unchanged[pair] += 1
    states = [(job.model_1, job.model_2, job.state) for job in kept.jobs()]
    costs = kept.costs()
    return tuple(
        PairStatistics(
            *pair,
            triplets=len(triplets[pair]),
            unchanged=unchanged[pair],
            failed=states.count((*pair, State.FAILED)),
            inadmissible=states.count((*pair, State.INADMISSIBLE)),
            missing=missing[pair],
            controversiality=_mean([t.controversiality for t in triplets[pair]]),
            drop_1=_mean(
                [
                    t.log_prob_natural_model_1 - t.log_prob_synthetic_1_model_1
                    for t in triplets[pair]
                ]
            ),
            drop_2=_mean(
                [
                    t.log_prob_natural_model_2 - t.log_prob_synthetic_2_model_2
                    for t in triplets[pair]
                ]
            ),
            rows=costs.get(pair, (0, 0, 0))[0],
            tokens=costs.get(pair, (0, 0, 0))[1],
        )
        for pair in pairs
    )


def _mean(values: list[float]) -> float | None:
    return fmean(values) if values else None
