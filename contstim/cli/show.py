"""`contstim show`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contstim.cli.options import Quiet
from contstim.cli.output import remark


def show(
    table: Annotated[Path, typer.Argument(help="Triplets, pairs or trials.")],
    out: Annotated[Path, typer.Option(help="The page to write.")],
    scores: Annotated[
        Path | None,
        typer.Option(
            help="Scores of the sentences, as of `score`: log-probabilities of pairs and trials, "
            "and how often the models agree."
        ),
    ] = None,
    title: Annotated[str, typer.Option(help="The page's heading; by default the file.")] = "",
    quiet: Quiet = False,
) -> None:
    """Write a page of stimuli to look at: sentences, log-probabilities, changed words marked.

    The page is one file that needs no network. To decide which stimuli stay, see
    `contstim review`.

    Example: `contstim show triplets.csv --scores scores.csv --out triplets.html`
    """
    from contstim.files import write_text
    from contstim.reporting.stimuli_page import stimuli_report
    from contstim.scores import ScoreTable
    from contstim.stimuli import read_stimulus_table

    stimuli = read_stimulus_table(table)
    table_of_scores = None if scores is None else ScoreTable.read(scores)
    page = stimuli_report(title or table.name, stimuli, scores=table_of_scores)
    write_text(out, page.html())
    remark(f"{out}: open it in a browser.", quiet=quiet)
