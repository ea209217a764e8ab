"""Reading judged sentences: LI-Adger's files as published, or any table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.documents import shortened
from contstim.errors import InputError, SentenceError
from contstim.evaluation.acceptability.judgements import (
    JudgedPair,
    JudgedSentence,
    Judgements,
)
from contstim.sentence import Sentence
from contstim.tables import listed, parsed, read_table
from contstim.tables import number as cell_number
from contstim.tables import text as cell_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Table = Mapping[str, Sequence[Any]]

LI_ADGER_SENTENCES = "human_ME_results_li-adger_sentences.csv"
LI_ADGER_PAIRS = "li-adger_min_pairs.csv"
# how spreadsheets, R and pandas write an empty cell
MISSING = frozenset({"", "#N/A", "N/A", "NA", "nan", "NaN", "None", "null"})
_ACCEPTABLE = frozenset({"1", "1.0", "true", "yes", "acceptable", "grammatical", "good", "g", "ok"})
_UNACCEPTABLE = frozenset({"0", "0.0", "false", "no", "unacceptable", "ungrammatical", "bad"})
_NOT_DISCARDED = frozenset({"0", "0.0", "false", "no"})
_MARKS = frozenset("*?#%()")  # as linguists write them


@dataclass(frozen=True)
class JudgementColumns:
    """Names of the columns of a table of judged sentences, or of its pairs.

    Attributes:
        id: identifies a sentence; where there is no such column, the row's number does, if this
            name is the default.
        sentence: the text.
        judgement: how acceptable people find it, a number; empty or #N/A where that is not known.
        item: sentences of one item are compared with each other; those of none count for z-scores
            only.
        label: whether experts accept it: 1 or 0, acceptable or unacceptable, g or *.
        phenomenon: what the item is about; under its default name it may be missing.
        acceptable: in a table of pairs, the identifier of the acceptable sentence.
        unacceptable: in a table of pairs, the identifier of the other one.
        discard: in a table of pairs, marks pairs to leave out by anything but 0, false or no; under
            its default name it may be missing.
    """

    id: str = "id"
    sentence: str = "sentence"
    judgement: str = "judgement"
    item: str = "item"
    label: str = "label"
    phenomenon: str = "phenomenon"
    acceptable: str = "gramm_id"
    unacceptable: str = "ungramm_id"
    discard: str = "discard"


COLUMNS = JudgementColumns()


def read_judgements(
    data: Path | str, pairs: Path | str | None = None, columns: JudgementColumns = COLUMNS
) -> Judgements:
    """Read judged sentences and their minimal pairs.

    Args:
        data: LI-Adger's folder (or its folder `data`), or a table of sentences.
        pairs: a table of pairs of sentences; without it, every acceptable and every unacceptable
            sentence of an item make a pair.
        columns: what the columns are called.

    Raises:
        InputError: a file or a column is missing (names it and what there is), a value is of the
            wrong kind, and what `Judgements` refuses.
    """
    data = Path(data)
    if data.is_dir():
        data, published_pairs = _published(data)
        pairs = pairs or published_pairs
    table = read_table(data)
    # Pairs come from a table of their own, or from items: labels then say which sentences are
    # acceptable, and each of these makes a pair with each of the others.
    ids, sentences = _sentences(data, table, columns)
    if pairs is not None:
        files: tuple[Path, ...] = (data, Path(pairs))
        for what in ("item", "label"):
            _optional(data, table, columns, what, ())
        formed = _pairs_of_table(files[1], read_table(pairs), columns)
    else:
        # a name that was given for a table of pairs shows that one was forgotten
        for what in ("acceptable", "unacceptable", "discard"):
            name = getattr(columns, what)
            if name != getattr(COLUMNS, what):
                raise InputError(
                    f"{name!r} is to be a column in a table of pairs, and there is none: give one, "
                    f"or leave the column's name out."
                )
        files, formed = (data,), _pairs_of_items(data, table, ids, columns)
    try:
        return Judgements(sentences, formed, files, named=columns.id in table)
    except InputError as error:
        raise InputError(f"{' and '.join(map(str, files))}: {error}") from error


def _published(folder: Path) -> tuple[Path, Path]:
    for place in (folder, folder / "data", folder / "li-adger" / "data"):
        if (place / LI_ADGER_SENTENCES).is_file() and (place / LI_ADGER_PAIRS).is_file():
            return place / LI_ADGER_SENTENCES, place / LI_ADGER_PAIRS
    raise InputError(
        f"{folder} does not hold {LI_ADGER_SENTENCES} and {LI_ADGER_PAIRS}, in itself or in its "
        f"folder data. Give the repository of LI-Adger, or a table of judged sentences."
    )


def _require(path: Path, table: Table, *names: str) -> list[Sequence[Any]]:
    """Columns of a table.

    Raises:
        InputError: one is missing; names it and those that there are.
    """
    missing = [name for name in names if name not in table]
    if missing:
        raise InputError(
            f"{path} lacks {', '.join(map(repr, missing))}; its columns are {listed(table)}. "
            f"Options say what columns are called."
        )
    return [table[name] for name in names]


def _optional(
    path: Path, table: Table, columns: JudgementColumns, what: str, absent: Sequence[Any]
) -> Sequence[Any]:
    """A column, or what stands in for it where it has its usual name and is not there.

    Raises:
        InputError: it was given another name, under which there is none.
    """
    name = getattr(columns, what)
    if name != getattr(COLUMNS, what):
        _require(path, table, name)
    return table.get(name, absent)


def number(path: Path, row: int, name: str, value: object) -> float:
    """A number of a table; nan where it says that there is none.

    Raises:
        InputError: it is something else.
    """
    if value is None or str(value).strip() in MISSING:
        return math.nan
    try:
        return cell_number(value, infinite=True)
    except ValueError:
        raise InputError(
            f"{path}, row {row}: {shortened(value)} under {name} is not a number."
        ) from None


def _sentences(
    path: Path, table: Table, columns: JudgementColumns
) -> tuple[list[str], tuple[JudgedSentence, ...]]:
    texts, values = _require(path, table, columns.sentence, columns.judgement)
    numbered = _optional(path, table, columns, "id", range(len(texts)))
    ids = parsed(path, columns.id, numbered, cell_text, "text")
    sentences = []
    for row, (name, text, value) in enumerate(zip(ids, texts, values, strict=True)):
        try:
            sentence = Sentence.parse(text)
        except SentenceError as error:
            raise InputError(f"{path}, row {row}: {error}") from error
        judgement = number(path, row, columns.judgement, value)
        if math.isinf(judgement):
            raise InputError(f"{path}, row {row}: the judgement {shortened(value)} is not finite.")
        sentences.append(JudgedSentence(name, sentence, judgement))
    return ids, tuple(sentences)


def _pairs_of_table(path: Path, table: Table, columns: JudgementColumns) -> tuple[JudgedPair, ...]:
    names = (columns.acceptable, columns.unacceptable)
    good, bad = (
        parsed(path, name, cells, cell_text, "text")
        for name, cells in zip(names, _require(path, table, *names), strict=True)
    )
    # a pair without a phenomenon is about the two types of sentences that it contrasts
    nothing = [""] * len(good)
    phenomena = _optional(path, table, columns, "phenomenon", nothing)
    cells = _optional(path, table, columns, "discard", nothing)
    marks = ["" if cell is None else str(cell).strip() for cell in cells]
    sources = table.get("dataset", nothing)
    return tuple(
        JudgedPair(
            acceptable=a,
            unacceptable=u,
            phenomenon=str(phenomenon or "") or f"{_type(a)} / {_type(u)}",
            source=str(source or ""),
            discarded=mark not in MISSING and mark.lower() not in _NOT_DISCARDED,
        )
        for a, u, phenomenon, source, mark in zip(good, bad, phenomena, sources, marks, strict=True)
    )


def _type(identifier: str) -> str:
    """LI-Adger's sentence types: an identifier without the number of the lexicalisation."""
    stem, _, last = identifier.rpartition(".")
    return stem if stem and last.isdigit() else identifier


def _pairs_of_items(
    path: Path, table: Table, ids: Sequence[str], columns: JudgementColumns
) -> tuple[JudgedPair, ...]:
    items, labels = _require(path, table, columns.item, columns.label)
    phenomena = _optional(path, table, columns, "phenomenon", [""] * len(ids))
    # Sentences without an item are in no pair, but count when judgements are standardized.
    sides: dict[str, tuple[list[int], list[int]]] = {}  # rows of acceptable and of other sentences
    for row, (item, label) in enumerate(zip(items, labels, strict=True)):
        if item is None or str(item).strip() in MISSING:
            continue
        acceptable, unacceptable = sides.setdefault(str(item), ([], []))
        text = str(label).strip().lower()
        if text in _ACCEPTABLE:
            acceptable.append(row)
        elif text in _UNACCEPTABLE or (text and set(text) <= _MARKS):
            unacceptable.append(row)
        else:
            raise InputError(
                f"{path}, row {row}: the label {shortened(label)} is neither acceptable "
                f"({', '.join(sorted(_ACCEPTABLE))}) nor unacceptable "
                f"({', '.join(sorted(_UNACCEPTABLE))})."
            )
    # every acceptable sentence of an item with every other one: 2 and 3 sentences give 6 pairs
    return tuple(
        JudgedPair(ids[good], ids[bad], str(phenomena[good] or ""))
        for both in sides.values()
        for good, bad in product(*both)
    )
