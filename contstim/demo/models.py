"""The models of the demo: one of every kind, small enough to be trained while one waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.models.catalog import load_model
from contstim.models.ngram.training import train_ngram
from contstim.models.training.settings import (
    RecurrentSettings,
    TrainingSettings,
    TransformerSettings,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from contstim.models.base import LanguageModel
    from contstim.models.training.loop import Progress
    from contstim.sentence import Sentence

# Small and briefly trained: the demo needs models that differ, not good ones.
NGRAMS = {"2-gram": 2, "3-gram": 3}
RECURRENT = {
    "RNN": RecurrentSettings(kind="rnn", embedding=64, hidden=96, min_count=1),
    "LSTM": RecurrentSettings(kind="lstm", embedding=64, hidden=96, min_count=1),
}
TRANSFORMERS = {
    "GPT-2": TransformerSettings(kind="gpt2", width=64, layers=2, heads=2, window=32, dropout=0),
    "BERT": TransformerSettings(kind="bert", width=64, layers=2, heads=2, window=32, dropout=0),
}
NAMES = (*NGRAMS, *RECURRENT, *TRANSFORMERS)
EPOCHS = {"RNN": 2, "LSTM": 3, "GPT-2": 3, "BERT": 3}
LEARNING_RATES = {"RNN": 0.01, "LSTM": 0.01, "GPT-2": 0.006, "BERT": 0.006}


def train(
    name: str,
    text: Sequence[Sentence],
    folder: Path,
    *,
    seed: int,
    most_epochs: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> LanguageModel:
    """One of `NAMES`, trained on a text or taken from the folder where it was trained before.

    Args:
        name: which.
        text: what it is trained on.
        folder: holds the models, each under its name.
        seed: decides a network's first weights and the order of sentences.
        most_epochs: cuts every network's training short.
        on_progress: told after every step of a network's training.

    Raises:
        InputError: the folder holds a model of that name with another text or other settings.
    """
    if name in NGRAMS:
        path = folder / f"{name}.arpa"
        train_ngram(text, NGRAMS[name], path)
        return load_model(f"kenlm:{path}", name=name)
    # Every trainer takes up what an earlier call left in its folder.
    epochs = min(EPOCHS[name], most_epochs or EPOCHS[name])
    settings = TrainingSettings(
        epochs=epochs, batch_size=32, learning_rate=LEARNING_RATES[name], seed=seed
    )
    out = folder / name
    # Imported here: PyTorch and transformers take seconds, which n-gram models need not wait for.
    if name in RECURRENT:
        from contstim.models.training.recurrent import train_recurrent

        kind = RECURRENT[name]
        train_recurrent(text, out, kind, settings, device="cpu", on_progress=on_progress)
    else:
        from contstim.models.training.transformers import train_transformer

        small = TRANSFORMERS[name]
        train_transformer(text, out, small, settings, device="cpu", on_progress=on_progress)
    return load_model(str(folder / name), device="cpu", name=name)
