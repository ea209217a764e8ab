"""Families of contrasts: which are stated, what corrections decide, and what could be found at all.

The false-discovery rate of Benjamini and Hochberg (1995), or Holm's (1979) family-wise error rate
for a few contrasts that were planned. Families are along the last axis of p-values: experiments
that are simulated at once stand on the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.signed_ranks import smallest_p_value
from contstim.files.tables import parsed_columns, read_table, text
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import ArrayLike

    from contstim.experiments.analysis.ratings import Scope
    from contstim.experiments.analysis.tables import Row
    from contstim.files.arrays import BoolArray, FloatArray

CEILING = "ceiling"  # what a model is compared with: the lower noise ceiling on its own trials
FALSE_DISCOVERY_RATE = 0.05  # up to which adjusted p-values are significant, unless told otherwise
THESE_ITEMS = (
    "Tests compare participants, who saw the same trials: what they call significant holds for "
    "these very items, not for others like them. With items drawn at random and models that do not "
    "differ, such tests call many pairs of models different. To speak of items in general, compare "
    "groups that saw different trials, or take people and items as random (units: crossed)."
)
SINGLE_TESTS = "single tests, not adjusted"  # the family of tests that belong to none
_ROUNDING = 1e-9  # of p-values that are equal by another formula

Correction = Literal["bh", "holm"]
"""For the family of contrasts: Benjamini and Hochberg's false-discovery rate, or Holm's."""

CORRECTIONS: dict[Correction, str] = {
    "bh": "false-discovery rate (Benjamini and Hochberg)",
    "holm": "family-wise error rate (Holm)",
}


class ModelContrast(NamedTuple):
    """A model and what it is compared with: another model, or `CEILING`."""

    first: str
    second: str


def every_contrast(models: Sequence[str]) -> tuple[ModelContrast, ...]:
    """All pairs of models and every model against the ceiling: 36 + 9 for the nine of 2023."""
    pairs = [*combinations(models, 2), *((model, CEILING) for model in models)]
    return tuple(ModelContrast(*pair) for pair in pairs)


def read_contrasts(path: Path | str, models: Sequence[str]) -> tuple[ModelContrast, ...]:
    """The contrasts that a design states: a table with the columns first and second.

    Each row names two models, or a model and `ceiling`.

    Raises:
        InputError: the file cannot be read, is empty, lacks a column, names a model that was not
            scored, or states a contrast twice.
    """
    readers = dict.fromkeys(ModelContrast._fields, (text, "name"))
    columns = parsed_columns(path, read_table(path), readers)
    stated = [ModelContrast(*row) for row in zip(*columns, strict=True)]
    for first, second in stated:
        if first not in models or second not in (*models, CEILING) or first == second:
            raise InputError(
                f"{path} compares {first!r} with {second!r}; first is a model, second another one "
                f"or {CEILING!r}. There are {', '.join(models)}."
            )
    if len({frozenset(contrast) for contrast in stated}) < len(stated):
        raise InputError(f"{path} states a contrast twice.")
    return tuple(stated)


def adjusted(p_values: FloatArray, correction: Correction = "bh") -> FloatArray:
    """P-values by a correction for the family on the last axis; nan is not part of it."""
    # A test that could not be made stands last, and costs the others nothing.
    order, tests = np.argsort(p_values, axis=-1), (~np.isnan(p_values)).sum(axis=-1, keepdims=True)
    steps, before = np.take_along_axis(p_values, order, axis=-1), np.arange(p_values.shape[-1])
    if correction == "holm":
        # The smallest of m counts m times, the next m - 1 times, and none less than the one before.
        steps = np.maximum.accumulate((tests - before) * steps, axis=-1)
    else:
        # The k-th smallest of m counts m / k times, and none more than the one after.
        steps = steps * (tests / (before + 1))
        steps = np.fmin.accumulate(steps[..., ::-1], axis=-1)[..., ::-1]
    in_place = np.empty(steps.shape)
    np.put_along_axis(in_place, order, np.minimum(1.0, steps), axis=-1)
    return in_place


def with_family(rows: Sequence[Row], p_values: Iterable[float], family: str) -> list[Row]:
    """The rows of a family of tests, with p-values adjusted by Benjamini and Hochberg.

    Args:
        rows: of a table; they gain the columns `adjusted` and `family`.
        p_values: one a row; nan is not part of the family.
        family: what the tests have in common.
    """
    q_values = adjusted(np.array([*p_values])).tolist()
    return [
        {**row, "adjusted": q_value, "family": family}
        for row, q_value in zip(rows, q_values, strict=True)
    ]


def decision_alpha(
    p_values: FloatArray, rate: float, correction: Correction, needed: int | None
) -> FloatArray:
    """The p-value below which each contrast of a family is significant, after its correction.

    Intervals at 1 less this level leave out 0 where a contrast is significant, and only there. With
    k of m significant they are those of Benjamini and Yekutieli (2005), rate * k / m, which limit
    the share of intervals that miss among those of significant contrasts. Holm's last step was
    taken at rate / (m - k + 1). Where none is significant, k is the fewest that can be; a contrast
    that is clearer than that, alone where several had to be, has its own p-value.

    Args:
        p_values: (n_tests,) of the family; nan is not part of it.
        rate: the error rate.
        correction: for the family.
        needed: how many must be clear for any to be significant; see `Detectability`.
    """
    significant = adjusted(p_values, correction) < rate
    found, m = int(significant.sum()), max(1, int((~np.isnan(p_values)).sum()))
    if correction == "holm":
        alpha = rate / (m - max(1, found) + 1)
    else:
        alpha = rate * (found or needed or 1) / m
    # fmin and fmax take alpha where there is no p-value
    return np.where(
        significant,
        np.fmax(alpha, (1 + _ROUNDING) * p_values),
        np.fmin(alpha, (1 - _ROUNDING) * p_values),
    )


@dataclass(frozen=True)
class Detectability:
    """Limits of what a family of signed-rank tests can find, whatever the data.

    Attributes:
        tests: in the family.
        fewest_units: of any of its tests.
        most_units: likewise.
        smallest: the smallest p-value that any of its tests can have.
        needed: how many tests must be as clear as they can be (all units on one side) for any to be
            significant; None where even that is not enough.
        correction: for the family.
    """

    tests: int
    fewest_units: int
    most_units: int
    smallest: float
    needed: int | None
    correction: Correction = "bh"

    @property
    def hopeless(self) -> bool:
        """True if nothing can be significant."""
        return bool(self.tests) and self.needed is None

    def cannot(self, units: str) -> str:
        """`cannot be tested with 4 groups`, where nothing can be significant; else empty."""
        return f"cannot be tested with {self._counted(units)}" if self.hopeless else ""

    def unless(self) -> str:
        """Condition for anything to be significant, where that takes several tests; else empty."""
        if self.needed in (None, 1):
            return ""
        return f"unless {self.needed} of the {self.tests} tests come out as clearly as they can"

    def caution(self, units: str, rate: float) -> str:
        """Limits of the family, as sentences; empty where a single test can be significant.

        Args:
            units: what the tests compare, in the plural.
            rate: the false-discovery rate.
        """
        if not self.tests or self.needed == 1:
            return ""
        least = f"the smallest p-value that Wilcoxon's signed-rank test has is {self.smallest:.3g}"
        head = f"With {self._counted(units)} nothing can be significant"
        kind = CORRECTIONS[self.correction].partition(" (")[0]
        if self.needed is not None:
            return (
                f"{head} {self.unless()}, with all {units} on one side: {least}, and {self.tests} "
                f"tests share a {kind} of {rate:g}. More {units} or fewer contrasts ask for less."
            )
        # Holm lets the clearest of m tests pass below rate / m, and others only after it.
        limit = rate / (self.tests if self.correction == "holm" else 1)
        enough = next((n for n in range(1, 1_000) if smallest_p_value(n) < limit), "infinite")
        return (
            f"{head}, whatever the data: {least}. Tests at a {kind} of {rate:g} need {enough} "
            f"{units} or more; tests that take people and items as random (units: crossed) need no "
            "groups."
        )

    def _counted(self, units: str) -> str:
        if self.fewest_units != self.most_units:
            return f"{self.fewest_units} to {self.most_units} {units}"
        return counted(self.most_units, units.removesuffix("s"), units)


def detectability(units: ArrayLike, rate: float, correction: Correction = "bh") -> Detectability:
    """Limits of what a family of signed-rank tests can find after a correction.

    Args:
        units: (n_tests,) how many pairs each test compares; tests without any are not part.
        rate: adjusted p-values below it are significant.
        correction: for the family.
    """
    sizes = np.asarray(units, np.int64)
    sizes = np.sort(sizes[sizes > 0])[::-1]  # most units first: they can have the smallest p-value
    if not len(sizes):
        return Detectability(0, 0, 0, 1.0, None, correction)
    smallest = np.array([smallest_p_value(n) for n in sizes.tolist()])
    # Benjamini and Hochberg: the k smallest of m p-values are significant if the k-th is below
    # rate * k / m. Here each is as small as it can be; `needed` is the first such k. Holm's first
    # step is that of k = 1, without which there is no other.
    ranks = np.arange(1, len(sizes) + 1) if correction == "bh" else np.ones(1, np.int64)
    enough = np.flatnonzero(smallest[: len(ranks)] * len(sizes) / ranks < rate)
    needed = int(ranks[enough[0]]) if len(enough) else None
    most, fewest = int(sizes[0]), int(sizes[-1])
    return Detectability(len(sizes), fewest, most, float(smallest[0]), needed, correction)


def limits_over_groups(
    has: BoolArray,
    several: BoolArray,
    models: Sequence[str],
    contrasts: Iterable[ModelContrast],
    rate: float,
    correction: Correction = "bh",
) -> Detectability:
    """Limits of what signed-rank tests over groups can find, whatever people answer.

    Args:
        has: (n_groups, n_models), which groups have trials of which model; a test of two models
            has the groups that have trials of both.
        several: (n_groups,), those of several participants: who is alone has no noise ceiling.
        models: one a column.
        contrasts: the family.
        rate: adjusted p-values below it are significant.
        correction: for the family.
    """
    sides = dict(zip(models, has.T, strict=True)) | {CEILING: several}
    units = [int((sides[c.first] & sides[c.second]).sum()) for c in contrasts]
    return detectability(units, rate, correction)


def family_cautions(
    families: Iterable[tuple[Scope, Detectability]], units: str, rate: float
) -> Iterator[str]:
    """Limits of the families of tests of some scopes: a sentence for each limit.

    Args:
        families: scope and limits.
        units: what the tests compare, in the plural.
        rate: the false-discovery rate.
    """
    limits: dict[str, list[str]] = {}
    for scope, family in families:
        limits.setdefault(family.caution(units, rate), []).append(str(scope))
    for limit, scopes in limits.items():
        if limit:
            where = "" if len(limits) == 1 else f"{', '.join(dict.fromkeys(scopes))}: "
            yield where + limit


def crossed_instead(groups: int) -> str:
    """Why so few groups are compared by crossed tests, in a sentence."""
    return (
        f"With {counted(groups, 'group')} signed-rank tests over groups could show nothing, "
        "whatever people answer: contstim analyze compares models by crossed tests instead, which "
        "take people and items as random and speak of both."
    )
