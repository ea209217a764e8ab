"""Triplets of a natural and two synthetic sentences, for every pair of models."""

from __future__ import annotations

from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from contstim.errors import ContstimError, InputError
from contstim.files.files import checksum
from contstim.files.tables import columns_of, write_table
from contstim.items.matching import figures_of
from contstim.items.reviews import read_reviews
from contstim.items.stimuli import Triplet, read_stimuli, read_triplets
from contstim.models.base import record_entry
from contstim.models.loading import DEFAULT_LOADING, Loading
from contstim.models.specifications import parse_models
from contstim.models.training_text import contamination, tell_contamination
from contstim.optimization.jobs.assignment import read_assignment
from contstim.optimization.jobs.question import SearchQuestion, SearchRules
from contstim.optimization.jobs.so_far import table_so_far
from contstim.optimization.jobs.tasks import SearchContext
from contstim.optimization.jobs.triplets import find_triplets
from contstim.optimization.search.recipes import recipe_named
from contstim.optimization.search.restarts import SINGLE
from contstim.options import Aside, Reads, Seed, WritesTable
from contstim.reporting.canvas import write_figure
from contstim.reporting.frontier import frontier_figure
from contstim.reporting.report import Table
from contstim.reporting.stimuli_page import figures_table
from contstim.steps.execution import LOCAL, Execution
from contstim.steps.fields import (
    STORE_NAME,
    GivenModels,
    ModelContexts,
    OfferedWords,
    StoreBeside,
    Uncapped,
    files_of_words,
    uncapped_words,
    words_read,
)
from contstim.steps.review import flags_of
from contstim.steps.step import Outcome, Step
from contstim.steps.texts import read_sentence_file
from contstim.store import AssignedSentence, Store, TripletStore
from contstim.wording import counted
from contstim.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    from contstim.optimization.jobs.results import TripletResults
    from contstim.reporter import Reporter


class SearchTriplets(
    Step["TripletResults"],
    name="triplets",
    version=8,
    kept="All results so far are kept in the store.",
):
    """Synthesize triplets for every pair of models: a natural sentence, and one that each rejects.

    Each pair has natural sentences of its own. New words are of the same part of speech, and as few
    as reach --enough nats; with --frame none the search is for as many nats as can be, several
    times where that is cheap (--restarts, --seconds). Every result is kept as soon as it is found:
    a job that was interrupted or killed, started again, goes on where it stopped, whatever the
    executor and the number of workers. A search that fails three times is listed at the end, and
    the others go on; the exit status is then 3.

    The next natural sentence takes the place of one whose search finds nothing with three seeds,
    that a model finds impossible, that is below a floor (`--plausible`, `--fluency`) or that holds
    an excluded word. Where there is no other, that is listed too, and the exit status is 3. A
    word to fix that a sentence does not have fixes nothing in it. After a review, `--review` and
    the same store replace what was rejected; words that are excluded later have only those triplets
    searched again that hold them.

    While it runs, a table beside --out has the triplets so far (triplets.so-far.csv), to be shown
    by `contstim show`. It is written every few seconds, and removed at the end.

    Example: `contstim triplets --model kenlm:bigram.arpa --model kenlm:trigram.arpa
    --sentences natural.txt --vocabulary vocab.txt --per-pair 100 --enough 3 --out triplets.csv`
    """

    models: GivenModels
    sentences: Annotated[
        Path, Reads("Natural sentences, one a line, or a table.", content="sentences")
    ]
    out: Annotated[Path, WritesTable("The table of triplets to write.")]
    vocabulary: OfferedWords = None
    settings: SearchRules = SearchRules()
    uncapped: Uncapped = None
    store: StoreBeside = None
    trajectories: Annotated[Path | None, WritesTable("Also write accepted steps.")] = None
    evaluations: Annotated[Path | None, WritesTable("Also write scored candidates.")] = None
    frontier: Annotated[
        Path | None,
        WritesTable(
            "With --enough: also write the best sentences by their number of new words.",
            beside=(".png",),
        ),
    ] = None
    assignment: Annotated[Path | None, WritesTable("Also write each pair's sentences.")] = None
    execution: Execution = LOCAL
    retry_failed: Annotated[bool, Aside("Try those again that failed in an earlier run.")] = False
    review: Annotated[tuple[Path, ...], Reads("A review: rejected triplets are replaced.")] = ()
    earlier: Annotated[tuple[Path, ...], Aside("With --review: trials that stood before.")] = ()
    loading: Loading = DEFAULT_LOADING
    context: ModelContexts = ()
    seed: Seed = 0
    begin_with: Path | None = None

    def further_reads(self) -> list[Path]:
        """Files of words, and natural sentences assigned before."""
        return [*files_of_words(self.settings), *filter(None, [self.begin_with])]

    def specifications(self) -> tuple[str, ...]:
        """The models, and the one that judges sentences."""
        further = self.settings.further
        judges = () if further is None else (further.specification,)
        return (*super().specifications(), *judges)

    def question(self) -> SearchQuestion:
        """Question of the searches, with files read.

        Raises:
            InputError: a file cannot be read, or settings do not go together.
        """
        read = words_read(self.settings)
        return SearchQuestion(
            **{each.name: getattr(read, each.name) for each in fields(read)},
            uncapped=uncapped_words(self.uncapped, self.settings.word_cap),
            seed=self.seed,
        )

    def store_path(self) -> Path:
        """Path of the store of scores and triplets."""
        return self.store or self.out.parent / STORE_NAME

    def work(self, reporter: Reporter) -> Outcome[TripletResults]:
        """Search, and write the triplets."""
        earlier = {path.as_posix(): checksum(path) for path in self.earlier}
        stood = _names(self.out)
        models = parse_models(self.models)
        question = self.question()
        if self.frontier is not None and not question.nats:
            raise InputError("`frontier` is of searches for few new words: set `enough`.")
        with Store(self.store_path()) as opened:
            results = find_triplets(
                question,
                models,
                read_sentence_file(self.sentences, reporter),
                opened,
                self.execution.new_executor(),
                SearchContext(
                    self.loading,
                    self.execution.models_in_memory,
                    vocabulary=None
                    if self.vocabulary is None
                    else Vocabulary.load(self.vocabulary),
                    allow_unknown=question.allow_unknown,
                ),
                retry_failed=self.retry_failed,
                task_limit=self.execution.task_timeout,
                review=read_reviews(self.review) if self.review else None,
                shown=frozenset(s for path in self.earlier for s in read_stimuli(path)),
                assignment=() if self.begin_with is None else read_assignment(self.begin_with),
                so_far=table_so_far(self.out),
                reporter=reporter,
            )
            by_recipe = SINGLE if question.nats else recipe_named(question.recipe).restarts
            budget = question.budget or by_recipe
            facts = {
                "seed": self.seed,
                "recipe": question.recipe,
                "restarts": budget.text,
                "models": {
                    named.name: record_entry(named.specification, results.conventions[named.name])
                    for named in models
                },
                **_constraint_facts(question, results),
                **({"earlier": earlier} if earlier else {}),
            }
            names = {named.specification: named.name for named in models}
            store = TripletStore(opened)
            for path, kind in ((self.trajectories, "steps"), (self.evaluations, "evaluations")):
                if path is not None:
                    write_table(path, store.entries(results.found, names, kind))
            if self.frontier is not None:
                points = store.entries(results.found, names, "frontier")
                write_table(self.frontier, points)
                draw = partial(frontier_figure, points, question.nats)
                write_figure(draw, Path(f"{self.frontier}.png"))
            if self.assignment is not None:
                write_table(self.assignment, columns_of(AssignedSentence, results.assignment))
        seen = contamination(
            results.training_texts, [triplet.natural for triplet in results.triplets]
        )
        write_table(self.out, columns_of(Triplet, results.triplets))
        table_so_far(self.out).unlink(missing_ok=True)
        reporter.say(f"{self.out}: {counted(len(results.triplets), 'triplet')}.")
        wall = results.wall_seconds
        if wall:
            network = round(100 * results.network_seconds / wall)
            parts = f": {network} % in networks, {100 - network} % in everything around them"
            reporter.say(
                f"Searches took {wall:,.0f} s, all workers together{parts if network else ''}."
            )
        stand = {triplet.triplet_id for triplet in results.triplets}
        if stood - stand:
            same, gone, new = len(stood & stand), len(stood - stand), len(stand - stood)
            reporter.say(f"As before: {same:,}; removed: {gone:,}; new: {new:,}.")
        seen_facts = tell_contamination(seen, reporter, "natural sentences")
        for warning in results.lacking:
            reporter.warn(warning)
        _tell_what_lacks(results, reporter)
        facts |= {
            "pairs": [{**asdict(pair), "replaced": pair.replaced} for pair in results.pairs],
            "unchanged": [
                {
                    "model_1": triplet.model_1,
                    "model_2": triplet.model_2,
                    "natural": triplet.natural.text,
                    "reason": results.why_unchanged(triplet),
                }
                for triplet in results.unchanged
            ],
            **seen_facts,
        }
        if wall:
            facts["time"] = {
                "wall_seconds": wall,
                "network_seconds": results.network_seconds,
            }
        header = ("model_1", "model_2", "triplets", "both drops (nats)", "in vain", "failed")
        rows = [
            (p.model_1, p.model_2, p.triplets, _mean(p.controversiality), p.unchanged, p.failed)
            for p in results.pairs
        ]
        shown = [Table(header, rows, texts=2)]
        if found := results.triplets:
            flagged = flags_of(found, tags=question.tags)
            facts["figures"] = figures_of(found, flagged.share, flagged.table, question.nats)
            shown.append(figures_table(facts["figures"]))
        return Outcome(results, facts, complete=results.complete, shown=shown)


def _names(table: Path) -> set[str]:
    """The triplets of a table of before; none where it is not there, or is no such table."""
    try:
        return {triplet.triplet_id for triplet in read_triplets(table)}
    except ContstimError:
        return set()


def _mean(nats: float | None) -> str:
    return "–" if nats is None else f"{nats:.2f}"


def _tell_what_lacks(results: TripletResults, reporter: Reporter) -> None:
    """Say which searches found nothing or failed, and which natural sentences were passed over."""
    if any(pair.missing for pair in results.pairs):
        reporter.warn(
            "For the triplets named above as missing give more natural sentences or a larger "
            "vocabulary, or lower `enough` or `per_pair`."
        )
    if results.failures:
        reporter.warn("Run the same command with `retry_failed` to try the failed searches again.")
    for pair in results.pairs:
        vain = {"searched in vain": pair.unchanged} if pair.unchanged else {}
        if over := pair.inadmissible + pair.unchanged:
            reasons = ", ".join(f"{n:,} {reason}" for reason, n in {**pair.reasons, **vain}.items())
            text = (
                f"{pair.model_1} × {pair.model_2}: "
                f"{counted(over, 'natural sentence')} passed over ({reasons}); "
            )
            if pair.missing:
                reporter.warn(f"{text}for {pair.missing:,} there is no other.")
            else:
                reporter.say(f"{text}all replaced.")


def _constraint_facts(question: SearchQuestion, results: TripletResults) -> dict[str, Any]:
    """Constraints on the sentences, for the record: those asked for, and floors in nats."""
    question = question.resolved
    names = ("fix", "max_changes", "tags", "same_length", "same_frequency", "capitals", "word_cap")
    wishes = {
        **{name: getattr(question, name) for name in names},
        "frame": question.frame if question.framed else None,
        "enough": question.nats or None,
        "allow": sorted({*(question.allow or ())}),
        "exclude": sorted({*question.exclude}),
        "fluency": None if question.judge is None else question.judge[1],
        "plausible": question.plausibility[1] or None,
        "floors": results.floors,
        "uncapped": [] if question.word_cap is None else sorted(question.uncapped),
    }
    # In the record as on the command line: what was not asked for is not there.
    facts = {name: value for name, value in wishes.items() if value not in (None, (), [], {})}
    if question.further is not None and results.judge is not None:
        judge = question.further
        facts["judge"] = {judge.name: record_entry(judge.specification, results.judge)}
    return facts
