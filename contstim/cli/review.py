"""`contstim review`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.options import Blocked, Language, Quiet, word_rules
from contstim.cli.output import remark
from contstim.errors import InputError, WorkerError
from contstim.wording import counted

if TYPE_CHECKING:
    from contstim.item_flags import FlagSettings
    from contstim.reviews import ItemKind, Review


def review(
    table: Annotated[Path, typer.Argument(help="Triplets, pairs or trials.")],
    out: Annotated[Path, typer.Option(help="The page to write.")],
    scores: Annotated[
        Path | None,
        typer.Option(help="Scores of the sentences, as of `score`: a column for each model."),
    ] = None,
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
    text: Annotated[
        Path | None,
        typer.Option(
            help="What tells rare words and names: a text, a table with the columns word and "
            "count, or a model of words."
        ),
    ] = None,
    rare: Annotated[float, typer.Option(help="Words below it are rare, on the Zipf scale.")] = 3.0,
    often: Annotated[
        int | None,
        typer.Option(
            min=1, help="Words in more items than this are flagged; by default 5, or 2 in 100."
        ),
    ] = None,
    language: Language = "en",
    blocked: Blocked = None,
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

    Decisions of several people come together by giving each file with --review.

    Example: `contstim review triplets.csv --text corpus.txt --out review.html`
    """
    from contstim.files import write_text
    from contstim.item_flags import flag_items
    from contstim.reporting.review import PageContent
    from contstim.reviews import read_reviews, write_review
    from contstim.scores import ScoreTable
    from contstim.stimuli import read_stimulus_table
    from contstim.tables import table_kind

    if merged is not None:
        table_kind(merged)
        if not review:
            raise InputError("--merged joins reviews: name them with --review.")
    stimuli = read_stimulus_table(table)
    reviewer = " ".join(reviewer.split())
    earlier: Review | None = None
    if review:
        earlier = read_reviews(review)
        earlier.require_items_of(stimuli, table)
    flags = flag_items(stimuli, _flag_settings(language, blocked, text, rare, often))
    content = PageContent.of(
        stimuli,
        title=f"Review of {table.name}",
        flags=flags,
        scores=None if scores is None else ScoreTable.read(scores),
        review=earlier,
        reviewer=reviewer,
    )
    kind = content.items[0].kind
    if earlier is not None:
        if not earlier.of_kind(kind):
            raise InputError(f"{table} holds {kind}s, and no {kind} was reviewed in --review.")
        _print_reviews(earlier, len(content.items), kind)
        if merged is not None:
            write_review(merged, earlier.decisions)
            remark(f"{merged}: {counted(len(earlier.decisions), 'row')}.", quiet=quiet)
    flagged = f"{len(flags.by_item):,} of {counted(len(content.items), kind)} have flags"
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
        path = review_file(out, reviewer)
        file = ReviewFile.open(path, content.items, stimuli, table, earlier)
        write_text(out, content.html())

        def opened(url: str) -> None:
            # Alone on standard output, for scripts that wait for the address
            print(url, flush=True)
            done = sum(bool(item.decision) for item in file.decisions.values())
            remark(
                f"{flagged}; {counted(done, 'decision')} from before. Open the address in a "
                f"browser of this machine; each decision is saved in {path}. Ctrl-C stops the "
                "server.",
                quiet=quiet,
            )

        serve_review(content, file, port=port, opened=opened)
        return
    write_text(out, content.html())
    remark(f"{out}: {flagged}; open it in a browser.", quiet=quiet)


def _flag_settings(
    language: str, blocked: Path | None, text: Path | None, rare: float, often: int | None
) -> FlagSettings:
    from contstim.frequencies import read_frequencies
    from contstim.item_flags import FlagSettings
    from contstim.vocabulary import REPEATABLE_ENGLISH

    return FlagSettings(
        word_rules(language, blocked),
        REPEATABLE_ENGLISH if language == "en" else frozenset(),
        None if text is None else read_frequencies(text),
        "" if text is None else text.name,
        rare,
        often,
    )


def _print_reviews(review: Review, n_items: int, kind: ItemKind) -> None:
    """What reviewers decided about items of a kind, in a few lines."""
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
