"""ARPA files: read into and written from n-gram tables, a column at a time.

Arrow splits and joins the text, so that millions of n-grams take seconds without a Python loop. The
trigram section of a file, and its columns:

    -0.5 <tab> the dog sleeps <tab> -0.2        log10 probability, words, log10 back-off weight
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from contstim.errors import ModelError
from contstim.files import reading, writing
from contstim.models.ngram.tables import SPECIAL_WORDS, UNKNOWN, NgramTable, NgramTables

if TYPE_CHECKING:
    from collections.abc import Callable

    from contstim.arrays import Float32Array

HEADER_BYTES = 1 << 16  # a header is much shorter
_COMPRESSED: dict[bytes, Callable[[Path], object]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
}
_ROWS_AT_ONCE = 500_000
_OTHER_UNKNOWN = re.compile(rb"(?<!\S)<UNK>(?!\S)")  # <unk> in some programs, and for KenLM
_LOG10_UNSEEN = -100.0  # what KenLM gives <unk> where a file has none


def write_arpa(tables: NgramTables, path: Path | str) -> None:
    """Write an ARPA file: log10 probabilities and back-off weights, exact to float32.

    A unigram model gets an empty section of bigrams, without which KenLM refuses it.

    Raises:
        InputError: the file cannot be written.
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
        # A key gives the last word and the row of the prefix in the table below, whose key gives
        # the word before: so the columns come last word first.
        columns, prefixes = [], rows
        for n in range(order, 0, -1):
            columns.append(words.take(pa.array(tables.word_of(n, prefixes))))
            prefixes = tables.prefix_of(n, prefixes)
        pieces: list[Any] = [pc.cast(pa.array(table.log10_prob[rows]), pa.string())]
        for n, column in enumerate(reversed(columns)):
            pieces += ["\t" if n == 0 else " ", column]
        if order < tables.order:
            pieces += ["\t", pc.cast(pa.array(table.log10_backoff[rows]), pa.string())]
        # the joined lines lie in one buffer, which ends where the last line does
        lines = pc.binary_join_element_wise(*pieces, "\n", "")
        _, offsets, text = lines.buffers()
        file.write(memoryview(text)[: np.frombuffer(offsets, np.int32)[len(lines)]])


def read_arpa(path: Path | str) -> NgramTables:
    """Read an ARPA file of any program, compressed or not; n-grams may come in any order.

    Raises:
        ModelError: the file is missing, or not an ARPA file that is whole.
    """
    with reading(path, ModelError):
        text, _ = read_content(Path(path))
    sizes = announced(path, text[:HEADER_BYTES])
    text = _OTHER_UNKNOWN.sub(SPECIAL_WORDS[UNKNOWN].encode(), text.partition(b"\\data\\")[2])
    # A section runs from its heading to the next line that begins with a backslash
    _, *pieces = re.split(rb"\n\\(\S+)[ \t\r]*(?=\n|\Z)", text)
    named = dict(zip(pieces[::2], pieces[1::2], strict=True))
    sections = [named.pop(b"%d-grams:" % order, b"") for order in range(1, len(sizes) + 1)]
    rest = named.pop(b"end\\", None)
    if rest is None:
        raise ModelError(f"{path} is cut off: it does not end with \\end\\.")
    if named or rest.strip():
        raise ModelError(f"{path} has more sections than it announces, or goes on behind \\end\\.")
    empty = 0
    while sizes and not sizes[-1]:  # KenLM wants an empty section of bigrams in a unigram model
        empty += 1
        sizes.pop()
        if sections.pop().strip():
            raise ModelError(f"{path} announces no {len(sizes) + 1}-grams where it has some.")
    words, unigrams = _read_unigrams(sections[0], sizes[0], path)
    orders = [unigrams]
    for order, (section, size) in enumerate(zip(sections[1:], sizes[1:], strict=True), start=2):
        orders.append(_read_order(section, size, words, orders, order, path))
    # Weights of the longest n-grams count only if there could be longer ones: an empty order
    if orders[-1].log10_backoff.any():
        if not empty:
            raise ModelError(f"{path}: its longest n-grams have back-off weights.")
        nothing = np.empty(0, np.float32)
        orders.append(NgramTable(np.empty(0, np.int64), nothing, nothing))
    return NgramTables(words, tuple(orders))


def read_content(path: Path, size: int = -1) -> tuple[bytes, bool]:
    """The first bytes of a file, decompressed if it is compressed, and whether it is.

    Args:
        path: of a file, as it is or compressed by gzip, bzip2 or xz; the first bytes tell.
        size: how many bytes; all by default.

    Raises:
        ModelError: it cannot be decompressed.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        start = file.read(max(map(len, _COMPRESSED)))
        for magic, opened in _COMPRESSED.items():
            if start.startswith(magic):
                try:
                    with cast("IO[bytes]", opened(path)) as content:
                        return content.read(size), True
                except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
                    raise ModelError(f"{path} cannot be decompressed ({error}).") from error
        file.seek(0)
        return file.read(size), False


def announced(path: Path | str, start: bytes) -> list[int]:
    """The numbers of n-grams of each order that the header of an ARPA file announces.

    Raises:
        ModelError: it is no header of an ARPA file.
    """
    header = re.match(rb"\s*\\data\\[ \t\r]*\n(.*?)\n[ \t\r]*\n", start + b"\n\n", re.DOTALL)
    if header is None:
        what = "it does not start with \\data\\" if start else "it is empty"
        raise ModelError(f"{path} is not an ARPA file ({what}), nor a binary file of KenLM's.")
    counts: list[int] = []
    for order, line in enumerate(header[1].split(b"\n"), start=1):
        count = re.fullmatch(rb"ngram %d\s*=\s*(\d{1,18})" % order, line.strip())
        if count is None:
            raise ModelError(
                f"{path} is not an ARPA file: a line of its header is not 'ngram {order}=' and a "
                f"number."
            )
        counts.append(int(count[1]))
    return counts


def _read_unigrams(
    section: bytes, size: int, path: Path | str
) -> tuple[tuple[str, ...], NgramTable]:
    probs, ngrams, backoffs = _columns(section, size, path)
    row_of = {word: row for row, word in enumerate(ngrams.to_pylist())}
    if len(row_of) < size:
        raise ModelError(f"{path} holds one of its words twice.")
    unseen = [word for word in SPECIAL_WORDS if word not in row_of]
    if unseen and unseen != [SPECIAL_WORDS[UNKNOWN]]:
        raise ModelError(f"{path} lacks the unigrams {' '.join(unseen)}.")
    words = (*SPECIAL_WORDS, *(w for w in row_of if w not in SPECIAL_WORDS))
    # row `size` is the one appended below, for a file without <unk>
    rows = np.array([row_of.get(word, size) for word in words])
    return words, NgramTable(
        np.arange(len(words)),
        np.append(probs, np.float32(_LOG10_UNSEEN))[rows],
        np.append(backoffs, np.float32(0))[rows],
    )


def _read_order(
    section: bytes,
    size: int,
    words: tuple[str, ...],
    orders: list[NgramTable],
    order: int,
    path: Path | str,
) -> NgramTable:
    import pyarrow as pa
    import pyarrow.compute as pc

    probs, ngrams, backoffs = _columns(section, size, path)
    split = pc.split_pattern(ngrams, " ")
    if len(split.values) != order * size:
        raise ModelError(f"{path}: some of its {order}-grams do not have {order} words.")
    ids = pc.index_in(split.values, value_set=pa.array(words, pa.string()))
    if ids.null_count:
        raise ModelError(f"{path}: some of its {order}-grams have words that are not unigrams.")
    columns = ids.to_numpy().astype(np.int64).reshape(size, order).T
    # The row of each n-gram's prefix, word by word: that of its first word, its first two, …
    rows = columns[0]
    for table, last in zip(orders[1:], columns[1:-1], strict=True):
        keys = rows * len(words) + last
        rows = np.minimum(np.searchsorted(table.keys, keys), max(len(table.keys) - 1, 0))
        if not len(table.keys) or (table.keys[rows] != keys).any():
            raise ModelError(f"{path}: some of its {order}-grams have a prefix that is not there.")
    keys = rows * len(words) + columns[-1]
    if (keys[1:] > keys[:-1]).all():
        return NgramTable(keys, probs, backoffs)
    by_key = np.argsort(keys)  # other programs write n-grams in any order
    if (np.diff(keys[by_key]) == 0).any():
        raise ModelError(f"{path} holds one of its {order}-grams twice.")
    return NgramTable(keys[by_key], probs[by_key], backoffs[by_key])


def _columns(section: bytes, size: int, path: Path | str) -> tuple[Float32Array, Any, Float32Array]:
    """Log10 probability, n-gram and back-off weight (0 where a line has none)."""
    import pyarrow as pa
    from pyarrow import csv

    tabs = section.count(b"\t")
    if tabs not in (size, 2 * size):  # only some lines have a weight
        section = re.sub(rb"(?m)^([^\t\n]+\t[^\t\r\n]+)\r?$", rb"\1\t0", section)
    types = {"prob": pa.float32(), "ngram": pa.string(), "backoff": pa.float32()}
    names = list(types)[: 2 if tabs == size else 3]
    try:
        table = csv.read_csv(
            pa.py_buffer(section),
            read_options=csv.ReadOptions(column_names=names),
            parse_options=csv.ParseOptions(delimiter="\t", quote_char=False),
            convert_options=csv.ConvertOptions(column_types=types),
        ).combine_chunks()
    except pa.ArrowInvalid as error:
        raise ModelError(f"{path} is not a readable ARPA file: {error}.") from error
    if len(table) != size:
        raise ModelError(f"{path} announces {size:,} n-grams where it has {len(table):,}.")
    numbers = [table[name].to_numpy() for name in names if name != "ngram"]
    backoffs = numbers[1] if len(numbers) == 2 else np.zeros(size, np.float32)
    if not (numbers[0] <= 0).all():
        raise ModelError(f"{path}: the log-probability of an n-gram is not a number, or above 0.")
    if not np.isfinite(backoffs).all():
        raise ModelError(f"{path}: the back-off weight of an n-gram is not a finite number.")
    return numbers[0], table["ngram"].combine_chunks(), backoffs
