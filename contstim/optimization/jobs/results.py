"""Results: triplets, failures, statistics of each pair, under the names of the user's models.

Searches and stores know models by their specifications, so that another name costs no search.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from contstim.store.triplets import JobState
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from contstim.models.base import Convention
    from contstim.models.specifications import Specification
    from contstim.models.training_text import TrainingText
    from contstim.optimization.jobs.allotment import AllottedSentence
    from contstim.stimuli import Triplet
    from contstim.store.triplets import Job, TripletStore


@dataclass(frozen=True)
class TripletResults:
    """Triplets of all pairs of models, and what stands in the way of more.

    Attributes:
        triplets: in the order of the pairs of models, then in that in which sentences were
            assigned.
        unchanged: in the same order, those whose three sentences are not all different, because no
            search found anything, or both found the same; they are not among `triplets`.
        failures: the jobs that failed, in the same order.
        pairs: statistics of each pair of models.
        conventions: how each model's scores came about, by its name.
        training_texts: the sentences that each was trained on, where they are known.
        floors: of plausibility, by the models' names and the number of words, nats; none if no
            floor was wanted.
        judge: how the scores of the further model came about, where there is one.
        allotment: the natural sentences of each pair, with those that were passed over or are held
            ready, but for those that the study cannot use any more.
        unaltered: triplets that stand in the store as before the run.
        gone: triplets that stood there and do not any more, because reviewers rejected them, they
            hold a word that has been excluded since, or a model, the words or the natural sentences
            have changed.
        new: triplets that did not stand there.
        time: how long the searches of this run took that came to an end.
    """

    triplets: tuple[Triplet, ...]
    unchanged: tuple[Triplet, ...]
    failures: tuple[Job, ...]
    pairs: tuple[PairStatistics, ...]
    conventions: Mapping[str, Convention]
    training_texts: Mapping[str, TrainingText | None]
    floors: Mapping[str, Mapping[int, float]]
    judge: Convention | None
    allotment: tuple[AllottedSentence, ...]
    unaltered: int = field(compare=False)
    gone: int = field(compare=False)
    new: int = field(compare=False)
    time: SearchTime = field(compare=False)

    @property
    def complete(self) -> bool:
        """True if every triplet that was wanted is there."""
        return not any(pair.failed or pair.unchanged or pair.missing for pair in self.pairs)

    @property
    def lacking(self) -> Iterator[str]:
        """A line for each triplet that was wanted and is not there: the sentence, and why."""
        for triplet in self.unchanged:
            models = f"{triplet.model_1} × {triplet.model_2}"
            yield f"unchanged: {models}, {triplet.natural.text!r}: {triplet.alike}"
        for job in self.failures:
            yield f"failed: {job.model_1} × {job.model_2}, {job.natural!r}: {job.reason}"
        for pair in self.pairs:
            if pair.missing:
                models = f"{pair.model_1} × {pair.model_2}"
                yield f"missing: {models}, {counted(pair.missing, 'triplet')}: too few sentences"


@dataclass(frozen=True)
class SearchTime:
    """Time that searches took, all workers together.

    Attributes:
        wall_seconds: from their beginnings to their ends.
        network_seconds: within networks; the rest is the work of everything around them.
    """

    wall_seconds: float = 0.0
    network_seconds: float = 0.0

    @property
    def text(self) -> str:
        """The shares of networks and of everything else in percent; empty if nothing was done."""
        if not self.wall_seconds:
            return ""
        network = round(100 * self.network_seconds / self.wall_seconds)
        return (
            f"Searches took {self.wall_seconds:,.0f} s, all workers together: {network} % in "
            f"networks, {100 - network} % in everything around them."
        )


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
        inadmissible: natural sentences that were passed over, and that others took the place of.
        reasons: why they were passed over, and how many for each reason.
        missing: triplets wanted for which there was no sentence left.
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


def pair_statistics(
    pairs: Sequence[tuple[str, str]], store: TripletStore, missing: Mapping[tuple[str, str], int]
) -> tuple[PairStatistics, ...]:
    """Statistics of each pair of models, in the order given.

    Args:
        pairs: the models' names.
        store: where the outcomes are.
        missing: triplets of each pair for which there was no sentence left.
    """
    # Counters and lists answer for pairs without an outcome too.
    triplets: defaultdict[tuple[str, str], list[Triplet]] = defaultdict(list)
    unchanged: Counter[tuple[str, str]] = Counter()
    for triplet in store.triplets():
        pair = (triplet.model_1, triplet.model_2)
        if triplet.distinct:
            triplets[pair].append(triplet)
        else:
            unchanged[pair] += 1
    # Failed and inadmissible jobs have no triplet: their states tell of them.
    states: list[tuple[str, str, JobState]] = []
    reasons: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for job in store.jobs():
        states.append((job.model_1, job.model_2, job.state))
        if job.state is JobState.INADMISSIBLE:
            reasons[job.model_1, job.model_2][inadmissibility(job.reason)] += 1
    costs, searches = store.costs(), store.searches()
    return tuple(
        PairStatistics(
            *pair,
            triplets=len(triplets[pair]),
            unchanged=unchanged[pair],
            failed=states.count((*pair, JobState.FAILED)),
            inadmissible=states.count((*pair, JobState.INADMISSIBLE)),
            reasons=dict(reasons[pair].most_common()),
            missing=missing[pair],
            controversiality=_mean([t.controversiality for t in triplets[pair]]),
            # What each model loses by the sentence that it rejects: the two terms of Eq. 4.
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
            searches=searches.get(pair, 0),
        )
        for pair in pairs
    )


def inadmissibility(reason: str) -> str:
    """Kind of reason for which a natural sentence was passed over."""
    if reason.endswith("gives it probability zero"):  # behind the model's name
        return "impossible to one of the models"
    return reason.partition(":")[0]


def _mean(values: list[float]) -> float | None:
    return fmean(values) if values else None


def renamed(results: TripletResults, given: Iterable[Specification]) -> TripletResults:
    """The same with each model's name for its specification."""
    names = {model.specification: model.name for model in given}

    # Triplets, jobs and statistics all call their models model_1 and model_2.
    def rename(rows: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(
            replace(row, model_1=names[row.model_1], model_2=names[row.model_2]) for row in rows
        )

    return replace(
        results,
        triplets=rename(results.triplets),
        unchanged=rename(results.unchanged),
        failures=rename(results.failures),
        pairs=rename(results.pairs),
        allotment=rename(results.allotment),
        conventions={names[model]: how for model, how in results.conventions.items()},
        training_texts={names[model]: text for model, text in results.training_texts.items()},
        # A judge that the user has not named in this run bears its specification.
        floors={names.get(model, model): floors for model, floors in results.floors.items()},
    )


def rename_columns(
    columns: dict[str, list[Any]], given: Sequence[Specification]
) -> dict[str, list[Any]]:
    """A table with each model's name for its specification in the columns accept and reject.

    Rows of other models, which were left out of a study and stay in its store, are dropped.
    """
    names = {model.specification: model.name for model in given}
    both = zip(columns["accept"], columns["reject"], strict=True)
    rows = [row for row, models in enumerate(both) if {*models} <= {*names}]
    return {
        column: [names.get(cells[row], cells[row]) for row in rows]
        if column in ("accept", "reject")
        else [cells[row] for row in rows]
        for column, cells in columns.items()
    }
