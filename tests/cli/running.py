"""Commands as a user gives them, run by the program's entry point in this process.

Another process for each would take most of the time of the tests, to load the same libraries again.
What only a process of its own shows (signals, closed pipes, encodings) is in `test_output`, and
the first study of the README runs as typed in `test_readme`.
"""

import io
import os
import signal
import sys
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess
from unittest import mock

from typer.testing import CliRunner, Result

from contstim.cli import main
from contstim.cli.program import app


def run(
    folder: Path, command: str, *options: str, status: int | None = None
) -> CompletedProcess[str]:
    """Run `contstim` in a folder, on a terminal of 200 columns; spaces separate a command's words.

    If `status` is given, the command must end with it.
    """
    arguments = [*command.split(), *options]
    out, err = io.StringIO(), io.StringIO()
    # As in a terminal: a shell's background jobs ignore it. The program's own lasts until it ends
    interrupted = signal.signal(signal.SIGINT, signal.default_int_handler)
    code = 0
    with (
        chdir(folder),
        mock.patch.dict(os.environ, {"COLUMNS": "200"}),
        mock.patch.object(sys, "argv", ["contstim", *arguments]),
        warnings.catch_warnings(),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        # in the tests warnings are errors; users read those that Python shows by default
        warnings.simplefilter("default")
        for category in (DeprecationWarning, PendingDeprecationWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        finally:
            signal.signal(signal.SIGINT, interrupted)
    assert status in (None, code), f"status {code}\n{out.getvalue()}{err.getvalue()}"
    return CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def invoke(command: str, *options: object) -> Result:
    """Run `contstim` in this folder by Typer's runner; an error is raised as it is."""
    done = CliRunner().invoke(app, [*command.split(), *map(str, options)])
    if done.exception is not None and done.exit_code != 3:  # some searches found nothing
        raise done.exception
    return done


def succeed(folder: Path, command: str, *options: str) -> str:
    """Return what a command prints, which must end with status 0."""
    return run(folder, command, *options, status=0).stdout
