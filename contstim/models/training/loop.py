"""The training loop: AdamW, clipped gradients, a learning rate that rises and falls.

An epoch depends on nothing but the weights and the optimizer's moments at its beginning, the
settings, and the number of the epoch, from which all that is left to chance in it is drawn. So a
run that goes on from the end of an epoch equals one that was never interrupted; and one that goes
on from within an epoch does, on a CPU, if chance goes on from where it was.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from contstim.errors import ModelError
from contstim.models.onednn import bound_onednn_memory, use_onednn
from contstim.models.training.batches import padded, shuffled_batches, sorted_batches
from contstim.models.training.settings import option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

    from contstim.arrays import IntArray
    from contstim.models.training.settings import TrainingSettings
    from contstim.models.training.task import Task
    from contstim.sentence import Sentence

_KEEP_EVERY = 300.0  # seconds between two checkpoints within an epoch
_LARGEST_LOSS = 700.0  # nats; e to the power of more is no float
BUILDING, _VALIDATION, _EPOCHS = 0, 1, 2  # stages of a run, each with a chance of its own


@dataclass(frozen=True)
class Epoch:
    """What one pass over the text brought.

    Attributes:
        training_loss: mean over all predictions while the weights changed, nats.
        validation_loss: mean over the sentences kept apart, after the epoch, nats.
        predictions: how many tokens or words (and ends) were predicted in training.
        cpu_seconds: of all threads, validation included.
        wall_seconds: validation included.
        training_seconds: wall time of training alone.
    """

    training_loss: float
    validation_loss: float
    predictions: int
    cpu_seconds: float
    wall_seconds: float
    training_seconds: float

    @property
    def tokens_per_second(self) -> float:
        """Predictions trained on in a second of wall time."""
        return self.predictions / self.training_seconds


@dataclass(frozen=True)
class Progress:
    """Where a run is, told after every step.

    Attributes:
        step: steps done, of all epochs.
        steps: steps of all epochs.
        epoch: the present one, from 1.
        epochs: all.
        loss: mean training loss of the epoch so far, nats.
        validation_loss: of the epoch before; None in the first.
    """

    step: int
    steps: int
    epoch: int
    epochs: int
    loss: float
    validation_loss: float | None


@dataclass(frozen=True, eq=False)
class Part:
    """How far an epoch has come.

    Attributes:
        steps: done in it.
        loss: sum over its predictions so far, nats.
        predictions: so far.
        cpu_seconds: so far.
        seconds: wall time so far.
        chance: the state of torch's generators, the CPU's first.
    """

    steps: int
    loss: float
    predictions: int
    cpu_seconds: float
    seconds: float
    chance: tuple[Tensor, ...]


class Trainer:
    """Trains a task epoch by epoch; its state lies in the weights and the optimizer.

    Args:
        task: what is trained.
        training: sentences to train on.
        validation: sentences kept apart.
        settings: how.
        device: where the network runs.
        bf16: whether it computes in bfloat16 where that is safe; weights stay float32.
    """

    def __init__(
        self,
        task: Task,
        training: Sequence[Sentence],
        validation: Sequence[Sentence],
        settings: TrainingSettings,
        *,
        device: str = "cpu",
        bf16: bool = False,
    ) -> None:
        self.task = task
        self.settings = settings
        self._training = task.encode(training)
        self._validation = task.encode(validation)
        self._device = device
        self._bf16 = bf16
        if device == "cpu":
            bound_onednn_memory()
            use_onednn(task.network)
        task.network.to(device)
        self.optimizer = _optimizer(task.network, settings)
        self.steps_an_epoch = math.ceil(len(self._training) / settings.batch_size)
        self.steps = self.steps_an_epoch * settings.epochs

    def epoch(
        self,
        before: Sequence[Epoch],
        report: Callable[[Progress], None] | None = None,
        *,
        part: Part | None = None,
        keep: Callable[[Part], None] = lambda _part: None,
    ) -> Epoch:
        """Run the epoch that comes after those before.

        Args:
            before: what they brought.
            report: told after every step.
            part: what of it is done, by a trainer whose state this one has.
            keep: told every few minutes what is done.

        Raises:
            ModelError: the loss is no longer a number.
        """
        settings, number = self.settings, len(before)
        began, cpu = perf_counter(), process_time()
        if part is not None:
            began, cpu = began - part.seconds, cpu - part.cpu_seconds
        batches = shuffled_batches(
            _lengths(self._training),
            settings.batch_size,
            np.random.default_rng([settings.seed, number]),
        )
        done, total, count = (part.steps, part.loss, part.predictions) if part else (0, 0.0, 0)
        kept = perf_counter()
        with seeded(settings.seed, _EPOCHS + number, self._device):
            if part is not None:
                _resume_chance(part.chance, self._device)
            self.task.network.train()
            for place, batch in enumerate(batches[done:], start=done + 1):
                step = number * self.steps_an_epoch + place
                log_probs = self._log_probs(self._training, batch)
                self._update(-log_probs.mean(), step - 1)
                total -= float(log_probs.detach().sum())
                count += len(log_probs)
                self._check(total / count, step)
                if report is not None:
                    report(self._progress(before, step, total / count))
                if perf_counter() - kept >= _KEEP_EVERY and place < len(batches):
                    spent = process_time() - cpu, perf_counter() - began
                    keep(Part(place, total, count, *spent, _chance(self._device)))
                    kept = perf_counter()
        trained = perf_counter() - began
        loss = self.validate()
        self._check(loss, self.steps_an_epoch * (number + 1))
        seconds = process_time() - cpu, perf_counter() - began
        return Epoch(total / count, loss, count, *seconds, trained)

    def _check(self, loss: float, step: int) -> None:
        """Refuse to go on with a loss from which no training recovers."""
        if not loss < _LARGEST_LOSS:  # nor is nan
            raise ModelError(
                f"The loss is {loss:g} after {step:,} steps and no longer a number that training "
                f"can lower: lower {option('learning_rate')} (now "
                f"{self.settings.learning_rate:g}) or {option('clip')}."
            )

    def validate(self) -> float:
        """Mean loss of the sentences kept apart, nats; masks are the same every time."""
        total, count = 0.0, 0
        self.task.network.eval()
        with torch.inference_mode(), seeded(self.settings.seed, _VALIDATION, self._device):
            for batch in sorted_batches(_lengths(self._validation), self.settings.batch_size):
                log_probs = self._log_probs(self._validation, batch)
                total -= float(log_probs.double().sum())
                count += len(log_probs)
        return total / count

    def _log_probs(self, rows: Sequence[IntArray], batch: IntArray) -> Tensor:
        arrays = padded([rows[row] for row in batch])
        ids, present = (torch.from_numpy(array).to(self._device) for array in arrays)
        with torch.autocast(torch.device(self._device).type, torch.bfloat16, enabled=self._bf16):
            return self.task.log_probs(ids, present).float()

    def _update(self, loss: Tensor, step: int) -> None:
        rate = learning_rate(step, self.steps, self.settings)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.task.network.parameters(), self.settings.clip)
        self.optimizer.step()

    def _progress(self, before: Sequence[Epoch], step: int, loss: float) -> Progress:
        last = before[-1].validation_loss if before else None
        return Progress(step, self.steps, len(before) + 1, self.settings.epochs, loss, last)


def learning_rate(step: int, steps: int, settings: TrainingSettings) -> float:
    """The learning rate of a step, counted from 0: up to its peak in a line, then down to zero."""
    rising = max(1.0, settings.warmup * steps)
    if step < rising:
        return settings.learning_rate * (step + 1) / (rising + 1)
    return settings.learning_rate * (steps - step) / (steps - rising)


def _optimizer(network: torch.nn.Module, settings: TrainingSettings) -> torch.optim.AdamW:
    """AdamW in which biases and the scales of layer norms do not decay."""
    weights = list(network.parameters())
    groups: list[dict[str, Any]] = [
        {"params": [w for w in weights if w.dim() > 1], "weight_decay": settings.weight_decay},
        {"params": [w for w in weights if w.dim() <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=settings.learning_rate, fused=True)


def _lengths(rows: Sequence[IntArray]) -> IntArray:
    return np.fromiter(map(len, rows), np.int64, len(rows))


def _chance(device: str) -> tuple[Tensor, ...]:
    cpu = torch.get_rng_state()
    return (cpu, torch.cuda.get_rng_state()) if device.startswith("cuda") else (cpu,)


def _resume_chance(states: tuple[Tensor, ...], device: str) -> None:
    torch.set_rng_state(states[0])
    if device.startswith("cuda") and len(states) > 1:
        torch.cuda.set_rng_state(states[1])


@contextmanager
def seeded(seed: int, stage: int, device: str) -> Iterator[None]:
    """Torch's chance decided by a run and a stage of it, and as it was before afterwards."""
    gpus = [torch.cuda.current_device()] if device.startswith("cuda") else []
    with torch.random.fork_rng(gpus):
        torch.manual_seed(int(np.random.SeedSequence([seed, stage]).generate_state(1)[0]))
        yield
