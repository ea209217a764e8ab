"""Results of a study's searches: triplets, failures, and statistics, with the user's model names.

During searches and in the store, a model is identified by its specification. So a new name of a
model does not cause new searches.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING

from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from contstim.items.stimuli import Triplet
    from contstim.models.base import Convention
    from contstim.store.triplets import Result


FEW_NEW_WORDS = "few new words do not reach"
"""Beginning of the stored reason if no sentence with few new words had enough disagreement.

For example, "few new words do not reach 3 nats".
"""


@dataclass(frozen=True)
class TripletResults:
    """Triplets of all pairs of models, and the reasons why there are not more.

    Attributes:
        triplets: triplets, grouped by pair of models. Each group is in the order of the pair's
            natural sentences.
        unchanged: triplets of unsuccessful searches, grouped and ordered like `triplets`. The three
            sentences of such a triplet are not all different. There is a search for each of its two
            synthetic sentences. At least one search found nothing, or both found the same sentence.
        training_texts: name of a model → file with hashes of its training sentences; None if
            unknown.
        floors: name of a model → number of words → floor of plausibility, nats. The floor is the
            lowest log-probability that a natural sentence may have.
        refused: name of a judge → proportion of the judged sentences that only this judge refused.
            A judge is a model that chooses plausible sentences.
        searches: all results that count, see `queues.counted_results`.
        wall_seconds: duration of the completed searches of this run, summed over workers.
        network_seconds: part of `wall_seconds` that neural networks took.
    """

    triplets: tuple[Triplet, ...]
    unchanged: tuple[Triplet, ...]
    failures: tuple[Result, ...]
    pairs: tuple[PairStatistics, ...]
    conventions: Mapping[str, Convention]
    training_texts: Mapping[str, Path | None]
    floors: Mapping[str, Mapping[int, float]]
    judges: dict[str, Convention]
    refused: dict[str, float]
    searches: tuple[Result, ...] = field(compare=False)
    wall_seconds: float = field(compare=False)
    network_seconds: float = field(compare=False)

    @property
    def complete(self) -> bool:
        """True if no triplet is missing and no search failed."""
        return not any(pair.failed or pair.missing for pair in self.pairs)

    def why_unchanged(self, triplet: Triplet) -> str:
        """Return why the search for a triplet was unsuccessful, with the user's model names."""
        models = (triplet.model_1, triplet.model_2)
        reasons = (
            result.reason
            for result in self.searches
            if result.triplet is not None and result.triplet.triplet_id == triplet.triplet_id
        )
        # A stored reason may end with " where " and the specifications of models. Omit this part,
        # because the last line adds the user's names
        reason = next(reasons, "").partition(" where ")[0]
        synthetics = (triplet.synthetic_1, triplet.synthetic_2)
        without = [m for m, s in zip(models, synthetics, strict=True) if s == triplet.natural]
        if not reason.startswith(FEW_NEW_WORDS) or not without:
            return triplet.equality_note
        return f"{reason} where {' and '.join(without)} {'reject' if without[1:] else 'rejects'}"

    @property
    def shortages(self) -> Iterator[str]:
        """Yield a line for each failed search, and a line for each pair with too few triplets.

        Also yield a line for each unsuccessful search of a pair with too few triplets.
        """
        short = {(pair.model_1, pair.model_2) for pair in self.pairs if pair.missing}
        for t in self.unchanged:
            if (t.model_1, t.model_2) in short:
                why = self.why_unchanged(t)
                yield f"unchanged: {t.model_1} × {t.model_2}, {t.natural.text!r}: {why}"
        for result in self.failures:
            models = f"{result.model_1} × {result.model_2}"
            yield f"failed: {models}, {result.natural!r}: {result.reason}"
        for pair in self.pairs:
            if pair.missing:
                models = f"{pair.model_1} × {pair.model_2}"
                why = "no other natural sentence was used"
                if pair.unchanged:
                    n_searches = quantity(pair.unchanged, "search", "searches")
                    why = f"{n_searches} found nothing, and {why}"
                yield f"missing: {models}, {quantity(pair.missing, 'triplet')}: {why}"


@dataclass(frozen=True)
class PairStatistics:
    """Statistics of one pair of models.

    Attributes:
        triplets: number of triplets whose three sentences are all different.
        unchanged: number of unsuccessful searches.
        inadmissible: number of natural sentences that were skipped without a search.
        reasons: reason → number of sentences skipped for this reason.
        missing: number of triplets that are missing, because no natural sentence was left or too
            many searches were unsuccessful.
        controversiality: mean of `Triplet.controversiality`; None without triplets.
        rows: number of sequences that the networks of the pair processed.
        tokens: number of tokens in these sequences.
        searches: number of searches for synthetic sentences. Searches for the sentence that model 1
            should reject, and for the sentence that model 2 should reject, count separately.
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
    rows: int
    tokens: int
    searches: int


def pair_statistics(
    models: tuple[str, str], results: Sequence[Result], per_pair: int
) -> PairStatistics:
    """Return the statistics of a pair of models."""
    triplets = [r.triplet for r in results if r.triplet is not None and r.triplet.distinct]
    inadmissible = [r for r in results if r.state == "inadmissible"]
    return PairStatistics(
        *models,
        triplets=len(triplets),
        unchanged=sum(result.is_unsuccessful for result in results),
        failed=sum(result.state == "failed" for result in results),
        inadmissible=len(inadmissible),
        reasons=dict(Counter(inadmissibility(r.reason) for r in inadmissible).most_common()),
        missing=per_pair - sum(not result.is_skipped for result in results),
        controversiality=fmean(t.controversiality for t in triplets) if triplets else None,
        rows=sum(result.rows for result in results),
        tokens=sum(result.tokens for result in results),
        searches=sum(result.searches for result in results),
    )


def inadmissibility(reason: str) -> str:
    """Return the reason why a natural sentence was skipped, without names and numbers."""
    if reason.endswith("gives it probability zero"):
        return "impossible to one of the models"
    return reason.partition(":")[0]
