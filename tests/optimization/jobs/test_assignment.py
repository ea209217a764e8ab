"""Natural sentences of pairs: how they are drawn, and the table from which a study begins."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.errors import InputError
from contstim.files.tables import columns_of, write_table
from contstim.optimization.jobs.assignment import Assignment, read_assignment
from contstim.store import AssignedSentence, Slot
from contstim.words.sentence import Sentence
from tests.optimization.jobs.studies import MADE_UP, MODELS, MadeUpSearches

SENTENCES = [Sentence((f"word{i}", "follows")) for i in range(40)]
PAIRS = (("a", "b"), ("a", "c"), ("b", "c"), ("a", "d"), ("b", "d"))


def allocation(
    sentences: Iterable[Sentence],
    usable: Sequence[Callable[[Sentence], bool]],
    pairs: Sequence[tuple[str, str]] = PAIRS,
    **options: Any,
) -> Assignment:
    return Assignment(sentences, dict(zip(pairs, usable, strict=False)), **options)


def assigned(assignment: Assignment) -> list[list[Sentence]]:
    return [[slot.sentence for slot in slots] for slots in assignment.slots.values()]


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
    allocator = allocation(SENTENCES[:n], usable, seed=seed)
    for _ in range(rounds):
        allocator.assign_round()
    for first, second in combinations(assigned(allocator), 2):
        assert not {*first} & {*second}
    for some, can_use in zip(assigned(allocator), usable, strict=True):
        assert len(some) <= rounds
        assert all(map(can_use, some))
        if len(some) < rounds:
            taken = {s for other in assigned(allocator) for s in other}
            assert not any(can_use(s) for s in allocator.pool if s not in taken)


@given(shown=st.sets(st.sampled_from(SENTENCES)), rounds=st.integers(1, 12))
def test_sentences_that_trials_show_are_drawn_where_there_is_no_other(
    shown: set[Sentence], rounds: int
) -> None:
    usable = [everyone, even, everyone]
    allocator = allocation(SENTENCES, usable, seed=0, shown=shown)
    drawn = [
        (PAIRS.index(slot.pair), slot.sentence)
        for _ in range(rounds)
        for slot in allocator.assign_round()
    ]
    for turn, (pair, sentence) in enumerate(drawn):
        earlier = {each for _, each in drawn[:turn]}
        others = {s for s in SENTENCES if usable[pair](s)} - earlier - shown
        assert sentence not in shown or not others


@given(short=st.integers(1, 6), more=st.integers(0, 6), seed=st.integers(0, 5))
def test_more_rounds_begin_like_fewer(short: int, more: int, seed: int) -> None:
    allocations = []
    for rounds in (short, short + more):
        allocator = allocation(SENTENCES, [everyone, even, everyone], seed=seed)
        for _ in range(rounds):
            allocator.assign_round()
        allocations.append(assigned(allocator))
    for before, after in zip(*allocations, strict=True):
        assert after[: len(before)] == before


def test_the_order_of_the_file_and_repeated_lines_do_not_matter() -> None:
    shuffled = [*SENTENCES, *SENTENCES[:7]]
    random.Random(1).shuffle(shuffled)
    allotted = []
    for sentences in (SENTENCES, shuffled):
        allocator = allocation(sentences, [everyone, even], seed=3)
        allocator.assign(10)
        allotted.append(assigned(allocator))
    assert allotted[0] == allotted[1]
    other = allocation(SENTENCES, [everyone, even], seed=4)
    other.assign(10)
    assert assigned(other) != allotted[0]


def test_too_few_sentences_are_refused_with_how_many_more_are_needed() -> None:
    """Of 40 sentences b can use 20; at 25 a pair, a gets 25 and b what is left of the even ones."""
    allocator = allocation(SENTENCES, [everyone, even], seed=0)
    with pytest.raises(InputError) as refused:
        allocator.assign(25)
    got_a, got_b = map(len, assigned(allocator))
    assert "50 are needed" in str(refused.value)
    assert f"Give at least {50 - got_a - got_b} more" in str(refused.value)
    with pytest.raises(InputError, match="a × b lacks 7 of 20"):
        allocation(SENTENCES[:39], [everyone] * 3, seed=0).assign(20)


@pytest.mark.parametrize(
    ("per_pair", "said"),
    [
        (5, "10 are needed of 40, and every pair of models can use 10 or more."),
        (11, "22 are needed of 40, and every pair of models can use 20 or more."),
    ],
)
def test_what_is_needed_and_what_there_is_are_said(per_pair: int, said: str) -> None:
    """Witness: every second of forty sentences is even."""
    allocator = allocation(SENTENCES, [everyone, even], seed=0)
    assert allocator.supply(per_pair) == f"Natural sentences: {said}"
    allocator.assign(5)


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
            allocator = allocation(
                pool,
                [usable[pair] for pair in present],
                [PAIRS[pair] for pair in present],
                seed=1,
                standing=[
                    Slot(*PAIRS[pair], number, sentence)
                    for pair in present
                    for number, sentence in stays[pair].items()
                ],
                reserved={s for pair in {*had} - pairs for s in had[pair].values()},
            )
            allocator.assign(per_pair)
        except InputError:
            continue  # refused, and nothing is changed
        for _ in range(rounds):
            allocator.assign_round()
        for pair, some in zip(present, assigned(allocator), strict=True):
            had[pair] = dict(enumerate(some))
            assert {place: had[pair][place] for place in stays[pair]} == stays[pair]
            assert all(s in pool and usable[pair](s) for s in some)
            # None is drawn that was not wanted
            assert len(some) <= max(per_pair, 1 + max(stays[pair], default=-1)) + rounds
        everything = [s for by_place in had.values() for s in by_place.values()]
        assert len(everything) == len({*everything})


def test_sentences_kept_for_models_left_out_are_said() -> None:
    few = SENTENCES[:5]
    allocator = allocation(few, [everyone], seed=0, reserved={SENTENCES[0], SENTENCES[1]})
    assert "can use 3 or more" in allocator.supply(4)
    with pytest.raises(InputError, match="2 are of models that were left out"):
        allocator.assign(4)
    gone = Slot("a", "b", 2, SENTENCES[0])
    with pytest.raises(InputError, match=r"2 sentences that pairs .* for 1 of them there is no"):
        allocation(SENTENCES[:2], [everyone], seed=0, standing=[gone])


ONE, TWO = Sentence.parse("One two."), Sentence.parse("Three two.")


def write(path: Path, rows: Iterable[AssignedSentence]) -> None:
    write_table(path, columns_of(AssignedSentence, rows))


@pytest.mark.parametrize("name", ["assignment.csv", "assignment.jsonl", "assignment.parquet"])
def test_what_is_written_is_read(tmp_path: Path, name: str) -> None:
    rows = (AssignedSentence("a", "b", 0, ONE), AssignedSentence("a", "b", 2, TWO))
    write(tmp_path / name, rows)
    assert read_assignment(tmp_path / name) == rows


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["a,a,0,One two."], "row 0: model_1 and model_2 must name two models"),
        (["a,b,-1,One two."], "slot be 0 or more, not .* and -1"),
        (["a,b,x,One two."], "'x' under slot is not a whole number"),
        (["a,b,0,One two.", "b,a,0,Three two."], "slot 0 of b × a in rows 0 and 1"),
        (["a,b,0,One two.", "a,c,0,One two."], "the sentence 'One two.' in rows 0 and 1"),
    ],
)
def test_tables_that_are_wrong_are_refused(tmp_path: Path, rows: list[str], message: str) -> None:
    path = tmp_path / "assignment.csv"
    path.write_text("\n".join(["model_1,model_2,slot,sentence", *rows]) + "\n")
    with pytest.raises(InputError, match=message):
        read_assignment(path)


@pytest.mark.usefixtures("searches")
def test_a_study_that_has_grown_is_repeated_elsewhere_from_its_assignment(tmp_path: Path) -> None:
    """Witness: the study that has grown; and one that has not, which has other sentences."""
    grown = tmp_path / "grown.sqlite"
    # The last two first, so that the study has an order of its own
    MADE_UP.but(models=(MODELS[0], MODELS[2])).find(grown)
    results = MADE_UP.find(grown)
    assert [(p.model_1, p.model_2) for p in results.pairs][1:] == [
        (MODELS[2], MODELS[1]),
        (MODELS[0], MODELS[1]),
    ]
    write(tmp_path / "assignment.csv", results.assignment)
    rows = read_assignment(tmp_path / "assignment.csv")
    repeated = MADE_UP.find(tmp_path / "elsewhere.sqlite", assignment=rows)
    assert repeated == results
    # By now the store has sentences of its own
    assert MADE_UP.find(tmp_path / "elsewhere.sqlite", assignment=rows[:1]) == results
    assert MADE_UP.find(tmp_path / "at_once.sqlite").assignment != results.assignment


def test_an_assignment_that_does_not_fit_is_refused(
    searches: MadeUpSearches, tmp_path: Path
) -> None:
    first, second = sorted(MODELS)[:2]
    path = tmp_path / "s.sqlite"
    unlisted = AssignedSentence(first, second, 0, Sentence.parse("Nobody gave this."))
    with pytest.raises(InputError, match="which is not among the natural sentences"):
        MADE_UP.find(path, assignment=[unlisted])
    foreign = MADE_UP.but(sentences=(*MADE_UP.sentences, unlisted.sentence))
    with pytest.raises(InputError, match="which has a word that one of them does not know"):
        foreign.find(path, assignment=[unlisted])
    with pytest.raises(InputError, match=r"is of other models \(a, b\)"):
        MADE_UP.find(path, assignment=[AssignedSentence("a", "b", 0, MADE_UP.sentences[0])])
    assert not searches.done
