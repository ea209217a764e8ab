"""`contstim compare`, as users type it; the commands that it prints are then typed too."""

import shlex
from pathlib import Path

import pytest

from contstim.english import generate
from contstim.errors import InfeasibleError, InputError
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import read_pairs
from tests.cli.running import invoke

pytestmark = pytest.mark.usefixtures("unsaved")


@pytest.fixture
def natural(tmp_path: Path) -> Path:
    path = tmp_path / "natural.txt"
    path.write_text("".join(f"{sentence.text}\n" for sentence in generate(60, seed=2, words=5)))
    return path


def test_printed_commands_work(
    trained: Path, natural: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside witness: the commands themselves, run as printed."""
    monkeypatch.chdir(tmp_path)
    models = [f"kenlm:{trained / name}" for name in ("2gram.arpa", "3gram.arpa")]
    command = ["compare", "--model", models[0], "--model", models[1], "--sentences", str(natural)]
    shown = invoke(*command, "--out", "compared", "--quiet").stdout
    printed = [shlex.split(line) for line in shown.splitlines() if line.startswith("  contstim ")]
    assert [line[1] for line in printed] == ["select", "diff"]
    assert printed[1][2:] == models
    invoke(*printed[0][1:], "--quiet")
    # As many as sentences tell the two apart: one more pair cannot be had
    pairs = len(read_pairs(tmp_path / "compared" / "pairs.csv"))
    more = [str(pairs + 1) if word == str(pairs) else word for word in printed[0][1:]]
    with pytest.raises(InfeasibleError, match=f"at most {pairs} pairs can be selected"):
        invoke(*more, "--quiet")


def test_tables_alone(tmp_path: Path) -> None:
    paths = [tmp_path / "one.csv", tmp_path / "two.csv"]
    for number, path in enumerate(paths):
        rows = [f'"S {row}.",{-row * (-1) ** number}' for row in range(1, 6)]
        path.write_text("\n".join(["sentence,gpt", *rows]))
    files = ["--scores", str(paths[0]), "--scores", str(paths[1])]
    shown = invoke("compare", *files, "--out", tmp_path / "out", "--quiet").stdout
    assert "-1.000" in shown
    assert "contstim diff" not in shown
    assert ScoreTable.from_file(tmp_path / "out" / "scores.csv").models == ("one:gpt", "two:gpt")


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least 2 models, got none"):
        invoke("compare --out", tmp_path)
