"""`contstim evaluate …`: a command for each benchmark."""

from __future__ import annotations

import typer

from contstim.cli.evaluate.acceptability import acceptability
from contstim.cli.evaluate.blimp import blimp
from contstim.cli.evaluate.desiderata import desiderata

app = typer.Typer(help="Put models and scoring rules to a benchmark.", no_args_is_help=True)

app.command("blimp")(blimp)
app.command("acceptability")(acceptability)
app.command("desiderata")(desiderata)


@app.callback()
def _evaluate() -> None:
    """Put models and scoring rules to a benchmark."""
