"""Tables on the terminal, messages about long work, and how the program ends."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from contstim.cli import output as progress_module
from contstim.cli.output import ProgressBars


def wait_for(captured: pytest.CaptureFixture[str], text: str) -> str:
    """What was printed, as soon as it holds a text."""
    said = ""
    for _ in range(500):
        said += captured.readouterr().err
        if text in said:
            return said
        time.sleep(0.02)
    raise AssertionError(f"{text!r} is not in {said[-300:]!r}")


def test_time_left(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand: 600 of 1,000 were there before; 100 took 60 seconds, so that 300 take 180."""
    now = [0.0]
    monkeypatch.setattr(progress_module, "_SECONDS_PER_LINE", 0.02)
    monkeypatch.setattr(progress_module, "perf_counter", lambda: now[0])
    with ProgressBars() as reporter:
        reporter.progress("triplets", 600, 1000)
        now[0] = 60.0
        reporter.progress("triplets", 700, 1000)
        wait_for(capsys, "triplets, 700 of 1,000 (70 %), 1 min, about 3.0 min left\n")


def test_at_most_a_line_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBars() as reporter:
        for done in range(9):
            reporter.progress("work", done, 9)
    assert capsys.readouterr().err == ""
    assert progress_module._SECONDS_PER_LINE == 60


PROGRAM = [sys.executable, "-m", "contstim"]
ENVIRONMENT = {**os.environ, "COLUMNS": "200"}


def run_program(*arguments: str | bytes, **streams: object) -> subprocess.CompletedProcess[str]:
    given: dict[str, object] = {"capture_output": True, **streams}
    if "stdout" in streams:
        given |= {"capture_output": False, "stderr": subprocess.PIPE}
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        [*PROGRAM, *arguments], text=True, env=ENVIRONMENT, timeout=120, **given
    )


@pytest.mark.parametrize("arguments", [["models"], ["--help"], ["--version"]])
def test_a_full_standard_output_is_a_named_error(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = run_program(*arguments, stdout=full)
    assert done.returncode == 2
    assert done.stderr == (
        "error: Cannot read or write standard input or output: No space left on device.\n"
    )


def test_a_reader_who_has_read_enough_ends_the_program_quietly() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        done = run_program("models", stdout=pipe)
    assert done.returncode == 1
    assert done.stderr == ""


def test_an_argument_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    done = run_program(
        "vocabulary", "--text", b"caf\xe9.txt", "--out", str(tmp_path / "vocabulary.txt")
    )
    assert done.returncode == 2
    assert done.stderr.startswith(r"error: The argument 'caf\udce9.txt' is not UTF-8.")
    assert list(tmp_path.iterdir()) == []


def test_what_standard_output_cannot_show_is_a_named_error() -> None:
    shown = {**ENVIRONMENT, "PYTHONIOENCODING": "ascii:strict", "PYTHONUTF8": "0"}
    code = "import sys, contstim.cli.program as p; p.app = lambda: print('é'); "
    code += "import contstim.cli; contstim.cli.main()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=shown, timeout=120
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: Standard output cannot show")


INTERRUPTED = """
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
def test_an_interrupt_is_quiet_from_the_first_moment(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=120,
    )
    assert done.returncode == 130
    assert done.stderr == ""


HALF_A_CLASS = """
import os, signal

class Attribute:
    def __set_name__(self, owner, name):
        os.kill(os.getpid(), signal.SIGINT)

class Owner:
    attribute = Attribute()
"""


def test_an_interrupt_while_a_module_defines_its_classes_waits_for_it(tmp_path: Path) -> None:
    """Python itself would make a RuntimeError of it, and the command a traceback."""
    (tmp_path / "half_a_class.py").write_text(HALF_A_CLASS)
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
    environment = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=50
    )
    assert done.returncode == 130
    assert done.stdout == "imported Owner\n"
    assert done.stderr == ""
