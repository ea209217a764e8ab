"""Training an RNN, LSTM or BiLSTM over words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.models.recurrent.folder import write_folder
from contstim.models.recurrent.network import RecurrentNetwork, Shape
from contstim.models.training.loop import TrainingTask
from contstim.models.vocabularies import UNKNOWN, WordList

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.models.training.settings import RecurrentSettings
    from contstim.words.sentence import Sentence

_ADAPTIVE_FROM = 4_000  # words; below, one softmax over all of them costs little


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
