"""`contstim export pcibex|psychopy|gorilla|qualtrics|csv`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contstim.cli.options import Quiet, Seed
from contstim.cli.output import remark

Trials = Annotated[Path, typer.Option(help="What is to be shown: trials.csv.")]
Out = Annotated[Path, typer.Option(help="The folder to write.")]


def pcibex(trials: Trials, out: Out, seed: Seed = 0, quiet: Quiet = False) -> None:
    """Write a table and a PennController script for PCIbex Farm, and a README that says what to do.

    Each group gets two lists, mirrored in their sides; PCIbex draws the order.

    Example: `contstim export pcibex --trials trials.csv --out pcibex`
    """
    from contstim.experiments.platforms.pcibex.export import export_pcibex
    from contstim.stimuli import read_trials

    _done(export_pcibex(read_trials(trials), out, seed=seed), quiet=quiet)


def psychopy(trials: Trials, out: Out, seed: Seed = 0, quiet: Quiet = False) -> None:
    """Write conditions files for PsychoPy and Pavlovia, and a README that says what to do.

    Each group gets two lists, mirrored in their sides; PsychoPy draws the order. Sentences that
    PsychoPy would evaluate are quoted by a no-break space, or refused.

    Example: `contstim export psychopy --trials trials.csv --out psychopy`
    """
    from contstim.experiments.platforms.psychopy.export import export_psychopy
    from contstim.stimuli import read_trials

    _done(export_psychopy(read_trials(trials), out, seed=seed), quiet=quiet)


def gorilla(
    trials: Trials,
    out: Out,
    template: Annotated[
        Path | None,
        typer.Option(help="The spreadsheet of your task, downloaded from Gorilla as CSV."),
    ] = None,
    display: Annotated[str, typer.Option(help="The display that shows a trial.")] = "trial",
    left: Annotated[
        str, typer.Option(help="The template's column of the left sentence.")
    ] = "sentence_left",
    right: Annotated[
        str, typer.Option(help="The template's column of the right sentence.")
    ] = "sentence_right",
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Write spreadsheets for Gorilla, and a README that says what to do.

    With `--template`, in the columns of your own task: its other rows and cells are kept.

    Example: `contstim export gorilla --trials trials.csv --template task.csv --left text_a --right
    text_b --out gorilla`
    """
    from contstim.errors import InputError
    from contstim.experiments.platforms.gorilla.export import DEFAULT, export_gorilla, read_template
    from contstim.stimuli import read_trials

    if template is None and (display, left, right) != ("trial", DEFAULT.left, DEFAULT.right):
        raise InputError("--display, --left and --right name parts of --template; give that too.")
    sheet = (
        DEFAULT
        if template is None
        else read_template(template, display=display, left=left, right=right)
    )
    _done(export_gorilla(read_trials(trials), out, spreadsheet=sheet, seed=seed), quiet=quiet)


def qualtrics(
    trials: Trials,
    out: Out,
    lists_per_group: Annotated[
        int, typer.Option(min=1, help="Orders of each group; more make a larger survey.")
    ] = 2,
    timing: Annotated[bool, typer.Option(help="Add a timing question to each trial.")] = False,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Write a survey for Qualtrics (advanced TXT), its key, and a README that says what to do.

    Example: `contstim export qualtrics --trials trials.csv --lists-per-group 4 --timing
    --out qualtrics`
    """
    from contstim.experiments.platforms.qualtrics.export import export_qualtrics
    from contstim.stimuli import read_trials

    folder = export_qualtrics(
        read_trials(trials), out, lists_per_group=lists_per_group, timing=timing, seed=seed
    )
    _done(folder, quiet=quiet)


def csv(
    trials: Trials,
    out: Out,
    participants: Annotated[int, typer.Option(min=1, help="Participants of each group.")] = 10,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Write a table of who sees what, in which order and on which side, for any program.

    Example: `contstim export csv --trials trials.csv --participants 20 --out plain`
    """
    from contstim.experiments.platforms.plain import export_csv
    from contstim.stimuli import read_trials

    folder = export_csv(read_trials(trials), out, participants=participants, seed=seed)
    _done(folder, quiet=quiet)


def _done(folder: Path, *, quiet: bool) -> None:
    remark(f"Everything is in {folder}/; {folder / 'README.md'} says what to do next.", quiet=quiet)
