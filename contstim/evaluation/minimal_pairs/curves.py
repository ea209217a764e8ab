"""Learning curves: what models of one kind know after more and more text."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from contstim.errors import InputError
from contstim.models.catalog import load_model
from contstim.models.training.settings import (
    RECURRENT_TRAINING,
    TRANSFORMER_TRAINING,
    RecurrentKind,
    RecurrentSettings,
    TransformerSettings,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from contstim.evaluation.minimal_pairs.accuracies import Accuracies
    from contstim.models.base import LanguageModel
    from contstim.models.loading import Device
    from contstim.models.training.loop import Progress
    from contstim.sentence import Sentence

Kind: TypeAlias = Literal["ngram", "rnn", "lstm", "bilstm", "gpt2", "bert"]


@dataclass(frozen=True)
class CurveSettings:
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
class CurvePoint:
    """A model and how much text it has read.

    Attributes:
        model: named by kind and sentences.
        sentences: how many it was trained on.
        words: of these sentences.
    """

    model: LanguageModel
    sentences: int
    words: int


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
        raise InputError(
            f"Sizes are distinct numbers of sentences, of which the text has {len(sentences):,}; "
            f"given {', '.join(map(str, sizes))}."
        )
    # the first n of one random order, so that a smaller text lies within a larger one
    order = np.random.default_rng(seed).permutation(len(sentences))
    return [[sentences[i] for i in order[:n]] for n in numbers]


def train_point(
    text: Sequence[Sentence],
    settings: CurveSettings,
    folder: Path,
    *,
    seed: int = 0,
    on_progress: Callable[[Progress], None] | None = None,
) -> CurvePoint:
    """Train a model on a text and leave it in the folder; a network's training resumes.

    Raises:
        InputError, ModelError, CorpusError: see `train_ngram`, `train_recurrent` and
            `train_transformer`.
    """
    kind: Any = settings.kind
    name = f"{kind}-{len(text)}"
    # each import loads libraries that the other kinds do without
    if kind == "ngram":
        from contstim.models.ngram.training import train_ngram

        train_ngram(text, settings.order, folder / f"{name}.arpa")
        specification = f"kenlm:{folder / name}.arpa"
    else:
        is_recurrent = kind in get_args(RecurrentKind)
        training = RECURRENT_TRAINING if is_recurrent else TRANSFORMER_TRAINING
        training = replace(training, seed=seed, epochs=settings.epochs or training.epochs)
        run: dict[str, Any] = {"device": settings.device, "on_progress": on_progress}
        if is_recurrent:
            from contstim.models.training.recurrent import train_recurrent

            train_recurrent(text, folder / name, RecurrentSettings(kind=kind), training, **run)
        else:
            from contstim.models.training.transformers import train_transformer

            train_transformer(text, folder / name, TransformerSettings(kind=kind), training, **run)
        # of recurrent networks the kind names the family of `load_model`, too
        specification = f"{kind if is_recurrent else 'hf'}:{folder / name}"
    model = load_model(specification, name=name, device=settings.device)
    return CurvePoint(model, len(text), sum(map(len, text)))


@dataclass(frozen=True)
class LearningCurve:
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


def curves(accuracy: Accuracies, points: Sequence[CurvePoint]) -> list[LearningCurve]:
    """The curve overall, then that of each phenomenon; none for fewer than two sizes.

    Points whose models could not be asked are passed over.
    """
    from scipy.stats import linregress

    asked = [point for point in points if point.model.name in accuracy.columns]
    asked.sort(key=lambda point: point.sentences)
    if len(asked) < 2:
        return []
    # `means[columns]` is (n_points,), from the smallest text to the largest
    columns = [accuracy.columns.index(point.model.name) for point in asked]
    sizes = tuple(point.sentences for point in asked)
    limits = accuracy.intervals()
    fitted = []
    for phenomenon, means in accuracy.means().items():
        line = linregress(np.log2(sizes), means[columns])  # so that one unit is a doubling
        low, high = limits[phenomenon][:, columns]  # (2, n_points)
        fitted.append(
            LearningCurve(
                phenomenon,
                sizes,
                tuple(point.words for point in asked),
                tuple(means[columns].tolist()),
                lows=tuple(low.tolist()),
                highs=tuple(high.tolist()),
                slope=float(line.slope),
                standard_error=float(line.stderr) if len(sizes) > 2 else math.nan,
            )
        )
    return fitted
