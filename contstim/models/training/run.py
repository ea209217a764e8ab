"""One training run, from sentences to a model in a folder."""

from __future__ import annotations

import hashlib
from contextlib import nullcontext, suppress
from dataclasses import asdict
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, get_args

import numpy as np
import torch

from contstim.errors import InputError, ModelError
from contstim.models.batching import fitting_memory
from contstim.models.loading import resolve_device
from contstim.models.training import record
from contstim.models.training.loop import BUILDING, Trainer, seeded
from contstim.models.training.settings import (
    NETWORKS,
    RecurrentSettings,
    TrainingPrecision,
    TransformerSettings,
)
from contstim.models.training_text import write_training_text
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager

    from contstim.models.loading import Device
    from contstim.models.training.loop import Progress, TrainingTask
    from contstim.models.training.record import Identity
    from contstim.models.training.settings import NetworkSettings, TrainingSettings

_Sentence = TypeVar("_Sentence", bound=Sentence)
_TOO_LARGE = (
    "The memory does not hold a network of these sizes: choose smaller ones, a smaller vocabulary, "
    "or a smaller `batch_size`."
)


def train_network(
    sentences: Iterable[Sentence],
    out: Path | str,
    network: RecurrentSettings | TransformerSettings | None = None,
    training: TrainingSettings | None = None,
    *,
    device: Device = "auto",
    precision: TrainingPrecision = "auto",
    on_progress: Callable[[Progress], None] | None = None,
) -> record.Training:
    """Train a network on a text and save it in a folder.

    `load_model` reads a recurrent network from its folder, and a small transformer as `hf:DIR`: its
    network and tokenizer are those of `transformers`, saved with `save_pretrained`. GPT-2 predicts
    every token of a sentence and its end. BERT predicts hidden tokens. By default the share of
    hidden tokens is drawn for each sentence, since the chain rule that scores masked models asks
    for all shares; the original BERT always hid 15 %. With `masking="any-order"` the hidden tokens
    are weighted as in masked diffusion, see `over_orders`.

    The folder also gets `training.json` and `curve.png`. Called again with the same text and
    settings, an interrupted training resumes from its last checkpoint, on a CPU as if it had never
    stopped; a finished training is read from the folder.

    Args:
        sentences: the text, of which a share is for validation. Sentences of more tokens than a
            transformer reads are cut.
        out: the folder, made if need be.
        network: kind and sizes; by default an LSTM with the sizes of the 2023 study.
        training: how it is trained; by default as is usual for the kind.
        device: `auto` is a GPU where there is one.
        precision: `auto` is bfloat16 on a GPU that has it, else float32.
        on_progress: called after every step.

    Raises:
        InputError: the text is shorter than a batch, or has fewer distinct words or tokens than
            asked for; the folder holds something else or a training with other settings, or cannot
            be written.
        ModelError: there is no such device, a sentence holds a special token of the tokenizer, or
            the loss is no longer a number.
    """
    chosen = network or RecurrentSettings()
    quiet: AbstractContextManager[None] = nullcontext()
    if isinstance(chosen, TransformerSettings):
        from contstim.models.checkpoints import silence
        from contstim.models.training.transformers import transformer_task

        build, quiet = partial(transformer_task, settings=chosen), silence()
    else:
        from contstim.models.training.recurrent import recurrent_task

        build = partial(recurrent_task, settings=chosen)
    _, usual = NETWORKS[chosen.kind]
    with quiet:
        return train_task(
            build,
            [*sentences],
            Path(out),
            chosen,
            training or usual,
            device=device,
            precision=precision,
            on_progress=on_progress,
        )


def train_task(
    build: Callable[[Sequence[_Sentence]], TrainingTask],
    sentences: Sequence[_Sentence],
    out: Path,
    network: NetworkSettings,
    settings: TrainingSettings,
    *,
    validation: Sequence[_Sentence] | None = None,
    device: Device,
    precision: TrainingPrecision,
    on_progress: Callable[[Progress], None] | None = None,
) -> record.Training:
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
    bf16 = _computes_in_bf16(precision, place)
    # what a run in the same folder must have in common with this one to be resumed
    identity: dict[str, object] = {
        **asdict(network),
        **asdict(settings),
        "precision": "bfloat16" if bf16 else "float32",
        "text_sha256": _digest(sentences),
    }
    if validation is not None:
        identity["validation_sha256"] = _digest(validation)
    begun = record.is_begun(out, identity)
    if begun and not (out / record.CHECKPOINT).is_file():  # finished
        return record.Training.read(out)
    training, apart = sentences, validation
    if apart is None:
        training, apart = split_sentences(sentences, settings)
    if len(training) < settings.batch_size:
        raise InputError(
            f"Of {len(training) + len(apart):,} sentences {len(training):,} are left to train on, "
            f"fewer than `batch_size`, {settings.batch_size:,}. Give more text, or lower it."
        )
    with seeded(settings.seed, BUILDING, place), fitting_memory(_TOO_LARGE):
        task = build(training)
        trainer = Trainer(task, training, apart, settings, device=place, bf16=bf16)
    if begun:
        record.read_checkpoint(out, trainer)
    else:
        record.write_checkpoint(out, identity, trainer)
    ended = _run(trainer, out, identity, on_progress)
    facts = {
        "settings": identity,
        "text": {
            "sentences": len(training) + len(apart),
            "words": sum(map(len, chain(training, apart))),
            "validation_sentences": len(apart),
        },
        "model": {"parameters": sum(w.numel() for w in task.network.parameters()), **task.facts},
        "device": place,
        "threads": torch.get_num_threads(),
    }
    # The model is that of the best epoch, not of the last. The record follows the model, and the
    # checkpoint goes last: a run that is killed in between is finished by the next one.
    task.save(out)
    write_training_text(out, chain(training, apart))
    finished = record.Training(out, trainer.curve, ended, facts)
    finished.write()
    record.forget_checkpoint(out)
    return finished


def _run(
    trainer: Trainer, out: Path, identity: Identity, report: Callable[[Progress], None] | None
) -> str:
    """Train to the end, with checkpoints; returns why it ended, as a clause."""
    try:
        with fitting_memory(_TOO_LARGE):
            return trainer.run(
                report or (lambda _now: None),
                lambda: record.write_checkpoint(out, identity, trainer),
            )
    except ModelError:
        if not trainer.curve:  # nothing is lost with the checkpoint, and the folder is free again
            record.forget_checkpoint(out)
            with suppress(OSError):  # it holds something else
                out.rmdir()
        raise


def split_sentences(
    sentences: Sequence[_Sentence], settings: TrainingSettings
) -> tuple[list[_Sentence], list[_Sentence]]:
    """Sentences to train on, and the share to validate on, one or more."""
    order = np.random.default_rng(settings.seed).permutation(len(sentences))
    n_apart = max(1, round(settings.validation * len(sentences)))
    rows = np.sort(order[n_apart:]), np.sort(order[:n_apart])
    training, apart = ([sentences[row] for row in part] for part in rows)
    return training, apart


def _computes_in_bf16(precision: TrainingPrecision, device: str) -> bool:
    """True if a training computes in bfloat16 where that is safe.

    Raises:
        ModelError: there is no such precision, or the device does not have it.
    """
    if precision not in get_args(TrainingPrecision):
        raise ModelError(f"`precision` must be auto, float32 or bfloat16, not {precision!r}.")
    has_it = device != "cuda" or torch.cuda.is_bf16_supported()
    if precision == "bfloat16" and not has_it:
        raise ModelError("This GPU does not compute in bfloat16. Use the precision float32.")
    return precision == "bfloat16" or (precision == "auto" and device == "cuda" and has_it)


def _digest(sentences: Sequence[Sentence]) -> str:
    digest = hashlib.sha256()
    for sentence in sentences:
        digest.update(f"{sentence}\n".encode())
    return digest.hexdigest()
