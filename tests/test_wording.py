"""Numbers in words, and p-values, by hand."""

from __future__ import annotations

import pytest

from contstim.wording import p_text, quantity


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((1, "group"), "1 group"),
        ((0, "group"), "0 groups"),
        ((2, "natural pair"), "2 natural pairs"),
        ((1_200, "matrix", "matrices"), "1,200 matrices"),
        ((1, "matrix", "matrices"), "1 matrix"),
    ],
)
def test_one_is_singular_and_nothing_else_is(given: tuple[int, str], said: str) -> None:
    assert quantity(*given) == said


@pytest.mark.parametrize(
    ("p_value", "text"),
    [
        (0.0, "< .001"),
        (0.00099, "< .001"),
        (0.001, ".001"),
        (0.0483, ".048"),
        (1.0, "1.000"),
        (float("nan"), "–"),
    ],
)
def test_p_values_are_never_zero(p_value: float, text: str) -> None:
    assert p_text(p_value) == text
