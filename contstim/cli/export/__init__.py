"""`contstim export …`: from trials.csv to a platform, and to a public data set."""

from __future__ import annotations

import typer

from contstim.cli.export.platforms import csv, gorilla, pcibex, psychopy, qualtrics
from contstim.cli.export.psych_ds import psych_ds

app = typer.Typer(help="Put an experiment onto a platform.", no_args_is_help=True)

app.command("pcibex")(pcibex)
app.command("psychopy")(psychopy)
app.command("gorilla")(gorilla)
app.command("qualtrics")(qualtrics)
app.command("csv")(csv)
app.command("psych-ds")(psych_ds)


@app.callback()
def _export() -> None:
    """Put an experiment onto a platform, or make a public data set of it."""
