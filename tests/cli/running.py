"""Run commands as a user types them, by the program's entry point in this process.

A process for each command would spend most of the time on loading the same libraries. Behaviour
that needs a separate process (signals, closed pipes, encodings) is tested in `test_output`;
`test_readme` runs the first study of the README as typed.
"""

import io
import os
import signal
import sys
import warnings
from collections.abc import Iterable
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess
from unittest import mock

from typer.testing import CliRunner, Result

from contstim.cli import main
from contstim.cli.program import app
from contstim.experiments.responses.table import write_responses
from contstim.files.tables import write_table
from contstim.items.stimuli import trial_columns
from tests.experiments.analysis.simulation import Experiment


def run(
    folder: Path, command: str, *options: str, status: int | None = None
) -> CompletedProcess[str]:
    """Run `contstim` in a folder, with 200 columns; spaces separate the words of a command.

    If `status` is given, the command must exit with it.
    """
    arguments = [*command.split(), *options]
    out, err = io.StringIO(), io.StringIO()
    # As in a terminal: a shell's background jobs ignore SIGINT. The program changes the handler
    previous_handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    code = 0
    with (
        chdir(folder),
        mock.patch.dict(os.environ, {"COLUMNS": "200"}),
        mock.patch.object(sys, "argv", ["contstim", *arguments]),
        warnings.catch_warnings(),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        # Warnings are errors in tests; users see the warnings that Python shows by default
        warnings.simplefilter("default")
        for category in (DeprecationWarning, PendingDeprecationWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)
        try:
            main()
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
        finally:
            signal.signal(signal.SIGINT, previous_handler)
    assert status in (None, code), f"status {code}\n{out.getvalue()}{err.getvalue()}"
    return CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def invoke(command: str, *options: object) -> Result:
    """Run `contstim` in the current folder with Typer's runner and raise its exception."""
    environment = {"COLUMNS": os.environ.get("COLUMNS", "200")}
    arguments = [*command.split(), *map(str, options)]
    result = CliRunner().invoke(app, arguments, env=environment)
    if result.exception is not None and result.exit_code != 3:  # 3: some searches found nothing
        raise result.exception
    return result


def model_options(specifications: Iterable[str]) -> list[str]:
    """Return an option `--model` for each specification."""
    return [part for text in specifications for part in ("--model", text)]


def write_experiment(folder: Path, experiment: Experiment) -> None:
    """Write `trials.csv`, `responses.csv` and `scores.csv`."""
    write_table(folder / "trials.csv", trial_columns(experiment.trials))
    write_responses(folder / "responses.csv", experiment.responses)
    experiment.scores.write(folder / "scores.csv")


def succeed(folder: Path, command: str, *options: str) -> str:
    """Return the output of a command, which must exit with status 0."""
    return run(folder, command, *options, status=0).stdout
