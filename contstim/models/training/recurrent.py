"""Training of an RNN, LSTM or BiLSTM over words."""

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

_ADAPTIVE_FROM = 4_000  # words; for fewer words, a plain softmax is fast enough


def recurrent_task(text: Sequence[Sentence], settings: RecurrentSettings) -> TrainingTask:
    """Create a network with initial weights and the vocabulary of a text."""
    words = WordList.from_sentences(
        text, size=settings.vocabulary_size, min_count=settings.min_count
    )
    # The adaptive softmax (Grave et al. 2017) has three clusters, which end at a tenth, two fifths
    # and all of the words; a small network has a single softmax.
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
    # Number of words in each sentence that the network reads as unknown
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
