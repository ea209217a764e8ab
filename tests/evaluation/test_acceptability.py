"""Judged sentences, read from small tables; LI-Adger's files are tested on the published data."""

import math
from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.evaluation.acceptability import read_judgements
from tests.evaluation.small_data import ITEMS, write


def test_items_pair_acceptable_with_unacceptable_sentences(tmp_path: Path) -> None:
    judgements = read_judgements(write(tmp_path / "items.csv", ITEMS))
    pairs = [(p.acceptable, p.unacceptable, p.phenomenon) for p in judgements.pairs]
    agreement = [(a, u, "agreement") for a in ("a1", "a3") for u in ("a2", "a4")]
    assert pairs == [*agreement, ("b1", "b2", "islands"), ("c1", "c2", "islands")]
    assert judgements.values[:3].tolist() == [6.5, 2, 6]
    assert math.isnan(judgements.values[6])
    assert judgements.texts[0].text == "The dog sleeps."


def test_sentences_without_an_item_are_in_no_pair(tmp_path: Path) -> None:
    judgements = read_judgements(write(tmp_path / "items.csv", ITEMS + "d1,,,,A filler,4\n"))
    assert len(judgements.sentences) == 9
    assert len(judgements.pairs) == 6


def test_a_file_of_pairs_replaces_items(tmp_path: Path) -> None:
    data = write(tmp_path / "items.csv", ITEMS)
    text = "gramm_id,ungramm_id,discard,phenomenon\na1,a2,,\na3,a4,X,number\n"
    judgements = read_judgements(data, write(tmp_path / "pairs.csv", text))
    assert [p.discarded for p in judgements.pairs] == [False, True]
    assert [p.phenomenon for p in judgements.pairs] == ["a1 / a2", "number"]
    assert len(judgements.files) == 2


def test_types_of_sentences_replace_a_missing_phenomenon(tmp_path: Path) -> None:
    data = "id,sentence,judgement\n32.1.a.g.01,It is,1\n32.1.b.*.01,It be,0\n"
    pairs = write(tmp_path / "p.csv", "gramm_id,ungramm_id\n32.1.a.g.01,32.1.b.*.01\n")
    (pair,) = read_judgements(write(tmp_path / "a.csv", data), pairs).pairs
    assert pair.phenomenon == "32.1.a.g / 32.1.b.*"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("judgement\n", "rating\n", "lacks the columns judgement; its columns are id, item, label"),
        ("id,item,", "id,set,", "lacks the columns item;"),
        ("label", "experts", "lacks the columns label;"),
        ("a2,", "a1,", "duplicate identifiers of sentences: a1"),
        (",6.5", ",high", "row 0: 'high' under judgement is not a number"),
        (",6.5", ",inf", "row 0: the judgement 'inf' is not finite"),
        ("b1,b,1", "b1,b,2", "row 4: `label` must be a verdict"),
        ("The dog sleeps,", ",", "row 0: .*A sentence needs at least one word"),
    ],
)
def test_errors_in_tables_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_judgements(write(tmp_path / "items.csv", ITEMS.replace(old, new, 1)))


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ("gramm_id\na1\n", "lacks the columns ungramm_id;"),
        ("gramm_id,ungramm_id\na1,a2\na1,a2\n", "Duplicate pairs: a1 / a2"),
        ("gramm_id,ungramm_id\na1,z9\n", "name sentences that do not exist: z9"),
        ("gramm_id,ungramm_id\n", "a header (and|but) no rows"),
    ],
)
def test_errors_in_pairs_are_named(tmp_path: Path, pairs: str, message: str) -> None:
    data = write(tmp_path / "items.csv", ITEMS)
    with pytest.raises(InputError, match=message):
        read_judgements(data, write(tmp_path / "pairs.csv", pairs))
