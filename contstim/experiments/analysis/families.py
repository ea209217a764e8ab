"""Families of contrasts: members, corrections, and the effects that a family can detect.

A contrast compares a model with another model, or with the noise ceiling. The noise ceiling
measures how well participants predict one another. A family is a set of contrasts whose p-values
are corrected together. There are two corrections. One controls the false-discovery rate (Benjamini
and Hochberg 1995). The other controls the family-wise error rate (Holm 1979), for a few planned
contrasts. The last axis of an array of p-values contains the tests of a family. The other axes
number the experiments of a simulation.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.signed_ranks import smallest_p_value
from contstim.files.tables import parsed_columns, read_table, text
from contstim.wording import grouped, quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import ArrayLike

    from contstim.experiments.analysis.ratings import Scope
    from contstim.experiments.analysis.tables import Row
    from contstim.files.arrays import BoolArray, FloatArray

# Second side of a contrast between a model and the lower noise ceiling on this model's trials
CEILING = "ceiling"
FALSE_DISCOVERY_RATE = 0.05  # default threshold for adjusted p-values
THESE_ITEMS = (
    "Tests compare participants who saw the same trials: significant results do not generalise to "
    "new items. With random items and models that do not differ, such tests find many differences "
    "between models. For results that generalise to new items, compare groups that saw different "
    "trials, or use participants and items as crossed random factors (units: crossed)."
)
SINGLE_TESTS = "single tests, not adjusted"  # in the column `family`, for tests without a family
_ROUNDING = 1e-9  # relative distance from a p-value to a moved alpha; exceeds rounding errors

Correction = Literal["bh", "holm"]
"""Correction for the family of contrasts: Benjamini and Hochberg's ("bh"), or Holm's."""

CORRECTIONS: dict[Correction, str] = {
    "bh": "false-discovery rate (Benjamini and Hochberg)",
    "holm": "family-wise error rate (Holm)",
}


ModelContrast: TypeAlias = tuple[str, str]
"""Two sides of a comparison: a model, and another model or `CEILING`."""


def every_contrast(models: Sequence[str]) -> tuple[ModelContrast, ...]:
    """Return all pairs of models, and each model with the ceiling.

    For nine models, these are 36 + 9 contrasts.
    """
    return (*combinations(models, 2), *((model, CEILING) for model in models))


def read_contrasts(path: Path | str, models: Sequence[str]) -> tuple[ModelContrast, ...]:
    """Read the planned contrasts of a design: a table with the columns `first` and `second`.

    Each row names two models, or a model and `ceiling`.

    Raises:
        InputError: if the file cannot be read, is empty, lacks a column, names a model without
            scores, or states a contrast twice.
    """
    readers = dict.fromkeys(("first", "second"), (text, "name"))
    firsts, seconds = parsed_columns(path, read_table(path), readers)
    stated = [*zip(firsts, seconds, strict=True)]
    for first, second in stated:
        if first not in models or second not in (*models, CEILING) or first == second:
            raise InputError(
                f"{path} compares {first!r} with {second!r}; first must be a model, and "
                f"second another model or {CEILING!r}. The models are {', '.join(models)}."
            )
    if len({frozenset(contrast) for contrast in stated}) < len(stated):
        raise InputError(f"{path} contains a contrast twice. Remove one of them.")
    return tuple(stated)


def adjust(p_values: FloatArray, correction: Correction = "bh") -> FloatArray:
    """Adjust p-values for the family on the last axis; nan values are not part of a family."""
    # nan is sorted last
    order, tests = np.argsort(p_values, axis=-1), (~np.isnan(p_values)).sum(axis=-1, keepdims=True)
    steps, indices = np.take_along_axis(p_values, order, axis=-1), np.arange(p_values.shape[-1])
    if correction == "holm":
        # The smallest of m p-values is multiplied by m, the next by m - 1, and so on; no adjusted
        # p-value is below its predecessor.
        steps = np.maximum.accumulate((tests - indices) * steps, axis=-1)
    else:
        # The k-th smallest of m p-values is multiplied by m / k; none is above its successor.
        steps = steps * (tests / (indices + 1))
        steps = np.fmin.accumulate(steps[..., ::-1], axis=-1)[..., ::-1]
    restored = np.empty(steps.shape)
    np.put_along_axis(restored, order, np.minimum(1.0, steps), axis=-1)
    return restored


def with_family(rows: Sequence[Row], p_values: Iterable[float], family: str) -> list[Row]:
    """Return the rows of a family of tests, with p-values adjusted by Benjamini and Hochberg.

    The columns `adjusted` and `family` are added. A p-value of nan is not part of the family.
    """
    q_values = adjust(np.array([*p_values])).tolist()
    return [
        {**row, "adjusted": q_value, "family": family}
        for row, q_value in zip(rows, q_values, strict=True)
    ]


def decision_alpha(
    p_values: FloatArray, rate: float, correction: Correction, needed: int | None
) -> FloatArray:
    """Return alpha of each contrast; the contrast is significant if its p-value is below alpha.

    An interval with the level 1 - alpha excludes 0 if and only if the contrast is significant. The
    family has m contrasts; k of them are significant after correction.

    * Benjamini and Hochberg: alpha is rate * k / m. Among the intervals of significant contrasts,
      the expected share that misses the true difference is then at most `rate` (Benjamini &
      Yekutieli 2005). If k is 0, `needed` replaces k; see `Detectability.needed`.
    * Holm: alpha is rate / (m - k + 1), the limit for the k-th smallest p-value. If k is 0, alpha
      is rate / m.

    A p-value can be on the wrong side of this alpha, because of rounding errors or because `needed`
    replaces k. The alpha of this contrast is then moved to the other side of its p-value: slightly
    above it if the contrast is significant, otherwise slightly below it. A p-value of nan is not
    part of the family.
    """
    significant = adjust(p_values, correction) < rate
    n_significant, m = int(significant.sum()), max(1, int((~np.isnan(p_values)).sum()))
    if correction == "holm":
        alpha = rate / (m - max(1, n_significant) + 1)
    else:
        alpha = rate * (n_significant or needed or 1) / m
    # If the p-value is nan, fmin and fmax return alpha
    return np.where(
        significant,
        np.fmax(alpha, (1 + _ROUNDING) * p_values),
        np.fmin(alpha, (1 - _ROUNDING) * p_values),
    )


@dataclass(frozen=True)
class Detectability:
    """Limits on the effects that a family of signed-rank tests can detect, whatever the data.

    A test has a pair of values for each unit, which is a group or a participant.

    Attributes:
        tests: number of tests of the family.
        fewest_units: smallest number of pairs in a test; `most_units` is the largest.
        smallest: smallest possible p-value of a test.
        needed: smallest number of tests that can be significant together. In each of these tests,
            all units must favour the same side. 1 if one test can be significant alone; None if no
            test can be significant.
    """

    tests: int
    fewest_units: int
    most_units: int
    smallest: float
    needed: int | None
    correction: Correction = "bh"

    @property
    def hopeless(self) -> bool:
        """Whether no test can be significant."""
        return bool(self.tests) and self.needed is None

    def cannot(self, units: str) -> str:
        """Return a text such as `cannot be tested with 4 groups`; empty unless `hopeless`."""
        return f"cannot be tested with {self._units_text(units)}" if self.hopeless else ""

    def unless(self) -> str:
        """Return a text `unless …` if one test alone cannot be significant, but several can.

        Otherwise, the text is empty.
        """
        if self.needed in (None, 1):
            return ""
        return f"unless {self.needed} of the {self.tests} tests have the smallest possible p-value"

    def caution(self, units: str, rate: float) -> str:
        """Return a warning about limits; empty if one test alone can be significant."""
        if not self.tests or self.needed == 1:
            return ""
        least = (
            f"the smallest possible p-value of Wilcoxon's signed-rank test is {self.smallest:.3g}"
        )
        head = f"With {self._units_text(units)}, no result can be significant"
        kind = CORRECTIONS[self.correction].partition(" (")[0]
        if self.needed is not None:
            return (
                f"{head} {self.unless()}. In these tests, all {units} must favour the same side. "
                f"There are two reasons: {least}, and the {kind} of {rate:g} applies to all "
                f"{self.tests} tests together. With more {units} or fewer contrasts, a smaller "
                "number of tests is enough."
            )
        # By Holm, the smallest of m p-values must be below rate / m. By Benjamini and Hochberg, it
        # is enough if all p-values are below rate; then all tests are significant.
        limit = rate / (self.tests if self.correction == "holm" else 1)
        enough = next((n for n in range(1, 1_000) if smallest_p_value(n) < limit), "infinite")
        return (
            f"{head}, whatever the data: {least}. Tests at a {kind} of {rate:g} need at "
            f"least {enough} {units}; tests with participants and items as crossed random "
            "factors (units: crossed) need no groups."
        )

    def _units_text(self, units: str) -> str:
        if self.fewest_units != self.most_units:
            return f"{self.fewest_units} to {self.most_units} {units}"
        return quantity(self.most_units, units.removesuffix("s"), units)


def detectability(units: ArrayLike, rate: float, correction: Correction = "bh") -> Detectability:
    """Compute the limits on effects that a corrected family of signed-rank tests can detect.

    `units`, (n_tests,), are the numbers of pairs in each test. Tests without pairs are not in the
    family. `rate` is the threshold for adjusted p-values.
    """
    sizes = np.asarray(units, np.int64)
    # Descending: tests with more units can have smaller p-values
    sizes = np.sort(sizes[sizes > 0])[::-1]
    if not len(sizes):
        return Detectability(0, 0, 0, 1.0, None, correction)
    smallest = np.array([smallest_p_value(n) for n in sizes.tolist()])
    # By Benjamini and Hochberg, the k smallest of m p-values are significant if the k-th smallest
    # is below rate * k / m. `needed` is the smallest k that satisfies this condition if every test
    # has its smallest possible p-value. By Holm, only k = 1 counts: the smallest p-value must be
    # below rate / m.
    ranks = np.arange(1, len(sizes) + 1) if correction == "bh" else np.ones(1, np.int64)
    enough = np.flatnonzero(smallest[: len(ranks)] * len(sizes) / ranks < rate)
    needed = int(ranks[enough[0]]) if len(enough) else None
    largest, fewest = int(sizes[0]), int(sizes[-1])
    return Detectability(len(sizes), fewest, largest, float(smallest[0]), needed, correction)


def limits_over_groups(
    has: BoolArray,
    several: BoolArray,
    models: Sequence[str],
    contrasts: Iterable[ModelContrast],
    rate: float,
    correction: Correction = "bh",
) -> Detectability:
    """Compute the limits on effects that signed-rank tests over groups can detect.

    `has`, (n_groups, n_models), is True if the model has trials in the group. `several`,
    (n_groups,), is True if the group has several participants. Other groups have no noise ceiling.
    """
    sides = dict(zip(models, has.T, strict=True)) | {CEILING: several}
    units = [int((sides[first] & sides[second]).sum()) for first, second in contrasts]
    return detectability(units, rate, correction)


def family_cautions(
    families: Iterable[tuple[Scope, Detectability]], units: str, rate: float
) -> Iterator[str]:
    """Yield each warning of `Detectability.caution` once.

    Each family has a scope (a set of trials). Unless all families have the same warning, the names
    of the scopes precede each warning.
    """
    limits = grouped((family.caution(units, rate), str(scope)) for scope, family in families)
    for limit, scopes in limits.items():
        if limit:
            where = "" if len(limits) == 1 else f"{', '.join(dict.fromkeys(scopes))}: "
            yield where + limit


def crossed_instead(groups: int) -> str:
    """Return a sentence on why crossed tests replace signed-rank tests with so few groups."""
    return (
        f"With {quantity(groups, 'group')} no signed-rank test over groups can be "
        "significant: contstim analyze uses crossed tests instead, with participants and "
        "items as random factors."
    )
