"""Triplets of a natural and two synthetic sentences, for every pair of models."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from contstim.files.tables import write_table
from contstim.items.matching import figures_of
from contstim.items.stimuli import triplet_columns
from contstim.models.base import NATS, record_entry
from contstim.models.loading import DEFAULT_LOADING, Loading
from contstim.models.specifications import parse_models
from contstim.models.training_text import contamination, tell_contamination
from contstim.optimization.jobs.question import SearchQuestion, SearchRules
from contstim.optimization.jobs.so_far import table_so_far
from contstim.optimization.jobs.tasks import SearchContext
from contstim.optimization.jobs.triplets import find_triplets
from contstim.optimization.search.few_changes import JUDGE_ERROR
from contstim.optimization.search.recipes import recipe_named
from contstim.optimization.search.restarts import SINGLE
from contstim.options import Seed, WritesTable
from contstim.reporting.report import Table
from contstim.reporting.stimuli_page import figures_table
from contstim.steps.execution import LOCAL, Execution
from contstim.steps.fields import (
    STORE_NAME,
    GivenModels,
    ModelContexts,
    OfferedWords,
    Sentences,
    StoreBeside,
    files_of_words,
    load_words,
    read_sentence_file,
)
from contstim.steps.review import flags_of
from contstim.steps.step import Outcome, Step
from contstim.store import Store
from contstim.wording import grouped, quantity
from contstim.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.models.specifications import Specification
    from contstim.optimization.jobs.results import TripletResults
    from contstim.reporter import Reporter
    from contstim.words.sentence import Sentence


class SearchesTriplets:
    """Base of steps that search triplets for each pair of models."""

    models: tuple[str, ...]
    out: Path
    settings: SearchRules
    store: Path | None
    execution: Execution
    loading: Loading
    seed: int

    def further_reads(self) -> list[Path]:
        """Return the files that the settings name: lists of words, and table of tags."""
        return files_of_words(self.settings)

    def question(self) -> SearchQuestion:
        """Return the settings of the searches, with word lists loaded from their files.

        Raises:
            InputError: if a file cannot be read, or settings contradict each other.
        """
        return SearchQuestion(**vars(load_words(self.settings)), seed=self.seed)

    def check(self) -> None:
        """Check that the settings do not contradict each other."""
        self.question()

    def store_path(self) -> Path:
        """Return the path of the store of scores and triplets."""
        return self.store or self.out.parent / STORE_NAME

    def find(
        self,
        sentences: Sequence[Sentence],
        vocabulary: Vocabulary | None,
        store: Store,
        reporter: Reporter,
        so_far: Path | None = None,
    ) -> TripletResults:
        """Search triplets; see `find_triplets`."""
        question = self.question()
        results = find_triplets(
            question,
            parse_models(self.models),
            sentences,
            store,
            self.execution.new_executor(),
            SearchContext(
                self.loading, vocabulary=vocabulary, allow_unknown=question.allow_unknown
            ),
            task_limit=self.execution.task_timeout,
            so_far=so_far,
            reporter=reporter,
        )
        if question.nats and not results.judges:
            reporter.say(
                "Without a judge, many synthetic sentences make no sense. Name a small pretrained "
                "model, such as hf:gpt2, with --judge."
            )
        return results


class SearchTriplets(SearchesTriplets, Step["TripletResults"], name="triplets", version=11):
    """Synthesize triplets for every pair of models: a natural and two synthetic sentences.

    Each of the two models rejects one synthetic sentence, which the other model accepts. A model
    rejects a sentence that is less likely than the natural sentence, and accepts a sentence that is
    at least as likely.

    New words have the same part of speech as the words that they replace. A search looks for
    sentences in which a few new words lower the rejecting model's log-probability by --enough nats.
    A --judge is a model that chooses the most sensible of these sentences; a small pretrained model
    is a good judge. With --frame none, the search makes the sentence as unlikely as possible under
    the rejecting model. If such a search is fast, it is repeated (--restarts).

    Each pair of models uses the natural sentences in its own random order, until it has --per-pair
    triplets. The command skips a natural sentence in three cases: the search finds no triplet, the
    sentence is impossible under a model, or it contains an excluded word. Without a judge, the
    command also skips the quarter of the sentences that a model finds least likely. Several pairs
    of models may use the same natural sentence. Continue with `contstim select triplets` to use
    each natural sentence once, to limit how often a word occurs, or to exclude triplets that
    reviewers reject.

    Each result is stored at once. If a run is interrupted, the same command continues where it
    stopped. For more triplets, models or sentences, only the additional searches run. A search that
    fails three times is listed at the end, and the next run retries it. If triplets are missing at
    the end, the exit status is 3.

    During the search, a table next to --out has the triplets so far (triplets.so-far.csv), which
    `contstim show` displays. The table is removed at the end.

    Example: `contstim triplets --model kenlm:bigram.arpa --model kenlm:trigram.arpa
    --sentences natural.txt --vocabulary vocab.txt --per-pair 100 --enough 3 --out triplets.csv`
    """

    saved_results = "All results so far are saved in the database."
    leave_out = frozenset({"max_scored"})
    models: GivenModels
    sentences: Sentences
    out: Annotated[Path, WritesTable("The table to write.", kind="triplets", name="triplets.csv")]
    vocabulary: OfferedWords = None
    settings: SearchRules = SearchRules()
    store: StoreBeside = None
    execution: Execution = LOCAL
    loading: Loading = DEFAULT_LOADING
    context: ModelContexts = ()
    seed: Seed = 0

    def work(self, reporter: Reporter) -> Outcome[TripletResults]:
        """Search, and write the triplets."""
        models, question = parse_models(self.models), self.question()
        sentences = read_sentence_file(self.sentences, reporter)
        vocabulary = None if self.vocabulary is None else Vocabulary.load(self.vocabulary)
        with Store(self.store_path()) as store:
            results = self.find(sentences, vocabulary, store, reporter, table_so_far(self.out))
        write_table(self.out, triplet_columns(results.triplets))
        table_so_far(self.out).unlink(missing_ok=True)
        naturals = [triplet.natural for triplet in results.triplets]
        seen = contamination(results.training_texts, naturals)
        reporter.say(f"{self.out}: {quantity(len(results.triplets), 'triplet')}.")
        _tell_time(results, reporter)
        if results.refused:
            shares = (f"{name} {share:.0%}" for name, share in results.refused.items())
            reporter.say(
                f"Share of judged sentences that only one judge refused: {', '.join(shares)}."
            )
        seen_facts = tell_contamination(seen, reporter, "natural sentences")
        tell_missing(results, reporter)
        by_recipe = SINGLE if question.nats else recipe_named(question.recipe).restarts
        facts: dict[str, Any] = {
            "seed": self.seed,
            "recipe": question.recipe,
            "restarts": (question.budget or by_recipe).text,
            "models": {
                model.name: record_entry(model.specification, results.conventions[model.name])
                for model in models
            },
            **_constraint_facts(question, results, models),
            **_result_facts(results),
            **seen_facts,
        }
        in_nats = all(triplet.in_nats for triplet in results.triplets)
        unit = "nats" if in_nats else "nats or standard deviations"
        drops = f"mean sum of both drops ({unit})"
        header = ("model_1", "model_2", "triplets", drops, "no triplet", "failed")
        rows = []
        for pair in results.pairs:
            mean = "–" if pair.controversiality is None else f"{pair.controversiality:.2f}"
            names = (pair.model_1, pair.model_2)
            rows.append((*names, pair.triplets, mean, pair.unchanged, pair.failed))
        parts = [Table(header, rows, texts=2)]
        for triplets in grouped((t.drop_unit, t) for t in results.triplets).values():
            flagged = flags_of(triplets, tags=question.tags)
            figures = figures_of(triplets, flagged.share, flagged.table, question.enough or 0.0)
            facts.setdefault("figures", figures)
            parts.append(figures_table(figures))
        return Outcome(results, facts, complete=results.complete, parts=parts)


def _result_facts(results: TripletResults) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "pairs": [*map(asdict, results.pairs)],
        "unchanged": [
            {
                "model_1": triplet.model_1,
                "model_2": triplet.model_2,
                "natural": triplet.natural.text,
                "reason": results.why_unchanged(triplet),
            }
            for triplet in results.unchanged
        ],
    }
    if results.wall_seconds:
        names = ("wall_seconds", "network_seconds")
        facts["time"] = {name: getattr(results, name) for name in names}
    return facts


def _tell_time(results: TripletResults, reporter: Reporter) -> None:
    if wall := results.wall_seconds:
        network = round(100 * results.network_seconds / wall)
        shares = f": {network} % in networks, {100 - network} % in other code" if network else ""
        reporter.say(f"Searches took {wall:,.0f} s, all workers together{shares}.")


def tell_missing(results: TripletResults, reporter: Reporter) -> None:
    """Report missing triplets and skipped natural sentences, with the reasons."""
    for warning in results.shortages:
        reporter.warn(warning)
    if any(pair.missing for pair in results.pairs):
        reporter.warn(
            "Some triplets are missing (see above). Use more natural sentences or a larger "
            "vocabulary, or lower `enough` or `per_pair`."
        )
    if results.failures:
        reporter.warn("Run the same command again to retry the failed searches.")
    for pair in results.pairs:
        if skipped := pair.inadmissible + pair.unchanged:
            counts = {**pair.reasons, "searched without a result": pair.unchanged}
            reasons = ", ".join(f"{n:,} {reason}" for reason, n in counts.items() if n)
            text = (
                f"{pair.model_1} × {pair.model_2}: skipped "
                f"{quantity(skipped, 'natural sentence')} ({reasons}); "
            )
            if pair.missing:
                reporter.warn(f"{text}{pair.missing:,} of these sentences could not be replaced.")
            else:
                reporter.say(f"{text}all replaced.")


def _constraint_facts(
    question: SearchQuestion, results: TripletResults, models: Sequence[Specification]
) -> dict[str, Any]:
    question = question.resolved
    names = ("fix", "max_changes", "tags", "same_length", "same_frequency")
    units = {convention.unit for convention in results.conventions.values()}
    values = {
        **{name: getattr(question, name) for name in names},
        "capitals": "rules" if recipe_named(question.recipe).capitals else "anywhere",
        "frame": question.frame if question.framed else None,
        "enough": question.nats or None,
        "enough_sds": question.sds if question.nats and units - {NATS} else None,
        "exclude": sorted({*question.exclude}),
        "plausible": question.floor_quantile if results.floors else None,
        "judge_drop": question.judge_drop if results.judges else None,
        "judge_error": JUDGE_ERROR if results.judges else None,
        "floors": results.floors,
    }
    facts = {name: value for name, value in values.items() if value not in (None, (), [], {})}
    if results.judges:
        specifications = {judge.name: judge.specification for judge in (*question.judges, *models)}
        facts["judge"] = {
            name: record_entry(specifications[name], convention)
            | {"refused_alone": results.refused.get(name, 0.0)}
            for name, convention in results.judges.items()
        }
    return facts
