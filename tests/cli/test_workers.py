"""Scoring commands write the same with two processes as with one."""

from pathlib import Path

import pytest

from tests.cli.running import run, succeed

MODELS = ("--model", "two=2.arpa", "--model", "three=3.arpa")
pytestmark = pytest.mark.usefixtures("unsaved_figures")
PROCESSES = ("--executor", "processes", "--workers", "2")


def test_scores_of_words_are_equal_with_several_processes(folder: Path) -> None:
    files = []
    for name, executor_options in (("one", ()), ("several", PROCESSES)):
        options = f"--standard-errors {name}/errors.csv --out {name}/scores.csv".split()
        command = "score --sentences natural.txt --per-word"
        succeed(folder, command, *MODELS, *options, *executor_options)
        files.append({path.name: path.read_bytes() for path in (folder / name).glob("*.csv")})
    assert {*files[0]} == {"scores.csv", "errors.csv"}
    assert files[0] == files[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--workers", "2"), "--workers must be 1 for the --executor local"),
        (("--task-timeout", "9"), "--task-timeout needs another --executor than local"),
        (("--models-in-memory", "2"), "--models-in-memory needs the --executor processes or ray"),
        (("--gpus-per-worker", "1"), "the --executor ray"),
        (("--executor", "processes", "--workers", "0"), "workers must be 1 or more, not 0"),
    ],
)
def test_unsuitable_executor_options_are_refused(
    folder: Path, options: tuple[str, ...], message: str
) -> None:
    command = "score --sentences natural.txt --out s.csv"
    assert message in run(folder, command, *MODELS, *options, status=2).stderr
    assert not (folder / "s.csv").exists()
