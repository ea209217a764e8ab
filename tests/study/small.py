"""A small study of n-gram models, which runs in seconds, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from contstim.study.running import StudyRun, run_study
from contstim.study.study_file import read_study

STUDY = """\
title = "Small"
seed = 3
[texts]
training = "corpus.txt"
natural = "more.txt"
[models]
bigram = { train = "ngram", order = 2 }
unigram = { train = "ngram", order = 1 }
[vocabulary]
min_count = 4
[sentences]
words = "8"
[pairs]
per_pair = 3
[triplets]
per_pair = 4
restarts = 1
max_changes = 2
[selection]
per_pair = 3
quantiles = 0
[review]
rare = 3.0
[design]
groups = 3
random_per_group = 2
catch_per_group = 1
[power]
simulations = 4
participants = 2
[export.csv]
[responses]
simulate = "bigram"
participants = 12
[analysis]
bootstrap = 20
"""

STAGES = (
    *("model bigram", "model unigram", "vocabulary", "sentences", "scores", "pairs", "triplets"),
    *("selection", "design", "review pairs", "review triplets", "review trials", "trial-scores"),
    *("power", "responses", "export csv", "analysis"),
)


def run(folder: Path, **options: object) -> StudyRun:
    """Run the study of a folder in this process."""
    return run_study(read_study(folder), **options)  # type: ignore[arg-type]


def change(folder: Path, *changes: tuple[str, str]) -> None:
    """Replace texts of the study file, each of which stands there once."""
    path = folder / "study.toml"
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


@contextmanager
def blank_figures() -> Iterator[None]:
    """Write an empty file for each figure: what figures show is tested where they are drawn."""

    def leave_blank(_figure: object, target: object, **_: object) -> None:
        if isinstance(target, str | Path):
            Path(target).write_bytes(b"")

    with (
        mock.patch("contstim.reporting.canvas.lay_out"),
        mock.patch("matplotlib.figure.Figure.savefig", leave_blank),
    ):
        yield
