"""Recognize the columns of a table of minimal pairs from an unknown collection.

A table has one row for each pair, with two columns of sentences:

    good          bad             phenomenon
    The dog is.   The dog are.    agreement

or two rows for each pair, with a column of verdicts (whether a sentence is acceptable):

    item   label   sentence         phenomenon
    1      1       The dog is.      agreement
    1      0       The dog are.     agreement
"""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.evaluation.acceptability import is_missing, verdict
from contstim.files.tables import join_names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    Row = Mapping[str, Any]
    PairTable = tuple[Sequence[Row], tuple[str, ...], str]
    """Rows, names of their columns, and the name of the collection or a description of the columns.

    Each row is a pair. The columns have the order of `COLLECTIONS` in `minimal_pairs`: good
    sentence, bad sentence, paradigm, phenomenon, pair identifier. The name of a missing column is
    empty.
    """
    _Pairs = list[tuple[str, int, int]]  # identifier, row of the good sentence, row of the bad one

_ADJECTIVES = (
    *(("good", "bad"), ("acceptable", "unacceptable"), ("grammatical", "ungrammatical")),
    *(("correct", "incorrect"), ("correct", "wrong"), ("right", "wrong"), ("gram", "ungram")),
)
_PATTERNS = ("{}", "sentence_{}", "{}_sentence", "{}_sen", "{}_sent", "sent_{}", "text_{}")
_SIDES = (
    *((p.format(good), p.format(bad)) for (good, bad), p in product(_ADJECTIVES, _PATTERNS)),
    *(("sen", "wrong_sen"), ("sentence", "wrong_sentence")),
)
_SENTENCE = ("sentence", "sentences", "text", "sent", "sen", "stimulus", "string")
_CONDITION = ("condition", "cond")
_LABEL = (
    *("acceptable", "acceptability", "grammatical", "grammaticality", "label", "verdict"),
    *("is_acceptable", "is_grammatical", "correct", "correctness", "type", *_CONDITION),
)
_ITEM = ("pair_id", "pairid", "pair", "item_id", "itemid", "item", "item_number", "item_nr", "id")
_PARADIGM = ("uid", "paradigm", "pid", "phenomenon", "category", "linguistic_phenomenon")
_PHENOMENON = ("phenomenon", "linguistic_phenomenon", "linguistics_term", "category")
_GOOD, _BAD, _PAIR = "good sentence", "bad sentence", "pair"  # columns of joined rows
REMEDY = (
    "Rename the columns. If each row is a pair, use `sentence_good` and `sentence_bad`. If each "
    "row is a sentence, use `sentence`, `acceptable` and `pair_id`. If there are several "
    "paradigms, add `paradigm`"
)


def find_pairs(file: Path, rows: Sequence[Row]) -> PairTable | None:
    """Find the pairs of a table by the names and values of its columns.

    A paradigm is a type of minimal pair. Without a column of paradigms, all pairs of the file
    belong to one paradigm. The result is None if the table has neither of the two forms at the top
    of this module.

    Raises:
        InputError: if several columns are candidates for the same content (the message names the
            columns); or if rows of single sentences cannot be joined to pairs.
    """
    paradigm = next(iter(_matching_columns(rows, _PARADIGM)), "")
    phenomenon = next(iter(_matching_columns(rows, _PHENOMENON)), "")
    about = f"paradigms under {paradigm}" if paradigm else "the file's name as paradigm"
    if sides := _find_sides(file, rows):
        form = f"acceptable sentences under {sides[0]}, unacceptable ones under {sides[1]}"
        return rows, (*sides, paradigm, phenomenon, ""), f"{form}, {about}"
    sentences = _matching_columns(rows, _SENTENCE)
    labels = _matching_columns(rows, _LABEL)
    if not sentences or not any(verdict(rows[0].get(label)) is not None for label in labels):
        return None
    joined, form = _join_rows(file, rows, paradigm)
    return joined, (_GOOD, _BAD, paradigm, phenomenon, _PAIR), f"{form}, {about}"


def _find_sides(file: Path, rows: Sequence[Row]) -> tuple[str, str] | None:
    """Find the columns of the good and the bad sentence."""
    columns = {_normalise(name): name for name in rows[0]}
    # A column of sentences has letters. A column named `correct` may instead have verdicts: 1 or 0
    candidates = [
        (columns[first], columns[second])
        for first, second in _SIDES
        if columns.keys() >= {first, second} and any(map(str.isalpha, str(rows[0][columns[first]])))
    ]
    if len(candidates) > 1:
        raise _ambiguous(file, "pairs", map(" and ".join, candidates))
    return candidates[0] if candidates else None


def _join_rows(file: Path, rows: Sequence[Row], paradigm: str) -> tuple[Sequence[Row], str]:
    """Join the two rows of each pair to one row, and describe the columns in words."""
    sentence = _require_one(file, "sentences", _matching_columns(rows, _SENTENCE))
    labels = _matching_columns(rows, _LABEL)
    verdicts_by_label: dict[str, list[bool | None]] = {}
    for name in labels:
        verdicts = [verdict(row.get(name)) for row in rows]
        # Columns with the same verdicts count as one
        if {*verdicts} == {True, False} and verdicts not in verdicts_by_label.values():
            verdicts_by_label[name] = verdicts
    label = _require_one(file, "verdicts (such as 1 and 0, or good and bad)", verdicts_by_label)
    items = [
        name
        for name in _matching_columns(rows, _ITEM)
        if name != label and len({str(row.get(name)) for row in rows}) < len(rows)
    ]
    conditions = [name for name in _matching_columns(rows, _CONDITION) if name != label][:1]
    pairs: list[_Pairs] = []
    for item in items:
        # If an item has a pair in each condition, item and condition together identify a pair
        for key in ([item], [item, *conditions]):
            if (candidate := _group_pairs(rows, [paradigm, *key], label)) is not None:
                if candidate not in pairs:
                    pairs.append(candidate)
                    columns = " and ".join(key)
                break
    if not items and verdicts_by_label[label] == [True, False] * (len(rows) // 2):
        pairs = [[(str(n), n, n + 1) for n in range(0, len(rows), 2)]]
        columns = "no column (two consecutive rows are a pair)"
    if len(pairs) > 1:
        raise _ambiguous(file, "identifiers of pairs", items)
    if not pairs:
        by_columns = f"by the columns {join_names(items)}" if items else "without a column of items"
        raise InputError(
            f"The {len(rows):,} rows of {file} cannot be joined {by_columns} to pairs of one "
            f"acceptable and one unacceptable sentence according to {label}. {REMEDY}."
        )
    joined = [
        {**rows[good], _GOOD: rows[good].get(sentence), _BAD: rows[bad].get(sentence), _PAIR: name}
        for name, good, bad in pairs[0]
    ]
    return joined, f"sentences under {sentence}, verdicts under {label}, pairs under {columns}"


def _group_pairs(rows: Sequence[Row], key: Sequence[str], label: str) -> _Pairs | None:
    """Group rows by the columns `key` to pairs of a good and a bad sentence.

    The result is None if a group lacks one of the two sentences, or has several good or several bad
    sentences.
    """
    groups: dict[tuple[str, ...], dict[bool | None, int]] = {}
    for n, row in enumerate(rows):
        cells = tuple("" if is_missing(row.get(name)) else str(row[name]) for name in key)
        group, is_good = groups.setdefault(cells, {}), verdict(row.get(label))
        if is_good is not None and group.setdefault(is_good, n) != n:
            return None
    if not all(group.keys() >= {True, False} for group in groups.values()):
        return None
    return [(" ".join(cells[1:]), group[True], group[False]) for cells, group in groups.items()]


def _matching_columns(rows: Sequence[Row], names: Iterable[str]) -> list[str]:
    columns = {_normalise(name): name for name in rows[0]}
    return [columns[name] for name in names if name in columns]


def _require_one(file: Path, content: str, columns: Collection[str]) -> str:
    if len(columns) > 1:
        raise _ambiguous(file, content, columns)
    if not columns:
        raise InputError(f"{file} has no column with {content} in every row. {REMEDY}.")
    return next(iter(columns))


def _ambiguous(file: Path, content: str, columns: Iterable[str]) -> InputError:
    return InputError(f"{file} has several columns of {content}: {'; '.join(columns)}. {REMEDY}.")


def _normalise(name: str) -> str:
    """Return a column's name in lower case, with spaces and signs replaced by underscores."""
    return re.sub(r"\W+", "_", name.strip().lower())
