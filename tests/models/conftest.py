"""Model tests run networks in one thread."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    """Tiny networks are quicker without waiting for a second thread."""
    torch.set_num_threads(1)
