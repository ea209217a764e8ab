"""Accuracy on minimal pairs, by paradigm, phenomenon, published contrast, and bins of features.

A paradigm is a type of minimal pair with one kind of error; a phenomenon consists of paradigms. A
published contrast compares groups of paradigms. A feature is, for example, the length of the good
sentence. A method compares two sides of a pair: by default, the good and the bad sentence. Other
methods compare words after a prefix; see `Method`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.evaluation.folder import table_of
from contstim.evaluation.minimal_pairs import MINIMAL_PAIRS, Method, MinimalPairSettings, TieRule
from contstim.files.documents import read_toml
from contstim.files.tables import frame_of
from contstim.items.correlation import pearson_matrix
from contstim.models.specifications import RESERVED_NAMES
from contstim.wording import grouped

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from pandas import DataFrame

    from contstim.evaluation.folder import Row
    from contstim.evaluation.scores import PairScores, PairScoring
    from contstim.files.arrays import FloatArray, IntArray
    from contstim.models.base import Scorer


OVERALL, PEOPLE = "overall", "people"
_PUBLISHED_SUFFIX = " (published)"
_LEVEL = 0.95
_BINS = 10

FEATURES = {
    "length": "words of the good sentence",
    "perplexity": "perplexity per word of the good sentence",
    "log_prob": "log-probability of the good sentence (nats)",
    "confidence": "difference of log-probabilities (nats)",
}
"""Features on the x-axis of accuracy profiles (Warstadt et al. 2020, Fig. 2)."""


@dataclass(frozen=True, eq=False)
class Accuracies:
    """Accuracy of models, and people's agreement with the labels, by paradigm.

    The label of a pair states which sentence is good.

    Attributes:
        paradigms: names of paradigms, sorted by phenomenon.
        phenomena: phenomenon of each paradigm.
        n_pairs: number of pairs with different sides, shape (n_paradigms,).
        columns: names of the scored models, then of external results (people, published models).
        values: accuracies from 0 to 1, shape (n_paradigms, n_columns); nan if unknown.
        n_external: number of columns with external results. These columns have no intervals,
            because external results may be about pairs that were not scored.
    """

    paradigms: tuple[str, ...]
    phenomena: tuple[str, ...]
    n_pairs: IntArray
    columns: tuple[str, ...]
    values: FloatArray
    n_external: int = 0

    @property
    def judged(self) -> tuple[str, ...]:
        """Names of the columns that are not external."""
        return self.columns[: len(self.columns) - self.n_external]

    @cached_property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """Paradigms by phenomenon; the first entry, `overall`, contains all paradigms."""
        by_phenomenon = grouped(zip(self.phenomena, self.paradigms, strict=True))
        return {OVERALL: self.paradigms} | {n: tuple(names) for n, names in by_phenomenon.items()}

    def with_column(self, name: str, accuracy: Mapping[str, float]) -> Accuracies:
        """Append an external column; its value is nan for each paradigm that `accuracy` lacks.

        If `accuracy` lacks all paradigms, no column is appended.
        """
        if accuracy.keys().isdisjoint(self.paradigms):
            return self
        column = np.array([accuracy.get(paradigm, np.nan) for paradigm in self.paradigms])
        return replace(
            self,
            columns=(*self.columns, name),
            values=np.column_stack([self.values, column]),
            n_external=self.n_external + 1,
        )

    def mean(self, paradigms: Sequence[str] | None = None) -> FloatArray:
        """Return the unweighted mean accuracy over paradigms (by default all), (n_columns,).

        The mean of a column is nan if the column is nan in one of these paradigms. Warstadt et al.
        (2020, Table 3) also average over paradigms, which have equal sizes in BLiMP.
        """
        means: FloatArray = self.values[self._rows(paradigms)].mean(axis=0)
        return means

    def limits(self) -> FloatArray:
        """Compute Wilson's 95 % intervals, (2, n_paradigms, n_columns), nan in external columns."""
        from statsmodels.stats.proportion import proportion_confint

        pairs = np.broadcast_to(self.n_pairs[:, None], self.values.shape)
        # If ties count one half, the number of correct pairs may be a fraction. Wilson's formula
        # also accepts fractions
        correct = self.values * pairs
        limits: FloatArray = np.stack(
            proportion_confint(correct, pairs, alpha=1 - _LEVEL, method="wilson")
        )
        limits[:, :, len(self.judged) :] = np.nan
        return limits

    def interval(self, paradigms: Sequence[str] | None = None) -> FloatArray:
        """Compute the 95 % interval of `mean`, (2, n_columns).

        The interval generalises to other pairs of these paradigms. MOVER, the "method of variance
        estimates recovery" (Newcombe 1998; Zou & Donner 2008), combines Wilson's intervals of the
        paradigms.
        """
        rows = self._rows(paradigms)
        # For k paradigms, SD(mean) = √(Σ SD²) / k. MOVER replaces the SD of each paradigm by the
        # distance between the paradigm's accuracy and a limit of Wilson's interval
        distances = self.limits()[:, rows] - self.values[rows]  # (2, k, n_columns)
        low, high = np.sqrt((distances**2).sum(axis=1)) / len(rows)
        mean = self.mean(paradigms)
        return np.stack([mean - low, mean + high])

    def pairs_of(self, paradigms: Sequence[str] | None = None) -> int:
        """Return the sum of `n_pairs` over paradigms, by default all."""
        return int(self.n_pairs[self._rows(paradigms)].sum())

    def correlations(self) -> FloatArray:
        """Compute the Pearson correlation of every two columns, (n_columns, n_columns).

        A paradigm counts if both columns have an accuracy for it. A correlation is nan if fewer
        than three paradigms count, or if a column is constant.
        """
        return pearson_matrix(self.values, fewest=3)

    def cells(self, values: FloatArray, limits: FloatArray) -> Row:
        """Return a cell for each column, then `MODEL: low` and `MODEL: high` of each scored model.

        `values` are accuracies, (n_columns,). `limits` are the ends of the accuracies' intervals,
        (2, n_columns).
        """
        cells = dict(zip(self.columns, values.tolist(), strict=True))
        for name, low, high in zip(self.judged, *limits.tolist(), strict=False):
            cells |= {f"{name}: low": low, f"{name}: high": high}
        return cells

    def group_cells(self, paradigms: Sequence[str] | None = None) -> Row:
        """Return the cells of a group of paradigms, by column.

        The cells are the number of paradigms, the number of pairs, the mean accuracies, and the
        intervals of the mean accuracies.
        """
        return {
            "paradigms": len(self._rows(paradigms)),
            "pairs": self.pairs_of(paradigms),
            **self.cells(self.mean(paradigms), self.interval(paradigms)),
        }

    def _rows(self, paradigms: Sequence[str] | None) -> list[int]:
        chosen = self.paradigms if paradigms is None else paradigms
        return [self.paradigms.index(paradigm) for paradigm in chosen]


def accuracies(scores: PairScores, ties: TieRule = "wrong") -> Accuracies:
    """Compute each model's accuracy in each paradigm.

    The accuracy is the share of pairs in which the model prefers the good side. Pairs with
    identical sides do not count. `ties` is the rule for pairs with equal scores.

    Raises:
        InputError: if no pair counts.
    """
    pairs = [*compress(scores.pairs, scores.decisions)]
    if not pairs:
        raise InputError(
            f"The two sides are equal in all pairs ({scores.method}), such as "
            f"{scores.pairs[0].good.text!r}. Use pairs with different sides."
        )
    phenomenon_of = {pair.paradigm: pair.phenomenon for pair in pairs}
    names = sorted(phenomenon_of, key=lambda name: (phenomenon_of[name], name))
    rows = grouped((pair.paradigm, row) for row, pair in enumerate(pairs))
    n_pairs = np.array([len(rows[name]) for name in names])
    correct = scores.correct(ties)[scores.decisions]
    shares = np.stack([correct[rows[name]].sum(axis=0) / len(rows[name]) for name in names])
    phenomena = tuple(phenomenon_of[name] for name in names)
    return Accuracies(tuple(names), phenomena, n_pairs, scores.models, shares)


def published_contrasts() -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the paradigms of each contrast and condition of Warstadt et al. (2020, section 5).

    A contrast compares the accuracies of several conditions; a condition is a group of paradigms.
    """
    return {
        (contrast, condition): tuple(paradigms)
        for contrast, conditions in read_toml(Path(__file__).with_name("contrasts.toml")).items()
        for condition, paradigms in conditions.items()
    }


def contrasts(accuracy: Accuracies) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the entries of `published_contrasts` whose paradigms are all in `accuracy`."""
    present = set(accuracy.paradigms)
    return {name: group for name, group in published_contrasts().items() if present >= {*group}}


BIN = tuple("model feature low high mean pairs accuracy accuracy_low accuracy_high".split())
"""Fields of the rows of `profile`."""


def profile(
    scores: PairScores, ties: TieRule = "wrong", *, relative: Collection[str] = ()
) -> list[Row]:
    """Compute accuracy as a function of `FEATURES`, with a row for each model, feature and bin.

    The pairs are divided into at most ten bins of about equal size, by their value of the feature.
    Pairs with equal values are in the same bin. Infinite values are left out. Perplexity is
    exp(-log p / number of words). Words are counted instead of tokens, so that models with
    different tokenizers can be compared. Perplexity and log-probability are omitted for `relative`
    models, whose scores are not log-probabilities of sentences.

    Returns:
        Rows with the fields that `BIN` lists. `low`, `high` and `mean` are the minimum, maximum and
        mean of the feature's values in the bin. `accuracy_low` and `accuracy_high` are the ends of
        Wilson's 95 % interval of the accuracy.
    """
    counts = scores.decisions
    correct, margins = scores.correct(ties)[counts], np.abs(scores.margins)[counts]
    lengths = np.array([len(pair.good) for pair in compress(scores.pairs, counts)], np.float64)
    bins: list[Row] = []
    for column, model in enumerate(scores.models):
        good = scores.log_probs[counts, 0, column]  # (n_pairs,), good side
        features = {"length": lengths, "confidence": margins[:, column]}
        if model not in relative:
            with np.errstate(over="ignore"):
                features["perplexity"] = np.exp(-good / lengths)
            features["log_prob"] = good
        for name in filter(features.__contains__, FEATURES):
            bins += (
                dict(zip(BIN, (model, name, *values), strict=True))
                for values in _bin_accuracies(features[name], correct[:, column])
            )
    return bins


def _bin_accuracies(values: FloatArray, correct: FloatArray) -> Iterator[tuple[float, ...]]:
    from statsmodels.stats.proportion import proportion_confint

    finite = np.isfinite(values)
    values, correct = values[finite], correct[finite]
    if not len(values):
        return
    # A bin is an interval (lower decile, upper decile]. Equal deciles count once, so that pairs
    # with equal values are in the same bin
    deciles = np.quantile(values, np.arange(1, _BINS) / _BINS, method="inverted_cdf")
    bin_of_pair = np.searchsorted(np.unique(deciles), values, side="left")
    for number in np.unique(bin_of_pair):
        inside = values[bin_of_pair == number]
        share = float(correct[bin_of_pair == number].mean())
        limits = proportion_confint(share * len(inside), len(inside), method="wilson")
        extent = float(inside.min()), float(inside.max()), float(inside.mean())
        yield (*extent, len(inside), share, *map(float, limits))


@dataclass(frozen=True, eq=False)
class MinimalPairEvaluation:
    """Results of an evaluation on minimal pairs.

    Attributes:
        scoring: scores of both sides of all pairs.
        settings: settings of the evaluation, such as the rule for ties.
        accuracies: method → accuracies of the scored models, of people and of published models.
            The columns of people and of published models are external.
        profile: result of the function `profile` for full sentences.
        people: result of `read_human_agreement`.
    """

    scoring: PairScoring
    settings: MinimalPairSettings
    accuracies: Mapping[Method, Accuracies]
    profile: tuple[Row, ...]
    people: Mapping[str, Row] = field(default_factory=dict)

    @property
    def full(self) -> Accuracies | None:
        """Accuracies on full sentences; None if full sentences were not compared."""
        return self.accuracies.get(Method.FULL_SENTENCE)

    def paradigms(self) -> list[Row]:
        """Return a row of accuracies for each method and paradigm."""
        rows: list[Row] = []
        for scores in self.scoring.by_method:
            table = self.accuracies[scores.method]
            limits = table.limits()
            identical = Counter(pair.paradigm for pair in scores.identical)
            rows += (
                {
                    "method": scores.method.value,
                    "phenomenon": table.phenomena[row],
                    "paradigm": paradigm,
                    "pairs": int(table.n_pairs[row]),
                    "unread": scores.unread[paradigm],
                    "identical": identical[paradigm],
                    **table.cells(table.values[row], limits[:, row]),
                }
                for row, paradigm in enumerate(table.paradigms)
            )
        return rows

    def to_frame(self) -> DataFrame:
        """Return the table of paradigms.csv as a data frame."""
        return frame_of(table_of(self.paradigms()))


def evaluate_minimal_pairs(
    scoring: PairScoring,
    settings: MinimalPairSettings = MINIMAL_PAIRS,
    *,
    models: Sequence[Scorer] = (),
    people: Mapping[str, Row] | None = None,
    published: Mapping[str, Mapping[str, float]] | None = None,
) -> MinimalPairEvaluation:
    """Compute accuracies by method from the scores of pairs; for full sentences, also `profile`.

    Args:
        scoring: result of `score_pairs`.
        settings: settings of the evaluation, such as the rule for ties.
        models: scored models. The profile omits perplexity and log-probability of models whose
            scores are not log-probabilities.
        people: result of `read_human_agreement`.
        published: result of `read_published_accuracies`.

    Raises:
        InputError: if a model has the same name as a column of the tables; or if, for one method,
            the two sides of every pair are equal.
    """
    people = people or {}
    reserved = {model for scores in scoring.by_method for model in scores.models} & RESERVED_NAMES
    if reserved:
        raise InputError(
            f"A model must not be named {min(reserved)!r}, because a column has this name. Rename "
            "the model."
        )
    relative = {model.name for model in models if not model.convention.is_log_probability}
    by_method = {}
    bins: list[Row] = []
    for scores in scoring.by_method:
        table = accuracies(scores, settings.ties)
        if scores.method is Method.FULL_SENTENCE:
            bins = profile(scores, settings.ties, relative=relative)
            for model, accuracy in (published or {}).items():
                table = table.with_column(model + _PUBLISHED_SUFFIX, accuracy)
        shares = {paradigm: agreement["individual"] for paradigm, agreement in people.items()}
        by_method[scores.method] = table.with_column(PEOPLE, shares)
    return MinimalPairEvaluation(scoring, settings, by_method, tuple(bins), people)
