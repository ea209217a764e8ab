"""`contstim export psych-ds`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contstim.cli.options import Quiet
from contstim.cli.output import remark
from contstim.errors import InputError


def psych_ds(
    trials: Annotated[Path | None, typer.Option(help="The stimuli: trials.csv.")] = None,
    out: Annotated[Path | None, typer.Option(help="The folder to write.")] = None,
    responses: Annotated[Path | None, typer.Option(help="What people answered.")] = None,
    scores: Annotated[Path | None, typer.Option(help="Scores of the sentences.")] = None,
    name: Annotated[str, typer.Option(help="The name of the data set.")] = "contstim",
    description: Annotated[str, typer.Option(help="What it holds, in a sentence.")] = "",
    author: Annotated[list[str] | None, typer.Option(help="Who made it; repeatable.")] = None,
    licence: Annotated[str, typer.Option(help="A licence's name or address.")] = "",
    keep_names: Annotated[
        bool, typer.Option(help="Keep the names of participants instead of numbering them.")
    ] = False,
    simulated: Annotated[
        bool,
        typer.Option(
            "--simulated",
            help="Allow answers of artificial participants; the data set is named after them.",
        ),
    ] = False,
    check: Annotated[
        Path | None, typer.Option(help="Write nothing: check this data set against the rules.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write a Psych-DS 1.5 data set, or check one.

    Stimuli, and responses and scores where given, with every column described. Participants are
    numbered, unless you keep their names. `--check` prints what is wrong with a data set and exits
    with status 1 if it breaks a rule.

    Example: `contstim export psych-ds --trials trials.csv --responses responses.csv --name
    "Controversial pairs" --author "Ada Lovelace" --out dataset`
    """
    from contstim.experiments.platforms.psych_ds import Description, export_psych_ds
    from contstim.experiments.responses import read_responses
    from contstim.scores import ScoreTable
    from contstim.stimuli import read_trials

    if check is not None:
        _check(check, quiet=quiet)
        return
    if trials is None or out is None:
        raise InputError("Give --trials and --out to write a data set, or --check to check one.")
    folder = export_psych_ds(
        read_trials(trials),
        out,
        Description(name, description, tuple(author or ()), licence),
        responses=() if responses is None else read_responses(responses),
        scores=None if scores is None else ScoreTable.read(scores),
        keep_names=keep_names,
        simulated=simulated,
    )
    remark(f"{folder} obeys the rules of Psych-DS 1.5.", quiet=quiet)


def _check(folder: Path, *, quiet: bool) -> None:
    from contstim.experiments.platforms.psych_ds import check_psych_ds

    found = check_psych_ds(folder)
    for one in found:
        print(one)
    if any(one.error for one in found):
        raise typer.Exit(1)
    remark(f"{folder} obeys the rules of Psych-DS 1.5.", quiet=quiet)
