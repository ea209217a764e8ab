"""Commands that look at what is there: `contstim models`, `contstim show` and `contstim check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contstim.cli.output import Quiet, remark, terminal
from contstim.errors import InputError


def models(quiet: Quiet = False) -> None:
    """List the kinds of models that load, and the nine models of the 2023 study.

    Example: `contstim models`
    """
    del quiet  # it prints nothing but its result
    from rich.table import Table

    from contstim.models.families import families
    from contstim.models.specifications import CATALOGUE

    table = Table("family", "what it is", "scoring rules", title="Families", title_justify="left")
    for family in families():
        table.add_row(f"{family.name}:", family.summary, ", ".join(family.rules))
    entries = Table("name", "stands for", "what it is", "loads", title_justify="left")
    entries.title = "Models of Golan et al. (2023)"
    for entry in CATALOGUE.values():
        loads = "yes" if entry.loadable else "not in this version"
        entries.add_row(entry.name, entry.specification, entry.summary, loads)
    console = terminal()
    console.print(table)
    console.print(entries)


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


def check(
    platform: Annotated[str, typer.Argument(help="Whose rules, such as psych-ds.")],
    folder: Annotated[Path, typer.Argument(help="The folder to check.")],
    quiet: Quiet = False,
) -> None:
    """Check a folder against the rules of a format; the exit status is 1 if it breaks one.

    Example: `contstim check psych-ds dataset`
    """
    from contstim.experiments.platforms.platform import platform_named

    place = platform_named(platform)
    exporter = None if place is None else place.exporter
    if exporter is None or exporter.check is None:
        raise InputError(f"{platform} has no rules that a folder is checked against.")
    findings = exporter.check(folder)
    for finding in findings:
        print(finding)
    if any(finding.error for finding in findings):
        raise typer.Exit(1)
    remark(f"{folder} obeys {exporter.format}.", quiet=quiet)
