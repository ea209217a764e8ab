from __future__ import annotations

import pytest

from contstim.words.text_notes import TextNotes, is_tokenised


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("The dog , which barked , did n't run away .", True),
        ("`` We ca n't go , '' said the man .", True),
        ("He did n’t go", True),
        ("It -LRB- the dog -RRB- barks", True),
        ("a well @-@ known dog", True),
        ("東京 は 大きい 。", True),
        ("The dog, which barked, didn't run away.", False),
        ("Où vas-tu ?", False),
        ("Il dit : « Viens ! »", False),
        ("He paused . . . and left.", False),
        ("Rock 'n' roll is the boys' music.", False),
        ("राम घर गया ।", False),
    ],
)
def test_tokenised_lines_are_recognised(line: str, expected: bool) -> None:
    """By hand: the conventions of the Penn Treebank and of WikiText, and ordinary typography."""
    assert is_tokenised(line) is expected


@pytest.mark.parametrize(
    ("tokenised", "plain", "warns"), [(1, 1, True), (1, 200, False), (0, 9, False)]
)
def test_a_text_with_some_misprints_is_not_tokenised(
    tokenised: int, plain: int, warns: bool
) -> None:
    notes = TextNotes()
    for line in ["A dog , a cat ."] * tokenised + ["A dog, a cat."] * plain:
        notes.normalise(line)
    assert notes.is_tokenised is warns
    assert bool([*notes.warnings("text")]) is warns
