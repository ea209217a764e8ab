"""Sentences that people judged, and their minimal pairs if there are any: LI-Adger or any table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import InputError
from contstim.files.documents import shortened
from contstim.files.tables import listed, needed_columns, number, parsed, parsed_columns, read_table
from contstim.files.tables import text as cell_text
from contstim.wording import repeated
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.files.arrays import FloatArray

    Table = Mapping[str, Sequence[Any]]

LI_ADGER_SENTENCES = "human_ME_results_li-adger_sentences.csv"
LI_ADGER_PAIRS = "li-adger_min_pairs.csv"
JUDGEMENT = ("judgement", "judgment", "rating", "mean_rating", "acceptability", "mean")
"""Names of the column of plain ratings; the first one is taken before all others."""
# how spreadsheets, R and pandas write an empty cell
MISSING = frozenset({"", "#N/A", "N/A", "NA", "nan", "NaN", "None", "null"})
_ACCEPTABLE = frozenset(
    "1 1.0 true t yes y acceptable acc grammatical gram good g ok correct right".split()
)
_UNACCEPTABLE = frozenset(
    "0 0.0 false f no n unacceptable unacc ungrammatical ungram bad ug incorrect wrong".split()
)
_NOT_DISCARDED = frozenset({"0", "0.0", "false", "no"})
_MARKS = frozenset("*?#%()")  # as linguists write them
_SHOWN = 5  # of the mistakes of a kind


@dataclass(frozen=True)
class JudgedPair:
    """Two sentences, by their identifiers, of which experts call the first acceptable.

    Attributes:
        acceptable: identifier of the sentence that experts accept.
        unacceptable: identifier of the one they reject.
        phenomenon: what the pair is about.
        source: the collection that it comes from; empty where there is one only.
        discarded: whether the collection's makers left it out.
    """

    acceptable: str
    unacceptable: str
    phenomenon: str = ""
    source: str = ""
    discarded: bool = False


@dataclass(frozen=True, eq=False)
class Judgements:
    """Judged sentences and their minimal pairs.

    Attributes:
        sentences: by identifier.
        values: (n_sentences,), how acceptable people find each: the more, the better; nan where
            unknown.
        pairs: distinct pairs of these sentences; none for plain ratings.
        files: where they were read.
        named: whether the identifiers are the data's own, not numbers of its rows.

    Raises:
        InputError: a pair is given twice, or names an unknown sentence.
    """

    sentences: Mapping[str, Sentence]
    values: FloatArray
    pairs: tuple[JudgedPair, ...]
    files: tuple[Path, ...] = ()
    named: bool = True

    def __post_init__(self) -> None:
        both = [(pair.acceptable, pair.unacceptable) for pair in self.pairs]
        _refuse("These pairs are given twice", map(" / ".join, repeated(both)))
        unknown = {name for pair in both for name in pair} - set(self.sentences)
        _refuse("Pairs name sentences that there are not", sorted(unknown))

    @property
    def texts(self) -> list[Sentence]:
        """The sentences without their judgements; several items may share one."""
        return list(self.sentences.values())


def _refuse(what: str, names: Iterable[str]) -> None:
    if every := list(names):
        raise InputError(f"{what}: {listed(every, _SHOWN)}.")


def read_judgements(data: Path | str, pairs: Path | str | None = None) -> Judgements:
    """Read judged sentences, and their minimal pairs if there are any.

    Args:
        data: LI-Adger's folder (or its folder `data`), or a table with the columns `sentence` and
            `judgement`, and maybe `id`. If a judgement is not known, the cell is empty or #N/A.
        pairs: a table with the columns `gramm_id`, `ungramm_id`, and maybe `phenomenon` and
            `discard`, of which any mark but 0, false or no discards a pair. Without it, every
            acceptable and every unacceptable sentence of an `item` make a pair: the `label` of
            experts is 1 or 0, acceptable or unacceptable, g or *. Without `item` and `label`, or
            with ratings under another name of `JUDGEMENT` and one of the two, the judgements are
            plain ratings without pairs. Without `id`, the mean of a sentence's ratings counts.

    Raises:
        InputError: a file or a column is missing (names it and what there is), a value is of the
            wrong kind, and what `Judgements` refuses.
    """
    data, pairs = judgement_files(data, pairs)
    table = read_table(data)
    about_pairs = {"item", "label"} & table.keys()
    if pairs is None and not (len(about_pairs) == 2 or (about_pairs and "judgement" in table)):
        sentences, values = _sentences(data, table, _rating_column(data, table))
        if "id" not in table:
            sentences, values = _means(sentences, values)
        return Judgements(sentences, values, (), (data,), named="id" in table)
    sentences, values = _sentences(data, table)
    # Pairs come from a table of their own, or from items: labels then say which sentences are
    # acceptable, and each of these makes a pair with each of the others.
    if pairs is not None:
        files: tuple[Path, ...] = (data, pairs)
        formed = _pairs_of_table(pairs, read_table(pairs))
    else:
        files, formed = (data,), _pairs_of_items(data, table, list(sentences))
    if not formed:
        raise InputError(
            f"{data} has no minimal pair: no item has sentences of both labels. Give a table of "
            "pairs (`pairs`)."
        )
    try:
        return Judgements(sentences, values, formed, files, named="id" in table)
    except InputError as error:
        raise InputError(f"{' and '.join(map(str, files))}: {error}") from error


def judgement_files(data: Path | str, pairs: Path | str | None = None) -> tuple[Path, Path | None]:
    """Tables of judged sentences and of pairs, those of LI-Adger's folder where none is named.

    Raises:
        InputError: the folder does not hold them.
    """
    data, named = Path(data), None if pairs is None else Path(pairs)
    if not data.is_dir():
        return data, named
    for place in (data, data / "data", data / "li-adger" / "data"):
        sentences, published = place / LI_ADGER_SENTENCES, place / LI_ADGER_PAIRS
        if sentences.is_file() and published.is_file():
            return sentences, named or published
    raise InputError(f"{data} does not hold {LI_ADGER_SENTENCES} and {LI_ADGER_PAIRS}.")


def number_or_nan(cell: object) -> float:
    """The number of a cell; nan where it says that there is none.

    Raises:
        ValueError: it is something else.
    """
    return math.nan if is_missing(cell) else number(cell, infinite=True)


def is_missing(cell: object) -> bool:
    """True of an empty cell, as spreadsheets, R and pandas write it."""
    return cell is None or str(cell).strip() in MISSING


def verdict(label: object) -> bool | None:
    """Whether a label of experts says that a sentence is acceptable; None if it says neither."""
    text = str(label).strip().lower()
    if text in _ACCEPTABLE:
        return True
    return False if text in _UNACCEPTABLE or (text != "" and set(text) <= _MARKS) else None


def _rating_column(path: Path, table: Table) -> str:
    columns = [name for name in JUDGEMENT if name in table]
    if "judgement" not in columns and len(columns) > 1:
        raise InputError(
            f"{path} has several columns of judgements: {listed(columns)}. Call one `judgement`."
        )
    return next(iter(columns), "judgement")


def _sentences(
    path: Path, table: Table, column: str = "judgement"
) -> tuple[dict[str, Sentence], FloatArray]:
    texts, cells = needed_columns(path, table, ("sentence", column))
    ids = parsed(path, "id", table.get("id", range(len(texts))), cell_text, "text")
    _refuse(f"{path}: These identifiers of sentences are given twice", repeated(ids))
    sentences = parsed(path, "sentence", texts, Sentence.parse, "sentence")
    values = np.array(parsed(path, column, cells, number_or_nan, "number"))
    if infinite := np.flatnonzero(np.isinf(values)).tolist():
        row = infinite[0]
        raise InputError(f"{path}, row {row}: the judgement {shortened(cells[row])} is not finite.")
    return dict(zip(ids, sentences, strict=True)), values


def _means(
    sentences: Mapping[str, Sentence], values: FloatArray
) -> tuple[dict[str, Sentence], FloatArray]:
    """Each distinct sentence with the mean of its known judgements."""
    judged: dict[Sentence, list[float]] = {}
    for sentence, value in zip(sentences.values(), values.tolist(), strict=True):
        judged.setdefault(sentence, []).extend([] if math.isnan(value) else [value])
    means = np.array([float(np.mean(known)) if known else math.nan for known in judged.values()])
    return {str(row): sentence for row, sentence in enumerate(judged)}, means


def _pairs_of_table(path: Path, table: Table) -> tuple[JudgedPair, ...]:
    readers = dict.fromkeys(("gramm_id", "ungramm_id"), (cell_text, "text"))
    good, bad = parsed_columns(path, table, readers)
    nothing = [""] * len(good)
    others = (table.get(name, nothing) for name in ("phenomenon", "dataset", "discard"))
    # a pair without a phenomenon is about the two types of sentences that it contrasts
    return tuple(
        JudgedPair(
            acceptable=a,
            unacceptable=u,
            phenomenon=str(phenomenon or "") or f"{_type(a)} / {_type(u)}",
            source=str(source or ""),
            discarded=not is_missing(m) and str(m).strip().lower() not in _NOT_DISCARDED,
        )
        for a, u, phenomenon, source, m in zip(good, bad, *others, strict=True)
    )


def _type(identifier: str) -> str:
    """LI-Adger's sentence types: an identifier without the number of the lexicalisation."""
    stem, _, last = identifier.rpartition(".")
    return stem if stem and last.isdigit() else identifier


def _pairs_of_items(path: Path, table: Table, ids: Sequence[str]) -> tuple[JudgedPair, ...]:
    items, labels = needed_columns(path, table, ("item", "label"))
    phenomena = table.get("phenomenon", [""] * len(ids))
    # Sentences without an item are in no pair, but count when judgements are standardized.
    sides: dict[str, tuple[list[int], list[int]]] = {}  # rows of acceptable and of other sentences
    for row, (item, label) in enumerate(zip(items, labels, strict=True)):
        if is_missing(item):
            continue
        is_acceptable = verdict(label)
        if is_acceptable is None:
            raise InputError(f"{path}, row {row}: the label {shortened(label)} is neither 1 nor 0.")
        sides.setdefault(str(item), ([], []))[not is_acceptable].append(row)
    # every acceptable sentence of an item with every other one: 2 and 3 sentences give 6 pairs
    return tuple(
        JudgedPair(ids[good], ids[bad], str(phenomena[good] or ""))
        for both in sides.values()
        for good, bad in product(*both)
    )
