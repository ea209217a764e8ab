"""How well classifiers that differ in their seeds judge sentences: alone, and by majority."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.evaluation.outputs import write_evaluation
from contstim.evaluation.scored import LeftOut, refused_by
from contstim.reporting.canvas import BLUE, ORANGE, new_figure, styled
from contstim.reporting.markdown import markdown_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from contstim.arrays import BoolArray, FloatArray
    from contstim.models.classifier.adapter import ClassifierModel
    from contstim.models.training.cola import LabelledSentence


@dataclass(frozen=True, eq=False)
class JudgedSet:
    """What each classifier says of a set of labelled sentences.

    Attributes:
        name: of the set.
        sentences: those that every classifier can read.
        probabilities: (n_sentences, n_classifiers) of the label acceptable.
        left_out: the sentences that one cannot read.
        features: by name, which sentences have it, (n_sentences,).
    """

    name: str
    sentences: tuple[LabelledSentence, ...]
    probabilities: FloatArray
    left_out: tuple[LeftOut, ...]
    features: Mapping[str, BoolArray]

    @property
    def labels(self) -> BoolArray:
        """Which sentences experts accept, (n_sentences,)."""
        return np.array([one.acceptable for one in self.sentences], np.bool_)


@dataclass(frozen=True)
class Spread:
    """Matthews correlations of several classifiers.

    Attributes:
        about: the set, or the feature.
        sentences: how many.
        mean: over classifiers.
        sd: their sample standard deviation; nan for one.
        maximum: of the best.
        majority: of the classifiers' majority.
    """

    about: str
    sentences: int
    mean: float
    sd: float
    maximum: float
    majority: float


def matthews(labels: BoolArray, predicted: BoolArray) -> float:
    """Matthews correlation of two classes; 0 where either has one value only, as is customary."""
    yes, no = predicted[labels], predicted[~labels]
    tp, fn, fp, tn = (int(n) for n in (yes.sum(), (~yes).sum(), no.sum(), (~no).sum()))
    product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return (tp * tn - fp * fn) / product**0.5 if product else 0.0


def majority(probabilities: FloatArray) -> BoolArray:
    """What most classifiers say, (n_sentences,); where they tie, what they say more surely.

    Args:
        probabilities: (n_sentences, n_classifiers) of the label acceptable.
    """
    votes = np.sign((probabilities > 0.5) - 0.5).sum(axis=1)
    surer = (probabilities - 0.5).sum(axis=1) > 0
    chosen: BoolArray = np.where(votes == 0, surer, votes > 0)
    return chosen


def spread(about: str, labels: BoolArray, probabilities: FloatArray) -> Spread:
    """Mean, standard deviation, maximum and majority of Matthews correlation."""
    each = [matthews(labels, column > 0.5) for column in probabilities.T]
    sd = float(np.std(each, ddof=1)) if len(each) > 1 else float("nan")
    together = matthews(labels, majority(probabilities))
    return Spread(about, len(labels), float(np.mean(each)), sd, max(each), together)


def judge(
    name: str,
    sentences: Sequence[LabelledSentence],
    classifiers: Sequence[ClassifierModel],
    features: Mapping[str, Sequence[bool]] | None = None,
) -> JudgedSet:
    """Ask classifiers about labelled sentences; what one cannot read is left out for all."""
    plain = [one.plain for one in sentences]
    left_out = refused_by(classifiers, plain)
    refused = {one.sentence for one in left_out}
    kept = [row for row, sentence in enumerate(plain) if sentence.text not in refused]
    asked = [plain[row] for row in kept]
    return JudgedSet(
        name,
        tuple(sentences[row] for row in kept),
        np.stack([model.probabilities(asked) for model in classifiers], axis=1),
        tuple(left_out),
        {name: np.array(has, np.bool_)[kept] for name, has in (features or {}).items()},
    )


def spreads(sets: Sequence[JudgedSet]) -> list[Spread]:
    """A row for each set of sentences."""
    return [spread(one.name, one.labels, one.probabilities) for one in sets]


def feature_spreads(sets: Sequence[JudgedSet]) -> list[Spread]:
    """A row for each feature that any sentence has, over the sentences that have it."""
    return [
        spread(name, one.labels[has], one.probabilities[has])
        for one in sets
        for name, has in one.features.items()
        if has.any()
    ]


def write_restarts(
    folder: Path | str,
    sets: Sequence[JudgedSet],
    classifiers: Sequence[ClassifierModel],
    files: Sequence[Path],
    **facts: Any,
) -> None:
    """Write tables (CSV), a figure and report.md.

    restarts.csv     Matthews correlation and accuracy of each classifier on each set
    summary.csv      their mean, standard deviation, maximum, and that of the majority
    features.csv     the same for the sentences with each feature, where annotations are given
    predictions.csv  probability of acceptable under each classifier, and the majority
    left_out.csv     sentences that are too long

    Raises:
        InputError: a file cannot be written or read.
    """
    rows, features = spreads(sets), feature_spreads(sets)
    tables = {
        "restarts": _restarts(sets, classifiers),
        "summary": _columns(rows, "set"),
        "predictions": _predictions(sets, classifiers),
        "left_out": {
            name: [getattr(one, name) for judged in sets for one in judged.left_out]
            for name in ("sentence", "model", "reason")
        },
    }
    if features:
        tables["features"] = _columns(features, "feature")
    parts = [
        f"Matthews correlation of {len(classifiers)} restarts; `sd` is the standard deviation of "
        f"the sample.",
        _markdown(rows, "set"),
    ]
    if features:
        parts += ["## By feature", _markdown(features, "feature")]
    with styled():
        write_evaluation(
            folder,
            title="Classifiers of acceptability",
            summary="\n\n".join(parts),
            tables=tables,
            figures={"restarts": _figure(sets)},
            models=classifiers,
            data=files,
            data_files=[path.name for path in files],
            sentences_left_out=sum(len({o.sentence for o in one.left_out}) for one in sets),
            **facts,
        )


def _restarts(
    sets: Sequence[JudgedSet], classifiers: Sequence[ClassifierModel]
) -> dict[str, list[Any]]:
    rows = [
        (
            one.name,
            model.name,
            len(one.sentences),
            matthews(one.labels, predicted),
            float((predicted == one.labels).mean()),
        )
        for one in sets
        for model, predicted in zip(classifiers, (one.probabilities > 0.5).T, strict=True)
    ]
    names = ("set", "model", "sentences", "matthews", "accuracy")
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def _predictions(
    sets: Sequence[JudgedSet], classifiers: Sequence[ClassifierModel]
) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {
        "set": [one.name for one in sets for _ in one.sentences],
        "sentence": [sentence.text for one in sets for sentence in one.sentences],
        "label": [int(sentence.acceptable) for one in sets for sentence in one.sentences],
        "majority": [int(vote) for one in sets for vote in majority(one.probabilities)],
    }
    every = np.concatenate([one.probabilities for one in sets])
    return columns | {model.name: every[:, i].tolist() for i, model in enumerate(classifiers)}


def _columns(rows: Sequence[Spread], about: str) -> dict[str, list[Any]]:
    names = ("sentences", "mean", "sd", "maximum", "majority")
    return {about: [row.about for row in rows]} | {
        name: [getattr(row, name) for row in rows] for name in names
    }


def _markdown(rows: Sequence[Spread], about: str) -> str:
    columns = _columns(rows, about)
    return markdown_table(list(columns), list(zip(*columns.values(), strict=True)))


def _figure(sets: Sequence[JudgedSet]) -> Figure:
    """A dot a restart, a bar for the majority, a row a set."""
    figure = new_figure(4.0, 0.9 + 0.3 * len(sets))
    axes = figure.subplots()
    for row, one in enumerate(sets):
        each = [matthews(one.labels, column > 0.5) for column in one.probabilities.T]
        axes.plot(each, [row] * len(each), "o", ms=4, color=BLUE, alpha=0.6, mew=0)
        together = matthews(one.labels, majority(one.probabilities))
        axes.plot(together, row, "|", ms=12, color=ORANGE, mew=2)
    axes.set_yticks(range(len(sets)), [one.name for one in sets])
    axes.set_ylim(-0.6, len(sets) - 0.4)
    axes.set_xlabel("Matthews correlation (dots: restarts; bar: their majority)")
    return figure
