"""Triplets of a natural and two synthetic sentences, for every pair of models."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from contstim.models.loading import DEFAULT_LOADING
from contstim.options import Help
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
from contstim.steps.watching import SILENT
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.models.loading import Loading
    from contstim.models.specifications import Specification
    from contstim.optimization.jobs.plan import SynthesisPlan
    from contstim.optimization.jobs.plausibility import Plausibility
    from contstim.optimization.jobs.results import TripletResults
    from contstim.optimization.jobs.store_changes import AllowedChanges
    from contstim.steps.watching import Watcher


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
        Help("How many models each worker keeps loaded.", at_least=2),
    ] = 2
    retry_failed: Annotated[
        bool, Help("Try those again that failed in an earlier run.", flag="--retry-failed")
    ] = False


LOCAL = Execution()


def search_triplets(
    models: Sequence[str],
    sentences: Path,
    out: Path,
    *,
    vocabulary: Path | None = None,
    settings: TripletSettings,
    execution: Execution = LOCAL,
    store: Path | None = None,
    trajectories: Path | None = None,
    evaluations: Path | None = None,
    allotment: Path | None = None,
    begin_with: Path | None = None,
    changes: AllowedChanges | None = None,
    review: Sequence[Path] = (),
    earlier: Sequence[Path] = (),
    loading: Loading = DEFAULT_LOADING,
    seed: int = 0,
    watch: Watcher = SILENT,
) -> TripletResults:
    """Synthesize triplets for every pair of models: a natural sentence, and one that each rejects.

    Every result is kept in the store as soon as it is found: what was interrupted, started again,
    goes on where it stopped.

    Args:
        models: `[NAME=]SPECIFICATION` each.
        sentences: natural sentences, one a line, or a table.
        out: the table of triplets to write.
        vocabulary: words to use; by default those frequent in the models' own text.
        settings: how triplets are searched, and what is asked of their sentences.
        execution: where the searches run.
        store: where results are kept as they come; by default contstim.sqlite beside `out`.
        trajectories: a further table to write, of every accepted step of every search.
        evaluations: a further table to write, of every candidate that was scored exactly.
        allotment: a further table to write, of the natural sentences of each pair of models.
        begin_with: such a table, by which a new store assigns natural sentences.
        changes: what may differ from the study that the store was made for; by default nothing.
        review: reviews of the triplets in the store: rejected ones are replaced, all others stay.
        earlier: the tables of trials that stood before: searches begin with no sentence that they
            show, as long as there are others.
        loading: how models are loaded.
        seed: decides everything that is left to chance.
        watch: told what is done.

    Returns:
        The triplets, under the models' names, and what was not found: see its `complete`.

    Raises:
        InputError: a file cannot be read or written, or settings exclude each other.
        ModelError: a model cannot be loaded, or has no log-probabilities.
        StoreError: the store cannot be written, or is of another study.
    """
    from contstim.checksums import checksum
    from contstim.models.base import record_entry
    from contstim.models.origins import model_origins
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
    from contstim.records import write_record
    from contstim.reviews import read_reviews
    from contstim.stimuli import read_stimuli, write_triplets
    from contstim.store import Store, TripletStore
    from contstim.tables import table_kind, write_table

    # Names that no table can have are refused now, not after hours of searching.
    tables = (trajectories, evaluations, allotment)
    further = [table for table in tables if table is not None]
    for table in (out, *further):
        table_kind(table)
    named_models = parse_models(models)
    plan, plausible, judges = _plan(named_models, sentences, vocabulary, settings, seed)
    context = SearchContext.of_plan(plan, loading, execution.models_in_memory)
    reviews = read_reviews(review) if review else None
    allotted = () if begin_with is None else specified(read_allotment(begin_with), named_models)
    executor = execution.new_executor()
    inputs = [sentences, vocabulary, settings.uncapped, *settings.files, begin_with, *review]
    with Store(store or out.parent / "contstim.sqlite") as opened:
        plan = plan.with_defaults(
            TripletStore(opened).settings(),
            capitals=None if settings.capitals is None else settings.capitals == "rules",
            plausible=plausible,
        )
        with watch.searching() as (say, progress):
            results = find_triplets(
                plan,
                opened,
                executor,
                context,
                retry_failed=execution.retry_failed,
                task_limit=execution.task_timeout,
                review=reviews,
                shown=frozenset(s for path in earlier for s in read_stimuli(path)),
                changes=changes or NO_CHANGES,
                allotment=allotted,
                say=say,
                note=watch.remark,
                warn=watch.warn,
                progress=progress,
            )
        conventions = results.conventions
        # Not before the searches, which may fetch models from the hub
        origins = model_origins(model.specification for model in (*named_models, *judges))
        inputs += origins.files
        # The store knows models by specification; tables call them as the user does.
        results = renamed(results, [*judges, *named_models])
        facts = {
            "seed": seed,
            "recipe": settings.recipe,
            # As it stands in the store: an older one may have had a single search
            "restarts": TripletStore(opened).settings().get("restarts", SINGLE.text),
            "seconds": settings.seconds,
            "models": {
                named.name: record_entry(named.specification, conventions[named.specification])
                for named in named_models
            },
            "commits": origins.commits,
            **_constraint_facts(plan, results, judges),
            **({"earlier": {p.as_posix(): checksum(p) for p in earlier}} if earlier else {}),
        }
        for path, export in (
            (trajectories, TripletStore(opened).trajectories),
            (evaluations, TripletStore(opened).evaluations),
        ):
            if path is not None:
                write_table(path, rename_columns(export(), named_models))
                write_record(path, inputs, **facts)
        if allotment is not None:
            write_allotment(allotment, results.allotment)
            write_record(allotment, inputs, **facts)
    seen = contamination(results.training_texts, [triplet.natural for triplet in results.triplets])
    write_triplets(out, results.triplets)
    write_record(
        out,
        inputs,
        further,
        **facts,
        pairs=[asdict(pair) for pair in results.pairs],
        unchanged=[
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
    )
    watch.remark(f"{out}: {counted(len(results.triplets), 'triplet')}.")
    if results.time.text:
        watch.remark(results.time.text)
    if reviews is not None or results.gone:
        watch.remark(
            f"As before: {results.unaltered:,}; gone: {results.gone:,}; new: {results.new:,}."
        )
    for warning in contamination_warnings(seen, "natural sentences"):
        watch.warn(warning)
    return results


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
