"""Counts read from tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.items.scores import read_pair_counts, read_token_counts


def test_tokens_are_the_rows_of_a_table_of_words(tmp_path: Path) -> None:
    path = tmp_path / "words.csv"
    path.write_text(
        "sentence,model,position,word,token,log_prob,surprisal\n"
        "A dog,m,0,A,A,-1,1\nA dog,m,1,dog,do,-1,1\nA dog,m,1,dog,##g,-1,1\nA dog,n,0,A,A,-1,1\n"
    )
    assert read_token_counts(path) == {("A dog.", "m"): 3, ("A dog.", "n"): 1}


def test_sentences_that_were_given_twice_are_counted_once(tmp_path: Path) -> None:
    """By hand: Bobo is Bo and bo, and stands in three lines of which two follow each other."""
    bobo = "Bobo,m,0,Bobo,bo,-1,1\nBobo,m,0,Bobo,bo,-2,2\n"
    dog = "A dog!,m,0,A,A,-1,1\nA dog!,m,1,dog,dog,-1,1\n"
    hello = "Hi,m,0,Hi,Hi,-1,1\n"
    path = tmp_path / "words.csv"
    head = "sentence,model,position,word,token,log_prob,surprisal\n"
    path.write_text(head + bobo + dog + bobo + bobo + hello + dog + hello)
    counts = {("Bobo.", "m"): 2, ("A dog!", "m"): 2, ("Hi.", "m"): 1}
    assert read_token_counts(path) == counts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model_1,model_2\na,b\n", "lacks the columns per_pair"),
        ("model_1,model_2,per_pair\na,b,1\na,b,2\n", "two counts for a, b"),
        ("model_1,model_2,per_pair\na,b,few\n", "'few' under per_pair is not a whole number"),
    ],
)
def test_malformed_counts_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "counts.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_pair_counts(path)


def test_counts_are_read_by_model_pair(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("model_1,model_2,per_pair\na,b,1\nb,c,0\n")
    assert read_pair_counts(tmp_path / "c.csv") == {("a", "b"): 1, ("b", "c"): 0}
