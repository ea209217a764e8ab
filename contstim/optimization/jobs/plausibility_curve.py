"""What a floor of plausibility costs: the same searches at several floors, side by side.

    natural sentences --- above the highest floor --- searches without a floor      --- mean Eq. 4,
    (scored by the        (where a further model  --- with a floor at each quantile --- plausibility
    judge, once)           judges)                                                      reached

Where a further model judges, all floors begin with the same natural sentences, those that are above
the highest floor. Where each model judges what it accepts, a floor is a choice of natural sentences
and nothing else, so that they differ from floor to floor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.jobs.scheduler import Scheduler
from contstim.optimization.jobs.plausibility import Plausibility, floors_of, reference_sentences
from contstim.optimization.jobs.task_queue import ModelInspection, NaturalScores
from contstim.optimization.jobs.triplets import find_triplets
from contstim.store import Store, TripletStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contstim.arrays import FloatArray
    from contstim.jobs.executors.base import Executor
    from contstim.optimization.jobs.plan import SynthesisPlan
    from contstim.optimization.jobs.results import TripletResults
    from contstim.optimization.jobs.search_context import SearchContext
    from contstim.sentence import Sentence

_RESAMPLES = 10_000


@dataclass(frozen=True)
class FloorPoint:
    """What searches find above one floor; means over triplets with 95 % intervals over them.

    Attributes:
        floor: the quantile of natural sentences; 0 for none.
        triplets: how many were found.
        passed_over: natural sentences that were below the floor, or otherwise inadmissible.
        controversiality: mean of Eq. 4 of Golan et al. (2023), nats.
        controversiality_low: of its interval.
        controversiality_high: of its interval.
        drop: how far a score falls from the natural to the synthetic sentence under the model that
            rejects it, nats.
        drop_low: of its interval.
        drop_high: of its interval.
        plausibility: mean share of natural sentences that are no likelier than a synthetic one,
            under the model that judges.
        plausibility_low: of its interval.
        plausibility_high: of its interval.
    """

    floor: float
    triplets: int
    passed_over: int
    controversiality: float
    controversiality_low: float
    controversiality_high: float
    drop: float
    drop_low: float
    drop_high: float
    plausibility: float
    plausibility_low: float
    plausibility_high: float


def plausibility_curve(
    plan: SynthesisPlan,
    floors: Sequence[float],
    judge: str,
    folder: Path,
    executor: Callable[[], Executor],
    context: SearchContext,
    *,
    say: Callable[[str], None] = lambda _text: None,
    note: Callable[[str], None] = lambda _text: None,
    progress: Callable[[int, int], None] = lambda _settled, _wanted: None,
) -> list[FloorPoint]:
    """Search at each floor; a point for each, in their order.

    Args:
        plan: what is searched at every floor; its own floor does not count.
        floors: quantiles of natural sentences; 0 for none.
        judge: the specification of the model that judges all sentences; empty for each model,
            which judges those that it accepts.
        folder: where each floor's triplets are kept as they come, so that a job that was killed
            goes on where it stopped.
        executor: makes what runs the searches.
        context: what every worker begins with.
        say: told what the user should know.
        note: told what is done, for users who like to read it.
        progress: told how many searches have come to an end, and how many are wanted.

    Raises:
        InputError: no floor, one that is given twice, too few natural sentences above the highest,
            or, with a judge, searches in the folder that had another highest floor.
        ContstimError: see `find_triplets`.
    """
    if not floors or len({*floors}) < len(floors):
        raise InputError("Give one floor or more, each of them once, such as none,.05,.1,.25.")
    # Models as workers call them, whatever their order on the command line.
    plan = plan.ordered([])
    judges = (judge,) if judge else plan.models
    natural = _natural_scores(plan, judges, executor(), context, say, note)
    least = {
        floor: {model: floors_of(_reference(scores), floor) for model, scores in natural.items()}
        for floor in floors
        if floor
    }

    def store_path(floor: float) -> Path:
        return folder / f"floor-{floor:g}.sqlite"

    if judge:
        # Every floor begins with the same sentences: those that are above the highest.
        highest = least[max(floors)][judge] if least else {}
        sentences = tuple(
            sentence
            for sentence in plan.sentences
            if natural[judge].get(sentence, -np.inf) >= highest.get(len(sentence), -np.inf)
        )
        plan = replace(plan, sentences=sentences)
        for path in filter(Path.exists, map(store_path, floors)):
            with Store(path) as store:
                before = TripletStore(store).settings().get("sentences")
            if before not in (None, plan.sentences_setting):
                raise InputError(
                    f"{path} has searches from other natural sentences. With a judge, all floors "
                    f"begin with the sentences above the highest floor: give the highest floor "
                    f"and the sentences that it was made with, or another --out."
                )
    per_floor = plan.per_pair * len(plan.pairs)
    searches: list[TripletResults] = []
    for number, floor in enumerate(floors):

        def advance(settled: int, _wanted: int, done: int = number * per_floor) -> None:
            progress(done + settled, len(floors) * per_floor)

        with Store(store_path(floor)) as store:
            results = find_triplets(
                replace(plan, plausible=Plausibility(floor, judge)),
                store,
                executor(),
                context,
                floors=least.get(floor, {}),
                say=say,
                progress=advance,
            )
        if not results.triplets:
            raise InputError(
                f"No triplet was found above the floor {floor:g}: give more natural sentences or "
                f"words, or a lower floor."
            )
        searches.append(results)

    # The judge has no part in searches without a floor, so that it scores all results here. A
    # model that judges what it accepts has scored that already.
    scored: dict[Sentence, float] = {}
    if judge:
        triplets = [triplet for results in searches for triplet in results.triplets]
        both = dict.fromkeys(s for t in triplets for s in (t.synthetic_1, t.synthetic_2))
        scored = _score({judge: tuple(both)}, executor(), context)[judge]
    points = []
    for floor, results in zip(floors, searches, strict=True):
        eq_4 = np.array([triplet.controversiality for triplet in results.triplets])
        shares = []
        for t in results.triplets:
            for model, sentence, log_prob in (
                (t.model_2, t.synthetic_1, t.log_prob_synthetic_1_model_2),
                (t.model_1, t.synthetic_2, t.log_prob_synthetic_2_model_1),
            ):
                score = scored[sentence] if judge else log_prob
                shares.append(_share_below(natural[judge or model], len(sentence), score))
        points.append(
            FloorPoint(
                floor,
                len(results.triplets),
                sum(pair.inadmissible for pair in results.pairs),
                *_interval(eq_4),
                *_interval(eq_4 / 2),
                # A triplet's two sentences are not independent: the unit is the triplet.
                *_interval(np.array(shares).reshape(-1, 2).mean(axis=1)),
            )
        )
    return points


def _natural_scores(
    plan: SynthesisPlan,
    judges: Sequence[str],
    executor: Executor,
    context: SearchContext,
    say: Callable[[str], None],
    note: Callable[[str], None],
) -> dict[str, dict[Sentence, float]]:
    """Scores, nats, of the natural sentences that each judge knows all words of."""
    with executor:
        executor.start(context)
        scheduler = Scheduler(executor, say)
        inspection = ModelInspection(judges)
        scheduler.work_off(inspection)
        known = {
            model: [
                s
                for s in dict.fromkeys(plan.sentences)
                if (words := inspection.profiles[model].words) is None or not words.missing(s)
            ]
            for model in judges
        }
        note(f"Scoring {len({*plan.sentences}):,} natural sentences under {', '.join(judges)}.")
        queue = NaturalScores(known)
        scheduler.work_off(queue)
    return queue.scores


def _score(
    sentences: Mapping[str, Sequence[Sentence]], executor: Executor, context: SearchContext
) -> dict[str, dict[Sentence, float]]:
    with executor:
        executor.start(context)
        queue = NaturalScores(sentences)
        Scheduler(executor, lambda _text: None).work_off(queue)
    return queue.scores


def _reference(scores: Mapping[Sentence, float]) -> dict[Sentence, float]:
    """The scores that make floors; as in `find_triplets`, of a thousand sentences a length."""
    return {sentence: scores[sentence] for sentence in reference_sentences(scores, None)}


def _share_below(natural: Mapping[Sentence, float], n_words: int, log_prob: float) -> float:
    """The share of natural sentences with so many words that are no likelier."""
    scores = [score for sentence, score in natural.items() if len(sentence) == n_words]
    return float(np.mean(np.array(scores) <= log_prob))


def _interval(values: FloatArray) -> tuple[float, float, float]:
    """Mean, and the 95 % interval of a bootstrap over the values, (n_triplets,)."""
    rng = np.random.default_rng(0)
    means = rng.choice(values, (_RESAMPLES, len(values))).mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(values.mean()), float(low), float(high)
