"""`contstim compare` as users type it, and the commands that it prints."""

import shlex
from pathlib import Path

import pytest

from contstim.english import generate
from contstim.errors import InfeasibleError, InputError
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import read_pairs
from tests.cli.running import invoke, model_options

pytestmark = pytest.mark.usefixtures("unsaved_figures")


@pytest.fixture
def natural(tmp_path: Path) -> Path:
    path = tmp_path / "natural.txt"
    path.write_text("".join(f"{sentence.text}\n" for sentence in generate(60, seed=2, words=5)))
    return path


def test_printed_commands_run(
    trained: Path, natural: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """External witness: the commands themselves, run as printed."""
    monkeypatch.chdir(tmp_path)
    models = [f"kenlm:{trained / name}" for name in ("2gram.arpa", "3gram.arpa")]
    options = (*model_options(models), "--sentences", natural)
    output = invoke("compare --out compared --quiet", *options).stdout
    lines = [line for line in output.splitlines() if line.startswith("  contstim ")]
    printed_commands = [*map(shlex.split, lines)]
    assert [words[1] for words in printed_commands] == ["select", "diff"]
    assert printed_commands[1][2:] == models
    invoke(*printed_commands[0][1:], "--quiet")
    # All pairs on which the models disagree are selected: one more pair is infeasible
    n_pairs = len(read_pairs(tmp_path / "compared" / "pairs.csv"))
    more = {str(n_pairs): str(n_pairs + 1)}
    changed = [more.get(word, word) for word in printed_commands[0][1:]]
    with pytest.raises(InfeasibleError, match=f"at most {n_pairs} pairs can be selected"):
        invoke(*changed, "--quiet")


def test_tables_of_scores_suffice(tmp_path: Path) -> None:
    paths = [tmp_path / "one.csv", tmp_path / "two.csv"]
    for number, path in enumerate(paths):
        rows = [f'"S {row}.",{-row * (-1) ** number}' for row in range(1, 6)]
        path.write_text("\n".join(["sentence,gpt", *rows]))
    files = ["--scores", str(paths[0]), "--scores", str(paths[1])]
    output = invoke("compare", *files, "--out", tmp_path / "out", "--quiet").stdout
    assert "-1.000" in output
    assert "contstim diff" not in output
    assert ScoreTable.from_file(tmp_path / "out" / "scores.csv").models == ("one:gpt", "two:gpt")


def test_missing_models_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least 2 models, got none"):
        invoke("compare --out", tmp_path)
