from __future__ import annotations

import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.errors import InputError
from contstim.optimization.jobs.dealing import Dealer
from contstim.sentence import Sentence

SENTENCES = [Sentence((f"word{i}", "follows")) for i in range(40)]
AB, AC = ("a", "b"), ("a", "c")


def everyone(_: Sentence) -> bool:
    return True


def even(sentence: Sentence) -> bool:
    return int(sentence.words[0][4:]) % 2 == 0


@given(
    n=st.integers(0, 40),
    tastes=st.lists(st.sets(st.integers(0, 39)), min_size=1, max_size=5),
    rounds=st.integers(0, 12),
    seed=st.integers(0, 5),
)
def test_hands_are_disjoint_suit_their_pairs_and_leave_nothing_usable(
    n: int, tastes: list[set[int]], rounds: int, seed: int
) -> None:
    """Witness: the rules of the game, checked one by one."""
    suits = [{SENTENCES[i] for i in taste}.__contains__ for taste in tastes]
    dealer = Dealer(SENTENCES[:n], suits, seed=seed)
    for _ in range(rounds):
        dealer.deal()
    for first, second in combinations(dealer.hands, 2):
        assert not {*first} & {*second}
    for hand, likes in zip(dealer.hands, suits, strict=True):
        assert len(hand) <= rounds
        assert all(map(likes, hand))
        if len(hand) < rounds:
            taken = {s for other in dealer.hands for s in other}
            assert not any(likes(s) for s in dealer.deck if s not in taken)


@given(short=st.integers(1, 6), more=st.integers(0, 6), seed=st.integers(0, 5))
def test_a_longer_game_begins_like_a_shorter_one(short: int, more: int, seed: int) -> None:
    games = []
    for rounds in (short, short + more):
        dealer = Dealer(SENTENCES, [everyone, even, everyone], seed=seed)
        for _ in range(rounds):
            dealer.deal()
        games.append(dealer.hands)
    for before, after in zip(*games, strict=True):
        assert after[: len(before)] == before


def test_the_order_of_the_file_and_repeated_lines_do_not_matter() -> None:
    shuffled = [*SENTENCES, *SENTENCES[:7]]
    random.Random(1).shuffle(shuffled)
    hands = []
    for sentences in (SENTENCES, shuffled):
        dealer = Dealer(sentences, [everyone, even], seed=3)
        dealer.deal_all(10, [AB, AC])
        hands.append(dealer.hands)
    assert hands[0] == hands[1]
    other = Dealer(SENTENCES, [everyone, even], seed=4)
    other.deal_all(10, [AB, AC])
    assert other.hands != hands[0]


def test_too_few_sentences_are_refused_with_how_many_more_are_needed() -> None:
    """Of 40 sentences 20 suit b; at 25 a pair, a gets 25 and b what is left of the even ones."""
    dealer = Dealer(SENTENCES, [everyone, even], seed=0)
    with pytest.raises(InputError) as refused:
        dealer.deal_all(25, [AB, AC])
    got_a, got_b = map(len, dealer.hands)
    assert "2 pairs of models × 25 sentences are 50" in str(refused.value)
    assert f"Give at least {50 - got_a - got_b} more" in str(refused.value)
    with pytest.raises(InputError, match="a × b gets 13, and 2 other pairs too few"):
        Dealer(SENTENCES[:39], [everyone] * 3, seed=0).deal_all(20, [AB, AC, ("b", "c")])
