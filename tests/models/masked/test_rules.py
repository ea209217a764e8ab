"""What each rule hides, as the documentation draws it."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from contstim.models.masked.orders import exact_plan
from contstim.models.masked.rules import HIDES, pll_plan
from contstim.models.words import END_MARK, SPECIAL

TOKENS = ["[CLS]", "The", "so", "##uven", "##ir", "broke", ".", "[SEP]"]
PATTERN = (SPECIAL, 0, 1, 1, 1, 2, END_MARK, SPECIAL)
UVEN = TOKENS.index("##uven")
DRAWN = [
    [cell.strip(" `") for cell in line.strip("| \n").split("|")]
    for line in (Path(__file__).parents[3] / "docs/scoring.md").read_text("utf-8").splitlines()
    if line.startswith("|") and "[CLS] |" in line
]


def drawn(hidden: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[str]:
    return ["_" if is_hidden else t for t, is_hidden in zip(TOKENS, hidden.tolist(), strict=True)]


@pytest.mark.parametrize("rule", HIDES)
def test_pll_rules_hide_what_the_table_shows(rule: str) -> None:
    plan = pll_plan(rule, PATTERN)
    row = plan.row[plan.token == UVEN]
    assert [[rule, *drawn(plan.hidden[row[0]])]] == [line for line in DRAWN if line[0] == rule]
    assert plan.token.tolist() == [1, 2, 3, 4, 5, 6]
    assert (plan.weight == 1).all()


def test_chain_asks_in_the_contexts_of_the_table() -> None:
    plan = exact_plan(PATTERN)
    asked = np.flatnonzero(plan.token == UVEN)
    ours = {tuple(drawn(plan.hidden[plan.row[q]])): plan.weight[q] for q in asked}
    table = {
        tuple(line[-9:-1]): Fraction(line[-1]) for line in DRAWN if re.fullmatch(r"1/\d+", line[-1])
    }
    assert len(table) == 16
    assert sum(table.values()) == 1
    assert ours == {cells: pytest.approx(float(weight)) for cells, weight in table.items()}


def test_equal_contexts_are_one_pass() -> None:
    assert len(pll_plan("pll-whole-word", PATTERN).hidden) == 4
    assert len(pll_plan("pll-original", PATTERN).hidden) == 6
