"""Accuracy by paradigm, phenomenon and overall; its correlation between models; contrasts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contstim.arrays import FloatArray, IntArray
    from contstim.evaluation.minimal_pairs.comparison import Comparison, TieRule


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
        values: (n_paradigms, n_columns), 0 to 1; nan where unknown.
        judged: how many of the columns, the first ones, were judged on these pairs; the others come
            from elsewhere and have no intervals. None: all.
    """

    paradigms: tuple[str, ...]
    phenomena: tuple[str, ...]
    n_pairs: IntArray
    columns: tuple[str, ...]
    values: FloatArray
    judged: int | None = None

    def beside(self, name: str, known: Mapping[str, float]) -> Accuracies:
        """The same with one column more, nan in paradigms that it does not know."""
        column = np.array([known.get(paradigm, np.nan) for paradigm in self.paradigms])
        return Accuracies(
            self.paradigms,
            self.phenomena,
            self.n_pairs,
            (*self.columns, name),
            np.column_stack([self.values, column]),
            len(self.columns) if self.judged is None else self.judged,
        )

    def mean(self, paradigms: Sequence[str] | None = None) -> FloatArray:
        """Unweighted mean over paradigms, all by default, (n_columns,); nan where one is unknown.

        So the paper averages (Warstadt et al. 2020, Table 3); all its paradigms are equally large.
        """
        some = self.paradigms if paradigms is None else paradigms
        rows = [self.paradigms.index(paradigm) for paradigm in some]
        means: FloatArray = self.values[rows].mean(axis=0)
        return means

    def limits(self) -> FloatArray:
        """Wilson's 95 % intervals, (2, n_paradigms, n_columns); nan for columns from elsewhere."""
        from statsmodels.stats.proportion import proportion_confint

        pairs = np.broadcast_to(self.n_pairs[:, None], self.values.shape)
        found: FloatArray = np.stack(
            proportion_confint(self.values * pairs, pairs, alpha=1 - _LEVEL, method="wilson")
        )
        found[:, :, len(self.columns) if self.judged is None else self.judged :] = np.nan
        return found

    def interval(self, paradigms: Sequence[str] | None = None) -> FloatArray:
        """The 95 % interval of `mean`, (2, n_columns), for other pairs of the same paradigms.

        Wilson's intervals of the paradigms, put together by the method of variance estimates
        recovery (Newcombe 1998; Zou & Donner 2008): of one paradigm it is Wilson's.
        """
        some = self.paradigms if paradigms is None else paradigms
        rows = [self.paradigms.index(paradigm) for paradigm in some]
        off = np.sqrt(((self.limits()[:, rows] - self.values[rows]) ** 2).sum(axis=1)) / len(rows)
        mean = self.mean(paradigms)
        return np.stack([mean - off[0], mean + off[1]])

    def by_phenomenon(self) -> dict[str, FloatArray]:
        """The mean over the paradigms of each phenomenon, (n_columns,) each."""
        return {phenomenon: self.mean(some) for phenomenon, some in self.members().items()}

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
        every = {OVERALL: self.paradigms, **self.members()}
        return {name: self.interval(some) for name, some in every.items()}

    def pairs_of(self, paradigms: Sequence[str] | None = None) -> int:
        """How many pairs of some paradigms were judged, all by default."""
        some = set(self.paradigms if paradigms is None else paradigms)
        own = [name in some for name in self.paradigms]
        return int(self.n_pairs[own].sum())

    def correlations(self) -> FloatArray:
        """Pearson correlation of columns over the paradigms that both know.

        Shape (n_columns, n_columns); nan where fewer than three are known or one does not vary.
        """
        n = len(self.columns)
        found = np.full((n, n), np.nan)
        for i, j in np.ndindex(n, n):
            both = self.values[:, [i, j]]
            both = both[np.isfinite(both).all(axis=1)]
            if len(both) >= 3 and (np.ptp(both, axis=0) > 0).all():
                x, y = (both - both.mean(axis=0)).T
                found[i, j] = x @ y / np.sqrt((x @ x) * (y @ y))
        return found


def accuracies(comparison: Comparison, ties: TieRule = "wrong") -> Accuracies:
    """The share of each paradigm's pairs in which a model prefers the good side."""
    phenomenon_of = {pair.paradigm: pair.phenomenon for pair in comparison.pairs}
    names = sorted(phenomenon_of, key=lambda name: (phenomenon_of[name], name))
    rows = {name: row for row, name in enumerate(names)}
    members = np.array([rows[pair.paradigm] for pair in comparison.pairs], np.int64)
    counts = np.bincount(members, minlength=len(names))
    correct = comparison.correct(ties)
    sums = np.zeros((len(names), len(comparison.models)))
    np.add.at(sums, members, correct)
    return Accuracies(
        tuple(names),
        tuple(phenomenon_of[name] for name in names),
        counts,
        comparison.models,
        sums / counts[:, None],
    )


class Contrast(NamedTuple):
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
    Contrast("intervening adjective", "without", _ADJACENT),
    Contrast("intervening adjective", "with", _ADJECTIVE),
    Contrast("attractor", "none", (*_REGULAR_VERB, *_IRREGULAR_VERB)),
    Contrast("attractor", "relational noun", ("distractor_agreement_relational_noun",)),
    Contrast("attractor", "relative clause", ("distractor_agreement_relative_clause",)),
    Contrast("determiner-noun morphology", "regular", (*_ADJACENT[:2], *_ADJECTIVE[:2])),
    Contrast("determiner-noun morphology", "irregular", (*_ADJACENT[2:], *_ADJECTIVE[2:])),
    Contrast("subject-verb morphology", "regular", _REGULAR_VERB),
    Contrast("subject-verb morphology", "irregular", _IRREGULAR_VERB),
)
"""Warstadt et al. (2020), sections 5.3 and 5.4."""


def contrasts(found: Accuracies) -> list[tuple[Contrast, FloatArray]]:
    """The mean over the paradigms of each condition, where all its paradigms are there."""
    known = set(found.paradigms)
    return [
        (one, found.mean(one.paradigms)) for one in CONTRASTS if known.issuperset(one.paradigms)
    ]
