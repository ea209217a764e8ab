"""Checks of a file before it is read, since KenLM trusts every number in a file.

An ARPA file that announces -5 n-grams, or a KenLM binary file of order 0, ends the process: KenLM
reserves memory by these numbers. So the announced numbers are compared with the size of the file.
The content of a binary file has no checksum: what is damaged inside cannot be told beforehand.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import math
import re
import struct
import zlib
from typing import IO, TYPE_CHECKING, cast

from contstim.errors import ModelError
from contstim.models.ngram.tables import MAX_ORDER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_ARPA = re.compile(rb"\s*\\data\\[ \t\r]*\n(?P<lines>.*)", re.DOTALL)
_BINARY = b"mmap lm http://kheafield.com/code"
_COMPRESSED: dict[bytes, Callable[[Path], object]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
}
_START = 1 << 16  # bytes: a header is much shorter
_SHORTEST_LINE = 4  # bytes of an n-gram in an ARPA file: a digit, a tab, a letter, a line break
_DEFLATED = 1100  # how many bytes one compressed byte can stand for at most, in gzip
_SANITY = 88  # bytes that tell KenLM whether a binary file was made for this machine
_FIXED = struct.Struct("<B3xfiB3xI")  # order, multiplier, kind, has words, version


def check_file(path: Path) -> None:
    """Refuse a file that could end the process when KenLM reads it.

    Raises:
        ModelError: it is neither an ARPA file nor one of KenLM's, or is damaged; says where.
    """
    # The header of a compressed ARPA file lies inside
    start, compressed = read_content(path, _START)
    if start.startswith(_BINARY):
        _check_binary(path, start)
    else:
        _check_arpa(path, start, path.stat().st_size * (_DEFLATED if compressed else 1))


def is_binary(path: Path) -> bool:
    """True if a file is one of KenLM's binary files."""
    with path.open("rb") as file:
        return file.read(len(_BINARY)) == _BINARY


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
                    raise ModelError(
                        f"{path} is damaged: it cannot be decompressed ({error})."
                    ) from error
        file.seek(0)
        return file.read(size), False


def _check_arpa(path: Path, start: bytes, size: int) -> None:
    header = _ARPA.match(start)
    if header is None:
        what = "it is empty" if not start else "it does not start with \\data\\"
        raise ModelError(
            f"{path} is not an ARPA file ({what}), nor a binary file of KenLM's. Give a model that "
            f"'contstim train ngram' or KenLM wrote."
        )
    counts: list[int] = []
    for line in header["lines"].split(b"\n"):
        text = line.decode("utf-8", "replace").strip()
        if not text:
            break
        count = re.fullmatch(rf"ngram {len(counts) + 1}\s*=\s*(\d{{1,18}})", text)
        if count is None:
            raise ModelError(
                f"{path} is not an ARPA file: its header says {text[:60]!r} where "
                f"'ngram {len(counts) + 1}=' and a number belong."
            )
        counts.append(int(count[1]))
    _check_counts(path, counts, size // _SHORTEST_LINE)


def _check_binary(path: Path, start: bytes) -> None:
    if len(start) < _SANITY + _FIXED.size:
        raise ModelError(f"{path} is cut off: the header of a binary file does not end.")
    # a header of fixed size, and then a number of n-grams for each order
    order, multiplier, *_ = _FIXED.unpack_from(start, _SANITY)
    if not 1.0 <= multiplier <= 100.0 or math.isnan(multiplier):
        raise ModelError(f"{path} is damaged: its hash tables would be {multiplier:g} times full.")
    counts: tuple[int, ...] = ()
    if 1 <= order <= MAX_ORDER and len(start) >= _SANITY + _FIXED.size + 8 * order:
        counts = struct.unpack_from(f"<{order}Q", start, _SANITY + _FIXED.size)
    _check_counts(path, counts, path.stat().st_size)


def _check_counts(path: Path, counts: Sequence[int], most: int) -> None:
    if not 1 <= len(counts) <= MAX_ORDER:
        raise ModelError(
            f"{path} announces n-grams of {len(counts)} lengths; a model that can be read here "
            f"has n-grams of 1 to at most {MAX_ORDER} words."
        )
    if not counts[0]:
        raise ModelError(f"{path} is damaged: it announces no words at all.")
    for order, count in enumerate(counts, start=1):
        if count > most:
            raise ModelError(
                f"{path} is damaged: it announces {count:,} n-grams of order {order}, and is too "
                f"short for so many."
            )
