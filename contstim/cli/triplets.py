"""`contstim triplets`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.options import Model, Quiet, Seed, Words
from contstim.cli.output import INCOMPLETE, names_for_tables, print_table, remark, terminal
from contstim.cli.progress import ProgressBars
from contstim.models.loading import Loading
from contstim.steps.triplets import Execution, TripletSettings, search_triplets
from contstim.wording import counted

if TYPE_CHECKING:
    from contstim.optimization.jobs.results import TripletResults


def triplets(
    *,
    model: Model,
    sentences: Annotated[Path, typer.Option(help="Natural sentences, one a line, or a table.")],
    out: Annotated[Path, typer.Option(help="The table of triplets to write.")],
    vocabulary: Words = None,
    settings: TripletSettings,
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
    execution: Execution,
    review: Annotated[
        list[Path] | None,
        typer.Option(
            help="A review of the triplets in the store: rejected ones are replaced, all others "
            "stay. Repeatable."
        ),
    ] = None,
    earlier: Annotated[
        list[Path] | None,
        typer.Option(
            help="With --review: the trials that stood before. No new search begins with a "
            "sentence that they show, as long as there are others. Repeatable."
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
    results = search_triplets(
        model,
        sentences,
        out,
        vocabulary=vocabulary,
        settings=settings,
        execution=execution,
        store=store,
        trajectories=trajectories,
        evaluations=evaluations,
        review=review or (),
        earlier=earlier or (),
        loading=loading,
        seed=seed,
        watch=ProgressBars(quiet=quiet),
    )
    if not quiet:
        _print_statistics(results)
    _tell_failures(results, quiet=quiet)
    # Whatever failed is said before the status, which scripts can wait for.
    if not results.complete:
        raise typer.Exit(INCOMPLETE)


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

    for line in results.lacking:
        remark(line)
    if results.unchanged:
        remark(
            f"The searches named above found nothing with {SEEDS} seeds; their sentences are not "
            f"in the table. For others in their place raise --per-pair, or give more words."
        )
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
