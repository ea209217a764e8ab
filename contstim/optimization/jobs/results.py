"""Results: triplets, failures, statistics of each pair, under the names of the user's models.

Searches and stores know models by their specifications, so that another name costs no search.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING

from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from contstim.items.stimuli import Triplet
    from contstim.models.base import Convention
    from contstim.store.triplets import AssignedSentence, Result


@dataclass(frozen=True)
class TripletResults:
    """Triplets of all pairs of models, and what stands in the way of more.

    Attributes:
        triplets: in the order of the pairs of models, then in that in which sentences were
            assigned.
        unchanged: in the same order, those whose three sentences are not all different, because no
            search found anything, or both found the same; they are not among `triplets`.
        failures: the searches that failed, in the same order.
        pairs: statistics of each pair of models.
        conventions: how each model's scores came about, by its name.
        training_texts: the sentences that each was trained on, where they are known.
        floors: of plausibility, by the models' names and the number of words, nats; none if no
            floor was wanted.
        judge: how the scores of the further model came about, where there is one.
        assignment: the natural sentences of each pair, with those that were passed over or are held
            ready, but for those that the study cannot use any more.
        found: the results in the store that triplets come from, which knows the way to them.
        wall_seconds: that the searches of this run took which came to an end, all workers together.
        network_seconds: of these within networks; the rest is everything around them.
    """

    triplets: tuple[Triplet, ...]
    unchanged: tuple[Triplet, ...]
    failures: tuple[Result, ...]
    pairs: tuple[PairStatistics, ...]
    conventions: Mapping[str, Convention]
    training_texts: Mapping[str, Path | None]
    floors: Mapping[str, Mapping[int, float]]
    judge: Convention | None
    assignment: tuple[AssignedSentence, ...]
    found: tuple[Result, ...] = field(compare=False)
    wall_seconds: float = field(compare=False)
    network_seconds: float = field(compare=False)

    @property
    def complete(self) -> bool:
        """True if every triplet that was wanted is there."""
        return not any(pair.failed or pair.missing for pair in self.pairs)

    def why_unchanged(self, triplet: Triplet) -> str:
        """Reason for which the search for a triplet found nothing."""
        kept = (r.reason for r in self.found if r.triplet and r.triplet.natural == triplet.natural)
        return next(kept, "") or triplet.alike

    @property
    def lacking(self) -> Iterator[str]:
        """A line for each triplet that was wanted and is not there: the sentence, and why."""
        short = {(pair.model_1, pair.model_2) for pair in self.pairs if pair.missing}
        for t in self.unchanged:
            if (t.model_1, t.model_2) in short:  # else another sentence took its place
                why = self.why_unchanged(t)
                yield f"unchanged: {t.model_1} × {t.model_2}, {t.natural.text!r}: {why}"
        for result in self.failures:
            models = f"{result.model_1} × {result.model_2}"
            yield f"failed: {models}, {result.natural!r}: {result.reason}"
        for pair in self.pairs:
            if pair.missing:
                models = f"{pair.model_1} × {pair.model_2}"
                vain = f"{counted(pair.unchanged, 'search', 'searches')} found nothing, and "
                why = f"{vain if pair.unchanged else ''}no other natural sentence was taken"
                yield f"missing: {models}, {counted(pair.missing, 'triplet')}: {why}"


@dataclass(frozen=True)
class PairStatistics:
    """One pair of models; means over its triplets, in nats, are None where there is no triplet.

    Triplets are those whose three sentences are all different.

    Attributes:
        model_1: as in the triplets.
        model_2: as in the triplets.
        triplets: how many were found.
        unchanged: natural sentences for which no search found anything, or both the same.
        failed: searches that failed three times.
        inadmissible: natural sentences that were passed over, and that others took the place of.
        reasons: why they were passed over, and how many for each reason.
        missing: triplets wanted for which there was no sentence left, or too many searches found
            nothing.
        controversiality: mean of Eq. 4 of Golan et al. (2023).
        drop_1: mean of log p(natural | model_1) - log p(synthetic_1 | model_1).
        drop_2: the same for model_2.
        rows: sequences that passed through the two networks.
        tokens: tokens in them.
        searches: how many were made for its triplets, both directions together.
    """

    model_1: str
    model_2: str
    triplets: int
    unchanged: int
    failed: int
    inadmissible: int
    reasons: Mapping[str, int]
    missing: int
    controversiality: float | None
    drop_1: float | None
    drop_2: float | None
    rows: int
    tokens: int
    searches: int

    @property
    def replaced(self) -> int:
        """Natural sentences passed over or searched in vain, in whose place others were taken."""
        return self.inadmissible + self.unchanged - self.missing


def pair_statistics(
    models: tuple[str, str], results: Sequence[Result], missing: int
) -> PairStatistics:
    """Statistics of a pair of models.

    Args:
        models: their names.
        results: of its natural sentences.
        missing: triplets for which there was no sentence left.
    """
    found = [result.triplet for result in results if result.triplet is not None]
    triplets = [triplet for triplet in found if triplet.distinct]
    passed_over = [r for r in results if r.state == "inadmissible"]
    means = [(t.controversiality, *t.drops) for t in triplets]
    controversiality, drop_1, drop_2 = map(fmean, zip(*means, strict=True)) if means else [None] * 3
    return PairStatistics(
        *models,
        triplets=len(triplets),
        unchanged=len(found) - len(triplets),
        failed=sum(result.state == "failed" for result in results),
        inadmissible=len(passed_over),
        reasons=dict(Counter(inadmissibility(r.reason) for r in passed_over).most_common()),
        missing=missing,
        controversiality=controversiality,
        drop_1=drop_1,
        drop_2=drop_2,
        rows=sum(result.rows for result in results),
        tokens=sum(result.tokens for result in results),
        searches=sum(result.searches for result in results),
    )


def inadmissibility(reason: str) -> str:
    """Kind of reason for which a natural sentence was passed over."""
    if reason.endswith("gives it probability zero"):  # behind the model's name
        return "impossible to one of the models"
    return reason.partition(":")[0]
