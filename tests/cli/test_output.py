"""Progress on the terminal, standard streams, and how the program exits."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import pytest

from contstim.cli import output as progress_module
from contstim.cli.output import ProgressBars


def wait_for(captured: pytest.CaptureFixture[str], text: str) -> str:
    """Wait until the printed text contains `text` and return it."""
    printed = ""
    for _ in range(500):
        printed += captured.readouterr().err
        if text in printed:
            return printed
        time.sleep(0.02)
    raise AssertionError(f"{text!r} is not in {printed[-300:]!r}")


def test_progress_shows_the_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand: 600 of 1,000 were stored; 100 took 60 seconds, so that 300 take 180."""
    seconds = [0.0]
    monkeypatch.setattr(progress_module, "_SECONDS_PER_LINE", 0.02)
    monkeypatch.setattr(progress_module, "perf_counter", lambda: seconds[0])
    with ProgressBars() as reporter:
        reporter.progress("triplets", 600, 1000)
        seconds[0] = 60.0
        reporter.progress("triplets", 700, 1000)
        wait_for(capsys, "triplets, 700 of 1,000 (70 %), 1 min, about 3.0 min left\n")


def test_progress_prints_at_most_one_line_per_minute(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBars() as reporter:
        for n_done in range(9):
            reporter.progress("work", n_done, 9)
    assert capsys.readouterr().err == ""
    assert progress_module._SECONDS_PER_LINE == 60


PROGRAM = ("-m", "contstim")


def run_python(
    *arguments: str | bytes, stdout: int | IO[str] = subprocess.PIPE, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "200", **environment},
        timeout=120,
    )


@pytest.mark.parametrize("arguments", [["models"], ["--help"], ["--version"]])
def test_full_standard_output_is_an_error(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as device:
        result = run_python(*PROGRAM, *arguments, stdout=device)
    message = "Cannot read or write standard input or output: No space left on device."
    assert (result.returncode, result.stderr) == (2, f"error: {message}\n")


def test_closed_pipe_ends_the_program_quietly() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as pipe:
        result = run_python(*PROGRAM, "models", stdout=pipe)
    assert (result.returncode, result.stderr) == (1, "")


def test_argument_that_is_not_utf_8_is_an_error(tmp_path: Path) -> None:
    options = ("--text", b"caf\xe9.txt", "--out", str(tmp_path / "vocabulary.txt"))
    result = run_python(*PROGRAM, "vocabulary", *options)
    assert result.returncode == 2
    assert result.stderr.startswith(r"error: The argument 'caf\udce9.txt' is not UTF-8.")
    assert list(tmp_path.iterdir()) == []


def test_text_that_cannot_be_encoded_is_an_error() -> None:
    code = "import sys, contstim.cli.program as p; p.app = lambda: print('é'); "
    code += "import contstim.cli; contstim.cli.main()"
    result = run_python("-c", code, PYTHONIOENCODING="ascii:strict", PYTHONUTF8="0")
    assert result.returncode == 2
    assert result.stderr.startswith("error: Standard output cannot show")


INTERRUPT_DURING_IMPORT = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
import contstim.cli

class Interrupting:
    '''An interrupt while a module is searched for, as by Ctrl-C in the first moments.'''

    def find_spec(self, name, *_):
        if name == MODULE:
            os.kill(os.getpid(), signal.SIGINT)

MODULE, sys.argv = sys.argv[1], ["contstim", "models"]
sys.meta_path.insert(0, Interrupting())
contstim.cli.main()
"""


@pytest.mark.parametrize("module", ["contstim.cli.output", "typer", "contstim.models.families"])
def test_interrupt_during_imports_is_quiet(module: str) -> None:
    result = run_python("-c", INTERRUPT_DURING_IMPORT, module)
    assert (result.returncode, result.stderr) == (130, "")


INTERRUPT_IN_CLASS_BODY = """
import os, signal

class Attribute:
    def __set_name__(self, owner, name):
        os.kill(os.getpid(), signal.SIGINT)

class Owner:
    attribute = Attribute()
"""


def test_interrupt_waits_until_a_module_is_imported(tmp_path: Path) -> None:
    """Without this, Python raises a RuntimeError and the command prints a traceback."""
    (tmp_path / "half_a_class.py").write_text(INTERRUPT_IN_CLASS_BODY)
    code = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import contstim.cli
import contstim.cli.program

def app():
    import half_a_class
    print("imported", half_a_class.Owner.__name__, flush=True)
    time.sleep(60)

contstim.cli.program.app = app
contstim.cli.main()
"""
    result = run_python("-c", code, PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path]))
    assert (result.returncode, result.stdout, result.stderr) == (130, "imported Owner\n", "")
