"""A small study of n-gram models that runs in seconds."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

from matplotlib.figure import Figure

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
[select.natural]
per_pair = 3
[triplets]
per_pair = 4
frame = "none"
restarts = 1
max_changes = 2
[select.triplets]
per_pair = 3
quantiles = 0
enough = 1
[review]
rare = 3.0
[design]
groups = 3
random_per_group = 2
catch_per_group = 1
twins = true
[power]
simulations = 4
participants = 2
[export.csv]
[simulate]
model = "bigram"
participants = 12
[analyze]
worst = 4
"""

STAGES = (
    *("model bigram", "model unigram", "vocabulary", "sentences", "score sentences"),
    *("select natural", "triplets", "select triplets", "review pairs", "review triplets"),
    *("design", "review trials", "score trials", "power", "export csv", "simulate", "analyze"),
)


def run(folder: Path, **options: object) -> StudyRun:
    """Run the study of a folder in this process."""
    return run_study(read_study(folder), **options)  # type: ignore[arg-type]


def change(folder: Path, *changes: tuple[str, str]) -> None:
    """Replace texts that occur once in the study file."""
    path = folder / "study.toml"
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def set_reviews(folder: Path, files: list[str]) -> None:
    """Set the decision files in the sections that select items."""
    path = folder / "study.toml"
    text = re.sub(r"\nreview = .*", "", path.read_text(encoding="utf-8"))
    for section in ("select.natural", "select.triplets", "design"):
        text = text.replace(f"[{section}]\n", f"[{section}]\nreview = {files}\n")
    path.write_text(text, encoding="utf-8")


def omit(folder: Path, *sections: str) -> None:
    """Remove sections from the study file."""
    header, *parts = (folder / "study.toml").read_text(encoding="utf-8").split("\n[")
    kept_parts = [part for part in parts if part.partition("]")[0] not in sections]
    assert len(parts) - len(kept_parts) == len(sections)
    (folder / "study.toml").write_text("\n[".join((header, *kept_parts)), encoding="utf-8")


@contextmanager
def blank_figures() -> Iterator[None]:
    """Write an empty file for each figure; other tests check the figures."""

    def write_empty_file(_figure: object, path: object, **_: object) -> None:
        if isinstance(path, str | Path):
            Path(path).write_bytes(b"")

    figures = ("consistency_figure", "heat_map", "scatter_figure")
    with ExitStack() as patches:
        for target in (
            *(f"contstim.experiments.analysis.figures.{name}" for name in figures),
            "contstim.steps.simulation.power_figure",
            "contstim.steps.design.summary_figure",
        ):
            patches.enter_context(mock.patch(target, return_value=Figure()))
        patches.enter_context(mock.patch("contstim.reporting.canvas.lay_out"))
        patches.enter_context(mock.patch("matplotlib.figure.Figure.savefig", write_empty_file))
        yield
