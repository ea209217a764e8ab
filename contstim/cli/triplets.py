"""`contstim triplets`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from contstim.cli.constraints import (
    Fluency,
    Plausible,
    WordOptions,
    read_fluency,
    read_plausible,
)
from contstim.cli.options import (
    AllowUnknown,
    Model,
    Quiet,
    Restarts,
    Seconds,
    Seed,
    Uncapped,
    Words,
    uncapped_words,
)
from contstim.cli.output import (
    INCOMPLETE,
    names_for_tables,
    print_table,
    remark,
    terminal,
    warn_of_training_texts,
)
from contstim.cli.progress import search_progress
from contstim.errors import InputError
from contstim.steps.loading import Loading
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.models.specifications import NamedSpecification
    from contstim.optimization.jobs.executors import Executor
    from contstim.optimization.jobs.plan import SynthesisPlan
    from contstim.optimization.jobs.results import TripletResults


def triplets(
    *,
    model: Model,
    sentences: Annotated[Path, typer.Option(help="Natural sentences, one a line, or a table.")],
    out: Annotated[Path, typer.Option(help="The table of triplets to write.")],
    vocabulary: Words = None,
    per_pair: Annotated[
        int, typer.Option(help="Triplets for each pair of models; may be raised later.")
    ] = 100,
    recipe: Annotated[str, typer.Option(help="How to search: default or golan2023.")] = "default",
    allow_unknown: AllowUnknown = False,
    word_options: WordOptions,
    capitals: Annotated[
        Literal["rules", "anywhere"] | None,
        typer.Option(
            help="Put capitalised words that are no names only at the start of sentences (rules), "
            "or anywhere. By default rules with the default recipe."
        ),
    ] = None,
    fluency: Fluency = None,
    plausible: Plausible = None,
    word_cap: Annotated[
        int | None,
        typer.Option(min=3, help="In how many sentences of all triplets a word may stand."),
    ] = None,
    uncapped: Uncapped = None,
    restarts: Restarts = None,
    seconds: Seconds = None,
    store: Annotated[
        Path | None,
        typer.Option(help="Where results are kept as they come; contstim.sqlite beside --out."),
    ] = None,
    trajectories: Annotated[
        Path | None, typer.Option(help="Also write every accepted step of every search.")
    ] = None,
    evaluations: Annotated[
        Path | None, typer.Option(help="Also write every candidate that was scored exactly.")
    ] = None,
    executor: Annotated[
        Literal["local", "processes", "ray"],
        typer.Option(help="Search in this process, in several, or on a Ray cluster."),
    ] = "local",
    workers: Annotated[
        int | None,
        typer.Option(help="How many; by default one a GPU, or one a processor without GPUs."),
    ] = None,
    models_in_memory: Annotated[
        int, typer.Option(min=2, help="How many models each worker keeps loaded.")
    ] = 2,
    gpus_per_worker: Annotated[
        float | None, typer.Option(help="With ray: the share of a GPU for each worker.")
    ] = None,
    ray_address: Annotated[
        str | None, typer.Option(help="With ray: the cluster, auto for this machine's own.")
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try those again that failed in an earlier run.")
    ] = False,
    review: Annotated[
        list[Path] | None,
        typer.Option(
            help="A review of the triplets in the store: rejected ones are replaced, all others "
            "stay. Repeatable."
        ),
    ] = None,
    loading: Loading,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
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
    from contstim.models.base import record_entry
    from contstim.models.contamination import contamination, contamination_facts
    from contstim.models.specifications import parse_models
    from contstim.optimization.jobs.plan import SynthesisPlan
    from contstim.optimization.jobs.results import rename_columns, renamed
    from contstim.optimization.jobs.triplets import find_triplets
    from contstim.optimization.jobs.word_cap import WordCap
    from contstim.optimization.search.restarts import SINGLE, SearchBudget
    from contstim.records import write_record
    from contstim.reviews import read_reviews
    from contstim.stimuli import read_stimuli, write_triplets
    from contstim.store import Store, TripletStore
    from contstim.tables import table_kind, write_table
    from contstim.vocabulary import Vocabulary

    # Names that no table can have are refused now, not after hours of searching.
    for table in filter(None, (out, trajectories, evaluations)):
        table_kind(table)
    given = parse_models(model)
    free = uncapped_words(uncapped, word_cap)
    cap = None if word_cap is None else WordCap(word_cap, free)
    judges = []
    fluent: tuple[str, float] | None = None
    if fluency is not None:
        (fluency_model,), floor = read_fluency(fluency)
        (judge,) = parse_models([fluency_model])
        judges.append(judge)
        fluent = (judge.specification, floor)
    floor_wanted = None
    if plausible is not None:
        floor_wanted, named_judge = read_plausible(plausible)
        judges += [] if named_judge is None else [named_judge]
    study = SynthesisPlan(
        models=tuple(named.specification for named in given),
        sentences=tuple(read_stimuli(sentences)),
        vocabulary=None if vocabulary is None else Vocabulary.load(vocabulary),
        per_pair=per_pair,
        recipe=recipe,
        seed=seed,
        allow_unknown=allow_unknown,
        limits=word_options.limits(),
        fluency=fluent,
        cap=cap,
        restarts=(
            None if restarts is None and seconds is None else SearchBudget(restarts, seconds)
        ),
    )
    context = loading.worker_context(study, models_in_memory)
    reviews = read_reviews(review) if review else None
    chosen_executor = _executor(executor, workers, gpus_per_worker, ray_address)
    with Store(store or out.parent / "contstim.sqlite") as opened:
        study = study.with_defaults(
            TripletStore(opened).settings(),
            capitals=None if capitals is None else capitals == "rules",
            plausible=floor_wanted,
        )
        with search_progress(quiet=quiet) as (say, progress):
            results = find_triplets(
                study,
                opened,
                chosen_executor,
                context,
                retry_failed=retry_failed,
                review=reviews,
                say=say,
                note=(lambda _text: None) if quiet else say,
                progress=progress,
            )
        facts = {
            "seed": seed,
            "recipe": recipe,
            # As it stands in the store: an older one may have had a single search
            "restarts": TripletStore(opened).settings().get("restarts", SINGLE.text),
            "seconds": seconds,
            "models": {
                named.name: record_entry(
                    named.specification, results.conventions[named.specification]
                )
                for named in given
            },
            **_constraint_facts(study, renamed(results, [*judges, *given]), judges),
        }
        # The store knows models by specification; tables call them as the user does.
        results = renamed(results, [*judges, *given])
        for path, export in (
            (trajectories, TripletStore(opened).trajectories),
            (evaluations, TripletStore(opened).evaluations),
        ):
            if path is not None:
                write_table(path, rename_columns(export(), given))
                write_record(path, **facts)
    seen = contamination(results.training_texts, [triplet.natural for triplet in results.triplets])
    write_triplets(out, results.triplets)
    write_record(
        out,
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
    )
    remark(f"{out}: {counted(len(results.triplets), 'triplet')}.", quiet=quiet)
    if reviews is not None or results.gone:
        remark(
            f"As before: {results.unaltered:,}; gone: {results.gone:,}; new: {results.new:,}.",
            quiet=quiet,
        )
    if not quiet:
        _print_statistics(results)
    warn_of_training_texts(seen, "natural sentences")
    _tell_failures(results, quiet=quiet)
    # Whatever failed is said before the status, which scripts can wait for.
    if not results.complete:
        raise typer.Exit(INCOMPLETE)


def _constraint_facts(
    study: SynthesisPlan, results: TripletResults, judges: Sequence[NamedSpecification]
) -> dict[str, Any]:
    """What sentences had to keep, for the record: what was asked for, and floors in nats."""
    from contstim.models.base import record_entry

    limits = study.limits
    wishes = {
        "fix": list(limits.fix),
        "max_changes": limits.max_changes,
        "allow": None if limits.allow is None else sorted(limits.allow),
        "exclude": sorted(limits.exclude),
        "same_length": limits.same_length,
        "capitals": "rules" if study.capitals else "anywhere",
        "fluency": None if study.fluency is None else study.fluency[1],
        "plausible": study.plausible.quantile or None,
        "floors": results.floors,
        "word_cap": None if study.cap is None else study.cap.sentences,
        "uncapped": [] if study.cap is None else sorted(study.cap.uncapped),
    }
    # In the record as on the command line: what was not asked for is not there.
    facts: dict[str, Any] = {
        name: value for name, value in wishes.items() if value not in (None, [], {})
    }
    if study.judge is not None and results.judge is not None:
        names = {judge.specification: judge.name for judge in judges}
        facts["judge"] = {
            names.get(study.judge, study.judge): record_entry(study.judge, results.judge)
        }
    return facts


def _executor(
    kind: str, workers: int | None, gpus_per_worker: float | None, ray_address: str | None
) -> Executor:
    from contstim.optimization.jobs.executors import LocalExecutor, ProcessExecutor, RayExecutor

    # An option that would change nothing is a mistake of the user's, so it is refused.
    if kind != "ray" and (gpus_per_worker is not None or ray_address is not None):
        raise InputError("--gpus-per-worker and --ray-address are for --executor ray.")
    if kind == "ray":
        return RayExecutor(workers, gpus_per_worker=gpus_per_worker, address=ray_address)
    if kind == "processes":
        return ProcessExecutor(workers)
    if workers not in (None, 1):
        raise InputError("--executor local has one worker; use processes or ray for more.")
    return LocalExecutor()


def _print_statistics(results: TripletResults) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    names = names_for_tables(list(results.conventions))
    table = Table(box=SIMPLE_HEAD)
    table.add_column("models", overflow="fold")
    for name in ("triplets", "Eq. 4", "drop 1", "drop 2", "passes", "unchanged", "failed"):
        table.add_column(name, justify="right", no_wrap=True)
    for pair in results.pairs:
        means = (pair.controversiality, pair.drop_1, pair.drop_2)
        table.add_row(
            f"{names[pair.model_1]}\n× {names[pair.model_2]}",
            f"{pair.triplets:,}",
            *("–" if mean is None else f"{mean:.2f}" for mean in means),
            f"{pair.rows:,}",
            f"{pair.unchanged:,}",
            f"{pair.failed:,}",
        )
    print_table(table, names)
    terminal().print(
        "Means in nats: controversiality (Eq. 4), and how far each model's score falls; passes of "
        "both networks, in all."
    )


def _tell_failures(results: TripletResults, *, quiet: bool) -> None:
    from contstim.optimization.jobs.tasks import SEEDS

    for triplet in results.unchanged:
        models = f"{triplet.model_1} × {triplet.model_2}"
        remark(f"unchanged: {models}, {triplet.natural.text!r}: {triplet.alike}")
    if results.unchanged:
        remark(
            f"The searches named above found nothing with {SEEDS} seeds; their sentences are not "
            f"in the table. For others in their place raise --per-pair, or give more words."
        )
    for job in results.failures:
        remark(f"failed: {job.model_1} × {job.model_2}, {job.natural!r}: {job.reason}")
    if results.failures:
        remark("Run the same command with --retry-failed to try them again.")
    for pair in results.pairs:
        if pair.inadmissible:
            reasons = ", ".join(f"{number:,} {reason}" for reason, number in pair.reasons.items())
            replaced = f"for {pair.missing:,} there is no other" if pair.missing else "all replaced"
            remark(
                f"{pair.model_1} × {pair.model_2}: "
                f"{counted(pair.inadmissible, 'natural sentence')} passed over ({reasons}); "
                f"{replaced}.",
                quiet=quiet and not pair.missing,
            )
