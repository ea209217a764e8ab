"""Performance of acceptability classifiers, and of their majority vote.

Restarts are classifiers that were trained with different seeds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.evaluation.folder import Findings, page_table, table_of
from contstim.evaluation.scores import LeftOut, readable_by
from contstim.files.tables import columns_of
from contstim.reporting.canvas import BLUE, ORANGE, new_figure
from contstim.reporting.report import Heading, Paragraph, code

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from contstim.evaluation.folder import Columns, Row
    from contstim.files.arrays import BoolArray, FloatArray
    from contstim.models.classifier import ClassifierModel
    from contstim.models.training.acceptability import LabelledSentence
    from contstim.reporting.report import Part


@dataclass(frozen=True, eq=False)
class JudgedSet:
    """Labelled sentences, and the probabilities that classifiers give to the label `acceptable`.

    Attributes:
        name: name of the set.
        sentences: sentences that every classifier can read.
        probabilities: probabilities of the label `acceptable`, (n_sentences, n_classifiers).
        left_out: sentences that a classifier cannot read.
        features: grammatical feature, such as `passive` → mask of the sentences that have the
            feature, (n_sentences,).
    """

    name: str
    sentences: tuple[LabelledSentence, ...]
    probabilities: FloatArray
    left_out: tuple[LeftOut, ...]
    features: Mapping[str, BoolArray]

    @property
    def labels(self) -> BoolArray:
        """Mask of the sentences that experts judge acceptable, (n_sentences,)."""
        return np.array([sentence.acceptable for sentence in self.sentences], np.bool_)


def judge(
    name: str,
    sentences: Sequence[LabelledSentence],
    classifiers: Sequence[ClassifierModel],
    features: Mapping[str, Sequence[bool]] | None = None,
) -> JudgedSet:
    """Classify labelled sentences; a sentence is left out if one classifier cannot read it."""
    plain = [sentence.plain for sentence in sentences]
    rows, left_out = readable_by(classifiers, plain)
    readable = [plain[row] for row in rows]
    return JudgedSet(
        name,
        tuple(sentences[row] for row in rows),
        np.stack([model.probabilities(readable) for model in classifiers], axis=1),
        tuple(left_out),
        {name: np.array(has, np.bool_)[rows] for name, has in (features or {}).items()},
    )


def matthews(labels: BoolArray, predicted: BoolArray) -> float:
    """Compute the Matthews correlation; 0 if labels or predictions are constant."""
    # Predictions for the acceptable sentences, and for the unacceptable sentences
    yes, no = predicted[labels], predicted[~labels]
    tp, fn, fp, tn = (int(n) for n in (yes.sum(), (~yes).sum(), no.sum(), (~no).sum()))
    # Python integers, because the product of four counts may exceed 64 bits
    product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return (tp * tn - fp * fn) / product**0.5 if product else 0.0


def majority(probabilities: FloatArray) -> BoolArray:
    """Return the majority vote, (n_sentences,); the mean probability decides ties."""
    # A vote is 1 if the probability of the label `acceptable` is above one half, otherwise -1
    votes = np.sign((probabilities > 0.5) - 0.5).sum(axis=1)
    mean_accepts = (probabilities - 0.5).sum(axis=1) > 0
    decisions: BoolArray = np.where(votes == 0, mean_accepts, votes > 0)
    return decisions


def summarise_correlations(labels: BoolArray, probabilities: FloatArray) -> Row:
    """Summarise the Matthews correlations of the classifiers with the experts' labels.

    `JudgedSet` describes the arguments.

    Returns:
        `sentences`: number of sentences. `mean`, `sd`, `maximum`: statistics of the correlations.
        `sd` is the standard deviation of the sample; it is nan for a single classifier. `majority`:
        correlation of the majority vote.
    """
    correlations = [matthews(labels, column > 0.5) for column in probabilities.T]
    return {
        "sentences": len(labels),
        "mean": float(np.mean(correlations)),
        "sd": float(np.std(correlations, ddof=1)) if len(correlations) > 1 else float("nan"),
        "maximum": max(correlations),
        "majority": matthews(labels, majority(probabilities)),
    }


def _tables(sets: Sequence[JudgedSet], names: Sequence[str]) -> dict[str, Columns]:
    return {
        "restarts": table_of(
            {
                "set": judged.name,
                "model": name,
                "sentences": len(judged.sentences),
                "matthews": matthews(judged.labels, predicted),
                "accuracy": float((predicted == judged.labels).mean()),
            }
            for judged in sets
            for name, predicted in zip(names, (judged.probabilities > 0.5).T, strict=True)
        ),
        "predictions": table_of(
            {
                "set": judged.name,
                "sentence": sentence.text,
                "label": int(sentence.acceptable),
                "majority": int(chosen),
                **dict(zip(names, probabilities.tolist(), strict=True)),
            }
            for judged in sets
            for sentence, chosen, probabilities in zip(
                judged.sentences, majority(judged.probabilities), judged.probabilities, strict=True
            )
        ),
        "summary": table_of(
            {"set": s.name} | summarise_correlations(s.labels, s.probabilities) for s in sets
        ),
        "features": table_of(
            {"feature": feature}
            | summarise_correlations(judged.labels[has], judged.probabilities[has])
            for judged in sets
            for feature, has in judged.features.items()
            if has.any()
        ),
        "left_out": columns_of(LeftOut, [o for judged in sets for o in judged.left_out]),
    }


def restart_findings(sets: Sequence[JudgedSet], classifiers: Sequence[ClassifierModel]) -> Findings:
    """Prepare the performance of classifiers as a page, a figure, and tables.

    restarts     Matthews correlation and accuracy of each classifier on each set
    summary      mean, standard deviation and maximum of the Matthews correlations on each set, and
                 the correlation of the majority vote
    features     the values of `summary` for the sentences with each feature; omitted if there are
                 no features
    predictions  for each sentence, the probability that each classifier gives to the label
                 `acceptable`, and the majority vote
    left_out     sentences that a classifier cannot read, with reasons
    """
    tables = _tables(sets, [model.name for model in classifiers])
    intro = f"Matthews correlation of {len(classifiers)} restarts; "
    summary = page_table(tables["summary"])
    paragraph = Paragraph((intro, code("sd"), " is the standard deviation of the sample."))
    parts: list[Part] = [paragraph, summary]
    if tables["features"]:
        parts += [Heading("By feature"), page_table(tables["features"])]
    left_out = sum(len({o.sentence for o in judged.left_out}) for judged in sets)
    return Findings(
        "Classifiers of acceptability",
        summary,
        parts,
        tables,
        lambda: {"restarts": _figure(sets)},
        {"sentences_left_out": left_out},
    )


def _figure(sets: Sequence[JudgedSet]) -> Figure:
    figure = new_figure(4.0, 0.9 + 0.3 * len(sets))
    axes = figure.subplots()
    for row, judged in enumerate(sets):
        correlations = [matthews(judged.labels, column > 0.5) for column in judged.probabilities.T]
        axes.plot(correlations, [row] * len(correlations), "o", ms=4, color=BLUE, alpha=0.6, mew=0)
        majority_correlation = matthews(judged.labels, majority(judged.probabilities))
        axes.plot(majority_correlation, row, "|", ms=12, color=ORANGE, mew=2)
    axes.set_yticks(range(len(sets)), [judged.name for judged in sets])
    axes.set_ylim(-0.6, len(sets) - 0.4)
    axes.set_xlabel("Matthews correlation (dots: restarts; bar: their majority)")
    return figure
