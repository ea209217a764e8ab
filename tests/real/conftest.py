"""A real pretrained model, loaded once for all tests of this folder."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from contstim.models.checkpoints import load_checkpoint
from contstim.models.loading import Loading

VARIABLE = "CONTSTIM_REAL_MODEL"


@pytest.fixture(scope="session")
def real_model() -> Iterator[Path]:
    """The folder of the model; its network stays loaded on the CPU."""
    if not os.environ.get(VARIABLE):
        pytest.skip(f"{VARIABLE} names no folder of a real pretrained model")
    folder = Path(os.environ[VARIABLE])
    checkpoint = load_checkpoint(str(folder), Loading(device="cpu"))
    yield folder
    del checkpoint
