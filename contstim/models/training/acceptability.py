"""Fine-tuning of acceptability classifiers on labelled sentences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from contstim.errors import InputError, SentenceError
from contstim.files.documents import read_text, shortened
from contstim.files.tables import TABLE_KINDS, needed_columns, read_table
from contstim.models.checkpoints import Checkpoint, load_checkpoint, silence
from contstim.models.classifier import LABELS
from contstim.models.loading import Device, Loading
from contstim.models.training.loop import Progress, TrainingTask
from contstim.models.training.run import split_sentences, train_task
from contstim.models.training.settings import (
    FINE_TUNING,
    ClassifierSettings,
    TrainingPrecision,
    TrainingSettings,
)
from contstim.models.training.transformers import save_pretrained
from contstim.models.words import tokens_of_texts
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor

    from contstim.files.arrays import IntArray
    from contstim.models.training.record import Training


_COLA_COLUMNS = ("source", "label", "mark", "sentence")
_LABEL_COLUMNS = ("label", "acceptability")
_METADATA_COLUMNS = frozenset({"source", "domain", "mark"})


@dataclass(frozen=True, slots=True)
class LabelledSentence(Sentence):
    """A sentence, and whether experts accept it."""

    acceptable: bool = True

    @property
    def plain(self) -> Sentence:
        """The sentence without its label."""
        return Sentence(self.words, self.end)

    def __str__(self) -> str:
        return f"{int(self.acceptable)}\t{self.text}"


def read_cola(path: Path | str) -> list[LabelledSentence]:
    """Read sentences with labels: 1 for acceptable, 0 for unacceptable.

    Published files of the Corpus of Linguistic Acceptability (CoLA) have four tab-separated columns
    and no header: source, label, the author's mark, sentence. Tables (.csv, .tsv, .parquet, .jsonl)
    and tab-separated text with a header need the columns `label` (or `acceptability`) and
    `sentence`.

    Raises:
        InputError: if the file cannot be read or lacks a column; if a label is neither 0 nor 1; or
            if all labels are equal.
    """
    path = Path(path)
    sentences = _read_labelled(path, _columns(path))
    if len({sentence.acceptable for sentence in sentences}) < 2:
        raise InputError(f"{path} must contain acceptable (1) and unacceptable (0) sentences.")
    return sentences


def read_annotations(
    path: Path | str,
) -> tuple[list[LabelledSentence], dict[str, tuple[bool, ...]]]:
    """Read labelled sentences and their grammatical features.

    The format is that of CoLA's grammatical annotations. The file has a header, a column of
    sentences, a column of labels (`label` or `acceptability`), and a column of 1 and 0 for each
    feature. Letter case in the header does not matter.

    Returns:
        The sentences. Also a map from the name of each feature to one value for each sentence: True
        if the sentence has the feature.

    Raises:
        InputError: if the file cannot be read, lacks a column, or has no feature; if a label is
            neither 0 nor 1; or if a column of whole numbers has a number other than 0 and 1.
    """
    path = Path(path)
    columns = _columns(path)
    reserved_names = {*_LABEL_COLUMNS, *_METADATA_COLUMNS, "sentence", ""}
    features: dict[str, tuple[bool, ...]] = {}
    for name, cells in columns.items():
        values = [str(cell).strip() for cell in cells]
        invalid = next((i for i, value in enumerate(values) if value not in {"0", "1"}), None)
        if name.lower() in reserved_names:
            continue
        if invalid is None:
            features[name] = tuple(value == "1" for value in values)
        # A column of text is not a feature. Whole numbers other than 0 and 1 are an error
        elif all(value.lstrip("-").isdigit() for value in values):
            raise InputError(
                f"{path}, row {invalid + 1}: {name} must be 0 or 1, got "
                f"{shortened(values[invalid])}."
            )
    if not features:
        raise InputError(f"{path} has no features. Add a column of 1 and 0 for each feature.")
    return _read_labelled(path, columns), features


def _read_labelled(path: Path, columns: Mapping[str, Sequence[Any]]) -> list[LabelledSentence]:
    lower = {name.lower(): values for name, values in columns.items()}
    label = next((name for name in _LABEL_COLUMNS if name in lower), _LABEL_COLUMNS[0])
    cells = needed_columns(path, lower, (label, "sentence"))
    sentences = []
    for row, (mark, text) in enumerate(zip(*cells, strict=True), start=1):
        label_text = str(mark).strip()
        if isinstance(mark, bool) or label_text not in ("0", "1"):
            raise InputError(f"{path}, row {row}: the label must be 0 or 1, got {shortened(mark)}.")
        try:
            sentence = Sentence.parse(text)
        except SentenceError as error:
            raise InputError(f"{path}, row {row}: {error}") from error
        sentences.append(LabelledSentence(sentence.words, sentence.end, label_text == "1"))
    return sentences


def _columns(path: Path) -> Mapping[str, Sequence[Any]]:
    kind = path.suffix.lower()
    if kind in TABLE_KINDS and kind != ".tsv":
        return read_table(path)
    rows = [line.split("\t") for line in read_text(path).split("\n") if line]
    if kind == ".tsv" and rows and any(name.startswith('"') for name in rows[0]):
        return read_table(path)  # the quotation marks show that this is not one of CoLA's files
    if not rows:
        raise InputError(
            f"{path} is empty. Use a table with the columns {', '.join(_COLA_COLUMNS)}, separated "
            "by tabs."
        )
    has_header = "sentence" in (name.lower() for name in rows[0])
    names = tuple(rows.pop(0)) if has_header else _COLA_COLUMNS
    if not rows or len(set(names)) < len(names):
        raise InputError(f"{path} has only a header without rows, or has duplicate columns.")
    # The header, if any, is line 1. Empty lines are not counted
    for number, row in enumerate(rows, start=1 + has_header):
        if len(row) != len(names):
            raise InputError(
                f"{path}, line {number} must have {len(names)} columns, separated by tabs "
                f"({', '.join(names)}), got {len(row)}."
            )
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


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
) -> list[Training]:
    """Fine-tune classifiers, and save them in the folders `restart-1`, `restart-2`, ….

    Each restart trains one classifier. The sentences are divided once, by `split_sentences`, so all
    restarts have the same training sentences and the same validation sentences. The seed increases
    by 1 per restart. The seed of a restart determines the initial weights of the classification
    head, the order of sentences, and dropout. Each folder also gets `training.json` with the losses
    of each epoch, and `curve.png` with the perplexities, exp(loss). A finished restart is not
    repeated. An interrupted restart is resumed from its last checkpoint.

    Args:
        sentences: labelled sentences, including those for validation.
        out: folder that contains the folders of the restarts.
        restarts: number of restarts.
        network: network to fine-tune; by default `bert-base-cased`.
        training: settings of the training.
        device: see `train_network`.
        precision: see `train_network`.
        trust_remote_code: whether the pretrained checkpoint may run its Python code.
        on_progress: function that is called after every step. Its arguments are the number of the
            restart, from 1, and the progress.

    Returns:
        The trainings in order of their seeds. The specification `classifier:DIR` loads the
        classifier in a folder.

    Raises:
        InputError: if `restarts` is below 1; if there are fewer training sentences than one batch
            needs; if a folder contains other files, or a training with other settings; or if a
            folder cannot be written.
        ModelError: if the network cannot be loaded; if the device does not exist; if a sentence
            contains a special token of the tokenizer; or if the training diverges.
    """
    if restarts < 1:
        raise InputError(f"`restarts` must be at least 1, got {restarts}.")
    settings = network or ClassifierSettings()
    texts, held_out = split_sentences(sentences, training)
    with silence():
        return [
            train_task(
                lambda text: classifier_task(text, settings, trust_remote_code=trust_remote_code),
                texts,
                Path(out) / f"restart-{number}",
                settings,
                replace(training, seed=training.seed + number - 1),
                validation=held_out,
                device=device,
                precision=precision,
                on_progress=None if on_progress is None else partial(on_progress, number),
            )
            for number in range(1, restarts + 1)
        ]


def classifier_task(
    text: Sequence[LabelledSentence],
    settings: ClassifierSettings,
    *,
    trust_remote_code: bool = False,
) -> TrainingTask:
    """Create the training task: a pretrained network with a new output layer for two labels."""
    loading = Loading(device="cpu", trust_remote_code=trust_remote_code)
    checkpoint = load_checkpoint(settings.base, loading, classifier=True, labels=LABELS)
    network, tokenizer = checkpoint.model, checkpoint.tokenizer
    # Networks without a padding token (GPT-2) are padded with the end-of-text token
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    network.config.pad_token_id = tokenizer.pad_token_id
    pad = int(tokenizer.pad_token_id)

    def log_probs(rows: Tensor, present: Tensor) -> Tensor:
        # rows (b, 1 + l): a label and tokens, see `_rows`
        labels, ids, read = rows[:, 0], rows[:, 1:], present[:, 1:]
        ids = ids.masked_fill(~read, pad)  # some networks find the padding by this token
        logits = network(input_ids=ids, attention_mask=read.long()).logits
        return -torch.nn.functional.cross_entropy(logits.float(), labels, reduction="none")

    # Lengths before truncation to the window
    lengths = np.array([len(row) for row in tokens_of_texts(tokenizer, text)])
    return TrainingTask(
        network=network,
        encode=lambda sentences: _rows(checkpoint, sentences),
        log_probs=log_probs,
        save=lambda folder: save_pretrained(network, tokenizer, folder),
        facts={
            "tokens_a_sentence": float(lengths.mean()),
            "sentences_cut": int((lengths > (checkpoint.window or lengths.max())).sum()),
            "acceptable_share": float(np.mean([s.acceptable for s in text])),
        },
    )


def _rows(checkpoint: Checkpoint, sentences: Sequence[LabelledSentence]) -> list[IntArray]:
    """Encode each sentence as a row: its label, then its tokens, truncated to the window."""
    special = set(checkpoint.tokenizer.all_special_ids)
    rows = []
    read = tokens_of_texts(checkpoint.tokenizer, sentences)
    for sentence, tokens in zip(sentences, read, strict=True):
        row = tokens[: checkpoint.window or len(tokens)]
        if len(row) < len(tokens) and tokens[-1] in special:
            row[-1] = tokens[-1]  # a truncated row must also end with this special token
        rows.append(np.array([sentence.acceptable, *row], np.int64))
    return rows
