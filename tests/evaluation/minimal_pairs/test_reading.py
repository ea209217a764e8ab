"""Minimal pairs from files, and what is wrong with files."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.errors import InputError
from contstim.evaluation.minimal_pairs.pairs import (
    Method,
    MinimalPair,
    applicable,
    sample_pairs,
)
from contstim.evaluation.minimal_pairs.reading import (
    Fields,
    pair_files,
    read_minimal_pairs,
)
from contstim.models.base import Continuation
from contstim.sentence import Sentence
from tests.evaluation.minimal_pairs.blimp_files import (
    ROWS,
    one_prefix,
    row,
    two_prefix,
    write_folder,
    write_rows,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_pairs_hold_what_blimps_files_say(tmp_path: Path) -> None:
    pairs = read_minimal_pairs(pair_files(write_folder(tmp_path / "blimp" / "data").parent))
    assert [(pair.paradigm, pair.pair_id) for pair in pairs] == [
        (one["UID"], one["pairID"]) for one in ROWS
    ]
    first, fourth = pairs[0], pairs[3]
    assert (first.phenomenon, first.good.text, first.bad.text) == (
        "agreement",
        "The dog sleeps.",
        "The dog sleep.",
    )
    assert first.one_prefix == (
        Continuation(Sentence(("The", "dog", "sleeps")), 2),
        Continuation(Sentence(("The", "dog", "sleep")), 2),
    )
    assert fourth.two_prefix == (
        Continuation(Sentence(("The", "dog", "sleeps")), 2),
        Continuation(Sentence(("The", "dogs", "sleeps")), 2),
    )
    assert [len(applicable(pairs, method)) for method in Method] == [7, 3, 2]
    assert [pair.is_degenerate(Method.FULL_SENTENCE) for pair in pairs] == [
        one["sentence_good"] == one["sentence_bad"] for one in ROWS
    ]
    assert [pair.is_degenerate(Method.ONE_PREFIX) for pair in pairs[:3]] == [False, False, True]


def test_selection_restrictions_are_argument_structure(tmp_path: Path) -> None:
    rows = [row("x_1", 0, "It rains.", "He rains.", linguistics_term="s-selection")]
    (pair,) = read_minimal_pairs([write_rows(tmp_path / "x.jsonl", rows)])
    assert pair.phenomenon == "argument_structure"


def test_any_table_will_do_if_its_columns_are_named(tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    table.write_text('ok,not ok\n"She sings.","She sing."\n"It is.","It are."\n', encoding="utf-8")
    pairs = read_minimal_pairs(pair_files(table), Fields("ok", "not ok", "", "", ""))
    assert [(p.paradigm, p.phenomenon, p.pair_id, p.bad.text) for p in pairs] == [
        ("mine", "mine", "0", "She sing."),
        ("mine", "mine", "1", "It are."),
    ]


@pytest.mark.parametrize("field", ["sentence_good", "sentence_bad", "UID", "pairID"])
def test_a_missing_or_empty_field_is_named(tmp_path: Path, field: str) -> None:
    lacking = dict(ROWS[1])
    del lacking[field]
    file = write_rows(tmp_path / "a.jsonl", [ROWS[0], lacking])
    with pytest.raises(InputError, match=rf"a\.jsonl, row 2 has no field '{field}'; its fields"):
        read_minimal_pairs([file])
    write_rows(file, [ROWS[0], {**ROWS[1], field: " "}])
    with pytest.raises(InputError, match=rf"row 2: the field '{field}' is empty"):
        read_minimal_pairs([file])


@pytest.mark.parametrize(
    ("number", "field"), [(0, "one_prefix_word_bad"), (3, "two_prefix_prefix_good")]
)
def test_a_method_that_is_promised_needs_its_fields(
    tmp_path: Path, number: int, field: str
) -> None:
    lacking = dict(ROWS[number])
    del lacking[field]
    with pytest.raises(InputError, match=f"no field '{field}'"):
        read_minimal_pairs([write_rows(tmp_path / "a.jsonl", [lacking])])


def test_fields_for_a_method_that_is_ruled_out_are_not_used(tmp_path: Path) -> None:
    ruled_out = {**ROWS[0], "one_prefix_method": False}
    unflagged = {key: value for key, value in ROWS[3].items() if not key.endswith("method")}
    pairs = read_minimal_pairs([write_rows(tmp_path / "a.jsonl", [ruled_out, unflagged])])
    assert [len(applicable(pairs, method)) for method in Method] == [2, 0, 1]


def test_pairs_with_the_same_identifier_are_refused(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", [ROWS[0], ROWS[5], ROWS[0]])
    with pytest.raises(InputError, match=r"Pair 0 of agreement_1 stands twice: .*row 1, .*row 3"):
        read_minimal_pairs([file])


def test_a_paradigm_of_two_phenomena_is_refused(tmp_path: Path) -> None:
    rows = [ROWS[0], {**ROWS[1], "linguistics_term": "islands"}]
    with pytest.raises(InputError, match="belongs to islands here and to agreement"):
        read_minimal_pairs([write_rows(tmp_path / "a.jsonl", rows)])


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"[1, 2]\n", "line 1 is not a JSON object"),
        (b"{\n", "line 1 is not readable JSON"),
        (b"\n", "no rows"),
        (b'{"sentence_good": "\xff"}\n', "not UTF-8"),
    ],
)
def test_what_is_no_table_is_an_input_error(tmp_path: Path, content: bytes, complaint: str) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(content)
    with pytest.raises(InputError, match=complaint):
        read_minimal_pairs([file])


def test_a_folder_without_tables_says_what_is_expected(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError, match="no minimal pairs in"):
            pair_files(path)


def _pairs(sizes: dict[str, int]) -> list[MinimalPair]:
    one, other = Sentence(("a",)), Sentence(("b",))
    return [
        MinimalPair(paradigm, "p", str(i), one, other)
        for i in range(max(sizes.values()))
        for paradigm, n in sizes.items()
        if i < n
    ]


@given(st.integers(1, 12), st.integers(0, 3))
def test_samples_are_nested_and_do_not_depend_on_other_paradigms(size: int, seed: int) -> None:
    pairs = _pairs({"x": 10, "y": 4})
    some, more = (sample_pairs(pairs, n, seed) for n in (size, size + 1))
    assert Counter(pair.paradigm for pair in some) == {"x": min(size, 10), "y": min(size, 4)}
    assert set(some) <= set(more) <= set(pairs)
    assert some == [pair for pair in pairs if pair in set(some)]
    alone = sample_pairs([pair for pair in pairs if pair.paradigm == "y"], size, seed)
    assert alone == [pair for pair in some if pair.paradigm == "y"]


def test_prefixes_of_several_words_are_read_word_by_word(tmp_path: Path) -> None:
    rows = [
        row("x_1", 0, "A b c d.", "A b e d.", **one_prefix("A b ", " c d", "e d")),
        row("x_1", 1, "A b.", "C b.", **two_prefix("A", "C", "b")),
    ]
    first, _ = read_minimal_pairs([write_rows(tmp_path / "x.jsonl", rows)])
    assert first.one_prefix is not None
    assert [(one.sentence.words, one.start) for one in first.one_prefix] == [
        (("A", "b", "c", "d"), 2),
        (("A", "b", "e", "d"), 2),
    ]
