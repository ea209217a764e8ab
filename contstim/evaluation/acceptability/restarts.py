"""Performance of classifiers that differ in their seeds: alone, and by majority."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.evaluation.benchmark_scores import LeftOut, refused_by
from contstim.evaluation.output_folder import write_evaluation
from contstim.reporting.canvas import BLUE, ORANGE, new_figure, styled
from contstim.reporting.report import Heading, Paragraph, Table, code
from contstim.tables import columns_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from contstim.arrays import BoolArray, FloatArray
    from contstim.models.classifier import ClassifierModel
    from contstim.models.training.cola import LabelledSentence
    from contstim.reporting.report import Part

    Columns = dict[str, list[Any]]


@dataclass(frozen=True, eq=False)
class JudgedSet:
    """Probabilities that classifiers give to a set of labelled sentences.

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
        """Mask of the sentences that experts accept, (n_sentences,)."""
        return np.array([sentence.acceptable for sentence in self.sentences], np.bool_)


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
    yes, no = predicted[labels], predicted[~labels]  # of acceptable and of unacceptable sentences
    tp, fn, fp, tn = (int(n) for n in (yes.sum(), (~yes).sum(), no.sum(), (~no).sum()))
    # Python's integers: the product of four counts may exceed 64 bits from 110,000 sentences on
    product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return (tp * tn - fp * fn) / product**0.5 if product else 0.0


def majority(probabilities: FloatArray) -> BoolArray:
    """Majority vote of the classifiers, (n_sentences,); where they tie, the surer side wins.

    Args:
        probabilities: (n_sentences, n_classifiers) of the label acceptable.
    """
    # an even number of classifiers may tie; a probability of one half counts as a vote against
    votes = np.sign((probabilities > 0.5) - 0.5).sum(axis=1)  # 1 for acceptable, -1 against
    surer = (probabilities - 0.5).sum(axis=1) > 0
    chosen: BoolArray = np.where(votes == 0, surer, votes > 0)
    return chosen


def spread(about: str, labels: BoolArray, probabilities: FloatArray) -> Spread:
    """Mean, standard deviation, maximum and majority of Matthews correlation.

    Args:
        about: the set, or the feature.
        labels: (n_sentences,), whether experts accept a sentence.
        probabilities: (n_sentences, n_classifiers) of the label acceptable.
    """
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
    plain = [sentence.plain for sentence in sentences]
    left_out = refused_by(classifiers, plain)
    # every classifier judges the same sentences, so that their correlations can be compared
    refused = {omission.sentence for omission in left_out}
    rows = [row for row, sentence in enumerate(plain) if sentence.text not in refused]
    readable = [plain[row] for row in rows]
    return JudgedSet(
        name,
        tuple(sentences[row] for row in rows),
        np.stack([model.probabilities(readable) for model in classifiers], axis=1),
        tuple(left_out),
        {name: np.array(has, np.bool_)[rows] for name, has in (features or {}).items()},
    )


def set_spreads(sets: Sequence[JudgedSet]) -> tuple[Spread, ...]:
    """A row for each set of sentences."""
    return tuple(spread(judged.name, judged.labels, judged.probabilities) for judged in sets)


def feature_spreads(sets: Sequence[JudgedSet]) -> tuple[Spread, ...]:
    """A row for each feature that any sentence has, over the sentences that have it."""
    return tuple(
        spread(name, judged.labels[has], judged.probabilities[has])
        for judged in sets
        for name, has in judged.features.items()
        if has.any()
    )


def write_restarts(
    folder: Path | str,
    sets: Sequence[JudgedSet],
    classifiers: Sequence[ClassifierModel],
    files: Sequence[Path],
    **facts: Any,
) -> None:
    """Write tables (CSV), a figure, report.html and report.md.

    restarts.csv     Matthews correlation and accuracy of each classifier on each set
    summary.csv      their mean, standard deviation, maximum, and that of the majority
    features.csv     the same for the sentences with each feature, where annotations are given
    predictions.csv  probability of acceptable under each classifier, and the majority
    left_out.csv     sentences that are too long

    Raises:
        InputError: a file cannot be written or read.
    """
    left_out = [omission for judged in sets for omission in judged.left_out]
    summary = _spreads_table("set", set_spreads(sets))
    tables = {
        **_tables(sets, classifiers),
        "summary": summary,
        "left_out": columns_of(LeftOut, left_out),
    }
    parts: list[Part] = [
        Paragraph(
            (
                f"Matthews correlation of {len(classifiers)} restarts; ",
                code("sd"),
                " is the standard deviation of the sample.",
            )
        ),
        _page_table(summary),
    ]
    by_feature = feature_spreads(sets)
    if by_feature:
        tables["features"] = _spreads_table("feature", by_feature)
        parts += [Heading("By feature"), _page_table(tables["features"])]
    with styled():
        write_evaluation(
            folder,
            title="Classifiers of acceptability",
            parts=parts,
            tables=tables,
            figures={"restarts": _figure(sets)},
            models=classifiers,
            data=files,
            data_files=[path.name for path in files],
            sentences_left_out=sum(len({o.sentence for o in judged.left_out}) for judged in sets),
            **facts,
        )


def _tables(
    sets: Sequence[JudgedSet], classifiers: Sequence[ClassifierModel]
) -> dict[str, Columns]:
    runs = [  # each set once for each classifier, with what the classifier says
        (judged, model, predicted)
        for judged in sets
        for model, predicted in zip(classifiers, (judged.probabilities > 0.5).T, strict=True)
    ]
    probabilities = np.concatenate([judged.probabilities for judged in sets])
    return {
        "restarts": {
            "set": [judged.name for judged, _, _ in runs],
            "model": [model.name for _, model, _ in runs],
            "sentences": [len(judged.sentences) for judged, _, _ in runs],
            "matthews": [matthews(judged.labels, predicted) for judged, _, predicted in runs],
            "accuracy": [float((predicted == j.labels).mean()) for j, _, predicted in runs],
        },
        "predictions": {
            "set": [judged.name for judged in sets for _ in judged.sentences],
            "sentence": [sentence.text for judged in sets for sentence in judged.sentences],
            "label": [int(sentence.acceptable) for judged in sets for sentence in judged.sentences],
            "majority": majority(probabilities).astype(int).tolist(),
            **{model.name: probabilities[:, i].tolist() for i, model in enumerate(classifiers)},
        },
    }


def _spreads_table(about: str, spreads: Sequence[Spread]) -> Columns:
    columns = columns_of(Spread, spreads)
    return {about: columns.pop("about")} | columns


def _page_table(columns: Columns) -> Table:
    return Table(list(columns), list(zip(*columns.values(), strict=True)))


def _figure(sets: Sequence[JudgedSet]) -> Figure:
    """A dot a restart, a bar for the majority, a row a set."""
    figure = new_figure(4.0, 0.9 + 0.3 * len(sets))
    axes = figure.subplots()
    for row, judged in enumerate(sets):
        each = [matthews(judged.labels, column > 0.5) for column in judged.probabilities.T]
        axes.plot(each, [row] * len(each), "o", ms=4, color=BLUE, alpha=0.6, mew=0)
        together = matthews(judged.labels, majority(judged.probabilities))
        axes.plot(together, row, "|", ms=12, color=ORANGE, mew=2)
    axes.set_yticks(range(len(sets)), [judged.name for judged in sets])
    axes.set_ylim(-0.6, len(sets) - 0.4)
    axes.set_xlabel("Matthews correlation (dots: restarts; bar: their majority)")
    return figure
