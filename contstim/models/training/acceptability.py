"""Fine-tuning classifiers of acceptability, several times from different heads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import torch

from contstim.errors import InputError
from contstim.models.checkpoints import new_classifier, silence
from contstim.models.classifier import LABELS, ClassifierModel, load_classifier
from contstim.models.loading import Loading
from contstim.models.special_tokens import refuse_special_tokens
from contstim.models.training.cola import LabelledSet, read_annotations, read_cola
from contstim.models.training.loop import TrainingTask
from contstim.models.training.run import split_sentences, train_network
from contstim.models.training.settings import FINE_TUNING, ClassifierSettings
from contstim.models.training.transformers import save_pretrained

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from contstim.arrays import IntArray
    from contstim.models.checkpoints import Checkpoint
    from contstim.models.loading import Device
    from contstim.models.training.cola import LabelledSentence
    from contstim.models.training.loop import Progress
    from contstim.models.training.record import Training
    from contstim.models.training.settings import (
        AcceptabilitySettings,
        TrainingPrecision,
        TrainingSettings,
    )
    from contstim.sentence import Sentence


@dataclass(frozen=True)
class Restarts:
    """Trainings of the same network on the same sentences with different seeds.

    Attributes:
        trainings: in order of their seeds, each in a folder that `classifier:DIR` reads.
        seeds: the seed of each.
        validation: the validation sentences of all.
    """

    trainings: tuple[Training, ...]
    seeds: tuple[int, ...]
    validation: tuple[LabelledSentence, ...]


def train_classifiers(
    settings: AcceptabilitySettings,
    out: Path,
    on_progress: Callable[[int, Progress], None] | None = None,
) -> tuple[Restarts, list[ClassifierModel], list[LabelledSet]]:
    """Fine-tune classifiers on a file of labelled sentences, and read what they are to judge.

    Args:
        settings: files, the network, and how it is trained.
        out: the folder of the restarts' folders.
        on_progress: called after every step with the number of the restart, from 1.

    Returns:
        The trainings; the classifiers, read back from their folders, so that results are those of
        what users will load; and the sets of sentences to judge.

    Raises:
        InputError: a file cannot be read; or see `train_acceptability`.
        ModelError: see `train_acceptability`.
    """
    sentences = read_cola(settings.data)
    sets = [LabelledSet(path.name, tuple(read_cola(path))) for path in settings.evaluate]
    annotations = settings.annotations
    annotated = [] if annotations is None else [read_annotations(annotations)]
    done = train_acceptability(
        sentences,
        out,
        settings.restarts,
        ClassifierSettings(base=settings.base),
        settings.training,
        device=settings.device,
        precision=settings.precision,
        trust_remote_code=settings.trust_remote_code,
        on_progress=on_progress,
    )
    loading = Loading(device=settings.device, trust_remote_code=settings.trust_remote_code)
    models = [
        load_classifier(str(one.out), name=f"classifier:{one.out}", loading=loading)
        for one in done.trainings
    ]
    sets = sets or [LabelledSet("kept apart", done.validation)]
    return done, models, [*sets, *annotated]


def train_acceptability(
    sentences: Sequence[LabelledSentence],
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
    and decide the first weights of the head, the order of sentences, and dropout. Each folder also
    gets `training.json` and `curve.png`; losses are those of the labels. A finished restart is not
    repeated; an interrupted one resumes from its last checkpoint.

    Args:
        sentences: the text, of which a share is for validation.
        out: the folder of the restarts' folders.
        restarts: number of restarts.
        network: the network to fine-tune.
        training: how it is trained.
        device: `auto` is a GPU where there is one.
        precision: `auto` is bfloat16 on a GPU that has it, else float32.
        trust_remote_code: whether the base may run code that comes with it.
        on_progress: called after every step with the number of the restart, from 1.

    Raises:
        InputError: less than one restart, fewer sentences than a batch; a folder holds something
            else or a training with other settings, or cannot be written.
        ModelError: the network cannot be loaded, there is no such device, a sentence holds a
            special token of the tokenizer, or the loss is no longer a number.
    """
    if restarts < 1:
        raise InputError(f"`restarts` must be 1 or more, not {restarts}.")
    chosen = network or ClassifierSettings()
    texts, apart = split_sentences(sentences, training)
    seeds = tuple(training.seed + number for number in range(restarts))
    trainings = []
    for number, seed in enumerate(seeds, start=1):

        def report(now: Progress, number: int = number) -> None:
            if on_progress is not None:
                on_progress(number, now)

        with silence():
            trainings.append(
                train_network(
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
    return Restarts(tuple(trainings), seeds, tuple(apart))


def classifier_task(
    text: Sequence[Sentence], settings: ClassifierSettings, *, trust_remote_code: bool = False
) -> TrainingTask:
    """A pretrained network with a new head; it reads a label and then a sentence's tokens."""
    checkpoint = new_classifier(settings.base, LABELS, trust_remote_code=trust_remote_code)
    network, tokenizer = checkpoint.model, checkpoint.tokenizer
    # networks without a token to pad with (GPT-2) pad with the end of a text
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    network.config.pad_token_id = tokenizer.pad_token_id
    pad = int(tokenizer.pad_token_id)

    def log_probs(rows: Tensor, present: Tensor) -> Tensor:
        # rows (b, 1 + l): the label stands before the tokens, see `_rows`
        labels, ids, read = rows[:, 0], rows[:, 1:], present[:, 1:]
        ids = ids.masked_fill(~read, pad)  # some networks count places from the padding
        logits = network(input_ids=ids, attention_mask=read.long()).logits
        return -torch.nn.functional.cross_entropy(logits.float(), labels, reduction="none")

    # before they are cut to the window
    lengths = [len(row) for row in _tokens(checkpoint, text)]
    window = checkpoint.window or max(lengths)
    return TrainingTask(
        network=network,
        encode=lambda sentences: _rows(checkpoint, sentences),
        log_probs=log_probs,
        save=lambda folder: save_pretrained(network, tokenizer, folder),
        facts={
            "tokens_a_sentence": float(np.mean(lengths)),
            "sentences_cut": sum(length > window for length in lengths),
            "acceptable_share": float(
                np.mean([sentence.acceptable for sentence in _labelled(text)])
            ),
        },
    )


def _rows(checkpoint: Checkpoint, sentences: Sequence[Sentence]) -> list[IntArray]:
    """Rows of a label and the tokens that the network reads, cut to its window."""
    special = set(checkpoint.tokenizer.all_special_ids)
    rows = []
    all_tokens = _tokens(checkpoint, sentences)
    for sentence, tokens in zip(_labelled(sentences), all_tokens, strict=True):
        row = tokens[: checkpoint.window or len(tokens)]
        if len(row) < len(tokens) and tokens[-1] in special:
            row[-1] = tokens[-1]  # a row that is cut still ends as the network has learnt to read
        rows.append(np.array([sentence.acceptable, *row], np.int64))
    return rows


def _tokens(checkpoint: Checkpoint, sentences: Sequence[Sentence]) -> list[list[int]]:
    refuse_special_tokens(checkpoint.tokenizer, sentences)
    texts = [sentence.text for sentence in sentences]
    ids: list[list[int]] = checkpoint.tokenizer(texts, verbose=False)["input_ids"]
    return ids


def _labelled(sentences: Sequence[Sentence]) -> Sequence[LabelledSentence]:
    """The sentences of `train_acceptability`, which the loop takes as plain sentences."""
    return cast("Sequence[LabelledSentence]", sentences)
