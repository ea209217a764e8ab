"""Models trained on a text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from contstim.corpus import read_sentences
from contstim.models.ngram.training import train_ngram
from contstim.models.training.settings import (
    RECURRENT_TRAINING,
    TRANSFORMER_TRAINING,
    RecurrentSettings,
    TrainingPrecision,
    TrainingSettings,
    TransformerSettings,
)
from contstim.records import record_path, write_record
from contstim.steps.watching import SILENT

if TYPE_CHECKING:
    from contstim.models.loading import Device
    from contstim.models.ngram.estimate import Estimate
    from contstim.models.training.record import Training
    from contstim.steps.watching import Watcher


def train_ngram_model(
    text: Path,
    out: Path,
    *,
    order: int = 3,
    prose: bool = False,
    watch: Watcher = SILENT,
) -> Estimate:
    """Write an n-gram model of a text as an ARPA file; beside it counts, hashes and a record.

    Args:
        text: one sentence a line, or running prose.
        out: the ARPA file.
        order: length of the longest n-grams, 1 to 6.
        prose: whether the text is to be split into sentences.
        watch: told what is done.

    Raises:
        InputError: the order is not 1 to 6, or a file cannot be read or written.
        CorpusError: the text is too small.
    """
    sentences = watch.reading(read_sentences(text, prose=prose))
    trained = train_ngram(sentences, order, out, text=text)
    sizes = (f"{len(table.keys):,}" for table in trained.tables.orders)
    watch.remark(f"{out}: {' + '.join(sizes)} n-grams of order 1 to {order}.")
    return trained


def train_network(
    network: RecurrentSettings | TransformerSettings,
    text: Path,
    out: Path,
    *,
    training: TrainingSettings | None = None,
    prose: bool = False,
    device: Device = "auto",
    precision: TrainingPrecision = "auto",
    watch: Watcher = SILENT,
) -> Training:
    """Write a network trained on a text into a folder, with its curve, and a record beside it.

    An interrupted training goes on from its last checkpoint; a finished one is not repeated.

    Args:
        network: kind and sizes.
        text: one sentence a line, or running prose.
        out: the folder of the model.
        training: how it is trained; by default what suits the kind.
        prose: whether the text is to be split into sentences.
        device: `auto` is a GPU where there is one.
        precision: `auto` is bfloat16 on a GPU that has it, else float32.
        watch: told what is done.

    Raises:
        InputError: the text is too short, a file cannot be read or written, or the folder holds
            something else or a training with other settings.
        ModelError: there is no such device, or the loss is no longer a number.
    """
    sentences = list(watch.reading(read_sentences(text, prose=prose)))
    # Asked before the training, which leaves the same file when it is new.
    already = (out / "training.json").is_file()
    with watch.training() as progress:
        # Imported here, because transformers take seconds that a recurrent network need not wait.
        if isinstance(network, RecurrentSettings):
            from contstim.models.training.recurrent import train_recurrent

            done = train_recurrent(
                sentences,
                out,
                network,
                training or RECURRENT_TRAINING,
                device=device,
                precision=precision,
                on_progress=progress,
            )
        else:
            from contstim.models.training.transformers import train_transformer

            done = train_transformer(
                sentences,
                out,
                network,
                training or TRANSFORMER_TRAINING,
                device=device,
                precision=precision,
                on_progress=progress,
            )
    # training.json in the folder tells how the model was trained; this one, of which files. It
    # stays as it was when nothing was trained.
    if not (already and record_path(out).is_file()):
        write_record(out, [text], kind=network.kind)
    if already:
        watch.remark(f"{done.out} was trained before with this text and these settings.")
    family = network.kind if isinstance(network, RecurrentSettings) else "hf"
    best_epoch = done.curve.index(done.best) + 1
    watch.remark(
        f"{done.out}: validation perplexity {done.perplexity:,.2f} after epoch {best_epoch} of "
        f"{len(done.curve)}; {done.ended}. Load it as {family}:{out}."
    )
    return done
