"""`contstim export …`: a command for each place where people take part, and a public data set."""

from __future__ import annotations

import typer

from contstim.cli.export.jatos import jatos
from contstim.cli.export.jspsych import jspsych
from contstim.cli.export.platforms import csv, gorilla, pcibex, psychopy, qualtrics
from contstim.cli.export.psych_ds import psych_ds

app = typer.Typer(
    help="Turn trials into an experiment that people take part in, or into a public data set.",
    no_args_is_help=True,
)

app.command("jspsych")(jspsych)
app.command("jatos")(jatos)
app.command("pcibex")(pcibex)
app.command("psychopy")(psychopy)
app.command("gorilla")(gorilla)
app.command("qualtrics")(qualtrics)
app.command("csv")(csv)
app.command("psych-ds")(psych_ds)


@app.callback()
def _export() -> None:
    """Turn trials into an experiment that people take part in, or into a public data set."""
