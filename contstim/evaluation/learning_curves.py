"""Models of one kind after more and more text, for learning curves."""

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
    """The numbers of sentences that a text such as `1000,10000` names.

    Raises:
        InputError: they are no numbers.
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
    """Train a model on each part of a text, and leave it in the folder.

    What an interrupted run has trained is not trained again.

    Args:
        text: of which the parts are drawn; see `nested_texts`.
        settings: sizes of the parts and kind of the model; networks have the sizes that are the
            defaults of `contstim train`.
        folder: of the models, each named by its kind and number of sentences.
        taken: names of other models.
        device: where a network is trained, and scores.
        say: told what happens next.
        on_progress: told a network's name, and where its training is.

    Returns:
        Models with what they have read, from the smallest part to the largest.

    Raises:
        InputError: sizes are no numbers, or make no parts; a name is taken.
        ModelError, CorpusError: see `train_ngram` and `train_network`.
    """
    sizes = sizes_of(settings.sizes or "")
    if max(sizes) > len(text):
        say(f"The text has {counted(len(text), 'sentence')}, not {max(sizes):,}: all are used.")
    parts = {f"{settings.train}-{len(p)}": p for p in nested_texts(text, sizes, settings.seed)}
    if both := parts.keys() & taken:
        raise InputError(f"{min(both)!r} is what a model is called that is trained here.")
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
    """Random parts of a text with so many sentences, ascending, each within the next.

    A size larger than the text gives the whole text.

    Raises:
        InputError: a size is not positive, or two parts would be the same.
    """
    numbers = sorted(min(size, len(sentences)) for size in sizes)
    if len(set(numbers)) < len(numbers) or min(numbers, default=1) < 1:
        given = ", ".join(map(str, sizes))
        raise InputError(
            f"`sizes` are distinct numbers of the text's {len(sentences):,} sentences, not {given}."
        )
    # the first n of one random order, so that a smaller text lies within a larger one
    order = np.random.default_rng(seed).permutation(len(sentences))
    return [[sentences[i] for i in order[:n]] for n in numbers]


def train_model(
    text: Sequence[Sentence],
    out: Path,
    architecture: int | RecurrentSettings | TransformerSettings,
    training: TrainingSettings,
    **run: Any,
) -> str:
    """Train a model, and return its specification; other kinds' libraries are not loaded.

    Args:
        text: what it is trained on.
        out: its folder; of n-grams the file, to whose name `.arpa` is added.
        architecture: words of the longest n-grams, or a network's.
        training: of a network.
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
