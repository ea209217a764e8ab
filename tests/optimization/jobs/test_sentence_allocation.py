from __future__ import annotations

import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.errors import InputError
from contstim.optimization.jobs.sentence_allocation import SentenceAllocator
from contstim.sentence import Sentence

SENTENCES = [Sentence((f"word{i}", "follows")) for i in range(40)]
AB, AC = ("a", "b"), ("a", "c")


def everyone(_: Sentence) -> bool:
    return True


def even(sentence: Sentence) -> bool:
    return int(sentence.words[0][4:]) % 2 == 0


@given(
    n=st.integers(0, 40),
    wishes=st.lists(st.sets(st.integers(0, 39)), min_size=1, max_size=5),
    rounds=st.integers(0, 12),
    seed=st.integers(0, 5),
)
def test_sentences_are_disjoint_usable_by_their_pairs_and_nothing_usable_is_left(
    n: int, wishes: list[set[int]], rounds: int, seed: int
) -> None:
    """Witness: each rule of the allocation, checked by itself."""
    usable = [{SENTENCES[i] for i in wish}.__contains__ for wish in wishes]
    allocator = SentenceAllocator(SENTENCES[:n], usable, seed=seed)
    for _ in range(rounds):
        allocator.assign_round()
    for first, second in combinations(allocator.assigned, 2):
        assert not {*first} & {*second}
    for some, can_use in zip(allocator.assigned, usable, strict=True):
        assert len(some) <= rounds
        assert all(map(can_use, some))
        if len(some) < rounds:
            taken = {s for other in allocator.assigned for s in other}
            assert not any(can_use(s) for s in allocator.pool if s not in taken)


@given(shown=st.sets(st.sampled_from(SENTENCES)), rounds=st.integers(1, 12))
def test_sentences_that_trials_show_are_drawn_where_there_is_no_other(
    shown: set[Sentence], rounds: int
) -> None:
    usable = [everyone, even, everyone]
    allocator = SentenceAllocator(SENTENCES, usable, seed=0, shown=shown)
    drawn = [
        (pair, sentence) for _ in range(rounds) for pair, _, sentence in allocator.assign_round()
    ]
    for turn, (pair, sentence) in enumerate(drawn):
        earlier = {each for _, each in drawn[:turn]}
        others = {s for s in SENTENCES if usable[pair](s)} - earlier - shown
        assert sentence not in shown or not others


@given(short=st.integers(1, 6), more=st.integers(0, 6), seed=st.integers(0, 5))
def test_more_rounds_begin_like_fewer(short: int, more: int, seed: int) -> None:
    allocations = []
    for rounds in (short, short + more):
        allocator = SentenceAllocator(SENTENCES, [everyone, even, everyone], seed=seed)
        for _ in range(rounds):
            allocator.assign_round()
        allocations.append(allocator.assigned)
    for before, after in zip(*allocations, strict=True):
        assert after[: len(before)] == before


def test_the_order_of_the_file_and_repeated_lines_do_not_matter() -> None:
    shuffled = [*SENTENCES, *SENTENCES[:7]]
    random.Random(1).shuffle(shuffled)
    allotted = []
    for sentences in (SENTENCES, shuffled):
        allocator = SentenceAllocator(sentences, [everyone, even], seed=3)
        allocator.assign(10, [AB, AC])
        allotted.append(allocator.assigned)
    assert allotted[0] == allotted[1]
    other = SentenceAllocator(SENTENCES, [everyone, even], seed=4)
    other.assign(10, [AB, AC])
    assert other.assigned != allotted[0]


def test_too_few_sentences_are_refused_with_how_many_more_are_needed() -> None:
    """Of 40 sentences b can use 20; at 25 a pair, a gets 25 and b what is left of the even ones."""
    allocator = SentenceAllocator(SENTENCES, [everyone, even], seed=0)
    with pytest.raises(InputError) as refused:
        allocator.assign(25, [AB, AC])
    got_a, got_b = map(len, allocator.assigned)
    assert "2 pairs of models × 25 sentences are 50" in str(refused.value)
    assert f"Give at least {50 - got_a - got_b} more" in str(refused.value)
    with pytest.raises(InputError, match="a × b gets 13, and 2 other pairs too few"):
        SentenceAllocator(SENTENCES[:39], [everyone] * 3, seed=0).assign(20, [AB, AC, ("b", "c")])


@pytest.mark.parametrize(
    ("per_pair", "said"),
    [
        (5, "2 pairs of models × 5 are 10; of the 40 given, every pair can use 10 or more."),
        (11, "2 pairs of models × 11 are 22; of the 40 given, a × c can use the fewest, 20."),
    ],
)
def test_what_is_needed_and_what_there_is_are_said(per_pair: int, said: str) -> None:
    """Witness: every second of forty sentences is even."""
    allocator = SentenceAllocator(SENTENCES, [everyone, even], seed=0)
    assert allocator.supply(per_pair, [AB, AC]) == f"Natural sentences: {said}"
    allocator.assign(5, [AB, AC])


Edits = st.lists(
    st.tuples(
        st.sets(st.integers(0, 4), min_size=1),  # the pairs that are in the study
        st.sets(st.integers(0, 39), min_size=8),  # the sentences that are given
        st.integers(1, 4),  # wanted for each pair
        st.integers(0, 2),  # further rounds
    ),
    min_size=1,
    max_size=6,
)


@given(edits=Edits, wishes=st.lists(st.sets(st.integers(0, 39)), min_size=5, max_size=5))
def test_whatever_is_edited_no_sentence_serves_two_pairs_and_what_stands_stays(
    edits: list[tuple[set[int], set[int], int, int]], wishes: list[set[int]]
) -> None:
    """Witness: what each pair had before every edit, kept in a dictionary."""
    usable = [{SENTENCES[i] for i in wish}.__contains__ for wish in wishes]
    had: dict[int, dict[int, Sentence]] = {pair: {} for pair in range(5)}
    for pairs, numbers, per_pair, rounds in edits:
        pool = {SENTENCES[i] for i in numbers}
        present = sorted(pairs)
        stays = {p: {i: s for i, s in had[p].items() if s in pool} for p in present}
        try:
            allocator = SentenceAllocator(
                pool,
                [usable[pair] for pair in present],
                seed=1,
                standing=[stays[pair] for pair in present],
                reserved={s for pair in {*had} - pairs for s in had[pair].values()},
            )
            allocator.assign(per_pair, [(str(pair), "x") for pair in present])
        except InputError:
            continue  # refused, and nothing is changed
        for _ in range(rounds):
            allocator.assign_round()
        for pair, some in zip(present, allocator.assigned, strict=True):
            had[pair] = dict(enumerate(some))
            assert {place: had[pair][place] for place in stays[pair]} == stays[pair]
            assert all(s in pool and usable[pair](s) for s in some)
            # None is drawn that was not wanted
            assert len(some) <= max(per_pair, 1 + max(stays[pair], default=-1)) + rounds
        everything = [s for by_place in had.values() for s in by_place.values()]
        assert len(everything) == len({*everything})


def test_sentences_kept_for_models_left_out_are_said() -> None:
    few = SENTENCES[:5]
    allocator = SentenceAllocator(few, [everyone], seed=0, reserved={SENTENCES[0], SENTENCES[1]})
    assert "can use the fewest, 3" in allocator.supply(4, [AB])
    with pytest.raises(InputError, match="where they stand, and 2 are kept for models that were"):
        allocator.assign(4, [AB])
    gone = {2: SENTENCES[0]}
    with pytest.raises(InputError, match=r"2 sentences that pairs .* for 1 of them there is no"):
        SentenceAllocator(SENTENCES[:2], [everyone], seed=0, standing=[gone])
