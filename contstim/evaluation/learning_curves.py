"""Models of one kind trained on texts of increasing size, for learning curves."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import InputError
from contstim.models.catalog import load_model
from contstim.models.training.settings import (
    NETWORKS,
    RecurrentSettings,
    TrainingSettings,
    TransformerSettings,
)
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from contstim.evaluation.settings import MinimalPairSettings
    from contstim.models.base import LanguageModel
    from contstim.models.loading import Device
    from contstim.models.training.loop import Progress
    from contstim.words.sentence import Sentence


def sizes_of(text: str) -> list[int]:
    """Parse numbers of sentences from a text such as `1000,10000`.

    Raises:
        InputError: if they are not numbers.
    """
    try:
        return [int(size) for size in text.split(",")]
    except ValueError:
        raise InputError(
            f"`sizes` must be whole numbers such as 1000,10000,100000, not {text!r}."
        ) from None


def train_on_parts(
    text: Sequence[Sentence],
    settings: MinimalPairSettings,
    folder: Path,
    *,
    taken: Collection[str] = (),
    device: Device = "auto",
    say: Callable[[str], None] = lambda _line: None,
    on_progress: Callable[[str, Progress], None] = lambda _name, _now: None,
) -> list[tuple[LanguageModel, list[Sentence]]]:
    """Train a model on each part of a text, and store it in the folder.

    A rerun after an interruption does not repeat finished trainings.

    Args:
        text: complete text; for its parts see `nested_texts`.
        settings: sizes of the parts and kind of the model; networks have the default sizes of
            `contstim train`.
        folder: folder of the models, each named by its kind and number of sentences.
        taken: names of other models.
        device: device for training and scoring networks.
        say: callback for messages on the next step.
        on_progress: callback that receives a network's name and the progress of its training.

    Returns:
        Models with their training texts, from the smallest to the largest.

    Raises:
        InputError: if sizes are not numbers or give no parts, or a name is taken.
        ModelError, CorpusError: see `train_ngram` and `train_network`.
    """
    sizes = sizes_of(settings.sizes or "")
    if max(sizes) > len(text):
        say(f"The text has {counted(len(text), 'sentence')}, not {max(sizes):,}: all are used.")
    parts = {f"{settings.train}-{len(p)}": p for p in nested_texts(text, sizes, settings.seed)}
    if duplicates := parts.keys() & taken:
        raise InputError(f"{min(duplicates)!r} is what a model is called that is trained here.")
    architecture, training = NETWORKS.get(settings.train, (settings.order, TrainingSettings()))
    training = replace(training, seed=settings.seed, epochs=settings.epochs or training.epochs)
    trained = []
    for name, part in parts.items():
        say(f"Training {settings.train} on {counted(len(part), 'sentence')}.")
        run: Any = {"device": device, "on_progress": partial(on_progress, name)}
        specification = train_model(part, folder / name, architecture, training, **run)
        trained.append((load_model(specification, name=name, device=device), part))
    return trained


def nested_texts(
    sentences: Sequence[Sentence], sizes: Sequence[int], seed: int
) -> list[list[Sentence]]:
    """Draw nested random parts of a text with these numbers of sentences, ascending.

    A size larger than the text gives the whole text.

    Raises:
        InputError: if a size is not positive, or two parts would be identical.
    """
    numbers = sorted(min(size, len(sentences)) for size in sizes)
    if len(set(numbers)) < len(numbers) or min(numbers, default=1) < 1:
        text = ", ".join(map(str, sizes))
        raise InputError(
            f"`sizes` are distinct numbers of the text's {len(sentences):,} sentences, not {text}."
        )
    # The first n of one random order, so that larger parts contain the smaller ones
    order = np.random.default_rng(seed).permutation(len(sentences))
    return [[sentences[i] for i in order[:n]] for n in numbers]


def train_model(
    text: Sequence[Sentence],
    out: Path,
    architecture: int | RecurrentSettings | TransformerSettings,
    training: TrainingSettings,
    **run: Any,
) -> str:
    """Train a model, and return its specification; libraries of other kinds are not loaded.

    Args:
        text: training text.
        out: output folder; for n-grams the file name without `.arpa`.
        architecture: number of words of the longest n-grams, or settings of a network.
        training: training settings of a network.
        run: `device`, `precision` and `on_progress` of a network.

    Raises:
        ModelError, CorpusError: see `train_ngram` and `train_network`.
    """
    if isinstance(architecture, int):
        from contstim.models.ngram.training import train_ngram

        train_ngram(text, architecture, out.with_name(f"{out.name}.arpa"))
        return f"kenlm:{out}.arpa"
    from contstim.models.training.run import train_network

    train_network(text, out, architecture, training, **run)
    return f"{architecture.kind if isinstance(architecture, RecurrentSettings) else 'hf'}:{out}"
