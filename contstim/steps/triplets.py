"""Triplets of a natural and two synthetic sentences, for every pair of models."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from contstim.models.loading import DEFAULT_LOADING, Loading
from contstim.options import Aside, Help, Reads, Seed, Writes
from contstim.steps.constraints import (
    AllowUnknown,
    Fluency,
    Restarts,
    SearchSeconds,
    Uncapped,
    WordSettings,
    read_fluency,
    read_plausible,
    uncapped_words,
)
from contstim.steps.execution import WorkerSettings
from contstim.steps.fields import GivenModels
from contstim.steps.step import Outcome, Step
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.models.specifications import Specification
    from contstim.optimization.jobs.plan import SynthesisPlan
    from contstim.optimization.jobs.plausibility import Plausibility
    from contstim.optimization.jobs.results import TripletResults
    from contstim.reporter import Reporter


@dataclass(frozen=True, kw_only=True)
class SearchSize:
    """Number of searches, and their recipe."""

    per_pair: Annotated[int, Help("Triplets for each pair of models; may be raised later.")] = 100
    recipe: Annotated[str, Help("How to search: default or golan2023.")] = "default"
    allow_unknown: AllowUnknown = False


# Fields stand in the order of the help page: those of the last base come first.
@dataclass(frozen=True, kw_only=True)
class TripletSettings(WordSettings, SearchSize):
    """Options of searching triplets, and constraints on their sentences."""

    capitals: Annotated[
        Literal["rules", "anywhere"] | None,
        Help(
            "Put capitalised words that are no names only at the start of sentences (rules), "
            "or anywhere. By default rules with the default recipe."
        ),
    ] = None
    fluency: Fluency = None
    plausible: Annotated[
        str | None,
        Help(
            "No sentence may be rarer than this quantile of natural ones with as many words, "
            "under a further model or each under the one that accepts it; none for no floor. By "
            "default 0.25 with the default recipe.",
            metavar="[[NAME=]MODEL:]QUANTILE",
        ),
    ] = None
    word_cap: Annotated[
        int | None, Help("In how many sentences of all triplets a word may stand.", at_least=3)
    ] = None
    uncapped: Uncapped = None
    restarts: Restarts = None
    seconds: SearchSeconds = None


@dataclass(frozen=True, kw_only=True)
class Execution(WorkerSettings):
    """Options of running the searches: the executor and its number of processes."""

    models_in_memory: Annotated[
        int,
        Aside("How many models each worker keeps loaded.", at_least=2),
    ] = 2
    retry_failed: Annotated[bool, Aside("Try those again that failed in an earlier run.")] = False


LOCAL = Execution()


class SearchTriplets(
    Step["TripletResults"], name="triplets", kept="All results so far are kept in the store."
):
    """Synthesize triplets for every pair of models: a natural sentence, and one that each rejects.

    Each pair has natural sentences of its own, and each is searched several times where that is
    cheap: --restarts and --seconds say how often and how long. Every result is kept as soon as it
    is found: a job that was interrupted or killed, started again, goes on where it stopped,
    whatever the executor and the number of workers. A search that fails three times, or finds
    nothing with three seeds, is listed at the end, and the others go on; the exit status is then 3.

    A natural sentence is passed over, and the next one takes its place, where a model finds it
    impossible, where it is below a floor (`--plausible`, `--fluency`) or holds an excluded word. A
    word to fix that a sentence does not have fixes nothing in it. After a review, `--review` and
    the same store replace what was rejected; words that are excluded later have only those triplets
    searched again that hold them.

    Example: `contstim triplets --model kenlm:bigram.arpa --model kenlm:trigram.arpa
    --sentences natural.txt --vocabulary vocab.txt --per-pair 100 --restarts 5 --out triplets.csv`
    """

    models: GivenModels
    sentences: Annotated[Path, Reads("Natural sentences, one a line, or a table.")]
    out: Annotated[Path, Writes("The table of triplets to write.")]
    vocabulary: Annotated[
        Path | None,
        Reads("Words to use; by default those frequent in the models' own text."),
    ] = None
    settings: TripletSettings = TripletSettings()
    store: Annotated[
        Path | None, Aside("Where results are kept as they come; contstim.sqlite beside --out.")
    ] = None
    trajectories: Annotated[
        Path | None, Writes("Also write every accepted step of every search.")
    ] = None
    evaluations: Annotated[
        Path | None, Writes("Also write every candidate that was scored exactly.")
    ] = None
    allotment: Annotated[
        Path | None, Writes("Also write which natural sentences each pair of models got.")
    ] = None
    execution: Execution = LOCAL
    review: Annotated[
        tuple[Path, ...],
        Reads(
            "A review of the triplets in the store: rejected ones are replaced, all others "
            "stay. Repeatable."
        ),
    ] = ()
    earlier: Annotated[
        tuple[Path, ...],
        Aside(
            "With --review: the trials that stood before. No new search begins with a "
            "sentence that they show, as long as there are others. Repeatable."
        ),
    ] = ()
    loading: Loading = DEFAULT_LOADING
    seed: Seed = 0
    # Of studies, whose file is what counts
    begin_with: Path | None = None
    changes: Any = None

    def further_reads(self) -> list[Path]:
        """Files of words, and natural sentences assigned before."""
        # What the step itself wrote before is not what it is made of
        begin_with = {self.begin_with} - {self.allotment, None}
        return [*self.settings.files, *filter(None, begin_with)]

    def specifications(self) -> tuple[str, ...]:
        """The models, and those that judge sentences."""
        return (*super().specifications(), *judges_of(self.settings))

    def work(self, reporter: Reporter) -> Outcome[TripletResults]:
        """Search, and write the triplets."""
        from contstim.checksums import checksum
        from contstim.models.base import record_entry
        from contstim.models.specifications import parse_models
        from contstim.models.training_text import (
            contamination,
            contamination_facts,
            contamination_warnings,
        )
        from contstim.optimization.jobs.allotment import read_allotment, specified, write_allotment
        from contstim.optimization.jobs.results import rename_columns, renamed
        from contstim.optimization.jobs.search_context import SearchContext
        from contstim.optimization.jobs.store_changes import NO_CHANGES
        from contstim.optimization.jobs.triplets import find_triplets
        from contstim.optimization.search.restarts import SINGLE
        from contstim.reviews import read_reviews
        from contstim.stimuli import read_stimuli, write_triplets
        from contstim.store import Store, TripletStore
        from contstim.tables import table_kind, write_table

        # Names that no table can have are refused now, not after hours of searching.
        settings = self.settings
        earlier = {path.as_posix(): checksum(path) for path in self.earlier}
        for table in (self.out, self.trajectories, self.evaluations, self.allotment):
            if table is not None:
                table_kind(table)
        named_models = parse_models(self.models)
        plan, plausible, judges = _plan(
            named_models, self.sentences, self.vocabulary, settings, self.seed
        )
        capacity = self.execution.models_in_memory
        context = SearchContext.of_plan(plan, self.loading, capacity)
        reviews = read_reviews(self.review) if self.review else None
        allotted = (
            ()
            if self.begin_with is None
            else specified(read_allotment(self.begin_with), named_models)
        )
        executor = self.execution.new_executor()
        with Store(self.store or self.out.parent / "contstim.sqlite") as opened:
            plan = plan.with_defaults(
                TripletStore(opened).settings(),
                capitals=None if settings.capitals is None else settings.capitals == "rules",
                plausible=plausible,
            )
            results = find_triplets(
                plan,
                opened,
                executor,
                context,
                retry_failed=self.execution.retry_failed,
                task_limit=self.execution.task_timeout,
                review=reviews,
                shown=frozenset(s for path in self.earlier for s in read_stimuli(path)),
                changes=self.changes or NO_CHANGES,
                allotment=allotted,
                say=reporter.say,
                note=reporter.say,
                warn=reporter.warn,
                progress=partial(reporter.progress, "triplets"),
            )
            conventions = results.conventions
            # The store knows models by specification; tables call them as the user does.
            results = renamed(results, [*judges, *named_models])
            facts = {
                "seed": self.seed,
                "recipe": settings.recipe,
                # As it stands in the store: an older one may have had a single search
                "restarts": TripletStore(opened).settings().get("restarts", SINGLE.text),
                "models": {
                    named.name: record_entry(named.specification, conventions[named.specification])
                    for named in named_models
                },
                **_constraint_facts(plan, results, judges),
                **({"earlier": earlier} if earlier else {}),
            }
            for path, export in (
                (self.trajectories, TripletStore(opened).trajectories),
                (self.evaluations, TripletStore(opened).evaluations),
            ):
                if path is not None:
                    write_table(path, rename_columns(export(), named_models))
            if self.allotment is not None:
                write_allotment(self.allotment, results.allotment)
        seen = contamination(
            results.training_texts, [triplet.natural for triplet in results.triplets]
        )
        write_triplets(self.out, results.triplets)
        reporter.say(f"{self.out}: {counted(len(results.triplets), 'triplet')}.")
        if results.time.text:
            reporter.say(results.time.text)
        if reviews is not None or results.gone:
            reporter.say(
                f"As before: {results.unaltered:,}; gone: {results.gone:,}; new: {results.new:,}."
            )
        for warning in contamination_warnings(seen, "natural sentences"):
            reporter.warn(warning)
        facts |= {
            "pairs": [asdict(pair) for pair in results.pairs],
            "unchanged": [
                {
                    "model_1": triplet.model_1,
                    "model_2": triplet.model_2,
                    "natural": triplet.natural.text,
                    "reason": triplet.alike,
                }
                for triplet in results.unchanged
            ],
            **contamination_facts(seen),
            **({"time": asdict(results.time)} if results.time.text else {}),
        }
        return Outcome(results, facts, complete=results.complete)


def judges_of(settings: TripletSettings) -> tuple[str, ...]:
    """The specification of the model that judges sentences of a search; none where none does."""
    from contstim.models.specifications import parse_model

    judges: list[Specification] = []
    if settings.fluency is not None:
        judges += [parse_model(text) for text in read_fluency(settings.fluency)[0]]
    if settings.plausible is not None:
        judges += [judge for judge in (read_plausible(settings.plausible)[1],) if judge is not None]
    return tuple(judge.specification for judge in judges)


def _plan(
    models: Sequence[Specification],
    sentences: Path,
    vocabulary: Path | None,
    settings: TripletSettings,
    seed: int,
) -> tuple[SynthesisPlan, Plausibility | None, list[Specification]]:
    """Plan of the searches, the floor of plausibility, and further models that judge."""
    from contstim.models.specifications import parse_models
    from contstim.optimization.jobs.plan import SynthesisPlan
    from contstim.optimization.jobs.word_cap import WordCap
    from contstim.optimization.search.restarts import SearchBudget
    from contstim.stimuli import read_stimuli
    from contstim.vocabulary import Vocabulary

    uncapped = uncapped_words(settings.uncapped, settings.word_cap)
    judges: list[Specification] = []
    fluency: tuple[str, float] | None = None
    plausible = None
    if settings.fluency is not None:
        model, floor = read_fluency(settings.fluency)
        judges += parse_models(model)
        fluency = (judges[0].specification, floor)
    if settings.plausible is not None:
        plausible, judge = read_plausible(settings.plausible)
        judges += [] if judge is None else [judge]
    restarts, seconds = settings.restarts, settings.seconds
    plan = SynthesisPlan(
        models=tuple(named.specification for named in models),
        sentences=tuple(read_stimuli(sentences)),
        vocabulary=None if vocabulary is None else Vocabulary.load(vocabulary),
        per_pair=settings.per_pair,
        recipe=settings.recipe,
        seed=seed,
        allow_unknown=settings.allow_unknown,
        limits=settings.limits(),
        fluency=fluency,
        cap=None if settings.word_cap is None else WordCap(settings.word_cap, uncapped),
        # None: what the recipe says, or the store of an earlier run
        restarts=None if restarts is None and seconds is None else SearchBudget(restarts, seconds),
    )
    return plan, plausible, judges


def _constraint_facts(
    plan: SynthesisPlan, results: TripletResults, judges: Sequence[Specification]
) -> dict[str, Any]:
    """Constraints on the sentences, for the record: those asked for, and floors in nats."""
    from contstim.models.base import record_entry

    limits = plan.limits
    wishes = {
        "fix": list(limits.fix),
        "max_changes": limits.max_changes,
        "allow": None if limits.allow is None else sorted(limits.allow),
        "exclude": sorted(limits.exclude),
        "same_length": limits.same_length,
        "capitals": "rules" if plan.capitals else "anywhere",
        "fluency": None if plan.fluency is None else plan.fluency[1],
        "plausible": plan.plausible.quantile or None,
        "floors": results.floors,
        "word_cap": None if plan.cap is None else plan.cap.sentences,
        "uncapped": [] if plan.cap is None else sorted(plan.cap.uncapped),
    }
    # In the record as on the command line: what was not asked for is not there.
    facts: dict[str, Any] = {
        name: value for name, value in wishes.items() if value not in (None, [], {})
    }
    if plan.judge is not None and results.judge is not None:
        names = {judge.specification: judge.name for judge in judges}
        facts["judge"] = {
            names.get(plan.judge, plan.judge): record_entry(plan.judge, results.judge)
        }
    return facts
