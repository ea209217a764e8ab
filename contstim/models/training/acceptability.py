"""Fine-tuning classifiers of acceptability, several times from different heads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import torch

from contstim.errors import InputError
from contstim.models.checkpoints import new_classifier, silence
from contstim.models.classifier.labels import LABELS
from contstim.models.special_tokens import refuse_special_tokens
from contstim.models.training.run import run, split_sentences
from contstim.models.training.settings import FINE_TUNING, ClassifierSettings
from contstim.models.training.task import Task
from contstim.models.training.transformers import save_pretrained

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from contstim.arrays import IntArray
    from contstim.models.checkpoints import Checkpoint, Device
    from contstim.models.training.cola import Labelled
    from contstim.models.training.loop import Progress
    from contstim.models.training.record import Training
    from contstim.models.training.settings import TrainingPrecision, TrainingSettings
    from contstim.sentence import Sentence


@dataclass(frozen=True)
class Restarts:
    """Trainings of the same network on the same sentences, which differ in their seeds.

    Attributes:
        trainings: in order of their seeds, each in a folder that `classifier:DIR` reads.
        seeds: of each.
        validation: the sentences that all of them were validated on.
    """

    trainings: tuple[Training, ...]
    seeds: tuple[int, ...]
    validation: tuple[Labelled, ...]


def train_acceptability(
    sentences: Sequence[Labelled],
    out: Path | str,
    restarts: int = 1,
    network: ClassifierSettings | None = None,
    training: TrainingSettings = FINE_TUNING,
    *,
    device: Device = "auto",
    precision: TrainingPrecision = "auto",
    trust_remote_code: bool = False,
    on_progress: Callable[[int, Progress], None] | None = None,
) -> Restarts:
    """Fine-tune classifiers and leave them in the folders `restart-1`, `restart-2`, ….

    All are trained and validated on the same sentences. Seeds count up from that of the settings
    and decide the first weights of the head, the order of sentences, and what dropout hides. Each
    folder also gets `training.json` and `curve.png`; losses are those of the labels. A restart that
    is finished is not repeated, one that was interrupted goes on after its last whole epoch.

    Args:
        sentences: the text, of which a share is kept apart for validation.
        out: the folder of the restarts' folders.
        restarts: how many.
        network: what is fine-tuned.
        training: how it is trained.
        device: `auto` is a GPU where there is one.
        precision: `auto` is bfloat16 on a GPU that has it, else float32.
        trust_remote_code: whether the base may run code that comes with it.
        on_progress: told the restart, from 1, and where it is, after every step.

    Raises:
        InputError: no restart, fewer sentences than a batch; a folder holds something else or a
            training with other settings, or cannot be written.
        ModelError: the network cannot be loaded, there is no such device, a sentence holds a
            special token of the tokenizer, or the loss is no longer a number.
    """
    if restarts < 1:
        raise InputError(f"--restarts must be 1 or more, not {restarts}.")
    chosen = network or ClassifierSettings()
    texts, apart = split_sentences(sentences, training)
    seeds = tuple(training.seed + number for number in range(restarts))
    done = []
    for number, seed in enumerate(seeds, start=1):

        def report(now: Progress, number: int = number) -> None:
            if on_progress is not None:
                on_progress(number, now)

        with silence():
            done.append(
                run(
                    lambda text: classifier_task(text, chosen, trust_remote_code=trust_remote_code),
                    texts,
                    Path(out) / f"restart-{number}",
                    chosen,
                    replace(training, seed=seed),
                    validation=apart,
                    device=device,
                    precision=precision,
                    on_progress=report,
                )
            )
    return Restarts(tuple(done), seeds, tuple(apart))


def classifier_task(
    text: Sequence[Sentence], settings: ClassifierSettings, *, trust_remote_code: bool = False
) -> Task:
    """A pretrained network with a new head; it reads a label and then a sentence's tokens."""
    checkpoint = new_classifier(settings.base, LABELS, trust_remote_code=trust_remote_code)
    network, tokenizer = checkpoint.model, checkpoint.tokenizer
    pad = _padding(checkpoint)

    def log_probs(rows: Tensor, present: Tensor) -> Tensor:
        labels, ids, read = rows[:, 0], rows[:, 1:], present[:, 1:]
        ids = ids.masked_fill(~read, pad)  # some networks count places from the padding
        logits = network(input_ids=ids, attention_mask=read.long()).logits
        return -torch.nn.functional.cross_entropy(logits.float(), labels, reduction="none")

    lengths = [len(row) for row in _tokens(checkpoint, text)]
    window = checkpoint.window or max(lengths)
    return Task(
        network=network,
        encode=lambda sentences: _rows(checkpoint, sentences),
        log_probs=log_probs,
        save=lambda folder: save_pretrained(network, tokenizer, folder),
        facts={
            "tokens_a_sentence": float(np.mean(lengths)),
            "sentences_cut": sum(length > window for length in lengths),
            "acceptable_share": float(np.mean([one.acceptable for one in _labelled(text)])),
        },
    )


def _rows(checkpoint: Checkpoint, sentences: Sequence[Sentence]) -> list[IntArray]:
    """A label, and the tokens that the network reads; what is longer than its window is cut."""
    closing = set(checkpoint.tokenizer.all_special_ids)
    rows = []
    for one, tokens in zip(_labelled(sentences), _tokens(checkpoint, sentences), strict=True):
        window = checkpoint.window or len(tokens)
        kept = tokens[:window]
        if len(kept) < len(tokens) and tokens[-1] in closing:
            kept[-1] = tokens[-1]
        rows.append(np.array([one.acceptable, *kept], np.int64))
    return rows


def _tokens(checkpoint: Checkpoint, sentences: Sequence[Sentence]) -> list[list[int]]:
    refuse_special_tokens(checkpoint.tokenizer, sentences)
    texts = [sentence.text for sentence in sentences]
    ids: list[list[int]] = checkpoint.tokenizer(texts, verbose=False)["input_ids"]
    return ids


def _labelled(sentences: Sequence[Sentence]) -> Sequence[Labelled]:
    """What `train_acceptability` hands to the loop, which knows sentences only."""
    return cast("Sequence[Labelled]", sentences)


def _padding(checkpoint: Checkpoint) -> int:
    """The token to pad with; networks without one (GPT-2) get the end of a text."""
    tokenizer, config = checkpoint.tokenizer, checkpoint.model.config
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    config.pad_token_id = tokenizer.pad_token_id
    return int(tokenizer.pad_token_id)
