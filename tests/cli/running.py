"""Commands as a user gives them, run by the program's entry point in this process.

Another process for each would take most of the time of the tests, to load the same libraries again.
What only a process of its own shows (signals, closed pipes, encodings) is in `test_endings`, and
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

from contstim.cli import main


def run(folder: Path, *arguments: str) -> CompletedProcess[str]:
    """Run `contstim` with arguments in a folder, on a terminal of 200 columns."""
    out, err = io.StringIO(), io.StringIO()
    # As in a terminal: a shell's background jobs ignore it. The program's own lasts until it ends
    interrupted = signal.signal(signal.SIGINT, signal.default_int_handler)
    status = 0
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
            status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        finally:
            signal.signal(signal.SIGINT, interrupted)
    return CompletedProcess(arguments, status, out.getvalue(), err.getvalue())


def succeed(folder: Path, *arguments: str) -> str:
    """What a command prints that has to end well."""
    done = run(folder, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout
