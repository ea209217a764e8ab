"""A model family of another package, found by its entry point and used on the command line."""

import csv
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from contstim.errors import ModelError
from contstim.models import families
from contstim.models.specifications import parse_model

PACKAGE = '''
"""A model behind a service that returns the number of letters, in nats."""

from http.client import HTTPConnection

import numpy as np

from contstim.models.base import Convention, LanguageModel
from contstim.models.families import Family

SUMMARY = "letters counted by a service"
FAMILY = Family("toyfamily", SUMMARY, "toyfamily:Letters", ("letters",), is_path=False)


class Letters(LanguageModel):
    def __init__(self, address, *, name):
        self.name, self.address = name, address

    @property
    def convention(self):
        return Convention("letters", "", False, f"letters of {self.address}")

    def log_probs(self, sentences):
        connection = HTTPConnection(self.address)
        connection.request("POST", "/", "\\n".join(s.text for s in sentences).encode())
        return np.array(connection.getresponse().read().split(), float)
'''

SERVICE = """
from http.server import BaseHTTPRequestHandler, HTTPServer
from subprocess import run
import sys, threading

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        body = " ".join(str(-len(line)) for line in text.splitlines()).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass

server = HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
command = [part.replace("PORT", str(server.server_port)) for part in sys.argv[1:]]
sys.exit(run([sys.executable, "-m", "contstim", *command]).returncode)
"""


def install_package(site: Path, package: str, code: str, entry: str) -> None:
    """Write the files that an installer writes, including the `.dist-info` folder."""
    (site / f"{package}.py").write_text(code, encoding="utf-8")
    info = site / f"{package}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[contstim.models]\n{entry}\n")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    install_package(folder, "toyfamily", PACKAGE, "toyfamily = toyfamily:FAMILY")
    (tmp_path / "service.py").write_text(SERVICE, encoding="utf-8")
    (tmp_path / "sentences.txt").write_text("The dog sleeps.\nShe reads a book.\n")
    return folder


def run_command(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(site.parent / "service.py"), *arguments],
        cwd=site.parent,
        env={**os.environ, "PYTHONPATH": f"{site}:{Path(__file__).parents[2]}", "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )


def test_commands_accept_the_family_of_a_package(site: Path) -> None:
    """Witness: the letters counted here."""
    model = "toy=toyfamily:127.0.0.1:PORT"
    completed = run_command(
        site, "score", "--model", model, "--sentences", "sentences.txt", "--out", "s.csv"
    )
    assert completed.returncode == 0, completed.stderr
    with (site.parent / "s.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["sentence", "toy"]
    assert [float(score) for _, score in rows[1:]] == [-len(s) for s, _ in rows[1:]]


@pytest.fixture
def importable_site(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of packages, on this process's import path."""
    monkeypatch.syspath_prepend(str(site))
    families._added_family.cache_clear()
    yield site
    families._added_family.cache_clear()
    for package in ("toyfamily", "other"):
        sys.modules.pop(package, None)


@pytest.mark.usefixtures("importable_site")
def test_wrong_rules_and_unknown_families_are_reported() -> None:
    assert parse_model("toyfamily:here@letters").family == "toyfamily"
    with pytest.raises(ModelError, match="they have letters"):
        parse_model("toyfamily:here@chain")
    with pytest.raises(ModelError, match=r"toyfamily: \(letters counted by a service\)"):
        parse_model("nonsense:here")


@pytest.mark.parametrize(
    ("code", "entry", "message"),
    [
        ("import nowhere", "broken = other:FAMILY", "'broken' of other (other:FAMILY) cannot be"),
        ("FAMILY = 3", "broken = other:FAMILY", "must be a Family of this name, got 3"),
        (
            "FAMILY = 3",
            "toyfamily = other:FAMILY",
            "Several packages provide the family 'toyfamily'",
        ),
    ],
)
def test_broken_packages_are_named(
    importable_site: Path, code: str, entry: str, message: str
) -> None:
    install_package(importable_site, "other", code, entry)
    with pytest.raises(ModelError, match=re.escape(message)):
        parse_model(f"{entry.split()[0]}:here")


def test_built_in_families_need_no_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Witness: a look-up of entry points that fails."""
    monkeypatch.setattr("contstim.files.plugins.entry_points", None)
    assert parse_model("hf:gpt2").family == "hf"
    with pytest.raises(TypeError):
        parse_model("nonsense:gpt2")
