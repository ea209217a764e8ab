"""Read judged sentences and their minimal pairs.

The data are a table from any source, or the folder of the published data set LI-Adger.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from contstim.errors import InputError
from contstim.files.documents import shortened
from contstim.files.tables import (
    join_names,
    needed_columns,
    number,
    parsed,
    parsed_columns,
    read_table,
)
from contstim.files.tables import text as cell_text
from contstim.options import Help
from contstim.wording import find_duplicates, grouped
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.files.arrays import FloatArray

    Table = Mapping[str, Sequence[Any]]

LI_ADGER_SENTENCES = "human_ME_results_li-adger_sentences.csv"
LI_ADGER_PAIRS = "li-adger_min_pairs.csv"
JUDGEMENT = ("judgement", "judgment", "rating", "mean_rating", "acceptability", "mean")
"""Names that the column of judgements may have; `judgement` takes precedence."""
# Texts that spreadsheets, R and pandas write into empty cells
MISSING = frozenset({"", "#N/A", "N/A", "NA", "nan", "NaN", "None", "null"})
_ACCEPTABLE = frozenset(
    "1 1.0 true t yes y acceptable acc grammatical gram good g ok correct right".split()
)
_UNACCEPTABLE = frozenset(
    "0 0.0 false f no n unacceptable unacc ungrammatical ungram bad ug incorrect wrong".split()
)
_NOT_DISCARDED = frozenset({"0", "0.0", "false", "no"})
_MARKS = frozenset("*?#%()")  # linguists' marks of unacceptable sentences
_MAX_LISTED = 5  # maximum number of examples in an error message


@dataclass(frozen=True, kw_only=True)
class AcceptabilitySettings:
    """Settings for the comparison of scores with gradient judgements, such as mean ratings."""

    column: Annotated[
        tuple[str, ...], Help("Column of a model in --scores; by default all columns.")
    ] = ()
    delta: Annotated[
        tuple[float, ...], Help("δ of the Acceptability Delta Criterion.", above=0)
    ] = (0.5, 1.0, 5.0)  # values of Vázquez Martínez (2021)
    scores_as_given: Annotated[bool, Help("The scores are already z-scores.")] = False
    human_z_scores: Annotated[bool, Help("Convert judgements to z-scores, too.")] = False
    allow_missing: Annotated[bool, Help("Exclude sentences without scores.")] = False


ACCEPTABILITY = AcceptabilitySettings()


@dataclass(frozen=True)
class JudgedPair:
    """A minimal pair of judged sentences.

    Attributes:
        acceptable: identifier of the sentence that experts judge acceptable.
        unacceptable: identifier of the other sentence.
        phenomenon: phenomenon that the pair tests.
        source: name of the collection that contains the pair; may be empty.
        discarded: whether the authors of the collection excluded the pair.
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
        sentences: sentences by identifier.
        values: mean judgement of each sentence, (n_sentences,); higher is more acceptable; nan if
            unknown.
        pairs: distinct minimal pairs of these sentences; empty if the data define no pairs.
        files: files of the sentences and pairs.
        has_ids: whether the identifiers come from the data; otherwise they are row numbers.

    Raises:
        InputError: if a pair is repeated, or contains an unknown sentence.
    """

    sentences: Mapping[str, Sentence]
    values: FloatArray
    pairs: tuple[JudgedPair, ...]
    files: tuple[Path, ...] = ()
    has_ids: bool = True

    def __post_init__(self) -> None:
        where = f"{' and '.join(map(str, self.files))}: " if self.files else ""
        both = [(pair.acceptable, pair.unacceptable) for pair in self.pairs]
        _refuse(f"{where}Duplicate pairs", map(" / ".join, find_duplicates(both)))
        unknown = {name for pair in both for name in pair} - set(self.sentences)
        _refuse(f"{where}Pairs name sentences that do not exist", sorted(unknown))

    @property
    def texts(self) -> list[Sentence]:
        """The sentences; a sentence is repeated if it has several identifiers."""
        return list(self.sentences.values())


def _refuse(problem: str, names: Iterable[str]) -> None:
    if all_names := list(names):
        raise InputError(f"{problem}: {join_names(all_names, _MAX_LISTED)}.")


def read_judgements(data: Path | str, pairs: Path | str | None = None) -> Judgements:
    """Read judged sentences, and their minimal pairs if there are any.

    Without the table `pairs`, the pairs come from the columns `item` and `label` of `data`: each
    acceptable sentence of an item forms a pair with each unacceptable sentence of this item. A
    label is an expert's verdict. Labels of acceptable sentences are, for example, `1`,
    `acceptable` and `g`. Labels of unacceptable sentences are, for example, `0`, `unacceptable`
    and `*`.

    If there is no table `pairs`, and `data` has neither `item` nor `label`, there are no pairs. If
    `data` has only one of these columns, the name of the column of judgements decides: with the
    name `judgement`, the missing column is an error; with another name in `JUDGEMENT`, such as
    `rating`, there are no pairs. Without pairs, all judgements of a sentence are averaged, unless
    `data` has a column `id`.

    Args:
        data: LI-Adger's folder (or its folder `data`), or a table with the columns `sentence` and
            `judgement`, optionally `id`. The cell of an unknown judgement is empty or has a text
            such as `#N/A`.
        pairs: table with the columns `gramm_id` and `ungramm_id`, optionally `phenomenon`,
            `dataset` and `discard`. A pair is kept if `discard` is empty, `0`, `false` or `no`;
            any other value marks the pair as discarded.

    Raises:
        InputError: if a file is missing; if a column is missing (the message also names the
            existing columns); if a value has the wrong type; or if pairs are invalid (see
            `Judgements`).
    """
    data, pairs = judgement_files(data, pairs)
    table = read_table(data)
    pair_columns = {"item", "label"} & table.keys()
    if pairs is None and not (len(pair_columns) == 2 or (pair_columns and "judgement" in table)):
        sentences, values = _read_sentences(data, table, _rating_column(data, table))
        if "id" not in table:
            sentences, values = _average_repetitions(sentences, values)
        return Judgements(sentences, values, (), (data,), has_ids="id" in table)
    sentences, values = _read_sentences(data, table)

    if pairs is not None:
        files: tuple[Path, ...] = (data, pairs)
        judged_pairs = _pairs_of_table(pairs, read_table(pairs))
    else:
        files, judged_pairs = (data,), _pairs_of_items(data, table, list(sentences))
    if not judged_pairs:
        raise InputError(
            f"There are no minimal pairs in {' and '.join(map(str, files))}. Label an acceptable "
            "and an unacceptable sentence of an item, or name a table of pairs (`pairs`)."
        )
    return Judgements(sentences, values, judged_pairs, files, has_ids="id" in table)


def judgement_files(data: Path | str, pairs: Path | str | None = None) -> tuple[Path, Path | None]:
    """Return the path of the table of judged sentences, and the path of the table of pairs.

    If `data` is a folder, the tables are LI-Adger's files in this folder. If `pairs` is a path, the
    table at this path replaces LI-Adger's table of pairs.

    Raises:
        InputError: if `data` is a folder without LI-Adger's files.
    """
    data, pair_path = Path(data), None if pairs is None else Path(pairs)
    if not data.is_dir():
        return data, pair_path
    for folder in (data, data / "data", data / "li-adger" / "data"):
        sentences, published = folder / LI_ADGER_SENTENCES, folder / LI_ADGER_PAIRS
        if sentences.is_file() and published.is_file():
            return sentences, pair_path or published
    raise InputError(f"{data} must contain {LI_ADGER_SENTENCES} and {LI_ADGER_PAIRS}.")


def number_or_nan(cell: object) -> float:
    """Return the number in a cell; nan if the cell is empty.

    Raises:
        ValueError: if the cell contains something that is not a number.
    """
    return math.nan if is_missing(cell) else number(cell, infinite=True)


def is_missing(cell: object) -> bool:
    """Return True if a cell is empty, or has a text such as `NA`, which means "empty" in R."""
    return cell is None or str(cell).strip() in MISSING


def verdict(label: object) -> bool | None:
    """Return True for the label of an acceptable sentence, False for unacceptable, None if unknown.

    A label is an expert's verdict, such as `1` or `*`.
    """
    text = str(label).strip().lower()
    if text in _ACCEPTABLE:
        return True
    return False if text in _UNACCEPTABLE or (text != "" and set(text) <= _MARKS) else None


def _rating_column(path: Path, table: Table) -> str:
    columns = [name for name in JUDGEMENT if name in table]
    if "judgement" not in columns and len(columns) > 1:
        raise InputError(
            f"{path} has several columns of judgements: {join_names(columns)}. Rename one to "
            "`judgement`."
        )
    return next(iter(columns), "judgement")


def _read_sentences(
    path: Path, table: Table, column: str = "judgement"
) -> tuple[dict[str, Sentence], FloatArray]:
    texts, cells = needed_columns(path, table, ("sentence", column))
    ids = parsed(path, "id", table.get("id", range(len(texts))), cell_text, "text")
    _refuse(f"{path}: duplicate identifiers of sentences", find_duplicates(ids))
    sentences = parsed(path, "sentence", texts, Sentence.parse, "sentence")
    values = np.array(parsed(path, column, cells, number_or_nan, "number"))
    if infinite := np.flatnonzero(np.isinf(values)).tolist():
        row = infinite[0]
        raise InputError(f"{path}, row {row}: the judgement {shortened(cells[row])} is not finite.")
    return dict(zip(ids, sentences, strict=True)), values


def _average_repetitions(
    sentences: Mapping[str, Sentence], values: FloatArray
) -> tuple[dict[str, Sentence], FloatArray]:
    judged = grouped(zip(sentences.values(), values.tolist(), strict=True))
    known = [[value for value in of_one if not math.isnan(value)] for of_one in judged.values()]
    means = np.array([float(np.mean(of_one)) if of_one else math.nan for of_one in known])
    return {str(row): sentence for row, sentence in enumerate(judged)}, means


def _pairs_of_table(path: Path, table: Table) -> tuple[JudgedPair, ...]:
    readers = dict.fromkeys(("gramm_id", "ungramm_id"), (cell_text, "text"))
    good, bad = parsed_columns(path, table, readers)
    nothing = [""] * len(good)
    optional_columns = (table.get(name, nothing) for name in ("phenomenon", "dataset", "discard"))
    # By default, the name of the phenomenon consists of the pair's two sentence types
    return tuple(
        JudgedPair(
            acceptable=a,
            unacceptable=u,
            phenomenon=str(phenomenon or "") or f"{_sentence_type(a)} / {_sentence_type(u)}",
            source=str(source or ""),
            discarded=not is_missing(d) and str(d).strip().lower() not in _NOT_DISCARDED,
        )
        for a, u, phenomenon, source, d in zip(good, bad, *optional_columns, strict=True)
    )


def _sentence_type(identifier: str) -> str:
    """Return LI-Adger's sentence type, such as `32.1.a.g` for the identifier `32.1.a.g.01`."""
    stem, _, last = identifier.rpartition(".")
    return stem if stem and last.isdigit() else identifier


def _pairs_of_items(path: Path, table: Table, ids: Sequence[str]) -> tuple[JudgedPair, ...]:
    items, labels = needed_columns(path, table, ("item", "label"))
    phenomena = table.get("phenomenon", [""] * len(ids))
    # Item → rows of its acceptable sentences, rows of its unacceptable sentences
    sides: dict[str, tuple[list[int], list[int]]] = {}
    for row, (item, label) in enumerate(zip(items, labels, strict=True)):
        if is_missing(item):  # this sentence is in no pair; only z-scores use its judgement
            continue
        is_acceptable = verdict(label)
        if is_acceptable is None:
            raise InputError(
                f"{path}, row {row}: `label` must be a verdict such as 1 or 0, got "
                f"{shortened(label)}."
            )
        sides.setdefault(str(item), ([], []))[not is_acceptable].append(row)
    # 2 acceptable and 3 unacceptable sentences of an item form 6 pairs
    return tuple(
        JudgedPair(ids[good], ids[bad], str(phenomena[good] or ""))
        for both in sides.values()
        for good, bad in product(*both)
    )
