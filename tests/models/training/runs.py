"""Training runs that take a fraction of a second: few sentences, tiny networks."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.torch
from torch import Tensor

from contstim.models.training import settings
from contstim.models.training.loop import Progress
from contstim.models.training.record import Training
from contstim.models.training.run import train_network
from contstim.words.sentence import Sentence
from tests.models.tiny import TEXTS

KINDS = ("lstm", "bert")
SLOW = pytest.mark.slow
ALL_KINDS = [*KINDS, *(pytest.param(kind, marks=SLOW) for kind in ("rnn", "bilstm", "gpt2"))]
SENTENCES = [Sentence.parse(text) for text in TEXTS * 2]
TRAINING = settings.TrainingSettings(
    epochs=3, batch_size=8, learning_rate=0.02, validation=0.2, patience=3, seed=4
)


def train(
    kind: str,
    out: Path,
    training: settings.TrainingSettings = TRAINING,
    on_progress: Callable[[Progress], None] | None = None,
    **network: object,
) -> Training:
    """Train a tiny network of a kind on the texts of the tiny checkpoints."""
    config: settings.TransformerSettings | settings.RecurrentSettings
    if kind in ("gpt2", "bert"):
        config = settings.TransformerSettings(kind, width=16, layers=1, heads=2, window=32)  # type: ignore[arg-type]
    else:
        config = settings.RecurrentSettings(kind, embedding=8, hidden=8, min_count=1)  # type: ignore[arg-type]
    config = replace(config, **network)  # type: ignore[arg-type]
    return train_network(SENTENCES, out, config, training, device="cpu", on_progress=on_progress)


def load_weights(folder: Path) -> dict[str, Tensor]:
    return safetensors.torch.load_file(folder / "model.safetensors")


def list_losses(training: Training) -> list[tuple[float, float]]:
    return [(epoch.training_loss, epoch.validation_loss) for epoch in training.curve]
