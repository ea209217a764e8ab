"""A tiny GPT-2, read by a server and by this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from contstim.models.causal.adapter import CausalModel
from contstim.models.checkpoints import Checkpoint, load_checkpoint
from contstim.models.loading import Loading
from contstim.models.server.address import KEY_VARIABLE
from tests.models.server.fakes import FakeServer, Row
from tests.models.server.hashed import HashedNetwork


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)


@pytest.fixture(scope="session")
def checkpoint(tiny_checkpoint: Callable[[str], Path]) -> Checkpoint:
    return load_checkpoint(str(tiny_checkpoint("gpt2")), Loading(device="cpu"))


@pytest.fixture(scope="session")
def local(checkpoint: Checkpoint) -> CausalModel:
    """The witness: the same network in this process."""
    return CausalModel(checkpoint)


@pytest.fixture(scope="session")
def network(checkpoint: Checkpoint) -> Callable[[Row], np.ndarray]:
    def read(row: Row) -> np.ndarray:
        with torch.no_grad():
            logits = checkpoint.model(torch.tensor([row])).logits[0]
        return np.asarray(logits.double().log_softmax(dim=1).numpy())

    return read


@pytest.fixture(scope="session")
def hashed(checkpoint: Checkpoint) -> HashedNetwork:
    """A network that costs next to nothing."""
    return HashedNetwork(len(checkpoint.tokenizer))


@pytest.fixture(scope="session")
def healthy(checkpoint: Checkpoint, network: Callable[[Row], np.ndarray]) -> FakeServer:
    return FakeServer(network, checkpoint.tokenizer)
