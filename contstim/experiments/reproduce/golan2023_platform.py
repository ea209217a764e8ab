"""Experiment 1 of the 2023 study as a platform whose published answers are read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from contstim.experiments.platforms.platform import Platform, Reader
from contstim.experiments.reproduce.golan2023_data import read_experiment
from contstim.experiments.reproduce.published.scores import read_stimulus_scores
from contstim.experiments.responses.alignment import Imported
from contstim.options import Help

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.stimuli import Trial


@dataclass(frozen=True)
class Golan2023Reading:
    """Paths of the published data, and of the file to write their scores to."""

    data: Annotated[Path, Help("The folder with `contstimlang` and `contstimlang-fork`.")]
    scores_out: Annotated[Path | None, Help("The published scores of its sentences, to write.")] = (
        None
    )


def import_golan2023(
    files: Sequence[Path], trials: Sequence[Trial], settings: Golan2023Reading
) -> Imported:
    """Rebuild experiment 1 of the 2023 study: 16,500 ratings of 100 participants.

    Example: `contstim import golan2023 --data data --out responses.csv --trials-out trials.csv
    --scores-out scores.csv`

    Raises:
        InputError: a file is missing or is not what was published.
    """
    del files, trials  # it has its own
    folder = settings.data / "contstimlang"
    published_trials, responses = read_experiment(
        folder, settings.data / "contstimlang-fork" / "data"
    )
    if settings.scores_out is not None:
        read_stimulus_scores(folder).write(settings.scores_out)
    return Imported(published_trials, responses, (), ())


PLATFORM = Platform(
    "golan2023", reader=Reader(import_golan2023, Golan2023Reading, builds_trials=True)
)
