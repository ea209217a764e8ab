"""Fixtures for model tests: folders of tiny checkpoints, each built once a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from tests.models import tiny

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    """Tiny networks are quicker without waiting for a second thread."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of the tiny checkpoint of a name in `tiny.BUILDERS`."""
    root = tmp_path_factory.mktemp("checkpoints")
    built: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in built:
            built[name] = tiny.build(name, root)
        return built[name]

    return folder
