"""One training run, from sentences to a model in a folder."""

from __future__ import annotations

import hashlib
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch

from contstim.errors import InputError, ModelError
from contstim.models.batching import fitting_memory
from contstim.models.loading import Device, check_choice, resolve_device
from contstim.models.recurrent.network import RecurrentNetwork, Shape, write_folder
from contstim.models.training import record
from contstim.models.training.loop import BUILDING, Progress, Trainer, TrainingTask, seeded
from contstim.models.training.settings import (
    NETWORKS,
    NetworkSettings,
    RecurrentSettings,
    TrainingPrecision,
    TrainingSettings,
    TransformerSettings,
)
from contstim.models.training_text import sentence_hashes, write_training_text
from contstim.models.vocabularies import UNKNOWN, WordList
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.models.training.record import Identity

_Sentence = TypeVar("_Sentence", bound=Sentence)
_TOO_LARGE = (
    "The network does not fit into memory. Use smaller sizes, a smaller vocabulary, or a "
    "smaller `batch_size`."
)
_ADAPTIVE_FROM = 4_000  # words; with a smaller vocabulary, a plain softmax is fast enough


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

    `load_model` loads the trained network. The specification of a recurrent network in the folder
    DIR is `rnn:DIR`, `lstm:DIR` or `bilstm:DIR`. That of a small transformer is `hf:DIR`. The
    transformer and its tokenizer are saved in the format of `transformers`.

    GPT-2 predicts every token of a sentence and the end of the sentence. BERT predicts hidden
    tokens. By default, the proportion of hidden tokens is random for each sentence, because
    `chain`, a scoring rule of masked models, hides from one word to all words. The original BERT
    always hid 15 % of the tokens.

    The folder also gets `training.json` and `curve.png`. A call with the text and settings of an
    interrupted training resumes this training from its last checkpoint. On a CPU, the result is
    that of an uninterrupted training. If the training has finished, its result is read from the
    folder.

    Args:
        sentences: text, including the sentences for validation. Sentences with more tokens than a
            transformer reads are truncated.
        out: folder of the model, created if necessary.
        network: kind and sizes of the network; by default an LSTM with the sizes of Golan et al.
            (2023).
        training: settings of the training; the default depends on the kind of network.
        device: device to use; `auto` is a GPU if there is one.
        precision: float format; `auto` is bfloat16 on a GPU that supports it, otherwise float32.
        on_progress: function that is called with the progress after every step.

    Raises:
        InputError: if there are fewer training sentences than one batch needs; if the text has
            fewer distinct words or tokens than requested; if the folder contains other files, or a
            training with other settings; or if the folder cannot be written.
        ModelError: if the device does not exist, lacks memory or does not support the precision; if
            a sentence contains a special token of the tokenizer; or if the training diverges.
    """
    settings = network or RecurrentSettings()
    quiet: AbstractContextManager[None] = nullcontext()
    if isinstance(settings, TransformerSettings):
        from contstim.models.checkpoints import silence
        from contstim.models.training.transformers import transformer_task

        build, quiet = partial(transformer_task, settings=settings), silence()
    else:
        build = partial(recurrent_task, settings=settings)
    _, default_training = NETWORKS[settings.kind]
    with quiet:
        return train_task(
            build,
            [*sentences],
            Path(out),
            settings,
            training or default_training,
            device=device,
            precision=precision,
            on_progress=on_progress,
        )


def recurrent_task(text: Sequence[Sentence], settings: RecurrentSettings) -> TrainingTask:
    """Create the training task of a recurrent network; its vocabulary is from the text."""
    words = WordList.from_sentences(
        text, size=settings.vocabulary_size, min_count=settings.min_count
    )
    # The adaptive softmax (Grave et al. 2017) divides words into three clusters: the most frequent
    # 10 %, the next 30 %, and the remaining 60 %. Networks with few words or narrow states have a
    # plain softmax
    large = len(words) >= _ADAPTIVE_FROM and settings.hidden >= 64
    network = RecurrentNetwork(
        Shape(
            kind=settings.kind,
            words=len(words),
            embedding=settings.embedding,
            hidden=settings.hidden,
            layers=settings.layers,
            dropout=settings.dropout,
            cutoffs=(len(words) // 10, 2 * len(words) // 5) if large else (),
        )
    )
    counts = [int((words.numbers(s.words) == UNKNOWN).sum()) for s in text]
    return TrainingTask(
        network=network,
        encode=lambda sentences: [words.numbers(sentence.words) for sentence in sentences],
        log_probs=network,
        save=lambda folder: write_folder(folder, network, words),
        facts={
            "vocabulary": len(words.words),
            "unknown_share": sum(counts) / sum(map(len, text)),
            "cutoffs": network.shape.cutoffs,
        },
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
    """Train from the start, or from the last checkpoint of an interrupted run, and save the model.

    A finished run is not repeated.

    `build` makes the task from the training sentences. `settings` are the settings of the training.
    `validation` contains the sentences for validation. If `validation` is None, a part of
    `sentences` is held out for validation. For other arguments and errors, see `train_network`.
    """
    device_name = resolve_device(device)
    bf16 = _computes_in_bf16(precision, device_name)
    # A run in the folder is resumed only if it has exactly these values
    identity: dict[str, object] = {
        **asdict(network),
        **asdict(settings),
        "precision": "bfloat16" if bf16 else "float32",
        "text_sha256": _digest(sentences),
    }
    if validation is not None:
        identity["validation_sha256"] = _digest(validation)
    begun = record.is_begun(out, identity)
    if begun and not (out / record.CHECKPOINT).is_file():  # the run has finished
        return record.Training.from_file(out)
    training, held_out = sentences, validation
    if held_out is None:
        training, held_out = split_sentences(sentences, settings)
    if len(training) < settings.batch_size:
        raise InputError(
            f"`batch_size` must be at most {len(training):,}, the number of training sentences "
            f"({len(held_out):,} other sentences are for validation), got "
            f"{settings.batch_size:,}. Lower `batch_size`, or use a longer text."
        )
    with seeded(settings.seed, BUILDING, device_name), fitting_memory(_TOO_LARGE):
        task = build(training)
        trainer = Trainer(task, training, held_out, settings, device=device_name, bf16=bf16)
    if begun:
        record.read_checkpoint(out, trainer)
    else:
        record.write_checkpoint(out, identity, trainer)
    reason = _run(trainer, out, identity, on_progress)
    facts = {
        "settings": identity,
        "text": {
            "sentences": len(training) + len(held_out),
            "words": sum(map(len, chain(training, held_out))),
            "validation_sentences": len(held_out),
        },
        "model": {"parameters": sum(w.numel() for w in task.network.parameters()), **task.facts},
        "device": device_name,
        "threads": torch.get_num_threads(),
    }
    # Remove the checkpoint last. If this run is killed before, the next run resumes from the
    # checkpoint and writes the missing files
    task.save(out)
    write_training_text(out, sentence_hashes(chain(training, held_out)))
    finished = record.Training(out, trainer.curve, reason, facts)
    finished.write()
    record.forget_checkpoint(out)
    return finished


def _run(
    trainer: Trainer, out: Path, identity: Identity, report: Callable[[Progress], None] | None
) -> str:
    """Train, write checkpoints, and return why the training ended, as a clause."""
    try:
        with fitting_memory(_TOO_LARGE):
            return trainer.run(
                report or (lambda _now: None),
                lambda: record.write_checkpoint(out, identity, trainer),
            )
    except ModelError:
        # Without a finished epoch, the checkpoint contains no result. Remove it, so that the folder
        # can be used with other settings
        if not trainer.curve:
            record.forget_checkpoint(out)
            with suppress(OSError):  # if the folder has other files
                out.rmdir()
        raise


def split_sentences(
    sentences: Sequence[_Sentence], settings: TrainingSettings
) -> tuple[list[_Sentence], list[_Sentence]]:
    """Divide sentences at random, by the seed of the settings, for training and validation.

    At least one sentence is for validation. Both parts keep the order of the sentences.
    """
    order = np.random.default_rng(settings.seed).permutation(len(sentences))
    n_held_out = max(1, round(settings.validation * len(sentences)))
    rows = np.sort(order[n_held_out:]), np.sort(order[:n_held_out])
    training, held_out = ([sentences[row] for row in part] for part in rows)
    return training, held_out


def _computes_in_bf16(precision: TrainingPrecision, device: str) -> bool:
    """Return True if the network computes in bfloat16, with float32 weights and autocast."""
    check_choice("precision", precision, TrainingPrecision)
    supports_bf16 = device != "cuda" or torch.cuda.is_bf16_supported()
    if precision == "bfloat16" and not supports_bf16:
        raise ModelError("This GPU does not support bfloat16. Set `precision` to float32.")
    return precision == "bfloat16" or (precision == "auto" and device == "cuda" and supports_bf16)


def _digest(sentences: Sequence[Sentence]) -> str:
    return hashlib.sha256("".join(f"{sentence}\n" for sentence in sentences).encode()).hexdigest()
