"""Accuracy by paradigm, phenomenon and overall; its correlation between models; contrasts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contstim.correlation import pearson_matrix
from contstim.tables import frame_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pandas import DataFrame

    from contstim.arrays import FloatArray, IntArray
    from contstim.evaluation.minimal_pairs.pair_scores import PairScores, TieRule
    from contstim.tables import Column

OVERALL = "overall"
_LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Accuracies:
    """Accuracy of models, or of people, in paradigms.

    Attributes:
        paradigms: names, sorted by phenomenon.
        phenomena: that of each paradigm.
        n_pairs: (n_paradigms,) how many pairs were judged.
        columns: whose accuracy.
        values: (n_paradigms, n_columns), 0 to 1; nan where there is none.
        n_judged: how many of the columns, the first ones, were judged on these pairs; the others
            come from elsewhere and have no intervals. None: all.
    """

    paradigms: tuple[str, ...]
    phenomena: tuple[str, ...]
    n_pairs: IntArray
    columns: tuple[str, ...]
    values: FloatArray
    n_judged: int | None = None

    @property
    def judged(self) -> int:
        """The number of columns that were judged on these pairs."""
        return len(self.columns) if self.n_judged is None else self.n_judged

    def with_column(self, name: str, accuracy: Mapping[str, float]) -> Accuracies:
        """The same with one column more from elsewhere, nan in paradigms that it lacks."""
        column = np.array([accuracy.get(paradigm, np.nan) for paradigm in self.paradigms])
        return replace(
            self,
            columns=(*self.columns, name),
            values=np.column_stack([self.values, column]),
            n_judged=self.judged,
        )

    def mean(self, paradigms: Sequence[str] | None = None) -> FloatArray:
        """Unweighted mean over paradigms, all by default, (n_columns,); nan where one is nan.

        So the paper averages (Warstadt et al. 2020, Table 3); all its paradigms are equally large.
        """
        means: FloatArray = self.values[self._rows(paradigms)].mean(axis=0)
        return means

    def limits(self) -> FloatArray:
        """Wilson's 95 % intervals, (2, n_paradigms, n_columns); nan for columns from elsewhere."""
        from statsmodels.stats.proportion import proportion_confint

        pairs = np.broadcast_to(self.n_pairs[:, None], self.values.shape)
        # not a whole number where ties count one half, for which the formula works as well
        correct = self.values * pairs
        limits: FloatArray = np.stack(
            proportion_confint(correct, pairs, alpha=1 - _LEVEL, method="wilson")
        )
        limits[:, :, self.judged :] = np.nan
        return limits

    def interval(self, paradigms: Sequence[str] | None = None) -> FloatArray:
        """The 95 % interval of `mean`, (2, n_columns), for other pairs of the same paradigms.

        Wilson's intervals of the paradigms, put together by the method of variance estimates
        recovery (Newcombe 1998; Zou & Donner 2008): of one paradigm it is Wilson's.
        """
        rows = self._rows(paradigms)
        # The variance of a mean of k independent parts is the sum of theirs over k²; a limit's
        # distance from the estimate stands for the standard deviation, each side for itself.
        distances = self.limits()[:, rows] - self.values[rows]  # (2, k, n_columns)
        low, high = np.sqrt((distances**2).sum(axis=1)) / len(rows)
        mean = self.mean(paradigms)
        return np.stack([mean - low, mean + high])

    def by_phenomenon(self) -> dict[str, FloatArray]:
        """The mean over the paradigms of each phenomenon, (n_columns,) each."""
        return {name: self.mean(members) for name, members in self.members.items()}

    @cached_property
    def members(self) -> dict[str, tuple[str, ...]]:
        """The paradigms of each phenomenon."""
        members: dict[str, tuple[str, ...]] = {}
        for paradigm, phenomenon in zip(self.paradigms, self.phenomena, strict=True):
            members[phenomenon] = (*members.get(phenomenon, ()), paradigm)
        return members

    def means(self) -> dict[str, FloatArray]:
        """The mean overall, then by phenomenon, (n_columns,) each."""
        return {OVERALL: self.mean(), **self.by_phenomenon()}

    def intervals(self) -> dict[str, FloatArray]:
        """The intervals of `means`, (2, n_columns) each."""
        groups = {OVERALL: self.paradigms, **self.members}
        return {name: self.interval(paradigms) for name, paradigms in groups.items()}

    def pairs_of(self, paradigms: Sequence[str] | None = None) -> int:
        """Number of judged pairs of some paradigms, all by default."""
        return int(self.n_pairs[self._rows(paradigms)].sum())

    def correlations(self) -> FloatArray:
        """Pearson correlation of columns over the paradigms that both have.

        Shape (n_columns, n_columns); nan where these are fewer than three or a column is constant.
        """
        # each cell over its own paradigms: results from elsewhere may cover some only
        return pearson_matrix(self.values, fewest=3)

    def to_frame(self) -> DataFrame:
        """A row for each paradigm: phenomenon, paradigm, pairs, and a column for each of `columns`.

        The same names are the columns of paradigms.csv.
        """
        columns: dict[str, Column] = {"phenomenon": self.phenomena, "paradigm": self.paradigms}
        accuracies = dict(zip(self.columns, self.values.T, strict=True))
        return frame_of(columns | {"pairs": self.n_pairs} | accuracies)

    def _rows(self, paradigms: Sequence[str] | None) -> list[int]:
        """Rows of paradigms; all of them for None."""
        chosen = self.paradigms if paradigms is None else paradigms
        return [self.paradigms.index(paradigm) for paradigm in chosen]


def accuracies(scores: PairScores, ties: TieRule = "wrong") -> Accuracies:
    """The share of each paradigm's pairs in which a model prefers the good side."""
    phenomenon_of = {pair.paradigm: pair.phenomenon for pair in scores.pairs}
    names = sorted(phenomenon_of, key=lambda name: (phenomenon_of[name], name))
    rows = {name: row for row, name in enumerate(names)}
    row_of_pair = np.array([rows[pair.paradigm] for pair in scores.pairs], np.int64)
    n_pairs = np.bincount(row_of_pair, minlength=len(names))
    # `add.at` adds up pairs of the same row, where `sums[row_of_pair] +=` would keep the last one
    sums = np.zeros((len(names), len(scores.models)))
    np.add.at(sums, row_of_pair, scores.correct(ties))
    return Accuracies(
        tuple(names),
        tuple(phenomenon_of[name] for name in names),
        n_pairs,
        scores.models,
        sums / n_pairs[:, None],
    )


class ParadigmContrast(NamedTuple):
    """A condition of one of the paper's contrasts, and its paradigms."""

    contrast: str
    condition: str
    paradigms: tuple[str, ...]


_DETERMINER = "determiner_noun_agreement_"
_ADJACENT = tuple(f"{_DETERMINER}{x}" for x in ("1", "2", "irregular_1", "irregular_2"))
_ADJECTIVE = tuple(
    f"{_DETERMINER}with_adj{x}" for x in ("ective_1", "_2", "_irregular_1", "_irregular_2")
)
_REGULAR_VERB, _IRREGULAR_VERB = (
    tuple(f"{kind}_plural_subject_verb_agreement_{i}" for i in (1, 2))
    for kind in ("regular", "irregular")
)

CONTRASTS = (
    ParadigmContrast("intervening adjective", "without", _ADJACENT),
    ParadigmContrast("intervening adjective", "with", _ADJECTIVE),
    ParadigmContrast("attractor", "none", (*_REGULAR_VERB, *_IRREGULAR_VERB)),
    ParadigmContrast("attractor", "relational noun", ("distractor_agreement_relational_noun",)),
    ParadigmContrast("attractor", "relative clause", ("distractor_agreement_relative_clause",)),
    ParadigmContrast("determiner-noun morphology", "regular", (*_ADJACENT[:2], *_ADJECTIVE[:2])),
    ParadigmContrast("determiner-noun morphology", "irregular", (*_ADJACENT[2:], *_ADJECTIVE[2:])),
    ParadigmContrast("subject-verb morphology", "regular", _REGULAR_VERB),
    ParadigmContrast("subject-verb morphology", "irregular", _IRREGULAR_VERB),
)
"""Warstadt et al. (2020), sections 5.3 and 5.4."""


def contrasts(accuracy: Accuracies) -> list[tuple[ParadigmContrast, FloatArray]]:
    """The mean over the paradigms of each condition, where all its paradigms are there."""
    present = set(accuracy.paradigms)
    return [
        (condition, accuracy.mean(condition.paradigms))
        for condition in CONTRASTS
        if present.issuperset(condition.paradigms)
    ]
