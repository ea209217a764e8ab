"""The training loop: AdamW, clipped gradients, a learning rate that rises and falls.

The result of an epoch depends only on the settings, the number of the epoch, and the state (weights
and optimizer state) at the epoch's beginning. The settings and the number of the epoch seed the
random numbers. A run that is resumed after an epoch therefore has the result of an uninterrupted
run. On a CPU, a run that is resumed within an epoch also has this result, because the state of
torch's random generator is restored.
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
from contstim.models.batching import pad_rows
from contstim.models.onednn import bound_onednn_memory, use_onednn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from torch import Tensor, nn

    from contstim.files.arrays import IntArray
    from contstim.models.training.settings import TrainingSettings
    from contstim.words.sentence import Sentence

_SAVE_EVERY = 300.0  # seconds between two checkpoints within an epoch
_LARGEST_LOSS = 700.0  # nats; the perplexity of a larger loss exceeds the range of floats
_POOL = 64  # number of batches in a pool, see `shuffled_batches`
# Stages of a run, each with separate random numbers; epoch i is stage _EPOCHS + i
BUILDING, _VALIDATION, _EPOCHS = 0, 1, 2


@dataclass(frozen=True, eq=False)
class TrainingTask:
    """Network to train, with functions that encode sentences and compute predictions.

    Attributes:
        encode: function that encodes sentences as rows of numbers.
        log_probs: function that returns log p of all n predictions in a batch, (n,), nats. Its
            arguments are the b rows, padded to the length l of the longest row, (b, l), and a mask
            (b, l), which is False for padding. If the function needs random numbers, it draws them
            from torch's generator.
        save: function that writes the trained model into a folder.
        facts: facts about the data for the record, such as the size of the vocabulary.
    """

    network: nn.Module
    encode: Callable[[Sequence[Any]], list[IntArray]]
    log_probs: Callable[[Tensor, Tensor], Tensor]
    save: Callable[[Path], None]
    facts: dict[str, object]


@dataclass(frozen=True)
class Epoch:
    """Losses and times of one pass over the text.

    A loss is the mean of -log p over predictions, nats.

    Attributes:
        training_loss: loss in the training sentences during the epoch.
        validation_loss: loss in the validation sentences after the epoch.
        predictions: number of predicted tokens, words, sentence ends or labels in training.
        cpu_seconds: processor time of all threads, including validation.
        wall_seconds: wall time, including validation.
        training_seconds: wall time without validation.
    """

    training_loss: float
    validation_loss: float
    predictions: int
    cpu_seconds: float
    wall_seconds: float
    training_seconds: float


@dataclass(frozen=True)
class Progress:
    """Progress of a run after a step.

    Attributes:
        step: number of finished steps, over all epochs.
        steps: number of steps of all epochs.
        epoch: number of the current epoch, from 1.
        epochs: maximum number of epochs.
        loss: mean training loss of the epoch so far, nats.
        validation_loss: validation loss of the previous epoch; None in the first epoch.
    """

    step: int
    steps: int
    epoch: int
    epochs: int
    loss: float
    validation_loss: float | None


class Trainer:
    """The training loop. Its state is the weights, the optimizer state, and the attributes below.

    With `bf16`, torch's autocast chooses which computations are in bfloat16. Weights are always
    float32.

    Attributes:
        curve: finished epochs.
        best: weights after the best epoch, by name.
        part: state of an unfinished epoch: finished steps, sum of losses (nats), number of
            predictions, processor time and wall time (seconds).
        generators: states of torch's random generators in an unfinished epoch, first the CPU's
            generator.
    """

    def __init__(
        self,
        task: TrainingTask,
        training: Sequence[Sentence],
        validation: Sequence[Sentence],
        settings: TrainingSettings,
        *,
        device: str = "cpu",
        bf16: bool = False,
    ) -> None:
        self.task = task
        self.settings = settings
        self.curve: tuple[Epoch, ...] = ()
        self.best: dict[str, Tensor] = {}
        self.part: tuple[int, float, int, float, float] = (0, 0.0, 0, 0.0, 0.0)
        self.generators: tuple[Tensor, ...] = ()
        self._training = task.encode(training)
        self._validation = task.encode(validation)
        self._device = device
        self._bf16 = bf16
        if device == "cpu":
            bound_onednn_memory()
            use_onednn(task.network)
        task.network.to(device)
        # Weight decay does not apply to vectors, which are biases and scales of layer norms
        weights = list(task.network.parameters())
        groups: list[dict[str, Any]] = [
            {"params": [w for w in weights if w.dim() > 1], "weight_decay": settings.weight_decay},
            {"params": [w for w in weights if w.dim() <= 1], "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=settings.learning_rate, fused=True)
        self.steps_an_epoch = math.ceil(len(self._training) / settings.batch_size)
        self.steps = self.steps_an_epoch * settings.epochs

    def run(self, report: Callable[[Progress], None], save: Callable[[], None]) -> str:
        """Train to the end, load the best weights, and return why the training ended, as a clause.

        Args:
            report: callback after every step.
            save: callback that saves the state, called after every epoch and every few minutes.

        Raises:
            ModelError: if the loss becomes too large or nan, or if a weight is not finite.
        """
        while (reason := self._end()) is None:
            self.curve = (*self.curve, self._epoch(report, save))
            self.part, self.generators = (0, 0.0, 0, 0.0, 0.0), ()
            if best_of(self.curve) == len(self.curve) - 1:
                # Copies, because the next epoch changes the weights in place
                weights = self.task.network.named_parameters()
                self.best = {name: weight.detach().clone() for name, weight in weights}
            save()
        # Check all weights, even if the validation loss is finite: this loss does not depend on the
        # embeddings of words that occur only in the training text
        with torch.no_grad():
            for name, weight in self.task.network.named_parameters():
                weight.copy_(self.best[name])
                if not bool(torch.isfinite(weight).all()):
                    raise ModelError(
                        f"After the training, {name} has values that are not finite, so no model "
                        "was saved. Lower `learning_rate` or `clip`, and train in another folder."
                    )
        self.task.network.eval()
        return reason

    def _end(self) -> str | None:
        if len(self.curve) >= self.settings.epochs:
            return "all epochs are done"
        if self.curve and len(self.curve) - 1 - best_of(self.curve) >= self.settings.patience:
            return f"the validation loss has not improved since epoch {best_of(self.curve) + 1}"
        return None

    def _epoch(self, report: Callable[[Progress], None], save: Callable[[], None]) -> Epoch:
        seed, epochs, number = self.settings.seed, self.settings.epochs, len(self.curve)
        last = self.curve[-1].validation_loss if self.curve else None
        done, total, count, cpu_seconds, seconds = self.part
        # Include the time before an interruption
        start, cpu_start = perf_counter() - seconds, process_time() - cpu_seconds
        rng = np.random.default_rng([seed, number])
        batches = shuffled_batches(_lengths(self._training), self.settings.batch_size, rng)
        saved = perf_counter()
        with seeded(seed, _EPOCHS + number, self._device):
            _restore_generators(self.generators, self._device)
            self.task.network.train()
            for epoch_step, batch in enumerate(batches[done:], start=done + 1):
                step = number * self.steps_an_epoch + epoch_step
                log_probs = self._log_probs(self._training, batch)
                self._update(-log_probs.mean(), step - 1)
                total -= float(log_probs.detach().sum())
                count += len(log_probs)
                self._check(total / count, step)
                report(Progress(step, self.steps, number + 1, epochs, total / count, last))
                if perf_counter() - saved >= _SAVE_EVERY and epoch_step < len(batches):
                    spent = process_time() - cpu_start, perf_counter() - start
                    self.part = (epoch_step, total, count, *spent)
                    self.generators = _generators(self._device)
                    save()
                    saved = perf_counter()
        trained = perf_counter() - start
        loss = self.validate()
        self._check(loss, self.steps_an_epoch * (number + 1))
        spent = process_time() - cpu_start, perf_counter() - start
        return Epoch(total / count, loss, count, *spent, trained)

    def _check(self, loss: float, step: int) -> None:
        """Raise an error if a loss is nan or larger than `_LARGEST_LOSS`."""
        if not loss < _LARGEST_LOSS:  # also true for nan
            rate = self.settings.learning_rate
            raise ModelError(
                f"The loss is {loss:g} after {step:,} steps, so the training diverged. Lower "
                f"`learning_rate` (now {rate:g}) or `clip`."
            )

    def validate(self) -> float:
        """Compute the mean validation loss, nats. Random masks are the same in all epochs."""
        total, count = 0.0, 0
        self.task.network.eval()
        with torch.inference_mode(), seeded(self.settings.seed, _VALIDATION, self._device):
            for batch in sorted_batches(_lengths(self._validation), self.settings.batch_size):
                log_probs = self._log_probs(self._validation, batch)
                total -= float(log_probs.double().sum())
                count += len(log_probs)
        return total / count

    def _log_probs(self, rows: Sequence[IntArray], batch: IntArray) -> Tensor:
        arrays = pad_rows([rows[row] for row in batch])  # (b, l) numbers, (b, l) mask
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


def best_of(curve: Sequence[Epoch]) -> int:
    """Return the index of the epoch with the lowest validation loss; in a tie, the first one."""
    return min(range(len(curve)), key=lambda number: curve[number].validation_loss)


def learning_rate(step: int, steps: int, settings: TrainingSettings) -> float:
    """Return the learning rate of a 0-based step: a linear rise, then a linear fall."""
    # The first rate and the last rate are above 0
    rising = max(1.0, settings.warmup * steps)
    if step < rising:
        return settings.learning_rate * (step + 1) / (rising + 1)
    return settings.learning_rate * (steps - step) / (steps - rising)


def _lengths(rows: Sequence[IntArray]) -> IntArray:
    return np.fromiter(map(len, rows), np.int64, len(rows))


# Return the states of torch's generators, which draw dropout and masks. NumPy draws the batches of
# a resumed epoch again from the seed, so the state of NumPy's generator is not needed
def _generators(device: str) -> tuple[Tensor, ...]:
    cpu = torch.get_rng_state()
    return (cpu, torch.cuda.get_rng_state()) if device.startswith("cuda") else (cpu,)


def _restore_generators(states: tuple[Tensor, ...], device: str) -> None:
    if states:
        torch.set_rng_state(states[0])
    if len(states) > 1 and device.startswith("cuda"):
        torch.cuda.set_rng_state(states[1])


@contextmanager
def seeded(seed: int, stage: int, device: str) -> Iterator[None]:
    """Within a `with` statement, seed torch's random numbers from a seed and a stage of the run.

    The constant `BUILDING` is an example of a stage. After the statement, the states of the random
    generators are those from before the statement.
    """
    gpus = [torch.cuda.current_device()] if device.startswith("cuda") else []
    with torch.random.fork_rng(gpus):
        torch.manual_seed(int(np.random.SeedSequence([seed, stage]).generate_state(1)[0]))
        yield


def shuffled_batches(lengths: IntArray, size: int, rng: np.random.Generator) -> list[IntArray]:
    """Divide all rows into random batches of `size` rows of similar length.

    One batch may have fewer rows. All rows are shuffled and divided into pools of 64 batches. In
    each pool, rows are sorted by length and divided into batches. Then all batches are shuffled.
    """
    order = rng.permutation(len(lengths))
    pools = np.split(order, range(_POOL * size, len(order), _POOL * size))
    batches = [batch for pool in pools for batch in sorted_batches(lengths, size, pool)]
    return [batches[number] for number in rng.permutation(len(batches))]


def sorted_batches(lengths: IntArray, size: int, rows: IntArray | None = None) -> list[IntArray]:
    """Divide rows into batches, the shortest rows first."""
    rows = np.arange(len(lengths)) if rows is None else rows
    by_length = rows[np.argsort(lengths[rows], kind="stable")]
    return np.split(by_length, range(size, len(by_length), size))
