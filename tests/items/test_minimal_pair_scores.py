"""Tables of minimal pairs with scores: round trips, and errors for damaged tables."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contstim.english.words import tag_table
from contstim.errors import InputError
from contstim.experiments.analysis.trivial_rivals import GRAMMAR, trivial_rivals
from contstim.experiments.design.building import pair_trial
from contstim.files.tables import read_table, write_table
from contstim.items.minimal_pair_scores import MinimalPairScores, SentencePair
from contstim.items.stimuli import Kind, check_trials
from contstim.optimization.selection.minimal_pairs import select_minimal_pairs
from contstim.optimization.selection.question import MinimalPairQuestion
from contstim.words.sentence import Sentence

SCORES = MinimalPairScores(
    tuple(
        SentencePair(paradigm, "0", Sentence.parse(good), Sentence.parse(bad))
        for paradigm, good, bad in (
            ("agreement", "The cats sleep.", "The cats sleeps."),
            ("binding", "He sees himself.", "He sees herself."),
        )
    ),
    ("a", "b"),
    np.array([[[-1.0, -2.0], [-3.0, -1.5]], [[-4.0, -np.inf], [-5.0, -np.inf]]]),
)


def test_written_scores_are_read_unchanged(tmp_path: Path) -> None:
    SCORES.write(tmp_path / "pairs.csv")
    loaded = MinimalPairScores.from_file(tmp_path / "pairs.csv")
    assert (loaded.log_probs == SCORES.log_probs).all()
    assert vars(loaded) | {"log_probs": 0} == vars(SCORES) | {"log_probs": 0}
    # By hand: -1 - -3, -2 - -1.5; two impossible sentences are a tie
    assert loaded.margins.tolist() == [[2.0, -0.5], [1.0, 0.0]]


def test_ties_do_not_depend_on_the_order_of_sides() -> None:
    """By hand: the difference is more than 2^-21 of the smaller side and less of the larger."""
    sides = np.array([-1.0, -1 - 2.0**-21 - 2.0**-43])
    for log_probs, tied in ((sides, True), (sides[::-1], True), (sides * [1, 1 + 2.0**-40], False)):
        assert replace(SCORES, log_probs=log_probs.reshape(1, 2, 1)).ties.tolist() == [[tied]]


@pytest.mark.parametrize(
    ("name", "cells", "message"),
    [
        ("good", None, "lacks the columns good"),
        ("a: bad", None, "lacks the columns a: bad"),
        ("a: bad", ["-1", "x"], "row 1: 'x' under a: bad is not a number"),
        ("a: bad", ["-1", "inf"], "invalid score"),
        ("paradigm", ["binding", "binding"], "has two pairs 0 of the paradigm binding"),
        ("method", ["one-prefix", "two-prefix"], "no pair of sentences"),
    ],
)
def test_damaged_tables_are_refused(
    tmp_path: Path, name: str, cells: list[str] | None, message: str
) -> None:
    SCORES.write(tmp_path / "pairs.csv")
    table = read_table(tmp_path / "pairs.csv")
    if cells is None:
        del table[name]
    else:
        table[name] = cells
    write_table(tmp_path / "damaged.csv", table)
    with pytest.raises(InputError, match=message):
        MinimalPairScores.from_file(tmp_path / "damaged.csv")


def test_near_pairs_have_natural_and_changed_sentences(tmp_path: Path) -> None:
    """They are read as written, and their trials compare a natural with a changed sentence."""
    replace(SCORES, near=True).write(tmp_path / "near.csv")
    table = read_table(tmp_path / "near.csv")
    assert {"natural", "changed", "a: natural", "b: changed"} <= table.keys()
    assert not {"good", "bad"} & table.keys()
    loaded = MinimalPairScores.from_file(tmp_path / "near.csv")
    assert loaded.near
    pairs = select_minimal_pairs(
        replace(loaded, log_probs=np.array([[[-1.0, -2], [-3, -1]], [[-4.0, -2], [-3, -5]]])),
        MinimalPairQuestion(per_pair=2),
    ).pairs
    trials = list(map(pair_trial, pairs))
    assert {(t.kind_1, t.kind_2) for t in trials} == {(Kind.NATURAL, Kind.CHANGED)}
    check_trials(trials)
    assert GRAMMAR not in trivial_rivals(trials, tag_table(None))[0]
