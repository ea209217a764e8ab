"""The time of a training, from a few seconds of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from contstim.models.catalog import load_model
from contstim.models.training.recurrent import train_recurrent
from contstim.models.training.settings import (
    RecurrentSettings,
    TrainingSettings,
    TransformerSettings,
)
from contstim.models.training.speed import TrainingSpeed, train_briefly
from contstim.sentence import Sentence

NETWORKS = (
    RecurrentSettings(kind="lstm", embedding=8, hidden=8, min_count=1),
    TransformerSettings(kind="gpt2", width=16, layers=1, heads=2, window=32),
)


@pytest.mark.parametrize("network", NETWORKS, ids=["lstm", "gpt2"])
def test_network_is_saved_and_scores(
    network: RecurrentSettings | TransformerSettings, english: list[Sentence], tmp_path: Path
) -> None:
    settings = TrainingSettings(epochs=3, batch_size=16)
    speed = train_briefly(network, english[:200], tmp_path / "net", settings, seconds=0.0)
    assert speed.step > 0
    family = "lstm" if isinstance(network, RecurrentSettings) else "hf"
    model = load_model(f"{family}:{tmp_path / 'net'}", name="net")
    assert (model.log_probs(english[:5]) < 0).all()


def test_seconds_are_those_of_all_steps(english: list[Sentence], tmp_path: Path) -> None:
    settings = TrainingSettings(epochs=2, batch_size=16, validation=0.1)
    steps = 0

    def count(_now: object) -> None:
        nonlocal steps
        steps += 1

    train_recurrent(
        english[:200], tmp_path / "net", NETWORKS[0], settings, device="cpu", on_progress=count
    )
    only_steps = TrainingSpeed(setup=0.0, step=1.0, ends=0.0, settings=settings)
    # Sentences to validate on take a third of a step's time
    assert only_steps.seconds(200) == pytest.approx(steps * (1 + 0.1 / 3))
    rest = TrainingSpeed(setup=0.5, step=0.0, ends=3.0, settings=settings)
    assert rest.seconds(200) == pytest.approx(0.5 * 200 + 3)
