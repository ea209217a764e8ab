"""Model tests run networks in one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import torch

from contstim.models.training import record
from contstim.models.training.loop import Epoch

Draw = Callable[[Path, Sequence[Epoch]], None]


def _leave_empty(path: Path, _curve: Sequence[Epoch]) -> None:
    path.touch()


@pytest.fixture(scope="module", autouse=True)
def draw_curve() -> Iterator[Draw]:
    """Leave the curves of trainings empty files, as a drawing takes longer than a training.

    Returns:
        What draws a curve.
    """
    draw = record._draw
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record, "_draw", _leave_empty)
        yield draw


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    """Tiny networks are quicker without waiting for a second thread."""
    torch.set_num_threads(1)
