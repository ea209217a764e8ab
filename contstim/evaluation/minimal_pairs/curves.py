"""Learning curves: what models of one kind know after more and more text."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from contstim.errors import InputError
from contstim.models.catalog import load_model

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from contstim.arrays import FloatArray
    from contstim.evaluation.minimal_pairs.accuracies import Accuracies
    from contstim.models.base import LanguageModel
    from contstim.models.checkpoints import Device
    from contstim.models.training.loop import Progress
    from contstim.sentence import Sentence

Kind: TypeAlias = Literal["ngram", "rnn", "lstm", "bilstm", "gpt2", "bert"]


@dataclass(frozen=True)
class Learner:
    """The kind of model that is trained on every size of text.

    Attributes:
        kind: as of `contstim train`; networks have the sizes that are its defaults.
        order: of an n-gram model.
        epochs: of a network, at most; None: the default of its kind.
        device: where a network is trained, and scores.
    """

    kind: Kind = "ngram"
    order: int = 3
    epochs: int | None = None
    device: Device = "auto"


@dataclass(frozen=True)
class Learned:
    """A model and how much text it has read.

    Attributes:
        model: named by kind and sentences.
        sentences: how many it was trained on.
        words: of these sentences.
    """

    model: LanguageModel
    sentences: int
    words: int


def nested(sentences: Sequence[Sentence], sizes: Sequence[int], seed: int) -> list[list[Sentence]]:
    """Random parts of a text with so many sentences, ascending, each within the next.

    A size larger than the text gives the whole text.

    Raises:
        InputError: a size is not positive, or two parts would be the same.
    """
    numbers = sorted(min(size, len(sentences)) for size in sizes)
    if len(set(numbers)) < len(numbers) or min(numbers, default=1) < 1:
        raise InputError(
            f"Sizes are distinct numbers of sentences, of which the text has {len(sentences):,}; "
            f"given {', '.join(map(str, sizes))}."
        )
    order = np.random.default_rng(seed).permutation(len(sentences))
    return [[sentences[i] for i in order[:n]] for n in numbers]


def learn(
    text: Sequence[Sentence],
    learner: Learner,
    folder: Path,
    *,
    seed: int = 0,
    on_progress: Callable[[Progress], None] | None = None,
) -> Learned:
    """Train a model on a text and leave it in the folder; a network's training resumes.

    Raises:
        InputError, ModelError, CorpusError: see `train_ngram`, `train_recurrent` and
            `train_transformer`.
    """
    name = f"{learner.kind}-{len(text)}"
    specification = _train(text, learner, folder, name, seed, on_progress)
    model = load_model(specification, name=name, device=learner.device)
    return Learned(model, len(text), sum(map(len, text)))


def _train(
    text: Sequence[Sentence],
    learner: Learner,
    folder: Path,
    name: str,
    seed: int,
    on_progress: Callable[[Progress], None] | None,
) -> str:
    """Train, and return the specification of what was trained."""
    if learner.kind == "ngram":
        from contstim.models.ngram.training import train_ngram

        train_ngram(text, learner.order, folder / f"{name}.arpa")
        return f"kenlm:{folder / name}.arpa"
    from contstim.models.training import settings

    recurrent = learner.kind in get_args(settings.RecurrentKind)
    training = settings.RECURRENT_TRAINING if recurrent else settings.TRANSFORMER_TRAINING
    training = replace(training, seed=seed, epochs=learner.epochs or training.epochs)
    given: dict[str, Any] = {"device": learner.device, "on_progress": on_progress}
    network: Any = {"kind": learner.kind}
    if recurrent:
        from contstim.models.training.recurrent import train_recurrent

        chosen = settings.RecurrentSettings(**network)
        train_recurrent(text, folder / name, chosen, training, **given)
        return f"{learner.kind}:{folder / name}"
    from contstim.models.training.transformers import train_transformer

    train_transformer(
        text, folder / name, settings.TransformerSettings(**network), training, **given
    )
    return f"hf:{folder / name}"


@dataclass(frozen=True)
class Curve:
    """Accuracy in one phenomenon after more and more text.

    Attributes:
        phenomenon: its name, or `overall`.
        sentences: of the texts, ascending.
        words: of the texts.
        accuracies: one each.
        lows: lower ends of their 95 % intervals; see `Accuracies.interval`.
        highs: upper ends.
        slope: accuracy gained by each doubling of the text, by least squares.
        standard_error: of the slope; nan for fewer than three sizes.
    """

    phenomenon: str
    sentences: tuple[int, ...]
    words: tuple[int, ...]
    accuracies: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    slope: float
    standard_error: float


def curves(found: Accuracies, learned: Sequence[Learned]) -> list[Curve]:
    """The curve overall, then that of each phenomenon; none for fewer than two sizes.

    Learned models that could not be compared are passed over.
    """
    some = sorted(
        (one for one in learned if one.model.name in found.columns), key=lambda one: one.sentences
    )
    if len(some) < 2:
        return []
    columns = [found.columns.index(one.model.name) for one in some]
    limits = found.intervals()
    return [
        _curve(name, some, values[columns], limits[name][:, columns])
        for name, values in found.means().items()
    ]


def _curve(
    phenomenon: str, learned: Sequence[Learned], accuracies: FloatArray, limits: FloatArray
) -> Curve:
    from scipy.stats import linregress

    sizes = tuple(one.sentences for one in learned)
    line = linregress(np.log2(sizes), accuracies)
    return Curve(
        phenomenon,
        sizes,
        tuple(one.words for one in learned),
        tuple(accuracies.tolist()),
        lows=tuple(limits[0].tolist()),
        highs=tuple(limits[1].tolist()),
        slope=float(line.slope),
        standard_error=float(line.stderr) if len(sizes) > 2 else math.nan,
    )
