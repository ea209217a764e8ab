"""`contstim export …`: a command for each place where people can take part."""

from __future__ import annotations

import typer

from contstim.cli.export.jatos import jatos
from contstim.cli.export.jspsych import jspsych

app = typer.Typer(
    help="Turn trials into an experiment that people take part in.", no_args_is_help=True
)


@app.callback()
def _export() -> None:
    """Turn trials into an experiment that people take part in."""


app.command("jspsych")(jspsych)
app.command("jatos")(jatos)
