"""Fixtures of model tests, which run networks in one thread."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest
import torch
import transformers

from contstim.models.checkpoints import load_checkpoint
from contstim.models.loading import Loading
from contstim.models.training import record
from contstim.models.training.loop import Epoch
from tests.models.tiny import Folder, Load, Tokenizers

Draw = Callable[[Path, Sequence[Epoch]], None]


@pytest.fixture(scope="module", autouse=True)
def draw_curve() -> Iterator[Draw]:
    """Replace the slow drawing of curves in trainings; return the original function."""
    draw = record._draw
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record, "_draw", lambda path, _curve: path.touch())
        yield draw


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    """Use one thread, because tiny networks would lose time by waiting for a second one."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def load(tiny_checkpoint: Folder) -> Load:
    """Load a tiny checkpoint, once for all tests."""
    return cache(lambda name: load_checkpoint(str(tiny_checkpoint(name)), Loading(device="cpu")))


@pytest.fixture(scope="session")
def tokenizer_of(tiny_checkpoint: Folder) -> Tokenizers:
    return lambda kind: transformers.AutoTokenizer.from_pretrained(tiny_checkpoint(kind))
