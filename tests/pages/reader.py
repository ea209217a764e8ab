"""Somebody who types what a page says, in a folder of their own."""

import json
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import run
from tests.interrupts import hear_interrupts
from tests.pages.blocks import Block, Command

# What a batch script finds on a cluster: a program of each name that writes down what it is asked.
# `contstim` is written down with its words, to be run in this process.
CLUSTER = """
source() { test -e "$1"; }
sleep() { :; }
scontrol() { echo node-1; echo node-2; }
srun() { printf '%s\\n' "$*" >> srun.txt; }
contstim() { "$PYTHON" -c 'import json, sys; print(json.dumps(sys.argv[1:]))' "$@" >> typed.txt; }
"""
JOB = {
    "SLURM_JOB_NODELIST": "node-[1-2]",
    "SLURM_JOB_ID": "4711",
    "SLURM_NNODES": "2",
    "SLURM_CPUS_PER_TASK": "16",
    "PATH": "/usr/bin:/bin",
    "PYTHON": sys.executable,
}


class Reader:
    """Runs the blocks of one page, one after the other."""

    def __init__(self, folder: Path, instead: Mapping[str, str]) -> None:
        self.folder = folder  # where to type
        # What is typed in place of something that this machine lacks, or that takes long
        self.instead = instead
        self.names: dict[str, Any] = {}  # of the Python of the page
        self.others = ExitStack()  # servers of others, which end with the page
        self._server: subprocess.Popen[str] | None = None
        self.port = "8000"  # at which a server listens here that listens at 8000 on the page

    def change(self, text: str) -> str:
        """The text as it is typed here."""
        for page, here in self.instead.items():
            text = text.replace(page, here)
        return text.replace(":8000", f":{self.port}")

    def type(self, command: Command) -> None:
        """Run a command; what the page says that it prints must be printed."""
        printed = ""
        for part in self.change(command.text).split(" && "):
            if part.startswith("cd "):
                self.folder /= part.removeprefix("cd ")
            elif re.match(r"contstim collect(?!.*--(?:links|withdraw))|contstim.* --serve$", part):
                printed += self.serve(shlex.split(part)[1:])
            elif part.startswith("contstim "):
                printed += self._run(shlex.split(part)[1:], command.block)
            else:
                done = subprocess.run(
                    ["bash", "-euc", part], cwd=self.folder, capture_output=True, text=True
                )
                assert done.returncode == 0, f"{command.block}: {part}\n{done.stdout}{done.stderr}"
                printed += done.stdout
        for line in command.output:
            assert self.change(line) in printed, f"{command.block}: {command.text}\n{printed}"

    def _run(self, words: list[str], block: Block) -> str:
        """Run the program in this process; a shell would replace `*.csv` by the files."""
        found = (sorted(self.files(word)) if "*" in word else [word] for word in words)
        words = [name for names in found for name in names]
        done = run(self.folder, *words)
        # 3: the study is complete but for searches that found nothing, which the pages explain
        searches = words[0] in ("synthesize", "triplets", "run")
        assert done.returncode in ((0, 3) if searches else (0,)), (
            f"{block}: contstim {shlex.join(words)}\n{done.stdout}{done.stderr}"
        )
        return done.stdout

    def files(self, pattern: str) -> list[str]:
        """The files of a pattern, seen from the folder."""
        return [path.relative_to(self.folder).as_posix() for path in self.folder.glob(pattern)]

    def serve(self, words: list[str]) -> str:
        """Start a server as in a second terminal, in place of the one before; its address."""
        self.close()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = str(free.getsockname()[1])
        words = [word for word in words if word not in ("--port", "8000")]
        with (self.folder / "server.txt").open("w") as log:
            self._server = subprocess.Popen(
                [sys.executable, "-m", "contstim", *words, "--port", self.port],
                cwd=self.folder,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                preexec_fn=hear_interrupts,
            )
        assert self._server.stdout is not None
        address = self._server.stdout.readline()
        assert address.startswith("http://"), (self.folder / "server.txt").read_text()
        return address

    def close(self) -> None:
        """Stop the server with Ctrl-C, if there is one."""
        if self._server is None:
            return
        self._server.send_signal(signal.SIGINT)
        self._server.communicate(timeout=60)
        self._server = None

    def execute(self, block: Block) -> None:
        """Run Python, with the names of the page's blocks before."""
        code = compile("\n" * block.line + self.change(block.text), block.page, "exec")
        with chdir(self.folder):
            exec(code, self.names)

    def execute_r(self, block: Block) -> None:
        """Run a program of R."""
        program = shutil.which("Rscript")
        if program is None:
            pytest.skip("R is not installed")
        for package in re.findall(r"library\((\w+)\)", block.text):
            asked = [program, "-e", f"library({package})"]
            if subprocess.run(asked, capture_output=True, check=False).returncode:
                pytest.skip(f"R has no package {package}")
        (self.folder / "block.R").write_text(block.text, encoding="utf-8")
        done = subprocess.run(
            [program, "block.R"], cwd=self.folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"

    def submit(self, block: Block) -> None:
        """Run a batch script as a cluster would, and then what it asks of contstim."""
        (self.folder / "venv" / "bin").mkdir(parents=True, exist_ok=True)
        (self.folder / "venv" / "bin" / "activate").touch()
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", CLUSTER + block.text],
            cwd=self.folder,
            env=JOB,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{block}\n{done.stderr}"
        typed = (self.folder / "typed.txt").read_text().splitlines()
        (self.folder / "typed.txt").unlink()
        for line in typed:
            self._run(shlex.split(self.change(shlex.join(json.loads(line)))), block)


@contextmanager
def reading(folder: Path, instead: Mapping[str, str]) -> Iterator[Reader]:
    """A reader whose servers end with the page."""
    reader = Reader(folder, instead)
    try:
        yield reader
    finally:
        reader.close()
        reader.others.close()
