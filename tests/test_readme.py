"""The README's studies, commands and Python run as printed, on the embedded English."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from contstim.english import generate
from contstim.items.stimuli import read_pairs
from contstim.models.families import Family
from contstim.testing.platform import read_csv_rows
from tests.cli.running import run as run_here
from tests.cli.running import succeed
from tests.pages.blocks import read_blocks

README = Path(__file__).parents[1] / "README.md"
DOCS = README.parent / "docs"
COMMANDS = DOCS / "commands.md"


def blocks(language: str, page: Path = README) -> list[str]:
    """The texts of a page's blocks in a language."""
    return [block.text for block in read_blocks(page) if block.language == language]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("readme")
    for name, sentences in (
        ("corpus.txt", generate(4_000, seed=0)),
        ("novels.txt", generate(4_000, seed=0)),
        ("news.txt", generate(4_000, seed=2)),
        ("more.txt", generate(4_000, seed=1)),
    ):
        text = "".join(f"{sentence.text}\n" for sentence in sentences)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def run_in_shell(commands: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program = f'contstim() {{ "{sys.executable}" -m contstim "$@"; }}\n'
    return subprocess.run(
        ["bash", "-euc", program + commands], cwd=folder, capture_output=True, text=True
    )


def type_here(commands: str, folder: Path) -> str:
    """What commands print that are typed in a folder, each run in this process.

    A shell runs those of the first study.
    """
    printed = ""
    for line in commands.splitlines():
        if words := shlex.split(line, comments=True):
            assert words[0] == "contstim"
            printed += succeed(folder, *words[1:])
    return printed


def n_rows(path: Path) -> int:
    return sum(1 for _ in read_csv_rows(path))


@pytest.mark.slow
def test_the_first_study_runs_as_printed(folder: Path) -> None:
    first, more = blocks("toml")
    assert len(first.splitlines()) <= 26
    (run,) = blocks("sh")
    (folder / "study.toml").write_text(first, encoding="utf-8")
    done = run_in_shell(run, folder)
    assert done.returncode == 0, done.stderr
    results = folder / "results"
    assert (n_rows(results / "pairs.csv"), n_rows(results / "selected.csv")) == (20, 30)
    # Pairs, triplets, random and catch trials
    assert n_rows(results / "trials.csv") == 20 + 30 + 10 * (3 + 4)
    assert (results / "export" / "jspsych" / "index.html").is_file()
    (folder / "study.toml").write_text(first + more, encoding="utf-8")
    again = run_here(folder, *shlex.split(run, comments=True)[1:])
    assert again.returncode == 0, again.stderr
    assert "3 stages done" in again.stderr  # scores of the trials, responses, analysis
    # Of what every study is warned of, and of nothing that is the study's own fault
    warned = re.findall(r"^warning: (.*)", done.stderr + again.stderr, re.MULTILINE)
    assert [
        re.match(r"the texts of .* placeholders|Artificial", each) is not None for each in warned
    ] == [True] * 2
    assert (results / "analysis" / "report.html").is_file()
    (study,) = blocks("python")
    first_pair = read_pairs(results / "pairs.csv")[0]
    shown = f"{first_pair.sentence_1} / {first_pair.sentence_2}"
    assert shown in run_python(study, folder)


@pytest.mark.slow
def test_the_page_of_the_first_study_ends_in_a_report(folder: Path) -> None:
    (study,), (_, run) = (blocks(kind, DOCS / "first-study.md") for kind in ("toml", "sh"))
    place = folder / "first"
    place.mkdir()
    for text in ("corpus.txt", "more.txt"):
        (place / text).write_bytes((folder / text).read_bytes())
    (place / "study.toml").write_text(study, encoding="utf-8")
    type_here(run, place)
    assert (place / "results" / "analysis" / "report.html").is_file()


@pytest.mark.slow
def test_the_practice_study_of_the_same_page_runs(tmp_path: Path) -> None:
    practice, _ = blocks("sh", DOCS / "first-study.md")
    done = run_in_shell(practice, tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "my-study" / "index.html").is_file()
    assert (tmp_path / "my-study" / "results" / "review" / "triplets.html").is_file()


def test_what_a_package_adds_for_its_own_family_is_a_family() -> None:
    (code,) = blocks("python", DOCS / "tutorials" / "own-model.md")
    names: dict[str, Any] = {}
    exec(code, names)
    assert isinstance(names["FAMILY"], Family)
    assert names["FAMILY"].name == "mine"


@pytest.mark.slow
def test_the_single_commands_do_the_same_step_by_step(folder: Path) -> None:
    commands = "\n".join(blocks("sh", COMMANDS))
    assert commands.count("contstim ") == 14
    assert "synthetic" in type_here(commands, folder)
    assert n_rows(folder / "pairs.csv") == n_rows(folder / "selected.csv") == 10
    assert n_rows(folder / "trials.csv") == 10 + 10 + 5 * (2 + 1)
    assert n_rows(folder / "triplets.csv") == 40
    assert "10 triplets" in (folder / "review.html").read_text()
    assert (folder / "results" / "report.html").is_file()


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
    text = (README.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    folders = re.findall(r"^\| `([\w/]+)/`", text, re.MULTILINE)
    assert len(folders) >= 10
    assert all((README.parent / folder).is_dir() for folder in folders)


def test_links_between_pages_lead_somewhere() -> None:
    pages = [README, README.parent / "CONTRIBUTING.md", *DOCS.rglob("*.md")]
    links = [
        (page, target)
        for page in pages
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    ]
    assert len(links) > 100
    assert [link for link in links if not (link[0].parent / link[1]).exists()] == []
