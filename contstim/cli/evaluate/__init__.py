"""`contstim evaluate …`: a command for each benchmark."""

from __future__ import annotations

from contstim.cli.commands import CommandGroup
from contstim.cli.evaluate.acceptability import acceptability
from contstim.cli.evaluate.blimp import blimp
from contstim.cli.evaluate.desiderata import desiderata

app = CommandGroup("Put models and scoring rules to a benchmark.")
app.add("blimp", blimp)
app.add("acceptability", acceptability)
app.add("desiderata", desiderata)
