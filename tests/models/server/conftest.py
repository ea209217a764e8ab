"""A tiny GPT-2, read by a server and by this process."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from contstim.models.causal.adapter import CausalModel
from contstim.models.checkpoints import Checkpoint
from contstim.models.server.address import KEY_VARIABLE
from tests.models.server.fakes import FakeServer, MakeFake, Row
from tests.models.server.hashed import HashedNetwork
from tests.models.tiny import Load


@pytest.fixture(autouse=True)
def _remove_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)


@pytest.fixture(scope="session")
def checkpoint(load: Load) -> Checkpoint:
    return load("gpt2")


@pytest.fixture(scope="session")
def local_model(checkpoint: Checkpoint) -> CausalModel:
    """The witness: the same network in this process."""
    return CausalModel(checkpoint)


@pytest.fixture(scope="session")
def network(checkpoint: Checkpoint) -> Callable[[Row], np.ndarray]:
    def compute_log_probs(row: Row) -> np.ndarray:
        with torch.no_grad():
            logits = checkpoint.model(torch.tensor([row])).logits[0]
        return np.asarray(logits.double().log_softmax(dim=1).numpy())

    return compute_log_probs


@pytest.fixture(scope="session")
def hashed_network(checkpoint: Checkpoint) -> HashedNetwork:
    """A network that needs almost no time."""
    return HashedNetwork(len(checkpoint.tokenizer))


@pytest.fixture(scope="session")
def healthy_server(checkpoint: Checkpoint, network: Callable[[Row], np.ndarray]) -> FakeServer:
    return FakeServer(network, checkpoint.tokenizer)


@pytest.fixture(scope="session")
def make_fake(checkpoint: Checkpoint, hashed_network: HashedNetwork) -> MakeFake:
    """Return a function that makes a server of a kind with a network that needs almost no time."""
    return lambda kind=FakeServer, **options: kind(hashed_network, checkpoint.tokenizer, **options)
