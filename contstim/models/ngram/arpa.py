"""Conversion between ARPA files and n-gram tables, one column at a time.

The library Arrow splits and joins the text without a Python loop. So millions of n-grams take
seconds. The module `sections` describes the format of a file and its variants.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from contstim.files.files import writing
from contstim.models.ngram.sections import Section, sections_of
from contstim.models.ngram.tables import SPECIAL_WORDS, UNKNOWN, NgramTable, NgramTables

if TYPE_CHECKING:
    from pathlib import Path

    from contstim.files.arrays import IntArray
    from contstim.models.ngram.sections import Columns

_ROWS_AT_ONCE = 500_000


def write_arpa(tables: NgramTables, path: Path | str) -> None:
    """Write an ARPA file; log10 probabilities and back-off weights have full float32 precision.

    A unigram model gets an empty section of bigrams, which KenLM requires.

    Raises:
        InputError: if the file cannot be written.
    """
    sizes = [len(table.keys) for table in tables.orders] + [0] * (tables.order == 1)
    with writing(path) as partial, partial.open("wb") as file:
        header = "".join(f"ngram {n}={size}\n" for n, size in enumerate(sizes, start=1))
        file.write(f"\\data\\\n{header}".encode())
        for order in range(1, len(sizes) + 1):
            file.write(f"\n\\{order}-grams:\n".encode())
            if sizes[order - 1]:
                _write_order(tables, order, file)
        file.write(b"\n\\end\\\n")


def _write_order(tables: NgramTables, order: int, file: IO[bytes]) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    words = pa.array(tables.words, pa.string())
    table = tables.orders[order - 1]
    for start in range(0, len(table.keys), _ROWS_AT_ONCE):
        rows = np.arange(start, min(start + _ROWS_AT_ONCE, len(table.keys)))
        # The key of an n-gram encodes two numbers: the id of its last word, and the row of its
        # first n-1 words in the table of order n-1. So the columns of words are computed from the
        # last to the first
        columns, prefixes = [], rows
        for n in range(order, 0, -1):
            columns.append(words.take(pa.array(tables.word_of(n, prefixes))))
            prefixes = tables.prefix_of(n, prefixes)
        pieces: list[Any] = [pc.cast(pa.array(table.log10_prob[rows]), pa.string())]
        for n, column in enumerate(reversed(columns)):
            pieces += ["\t" if n == 0 else " ", column]
        if order < tables.order:
            pieces += ["\t", pc.cast(pa.array(table.log10_backoff[rows]), pa.string())]
        lines = pc.binary_join_element_wise(*pieces, "\n", "")
        _, offsets, text = lines.buffers()
        file.write(memoryview(text)[: np.frombuffer(offsets, np.int32)[len(lines)]])


def parse_arpa(content: bytes, path: Path | str) -> NgramTables:
    """Read the content of an ARPA file, compressed or not; n-grams may be in any order.

    As in KenLM, a word or n-gram that is listed twice gets the values of its first line. If
    `<unk>` is listed twice, it gets the values of its last line. Words that are not valid UTF-8
    remain in the vocabulary, with their invalid bytes as surrogate characters.

    Raises:
        ModelError: if the file is incomplete or has an invalid line; the message names the line.
    """
    sections = sections_of(content, path)
    # KenLM requires an empty section of bigrams in a unigram model
    has_empty_section = not sections[-1].size
    while not sections[-1].size:
        sections.pop()
    words, ids, unigrams = _read_unigrams(sections[0])
    orders, spelled = [unigrams], [*ids]
    # Arrow releases Python's lock, so that threads can read sections at the same time
    with ThreadPoolExecutor() as threads:
        columns_by_section = threads.map(lambda section: section.columns(spelled), sections[1:])
        id_of = np.fromiter(ids.values(), np.int64, len(ids))
        for section, columns in zip(sections[1:], columns_by_section, strict=True):
            orders.append(_order(section, columns, id_of, orders))
    # A back-off weight applies to an n-gram as the context of the next word. The longest n-grams
    # are contexts only if an empty section of longer n-grams follows. Without such a section,
    # nonzero weights are refused. Otherwise, an empty table represents the section
    if orders[-1].log10_backoff.any():
        if not has_empty_section:
            sections[-1].refuse_weights()
        nothing = np.empty(0, np.float32)
        orders.append(NgramTable(np.empty(0, np.int64), nothing, nothing))
    return NgramTables(words, tuple(orders))


def _read_unigrams(section: Section) -> tuple[tuple[str, ...], dict[bytes, int], NgramTable]:
    """Return the words, the id of each spelling in the file (bytes), and the unigram table."""
    probs, backoffs, unigrams = section.columns()
    special = {word.encode(): id_ for id_, word in enumerate(SPECIAL_WORDS)}
    special[b"<UNK>"] = UNKNOWN  # some programs write <unk> in capitals
    # Row of each id in the columns. If the file lacks a word, its row is `size`, one more than the
    # last row. Below, the values of a missing word are appended to the columns as this row
    ids, rows = dict(special), [section.size] * len(SPECIAL_WORDS)
    for row, word in enumerate(unigrams.to_pylist()):
        id_ = ids.setdefault(word, len(rows))
        if id_ == len(rows):
            rows.append(row)
        elif rows[id_] == section.size or id_ == UNKNOWN:  # KenLM uses the last <unk>
            rows[id_] = row
    for id_, word in enumerate(SPECIAL_WORDS):
        if rows[id_] == section.size and id_ != UNKNOWN:
            raise section.file.error(section.start, f"the unigrams must contain {word}")
    spelled = [word.decode(errors="surrogateescape") for word in ids if word not in special]
    table = NgramTable(
        np.arange(len(rows)),
        np.append(probs, np.float32(-100))[rows],  # KenLM's value for <unk> if a file has none
        np.append(backoffs, np.float32(0))[rows],
    )
    return (*SPECIAL_WORDS, *spelled), ids, table


def _order(
    section: Section, columns: Columns, id_of: IntArray, orders: list[NgramTable]
) -> NgramTable:
    """Return the table of one order.

    Args:
        section: section of the n-grams of this order.
        columns: columns of the section.
        id_of: id of each word of the file.
        orders: tables of all lower orders.
    """
    probs, backoffs, rows_of_words = columns
    words, n_words = id_of[rows_of_words.T], len(orders[0].keys)  # words: (order, size)
    # For each n-gram, the row of its prefix in the table of the prefix's order. Each iteration
    # extends the prefix by one word
    rows = words[0]
    for table, last in zip(orders[1:], words[1:-1], strict=True):
        rows = table.find(rows * n_words + last)
        if (rows < 0).any():
            raise section.error_in_row(
                int(np.argmin(rows)), "a shorter n-gram with which it begins is not in the file"
            )
    keys = rows * n_words + words[-1]
    if not (keys[1:] > keys[:-1]).all():
        by_key = np.argsort(keys, kind="stable")
        keys = keys[by_key]
        is_first = np.diff(keys, prepend=-1) > 0
        keys, by_key = keys[is_first], by_key[is_first]
        probs, backoffs = probs[by_key], backoffs[by_key]
    return NgramTable(keys, probs, backoffs)
