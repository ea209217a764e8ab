"""`contstim review`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.options import Quiet
from contstim.cli.output import remark
from contstim.cli.progress import ProgressBars
from contstim.errors import InputError, WorkerError
from contstim.options import AnswerScale
from contstim.steps.text_settings import ReviewSettings
from contstim.wording import counted

if TYPE_CHECKING:
    from contstim.reviews import ItemKind, Review


def review(
    *,
    table: Annotated[Path, typer.Argument(help="Triplets, pairs or trials.")],
    out: Annotated[Path, typer.Option(help="The page to write.")],
    scores: Annotated[
        Path | None,
        typer.Option(help="Scores of the sentences, as of `score`: a column for each model."),
    ] = None,
    responses: Annotated[
        Path | None,
        typer.Option(help="What people answered to these trials: shows how sure they are of each."),
    ] = None,
    scale: AnswerScale = None,
    review: Annotated[
        list[Path] | None,
        typer.Option(help="A review that was made already; shown on each item. Repeatable."),
    ] = None,
    merged: Annotated[
        Path | None, typer.Option(help="Also write all of --review as one table.")
    ] = None,
    reviewer: Annotated[
        str, typer.Option(help="Who reviews; by default to be filled in on the page.")
    ] = "",
    settings: ReviewSettings,
    serve: Annotated[
        bool,
        typer.Option(
            "--serve", help="Serve the page and save each decision in review.csv beside it."
        ),
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where to serve; 0 for any free port.")
    ] = 8001,
    quiet: Quiet = False,
) -> None:
    """Write a page on which people look at every item and keep or reject it.

    The page is one file that needs no network: open it in a browser, or send it to somebody. It
    shows the sentences of each item with changed words marked, the models' log-probabilities, and
    flags: words on the block list, rare words, names, repetitions, items that are alike. Decisions
    are kept in the browser and downloaded as review.csv, or saved as they are made with --serve.

    With --responses each trial says how sure people are of it, and the least sure can come first.
    Decisions of several people come together by giving each file with --review.

    Example: `contstim review triplets.csv --text corpus.txt --out review.html`
    """
    from contstim.reviews import read_reviews, write_review
    from contstim.steps.review import flagged, write_review_page
    from contstim.stimuli import read_stimulus_table
    from contstim.tables import table_kind

    if merged is not None:
        table_kind(merged)
        if not review:
            raise InputError("--merged joins reviews: name them with --review.")
    if serve:
        try:
            from contstim.experiments.collection.reviewing import (
                ReviewFile,
                review_file,
                serve_review,
            )
        except ModuleNotFoundError as error:
            raise WorkerError(
                f"Serving needs {error.name}, which is not installed: pip install "
                "'contstim[collect]'. Without --serve the page keeps decisions in the browser."
            ) from error
    content = write_review_page(
        table,
        out,
        settings=settings,
        scores=scores,
        responses=responses,
        scale=scale,
        review=review or (),
        reviewer=reviewer,
        watch=ProgressBars(quiet=quiet or serve),
    )
    earlier = read_reviews(review) if review else None
    if earlier is not None:
        _print_reviews(earlier, len(content.items), content.items[0].kind)
        if merged is not None:
            write_review(merged, earlier.decisions)
            remark(f"{merged}: {counted(len(earlier.decisions), 'row')}.", quiet=quiet)
    if not serve:
        return
    path = review_file(out, content.facts["reviewer"])
    file = ReviewFile.open(path, content.items, read_stimulus_table(table), table, earlier)

    def opened(url: str) -> None:
        # Alone on standard output, for scripts that wait for the address
        print(url, flush=True)
        done = sum(bool(item.decision) for item in file.decisions.values())
        remark(
            f"{flagged(content)}; {counted(done, 'decision')} from before. Open the address in a "
            f"browser of this machine; each decision is saved in {path}. Ctrl-C stops the "
            "server.",
            quiet=quiet,
        )

    serve_review(content, file, port=port, opened=opened)


def _print_reviews(review: Review, n_items: int, kind: ItemKind) -> None:
    """Print the decisions of reviewers about items of a kind, in a few lines."""
    from contstim.reviews import Decision

    # A file may hold decisions about pairs, triplets and trials
    decisions = [item for item in review.decisions if item.kind is kind]
    for name in dict.fromkeys(item.reviewer for item in decisions):
        # By item, not by row: files may repeat each other's rows
        of_reviewer = {
            item.item_id: item.decision
            for item in decisions
            if item.reviewer == name and item.decision
        }
        n_decided = len(of_reviewer)
        n_rejected = list(of_reviewer.values()).count(Decision.REJECT)
        print(f"{name}: {n_decided:,} of {counted(n_items, kind)} decided, {n_rejected:,} rejected")
    names = {item.item_id for item in decisions}
    print(
        f"rejected by anybody: {len(review.rejected & names):,}; reviewers disagree: "
        f"{len(review.disagreements.keys() & names):,}"
    )
