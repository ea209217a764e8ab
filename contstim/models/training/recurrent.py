"""Training an RNN, LSTM or BiLSTM over words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from contstim.models.recurrent.folder import write_folder
from contstim.models.recurrent.network import RecurrentNetwork, Shape
from contstim.models.training.loop import TrainingTask
from contstim.models.training.run import train_network
from contstim.models.training.settings import RECURRENT_TRAINING, RecurrentSettings
from contstim.models.vocabularies import UNKNOWN, WordList

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.models.loading import Device
    from contstim.models.training.loop import Progress
    from contstim.models.training.record import Training
    from contstim.models.training.settings import TrainingPrecision, TrainingSettings
    from contstim.sentence import Sentence

_ADAPTIVE_FROM = 4_000  # words; below, one softmax over all of them costs little


def train_recurrent(
    sentences: Iterable[Sentence],
    out: Path | str,
    network: RecurrentSettings | None = None,
    training: TrainingSettings = RECURRENT_TRAINING,
    *,
    device: Device = "auto",
    precision: TrainingPrecision = "auto",
    on_progress: Callable[[Progress], None] | None = None,
) -> Training:
    """Train a recurrent network on a text and save it in a folder that `load_model` reads.

    The folder also gets `training.json` and `curve.png`. Called again with the same text and
    settings, an interrupted training resumes from its last checkpoint, on a CPU as if it had never
    stopped; a finished training is read from the folder.

    Args:
        sentences: the text, of which a share is for validation.
        out: the folder, made if need be.
        network: kind and sizes; by default an LSTM with the sizes of the 2023 study.
        training: how it is trained.
        device: `auto` is a GPU where there is one.
        precision: `auto` is bfloat16 on a GPU that has it, else float32.
        on_progress: called after every step.

    Raises:
        InputError: the text is shorter than a batch, or has fewer distinct words than asked for;
            the folder holds something else or a training with other settings, or cannot be written.
        ModelError: there is no such device, or the loss is no longer a number.
    """
    chosen = network or RecurrentSettings()
    return train_network(
        lambda text: recurrent_task(text, chosen),
        list(sentences),
        Path(out),
        chosen,
        training,
        device=device,
        precision=precision,
        on_progress=on_progress,
    )


def recurrent_task(text: Sequence[Sentence], settings: RecurrentSettings) -> TrainingTask:
    """A network with first weights, and the words of a text."""
    words = WordList.from_sentences(
        text, size=settings.vocabulary_size, min_count=settings.min_count
    )
    # The adaptive softmax (Grave et al. 2017) has three clusters, the first two of which end at a
    # tenth and at two fifths of the words; a small network has a single softmax.
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
    # words of the text that the network reads as unknown
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
