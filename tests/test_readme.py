"""The README and its notebooks, run as printed."""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from contstim.english import generate
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Pair, Triplet, read_pairs
from contstim.models.families import Family
from contstim.reporting.report import Paragraph, Report
from contstim.testing.platform import read_csv_rows
from contstim.words.sentence import Sentence
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
    python = subprocess.run(
        [sys.executable, "-c", study], cwd=folder, capture_output=True, text=True
    )
    assert shown in python.stdout, python.stderr


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


def test_every_other_command_of_the_readme_is_one_that_ci_runs() -> None:
    """`make demo` and the installation are run by the set-up of the tests themselves."""
    lines = re.findall(r"^\$ (.*?)(?:\s+#.*)?$", "\n".join(blocks("console")), re.MULTILINE)
    assert lines == [
        "contstim diff hf:gpt2 hf:distilgpt2",  # below
        "make demo",
        "make test",
        "pip install -c constraints.txt .",
        "contstim --help",
    ]


@pytest.mark.slow
def test_the_first_command_of_the_readme_runs_with_models_of_this_machine(
    trained: Path, tiny_checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    command = next(line for line in blocks("console")[0].splitlines() if "diff" in line)
    for name, model in (
        ("hf:gpt2", f"one=kenlm:{trained / '3gram.arpa'}"),
        ("hf:distilgpt2", f"two=hf:{tiny_checkpoint('gpt2')}"),
    ):
        command = command.replace(name, model)
    shown = type_here(f"{command.removeprefix('$ ')} --per-pair 2", tmp_path)
    assert "They part " in shown
    assert n_rows(tmp_path / "diff.csv") == 4
    assert (tmp_path / "diff.html").is_file()


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


A, B, C = (Sentence.parse(text) for text in ("We read books", "We eat books", "They read <it>"))


def test_a_triplet_is_three_rows_with_its_changed_words_marked_and_escaped() -> None:
    triplet = Triplet("t", "a", "b", A, B, C, -1, -2, -3, -4, -5, -6, 0)
    page = triplet._repr_html_()
    assert re.findall(r"<mark>(.*?)</mark>", page) == ["eat", "They", "&lt;it&gt;"]
    assert re.findall(r"<td>(-\d\.00)</td>", page) == [f"-{n}.00" for n in range(1, 7)]
    assert "a rejects" in page


def test_a_pair_is_two_rows_with_ranks_and_escaped() -> None:
    page = Pair("p", "a", "<b>", A, C, 0, 1, 0.25, 0.5, 0.75, 1.0)._repr_html_()
    assert re.findall(r"<td>([\d.]+)</td>", page) == ["0.25", "0.50", "0.75", "1.00"]
    assert "They read &lt;it&gt;" in page
    assert "rank under &lt;b&gt;" in page
    # <b> prefers the second sentence as well: neither is said to reject one
    assert "rejects" not in page
    disagree = Pair("p", "a", "<b>", A, C, 0, 1, 0.25, 0.75, 0.75, 0.25)._repr_html_()
    assert "a rejects" in disagree


def test_scores_are_shown_as_pandas_shows_their_table() -> None:
    scores = ScoreTable((A, B), ("m",), np.array([[-1.0], [-2.0]]))
    assert scores._repr_html_() == scores.to_frame()._repr_html_()


def test_figures_and_progress_are_seen_in_a_running_notebook() -> None:
    """Witness: a kernel of Jupyter, and the kinds of output that it sends to the page.

    Without widgets, which not every notebook has, and with them.
    """
    pytest.importorskip("ipywidgets")
    show_bars = "with contstim.ProgressBars() as bars:\n    bars.progress('scores', 1, 2)"
    cells = [
        "import contstim, sys, numpy as np\n"
        "from contstim.testing import ToyModel\n"
        "sentences = [contstim.Sentence.parse(t) for t in ('We read', 'They read books')]\n"
        "scores = contstim.score_sentences([ToyModel()], sentences)",
        f"sys.modules['ipywidgets'] = None\n{show_bars}",
        f"del sys.modules['ipywidgets']\n{show_bars}",
        "table = contstim.ScoreTable(scores.sentences, ('a', 'b'), np.tile(scores.log_probs, 2))\n"
        "first, *_ = contstim.plot.ranks(table)\n"
        "first.set_title('changed');",
    ]
    book = new_notebook(cells=[new_code_cell(cell) for cell in cells])  # type: ignore[no-untyped-call]
    NotebookClient(book, kernel_name="python3", timeout=120).execute()
    _, plain, bars, figure = (
        [kind for o in c.outputs for kind in o.get("data", ())] for c in book.cells
    )
    assert "application/vnd.jupyter.widget-view+json" not in plain
    assert "application/vnd.jupyter.widget-view+json" in bars
    assert "image/png" in figure


def test_a_report_is_its_own_page_in_a_frame() -> None:
    """Witness: the page, escaped once, so that nothing of it ends the attribute."""
    shown = Report('A "title"', [Paragraph("x < y")])._repr_html_()
    assert re.fullmatch(r'<iframe title="[^"]*" srcdoc="[^"]*" style="[^"]*"></iframe>', shown)
    assert "x &amp;lt; y" in shown
