"""Estimate of a training's duration, from a few seconds of it."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from time import perf_counter
from typing import TYPE_CHECKING

from contstim.models.checkpoints import silence
from contstim.models.loading import resolve_device
from contstim.models.training.loop import BUILDING, Trainer, seeded
from contstim.models.training.run import computes_in_bf16, training_and_validation
from contstim.models.training.settings import RecurrentSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from contstim.models.loading import Device
    from contstim.models.training.loop import Progress, TrainingTask
    from contstim.models.training.settings import (
        TrainingPrecision,
        TrainingSettings,
        TransformerSettings,
    )
    from contstim.sentence import Sentence


class _Enough(Exception):  # noqa: N818
    """The time is up."""


@dataclass(frozen=True)
class TrainingSpeed:
    """The speed of a training on this machine.

    Attributes:
        setup: seconds before the first step for each sentence: words or tokens are counted.
        step: seconds of a step.
        ends: seconds of what the first step takes longer, and of writing the model.
        settings: of the training.
    """

    setup: float
    step: float
    ends: float
    settings: TrainingSettings

    def seconds(self, n_sentences: int) -> float:
        """Duration of all epochs over a text, in seconds, unless the training ends early."""
        validation = self.settings.validation
        steps = ceil((1 - validation) * n_sentences / self.settings.batch_size)
        # A sentence to validate on is read forwards alone, about a third of a training step
        an_epoch = steps * self.step * (1 + validation / 3)
        return n_sentences * self.setup + self.settings.epochs * an_epoch + self.ends


def train_briefly(
    network: RecurrentSettings | TransformerSettings,
    sentences: Sequence[Sentence],
    out: Path,
    settings: TrainingSettings,
    *,
    seconds: float,
    device: Device = "auto",
    precision: TrainingPrecision = "auto",
) -> TrainingSpeed:
    """Train a network for a few seconds, and save it; it has the shape and speed of a trained one.

    Args:
        network: kind and sizes.
        sentences: the text, or enough of it that the network gets as many words as from all of it.
        out: the folder of the model.
        settings: how it would be trained.
        seconds: for how long, at least two steps.
        device: `auto` is a GPU where there is one.
        precision: `auto` is bfloat16 on a GPU that has it, else float32.

    Raises:
        InputError: the text has too few sentences, or fewer words than asked for.
        ModelError: there is no such device.
    """
    place = resolve_device(device)
    bf16 = computes_in_bf16(precision, place)
    build = _builder(network)
    began = perf_counter()
    training, validation = training_and_validation(sentences, None, settings)
    with seeded(settings.seed, BUILDING, place), silence():
        task = build(training)
        trainer = Trainer(task, training, validation, settings, device=place, bf16=bf16)
    ends: list[float] = []

    def stop(_now: Progress) -> None:
        ends.append(perf_counter())
        if len(ends) > 1 and ends[-1] - ends[0] >= seconds:
            raise _Enough

    first = perf_counter()
    try:
        # Epochs of a small text are shorter than what is to be measured
        while len(ends) < 2 or ends[-1] - ends[0] < seconds:
            trainer.epoch((), stop)
    except _Enough:
        pass
    trained = perf_counter()
    task.network.eval()
    with silence():
        task.save(out)
    saved = perf_counter()
    # The first step is slower than the others: memory is reserved, and code is prepared
    step = (ends[-1] - ends[0]) / (len(ends) - 1)
    setup = (first - began) / len(sentences)
    return TrainingSpeed(setup, step, max(ends[0] - first - step, 0.0) + saved - trained, settings)


def _builder(
    network: RecurrentSettings | TransformerSettings,
) -> Callable[[Sequence[Sentence]], TrainingTask]:
    # Imported before anything is timed
    if isinstance(network, RecurrentSettings):
        from contstim.models.training.recurrent import recurrent_task

        return lambda text: recurrent_task(text, network)
    from contstim.models.training.transformers import transformer_task

    return lambda text: transformer_task(text, network)
