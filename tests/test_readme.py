"""Commands and code of the README and the tutorials, run as printed; displays in notebooks."""

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


def read_texts(language: str, page: Path = README) -> list[str]:
    """Return the texts of the code blocks of a page in a language."""
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


def run_commands(commands: str, folder: Path) -> str:
    """Run commands of contstim in this process and return their output."""
    printed = ""
    for line in commands.splitlines():
        if words := shlex.split(line, comments=True):
            assert words[0] == "contstim"
            printed += succeed(folder, *words[1:])
    return printed


def count_rows(path: Path) -> int:
    return sum(1 for _ in read_csv_rows(path))


@pytest.mark.slow
def test_the_first_study_of_the_readme_runs(folder: Path) -> None:
    first_file, added_text = read_texts("toml")
    assert len(first_file.splitlines()) <= 26
    (command,) = read_texts("sh")
    (folder / "study.toml").write_text(first_file, encoding="utf-8")
    first_run = run_in_shell(command, folder)
    assert first_run.returncode == 0, first_run.stderr
    results = folder / "results"
    assert (count_rows(results / "pairs.csv"), count_rows(results / "selected.csv")) == (20, 30)
    # Pairs, triplets, random and catch trials
    assert count_rows(results / "trials.csv") == 20 + 30 + 10 * (3 + 4)
    assert (results / "export" / "jspsych" / "index.html").is_file()
    (folder / "study.toml").write_text(first_file + added_text, encoding="utf-8")
    second_run = run_here(folder, *shlex.split(command, comments=True)[1:])
    assert second_run.returncode == 0, second_run.stderr
    assert "3 stages done" in second_run.stderr  # scores of the trials, responses, analysis
    # Only the warnings that every study gets
    warnings = re.findall(r"^warning: (.*)", first_run.stderr + second_run.stderr, re.MULTILINE)
    assert [
        re.match(r"the texts of .* placeholders|Artificial", warning) is not None
        for warning in warnings
    ] == [True] * 2
    assert (results / "analysis" / "report.html").is_file()
    (code,) = read_texts("python")
    first_pair = read_pairs(results / "pairs.csv")[0]
    first_line = f"{first_pair.sentence_1} / {first_pair.sentence_2}"
    run = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert first_line in run.stdout, run.stderr


@pytest.mark.slow
def test_the_tutorial_study_writes_a_report(folder: Path) -> None:
    (study,), (_, commands) = (read_texts(kind, DOCS / "first-study.md") for kind in ("toml", "sh"))
    study_folder = folder / "first"
    study_folder.mkdir()
    for name in ("corpus.txt", "more.txt"):
        (study_folder / name).write_bytes((folder / name).read_bytes())
    (study_folder / "study.toml").write_text(study, encoding="utf-8")
    run_commands(commands, study_folder)
    assert (study_folder / "results" / "analysis" / "report.html").is_file()


@pytest.mark.slow
def test_the_practice_study_of_the_tutorial_runs(tmp_path: Path) -> None:
    commands, _ = read_texts("sh", DOCS / "first-study.md")
    result = run_in_shell(commands, tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "my-study" / "index.html").is_file()
    assert (tmp_path / "my-study" / "results" / "review" / "triplets.html").is_file()


def test_the_tutorial_on_own_models_defines_a_family() -> None:
    (code,) = read_texts("python", DOCS / "tutorials" / "own-model.md")
    names: dict[str, Any] = {}
    exec(code, names)
    assert isinstance(names["FAMILY"], Family)
    assert names["FAMILY"].name == "mine"


@pytest.mark.slow
def test_the_single_commands_run_step_by_step(folder: Path) -> None:
    commands = "\n".join(read_texts("sh", COMMANDS))
    assert commands.count("contstim ") == 14
    assert "synthetic" in run_commands(commands, folder)
    assert count_rows(folder / "pairs.csv") == count_rows(folder / "selected.csv") == 10
    assert count_rows(folder / "trials.csv") == 10 + 10 + 5 * (2 + 1)
    assert count_rows(folder / "triplets.csv") == 40
    assert "10 triplets" in (folder / "review.html").read_text()
    assert (folder / "results" / "report.html").is_file()


def test_all_other_commands_of_the_readme_run_in_ci() -> None:
    """The set-up of the tests runs `make demo` and the installation."""
    lines = re.findall(r"^\$ (.*?)(?:\s+#.*)?$", "\n".join(read_texts("console")), re.MULTILINE)
    assert lines == [
        "contstim diff hf:gpt2 hf:distilgpt2",  # tested below
        "make demo",
        "make test",
        "pip install -c constraints.txt .",
        "contstim --help",
    ]


@pytest.mark.slow
def test_the_first_command_of_the_readme_runs(
    trained: Path, tiny_checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    command = next(line for line in read_texts("console")[0].splitlines() if "diff" in line)
    for old_model, new_model in (
        ("hf:gpt2", f"one=kenlm:{trained / '3gram.arpa'}"),
        ("hf:distilgpt2", f"two=hf:{tiny_checkpoint('gpt2')}"),
    ):
        command = command.replace(old_model, new_model)
    output = run_commands(f"{command.removeprefix('$ ')} --per-pair 2", tmp_path)
    assert "They part " in output
    assert count_rows(tmp_path / "diff.csv") == 4
    assert (tmp_path / "diff.html").is_file()


def test_folders_listed_for_contributors_exist() -> None:
    text = (README.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    folders = re.findall(r"^\| `([\w/]+)/`", text, re.MULTILINE)
    assert len(folders) >= 10
    assert all((README.parent / folder).is_dir() for folder in folders)


def test_link_targets_of_pages_exist() -> None:
    pages = [README, README.parent / "CONTRIBUTING.md", *DOCS.rglob("*.md")]
    links = [
        (page, target)
        for page in pages
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    ]
    assert len(links) > 100
    assert [link for link in links if not (link[0].parent / link[1]).exists()] == []


A, B, C = (Sentence.parse(text) for text in ("We read books", "We eat books", "They read <it>"))


def test_a_notebook_shows_changed_words_of_a_triplet() -> None:
    triplet = Triplet("t", "a", "b", A, B, C, -1, -2, -3, -4, -5, -6, 0)
    page = triplet._repr_html_()
    assert re.findall(r"<mark>(.*?)</mark>", page) == ["eat", "They", "&lt;it&gt;"]
    assert re.findall(r"<td>(-\d\.00)</td>", page) == [f"-{n}.00" for n in range(1, 7)]
    assert "a rejects" in page


def test_a_notebook_shows_the_ranks_of_a_pair() -> None:
    page = Pair("p", "a", "<b>", A, C, 0, 1, 0.25, 0.5, 0.75, 1.0)._repr_html_()
    assert re.findall(r"<td>([\d.]+)</td>", page) == ["0.25", "0.50", "0.75", "1.00"]
    assert "They read &lt;it&gt;" in page
    assert "rank under &lt;b&gt;" in page
    # <b> also prefers the second sentence, so neither model rejects one
    assert "rejects" not in page
    second_page = Pair("p", "a", "<b>", A, C, 0, 1, 0.25, 0.75, 0.75, 0.25)._repr_html_()
    assert "a rejects" in second_page


def test_a_notebook_shows_scores_as_a_pandas_table() -> None:
    scores = ScoreTable((A, B), ("m",), np.array([[-1.0], [-2.0]]))
    assert scores._repr_html_() == scores.to_frame()._repr_html_()


def test_a_notebook_shows_figures_and_progress() -> None:
    """Witness: the output types of a Jupyter kernel, without and with widgets."""
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
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in cells])  # type: ignore[no-untyped-call]
    NotebookClient(notebook, kernel_name="python3", timeout=120).execute()
    _, without_widgets, with_widgets, figure = (
        [kind for o in c.outputs for kind in o.get("data", ())] for c in notebook.cells
    )
    assert "application/vnd.jupyter.widget-view+json" not in without_widgets
    assert "application/vnd.jupyter.widget-view+json" in with_widgets
    assert "image/png" in figure


def test_a_notebook_shows_a_report_in_a_frame() -> None:
    """The page is escaped once, so that its content cannot end the attribute."""
    html = Report('A "title"', [Paragraph("x < y")])._repr_html_()
    assert re.fullmatch(r'<iframe title="[^"]*" srcdoc="[^"]*" style="[^"]*"></iframe>', html)
    assert "x &amp;lt; y" in html
