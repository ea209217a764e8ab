"""One training run, from sentences to a model in a folder."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch

from contstim.errors import InputError, ModelError
from contstim.models.loading import resolve_device
from contstim.models.training.batches import split
from contstim.models.training.checkpoint import (
    CHECKPOINT,
    RunState,
    forget_checkpoint,
    is_begun,
    read_checkpoint,
    write_checkpoint,
)
from contstim.models.training.loop import BUILDING, Trainer, seeded
from contstim.models.training.record import Training, best_of
from contstim.models.training.settings import flattened, option
from contstim.models.training_text import TrainingText, write_training_text
from contstim.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from contstim.models.loading import Device
    from contstim.models.training.loop import Epoch, PartialEpoch, Progress, TrainingTask
    from contstim.models.training.settings import (
        NetworkSettings,
        TrainingPrecision,
        TrainingSettings,
    )

_TOO_LARGE = ("memory", "allocate", "overflow", "too large", "larger than")
_Sentence = TypeVar("_Sentence", bound=Sentence)


def train_network(
    build: Callable[[Sequence[Sentence]], TrainingTask],
    sentences: Sequence[Sentence],
    out: Path,
    network: NetworkSettings,
    settings: TrainingSettings,
    *,
    validation: Sequence[Sentence] | None = None,
    device: Device,
    precision: TrainingPrecision,
    on_progress: Callable[[Progress], None] | None,
) -> Training:
    """Train from the start, or from the last checkpoint of the same run, and save the model.

    A finished run is not repeated.

    Args:
        build: makes the task from the sentences to train on.
        sentences: the text, of which a share is for validation.
        out: the folder of the model.
        network: sizes of the network.
        settings: how it is trained.
        validation: the validation sentences; by default a share of the text.
        device: `auto` is a GPU where there is one.
        precision: `auto` is bfloat16 on a GPU that has it, else float32.
        on_progress: called after every step.

    Raises:
        InputError: the text is shorter than a batch; the folder holds something else or a run with
            other settings, or cannot be written.
        ModelError: there is no such device, or the loss is no longer a number.
    """
    place = resolve_device(device)
    bf16 = computes_in_bf16(precision, place)
    # what a run in the same folder must have in common with this one to be resumed
    identity = {
        **flattened(network, settings),
        "precision": "bfloat16" if bf16 else "float32",
        "text_sha256": _digest(sentences),
    }
    if validation is not None:
        identity["validation_sha256"] = _digest(validation)
    begun = is_begun(out, identity)
    if begun and not (out / CHECKPOINT).is_file():  # finished
        if TrainingText.beside(out) is None:  # trained by an earlier version, on this very text
            write_training_text(out, chain(sentences, validation or ()))
        return Training.read(out)
    training, validation = training_and_validation(sentences, validation, settings)
    with seeded(settings.seed, BUILDING, place), _fitting_memory():
        task = build(training)
        trainer = Trainer(task, training, validation, settings, device=place, bf16=bf16)
    state = read_checkpoint(out, trainer) if begun else RunState((), {})
    if not begun:
        write_checkpoint(out, identity, trainer, state)
    facts = {
        "settings": identity,
        "text": {
            "sentences": len(training) + len(validation),
            "words": sum(map(len, chain(training, validation))),
            "validation_sentences": len(validation),
        },
        "model": {"parameters": sum(w.numel() for w in task.network.parameters()), **task.facts},
        "device": place,
        "threads": torch.get_num_threads(),
    }
    state, ended = _run_epochs(out, identity, trainer, state, on_progress)
    # The model is that of the best epoch, not of the last. The record follows the model, and the
    # checkpoint goes last: a run that is killed in between is finished by the next one.
    task.save(out)
    write_training_text(out, chain(training, validation))
    finished = Training(out, state.curve, ended, facts)
    finished.write()
    forget_checkpoint(out)
    return finished


def _run_epochs(
    out: Path,
    identity: dict[str, object],
    trainer: Trainer,
    state: RunState,
    on_progress: Callable[[Progress], None] | None,
) -> tuple[RunState, str]:
    """Train epoch by epoch, each followed by a checkpoint, and load the best weights.

    Returns the last state, and why the run ended.
    """
    while (ended := _end(state.curve, trainer.settings)) is None:

        def save(part: PartialEpoch, state: RunState = state) -> None:
            write_checkpoint(out, identity, trainer, replace(state, part=part))

        try:
            with _fitting_memory():
                epoch = trainer.epoch(state.curve, on_progress, part=state.part, save=save)
        except ModelError:
            if not state.curve:  # nothing is lost with the checkpoint, and the folder is free again
                forget_checkpoint(out)
                if not any(out.iterdir()):
                    out.rmdir()
            raise
        curve, best = (*state.curve, epoch), state.best
        if best_of(curve) == len(curve) - 1:
            # copies, since the next epoch changes the network's weights in place
            weights = trainer.task.network.named_parameters()
            best = {name: weight.detach().clone() for name, weight in weights}
        state = RunState(curve, best)
        write_checkpoint(out, identity, trainer, state)
    # A finite validation loss does not tell: it does not depend on every weight, such as the
    # vectors of words that only the training text has.
    with torch.no_grad():
        for name, weight in trainer.task.network.named_parameters():
            weight.copy_(state.best[name])
            if not bool(torch.isfinite(weight).all()):
                raise ModelError(
                    f"The training left numbers in {name} that are not finite, so there is no "
                    f"model: lower {option('learning_rate')} or {option('clip')}, in another "
                    f"folder."
                )
    trainer.task.network.eval()
    return state, ended


def _end(curve: Sequence[Epoch], settings: TrainingSettings) -> str | None:
    """Why a run ends after these epochs; None if it goes on."""
    if len(curve) >= settings.epochs:
        return "all epochs are done"
    if curve and len(curve) - 1 - best_of(curve) >= settings.patience:
        return f"the validation loss has not improved since epoch {best_of(curve) + 1}"
    return None


@contextmanager
def _fitting_memory() -> Iterator[None]:
    """Within a `with` statement, a lack of memory is a ModelError."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        text = str(error).lower()
        if not isinstance(error, MemoryError) and not any(w in text for w in _TOO_LARGE):
            raise
        raise ModelError(
            "A network of these sizes does not fit into memory. Choose smaller ones, a smaller "
            f"vocabulary, or a smaller {option('batch_size')}."
        ) from error


def training_and_validation(
    sentences: Sequence[Sentence],
    validation: Sequence[Sentence] | None,
    settings: TrainingSettings,
) -> tuple[Sequence[Sentence], Sequence[Sentence]]:
    """The sentences to train on, at least a batch, and those to validate on."""
    training, apart = sentences, validation
    if apart is None:
        training, apart = split_sentences(sentences, settings)
    if len(training) < settings.batch_size:
        raise InputError(
            f"Of {len(training) + len(apart):,} sentences {len(training):,} are left to train on, "
            f"fewer than one batch of {settings.batch_size:,}. Give more text, or lower "
            f"{option('batch_size')}."
        )
    return training, apart


def split_sentences(
    sentences: Sequence[_Sentence], settings: TrainingSettings
) -> tuple[list[_Sentence], list[_Sentence]]:
    """Sentences to train on, and the share to validate on."""
    training, apart = split(
        len(sentences), settings.validation, np.random.default_rng(settings.seed)
    )
    return [sentences[row] for row in training], [sentences[row] for row in apart]


def computes_in_bf16(precision: TrainingPrecision, device: str) -> bool:
    """True if a training computes in bfloat16 where that is safe.

    Raises:
        ModelError: there is no such precision, or the device does not have it.
    """
    if precision not in ("auto", "float32", "bfloat16"):
        raise ModelError(
            f"There is no precision {precision!r}; there are auto, float32 and bfloat16."
        )
    has_it = device != "cuda" or torch.cuda.is_bf16_supported()
    if precision == "bfloat16" and not has_it:
        raise ModelError("This GPU does not compute in bfloat16. Use --precision float32.")
    return precision == "bfloat16" or (precision == "auto" and device == "cuda" and has_it)


def _digest(sentences: Sequence[Sentence]) -> str:
    digest = hashlib.sha256()
    for sentence in sentences:
        digest.update(f"{sentence}\n".encode())
    return digest.hexdigest()
