"""The order in which a pair of models uses natural sentences, and where it stops."""

from __future__ import annotations

import hashlib
import random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.optimization.jobs.queues import counted_results, natural_walk
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary

WORDS = Vocabulary(tuple(f"w{n}" for n in range(50)), ("x",))
SENTENCES = [Sentence((f"w{n}", "x")) for n in range(40)]


def test_the_order_is_by_the_hash_of_seed_models_and_sentence() -> None:
    """Witness: the definition, written out."""

    def key(sentence: Sentence) -> str:
        return hashlib.sha256(f"3\x1fa\x1fb\x1f{sentence.text}".encode()).hexdigest()

    expected = sorted(SENTENCES, key=key)
    for pair in (("a", "b"), ("b", "a")):
        assert [*natural_walk(3, pair, SENTENCES * 2, WORDS)] == expected
    others = [(4, ("a", "b")), (3, ("a", "c")), (3, ("b", "c"))]
    walks = {tuple(natural_walk(seed, pair, SENTENCES, WORDS)) for seed, pair in others}
    assert len(walks | {tuple(expected)}) == 4


@given(st.sets(st.sampled_from(SENTENCES)), st.randoms())
def test_sentences_keep_their_order_whatever_else_is_there(
    some: set[Sentence], chance: random.Random
) -> None:
    """Witness: the order of all sentences, without those that are missing."""
    shuffled = chance.sample(sorted(some, key=str), len(some))
    whole = natural_walk(0, ("a", "b"), SENTENCES, WORDS)
    walk = natural_walk(0, ("a", "b"), shuffled, WORDS)
    assert [*walk] == [sentence for sentence in whole if sentence in some]


def test_sentences_without_a_word_to_change_or_with_unknown_words_are_left_out() -> None:
    unusable = [Sentence(("w1",)), Sentence(("w1", "unknown"))]
    walk = natural_walk(0, ("a", "b"), [*unusable, SENTENCES[0]], WORDS)
    assert [*walk] == [SENTENCES[0]]


@pytest.mark.parametrize("seed", range(50))
def test_a_walk_ends_at_enough_triplets_or_too_many_searches_without_one(seed: int) -> None:
    """Witness: every beginning of the results, counted; a failed search is not skipped."""
    chance = random.Random(seed)
    kinds = chance.choices(["triplet", "inadmissible", "unsuccessful"], [1, 2, seed % 6], k=60)
    per_pair = chance.randint(1, 6)
    results = [
        SimpleNamespace(is_skipped=kind != "triplet", is_unsuccessful=kind == "unsuccessful")
        for kind in kinds
    ]
    shortest = next(
        (
            n
            for n in range(len(kinds))
            if kinds[:n].count("triplet") == per_pair
            or kinds[:n].count("unsuccessful") == 3 * per_pair
        ),
        len(kinds),
    )
    assert counted_results(cast("Any", results), per_pair) == results[:shortest]
