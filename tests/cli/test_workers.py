"""Commands that score: by two processes they write what they write by one."""

from pathlib import Path

import pytest

from tests.cli.running import run, succeed

MODELS = ("--model", "two=2.arpa", "--model", "three=3.arpa")
pytestmark = pytest.mark.usefixtures("unsaved")
PROCESSES = ("--executor", "processes", "--workers", "2")


def test_words_are_scored(folder: Path) -> None:
    written = []
    for name, more in (("one", ()), ("several", PROCESSES)):
        given = (
            "--sentences",
            "natural.txt",
            "--standard-errors",
            f"{name}/errors.csv",
            "--per-word",
        )
        succeed(folder, "score", *MODELS, *given, "--out", f"{name}/scores.csv", *more)
        written.append({path.name: path.read_bytes() for path in (folder / name).glob("*.csv")})
    assert {*written[0]} == {"scores.csv", "errors.csv"}
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--workers", "2"), "--workers must be 1 for the --executor local"),
        (("--task-timeout", "9"), "--task-timeout needs another --executor than local"),
        (("--models-in-memory", "2"), "--models-in-memory needs the --executor processes or ray"),
        (("--gpus-per-worker", "1"), "the --executor ray"),
        (("--executor", "processes", "--workers", "0"), "workers must be 1 or more, not 0"),
    ],
)
def test_useless_options_are_refused(folder: Path, options: tuple[str, ...], told: str) -> None:
    done = run(
        folder, "score", *MODELS, "--sentences", "natural.txt", "--out", "s.csv", *options, status=2
    )
    assert told in done.stderr
    assert not (folder / "s.csv").exists()
