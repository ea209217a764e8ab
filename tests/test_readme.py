"""The README's commands and its Python run as printed, on the embedded English."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from contstim.english import generate

README = Path(__file__).parents[1] / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("readme")
    for name, sentences in (
        ("corpus.txt", generate(4_000, seed=0)),
        ("more.txt", generate(1_000, seed=1)),
    ):
        text = "".join(f"{sentence.text}\n" for sentence in sentences)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_the_first_study_runs_as_printed(folder: Path) -> None:
    commands = "\n".join(blocks("sh"))
    assert commands.count("contstim ") == 15
    program = f'contstim() {{ "{sys.executable}" -m contstim "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-euc", program + commands], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "synthetic" in done.stdout
    assert len((folder / "pairs.csv").read_text().splitlines()) == 11
    trials = (folder / "trials.csv").read_text().splitlines()
    assert len(trials) == 1 + 10 + 3 * 10 + 10 * (2 + 1)  # pairs, triplets, random and catch
    assert len((folder / "triplets.csv").read_text().splitlines()) == 41
    assert len((folder / "selected.csv").read_text().splitlines()) == 11
    assert "10 triplets" in (folder / "review.html").read_text()
    assert (folder / "results" / "report.html").is_file()
    study, model, _family = (run_python(code, folder) for code in blocks("python"))
    assert "(-" in study
    assert model.endswith(".\n")


def run_python(code: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_other_command_of_the_readme_is_one_that_ci_runs() -> None:
    """`make demo` and the installation are run by the set-up of the tests themselves."""
    lines = re.findall(r"^\$ (.*?)(?:\s+#.*)?$", "\n".join(blocks("console")), re.MULTILINE)
    assert lines == [
        "make demo",
        "make test",
        "pip install -c constraints.txt .",
        "contstim --help",
    ]


def test_the_folders_of_the_map_are_there() -> None:
    text = README.read_text(encoding="utf-8")
    for folder in re.findall(r"^\| `([\w/]+)/`", text, re.MULTILINE):
        assert (README.parent / folder).is_dir()


@pytest.mark.parametrize("page", [README, *(README.parent / "docs").glob("*.md")], ids=str)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
