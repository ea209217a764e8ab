"""A simulated reader, who types the commands of a page in a folder."""

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

# Shell functions in place of a cluster's programs, which record their arguments.
# Arguments of `contstim` are recorded in JSON, so that this process can run the commands.
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
    """Runs the blocks of a page, one after the other."""

    def __init__(self, folder: Path, replacements: Mapping[str, str]) -> None:
        self.folder = folder  # current folder
        # Texts to replace, because this machine lacks a resource or they take long
        self.replacements = replacements
        self.names: dict[str, Any] = {}  # of the page's Python code
        self.other_servers = ExitStack()  # further servers, which end with the page
        self._server: subprocess.Popen[str] | None = None
        self.port = "8000"  # actual port of servers that use 8000 on the page

    def adapt(self, text: str) -> str:
        """Replace texts and ports of a page."""
        for original, replacement in self.replacements.items():
            text = text.replace(original, replacement)
        return text.replace(":8000", f":{self.port}")

    def type(self, command: Command) -> None:
        """Run a command and check that it prints the lines on the page."""
        printed = ""
        for part in self.adapt(command.text).split(" && "):
            if part.startswith("cd "):
                self.folder /= part.removeprefix("cd ")
            elif re.match(r"contstim collect(?!.*--(?:links|withdraw))|contstim.* --serve$", part):
                printed += self.serve(shlex.split(part)[1:])
            elif part.startswith("contstim "):
                printed += self._run(shlex.split(part)[1:], command.block)
            else:
                process = subprocess.run(
                    ["bash", "-euc", part], cwd=self.folder, capture_output=True, text=True
                )
                assert process.returncode == 0, (
                    f"{command.block}: {part}\n{process.stdout}{process.stderr}"
                )
                printed += process.stdout
        for line in command.output:
            assert self.adapt(line) in printed, f"{command.block}: {command.text}\n{printed}"

    def _run(self, words: list[str], block: Block) -> str:
        """Run contstim in this process; expand `*.csv`, as a shell would."""
        files = (sorted(self.match_files(word)) if "*" in word else [word] for word in words)
        words = [name for names in files for name in names]
        process = run(self.folder, *words)
        # 3: the study is complete except for unsuccessful searches, which the pages explain
        searches = words[0] in ("synthesize", "triplets", "run")
        assert process.returncode in ((0, 3) if searches else (0,)), (
            f"{block}: contstim {shlex.join(words)}\n{process.stdout}{process.stderr}"
        )
        return process.stdout

    def match_files(self, pattern: str) -> list[str]:
        """List the files that match a pattern, relative to the folder."""
        return [path.relative_to(self.folder).as_posix() for path in self.folder.glob(pattern)]

    def serve(self, words: list[str]) -> str:
        """Start a server in place of the previous one, in a second terminal; return its address."""
        self.stop_server()
        with socket.create_server(("127.0.0.1", 0)) as free_socket:
            self.port = str(free_socket.getsockname()[1])
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

    def stop_server(self) -> None:
        """Stop the server with Ctrl-C, if it runs."""
        if self._server is None:
            return
        self._server.send_signal(signal.SIGINT)
        self._server.communicate(timeout=60)
        self._server = None

    def execute(self, block: Block) -> None:
        """Run Python code with the names defined by earlier blocks of the page."""
        code = compile("\n" * block.line + self.adapt(block.text), block.page, "exec")
        with chdir(self.folder):
            exec(code, self.names)

    def execute_r(self, block: Block) -> None:
        """Run an R script."""
        program = shutil.which("Rscript")
        if program is None:
            pytest.skip("R is not installed")
        for package in re.findall(r"library\((\w+)\)", block.text):
            arguments = [program, "-e", f"library({package})"]
            if subprocess.run(arguments, capture_output=True, check=False).returncode:
                pytest.skip(f"R has no package {package}")
        (self.folder / "block.R").write_text(block.text, encoding="utf-8")
        process = subprocess.run(
            [program, "block.R"], cwd=self.folder, capture_output=True, text=True, check=False
        )
        assert process.returncode == 0, f"{block}\n{process.stdout}{process.stderr}"

    def submit(self, block: Block) -> None:
        """Run a batch script with a cluster's programs, and then its contstim commands."""
        (self.folder / "venv" / "bin").mkdir(parents=True, exist_ok=True)
        (self.folder / "venv" / "bin" / "activate").touch()
        process = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", CLUSTER + block.text],
            cwd=self.folder,
            env=JOB,
            capture_output=True,
            text=True,
        )
        assert process.returncode == 0, f"{block}\n{process.stderr}"
        lines = (self.folder / "typed.txt").read_text().splitlines()
        (self.folder / "typed.txt").unlink()
        for line in lines:
            self._run(shlex.split(self.adapt(shlex.join(json.loads(line)))), block)


@contextmanager
def reading(folder: Path, replacements: Mapping[str, str]) -> Iterator[Reader]:
    """Yield a reader whose servers stop at the end of the page."""
    reader = Reader(folder, replacements)
    try:
        yield reader
    finally:
        reader.stop_server()
        reader.other_servers.close()
