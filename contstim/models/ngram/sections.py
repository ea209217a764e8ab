r"""Text of an ARPA file: sections, columns of a section, and errors with line numbers.

A section of trigrams has three columns: log10 probability, words, and log10 back-off weight. The
weight may be missing in any line. The heading and a line of this section are

    \3-grams:
    -0.5 <tab> the dog sleeps <tab> -0.2

Files of different programs vary. Any text may precede `\data\`. One or more tabs or spaces separate
columns and words. Lines end in a line feed, a carriage return or both. Blank lines may be anywhere.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zlib
from codecs import BOM_UTF8
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from contstim.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from contstim.files.arrays import Float32Array

_COMPRESSED: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": gzip.decompress,
    b"BZh": bz2.decompress,
    b"\xfd7zXZ": lzma.decompress,
}
_DATA = re.compile(rb"(?mi)^[ \t]*\\data\\[ \t]*$")
_COUNT = re.compile(rb"ngram[ \t]+(\d{1,2})[ \t]*=[ \t]*(\d{1,18})", re.IGNORECASE)
_HEADING = re.compile(rb"\\(\d{1,2})-grams[ \t]*:", re.IGNORECASE)
_END = re.compile(rb"\\end\\", re.IGNORECASE)
_LINE = re.compile(rb"[^\n]*[^ \t\n][^\n]*")  # a line that is not blank
_TAB, _SPACE = b"\t", b" "
_MAX_EXCERPT = 80  # characters of a line in a message

Columns: TypeAlias = "tuple[Float32Array, Float32Array, Any]"
"""Columns of a section: log10 probabilities, (size,); back-off weights, (size,); and words. The
weight is 0 if a line has none. The words of unigrams are an Arrow array of bytes, (size,). The
words of longer n-grams are 0-based row numbers in the unigram section, (size, order)."""


@dataclass(frozen=True)
class ArpaText:
    """Decompressed text of an ARPA file, with line feeds as line ends, and the file's path."""

    text: bytes
    path: Path | str

    def error(self, start: int, problem: str) -> ModelError:
        """Return an error about the line at byte offset `start`, with the line and its number."""
        number = self.text.count(b"\n", 0, start) + 1
        line = self.text[start : start + 4 * _MAX_EXCERPT].partition(b"\n")[0]
        excerpt = line.decode(errors="backslashreplace")
        if len(excerpt) > _MAX_EXCERPT:
            excerpt = excerpt[: _MAX_EXCERPT - 1] + "…"
        return ModelError(f"{self.path}, line {number:,}: {problem}: {excerpt!r}.")

    def lines(self, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
        """Yield byte offset and stripped text of each line that is not blank."""
        for match in _LINE.finditer(self.text, start, stop):
            yield match.start(), match[0].strip()


@dataclass(frozen=True)
class Section:
    """N-grams of one order.

    Attributes:
        size: number of n-grams according to the header.
        counted_at: byte offset of the header line that contains `size`.
        start: byte offset of the heading; equal to `stop` if the file has no such heading.
        stop: byte offset of the end of the section.
    """

    file: ArpaText
    order: int
    size: int
    counted_at: int
    start: int
    stop: int

    def error_in_row(self, row: int, problem: str) -> ModelError:
        """Return an error about the line of the n-gram in row `row` of the section."""
        starts = (start for start, _ in self._lines())
        return self.file.error(next(s for i, s in enumerate(starts) if i == row), problem)

    def columns(self, words: Sequence[bytes] = ()) -> Columns:
        """Read the columns.

        Args:
            words: words of the unigram section; empty if this section is the unigram section.

        Raises:
            ModelError: if the number of lines differs from the number in the header; or if a line
                has the wrong columns, invalid numbers, or an unknown word.
        """
        text = self.file.text[self._body : self.stop]
        # Unchanged text is parsed fastest, and suffices for files of most programs
        for normalise in (bytes, _add_weights, self._separate_by_tabs):
            try:
                return self._parse(normalise(text), words)
            except ValueError:  # other separators, missing weights, or an error in the file
                continue
        raise self._first_error({*words})

    @property
    def _body(self) -> int:
        """Byte offset of the line after the heading."""
        end = self.file.text.find(b"\n", self.start, self.stop)
        return self.stop if end < 0 else end + 1

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        return self.file.lines(self._body, self.stop)

    def _parse(self, text: bytes, words: Sequence[bytes]) -> Columns:
        """Parse columns that are separated by tabs.

        Raises:
            ValueError: if the text is invalid or has another format.
        """
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyarrow import csv

        first_line = _LINE.search(text)
        if first_line is None:
            raise ValueError
        types = {"prob": pa.float32(), "ngram": pa.binary(), "backoff": pa.float32()}
        names = [*types][: first_line[0].count(_TAB) + 1]
        table = csv.read_csv(
            pa.py_buffer(text),
            read_options=csv.ReadOptions(column_names=names),
            parse_options=csv.ParseOptions(delimiter="\t", quote_char=False),
            convert_options=csv.ConvertOptions(column_types=types),
        )
        probs, ngrams = table["prob"].to_numpy(), table["ngram"]
        weights = table["backoff"].to_numpy() if "backoff" in names else np.zeros_like(probs)
        if len(probs) != self.size or not (probs <= 0).all() or not np.isfinite(weights).all():
            raise ValueError
        if not words:
            joined = ngrams.combine_chunks()
            if pc.any(pc.match_substring(joined, _SPACE)).as_py():
                raise ValueError
            return probs, weights, joined
        splits = [pc.split_pattern(chunk, _SPACE) for chunk in ngrams.chunks]
        if any((np.diff(split.offsets.to_numpy()) != self.order).any() for split in splits):
            raise ValueError
        # Join all chunks, so that Arrow builds only one hash table of the words
        ngram_words = pa.chunked_array([split.flatten() for split in splits])
        rows = pc.index_in(ngram_words, value_set=pa.array(words, pa.binary()))
        if rows.null_count:
            raise ValueError
        return probs, weights, rows.to_numpy().reshape(-1, self.order)

    def _separate_by_tabs(self, text: bytes) -> bytes:
        """Put one tab between columns, one space between words, and 0 for each missing weight."""
        lines, n_fields = [], self.order + 1  # fields of a line without a weight
        for line in text.replace(_TAB, _SPACE).split(b"\n"):
            fields = [*filter(None, line.split(_SPACE))]
            if fields:
                prob, words, weights = fields[0], fields[1:n_fields], fields[n_fields:]
                if len(words) != self.order or len(weights) > 1:
                    raise ValueError
                lines.append(_TAB.join((prob, _SPACE.join(words), *(weights or [b"0"]))))
        return b"\n".join(lines)

    def _first_error(self, words: set[bytes]) -> ModelError:
        """Return an error about the first invalid line.

        If all lines are valid, the error is about the number of lines, which differs from `size`.
        """
        n_lines = 0
        for start, line in self._lines():
            if problem := self._problem(line.split(), words):
                return self.file.error(start, problem)
            n_lines += 1
        return self.file.error(
            self.counted_at, f"the number of {self.order}-grams in the file is {n_lines:,}, not"
        )

    def _problem(self, fields: list[bytes], words: set[bytes]) -> str:
        n_words = self.order
        if len(fields) not in (n_words + 1, n_words + 2):
            return (
                f"a line of \\{n_words}-grams must be a log-probability, {n_words} word"
                f"{'s' * (n_words > 1)} and perhaps a back-off weight"
            )
        if not _float(fields[0]) <= 0:
            return "the log-probability must be a number of at most 0, with a decimal point"
        if not np.isfinite(_float(fields[n_words + 1]) if len(fields) > n_words + 1 else 0.0):
            return "the back-off weight must be a finite number, with a decimal point"
        unknown = [word for word in fields[1 : n_words + 1] if words and word not in words]
        if unknown:
            return f"{unknown[0].decode(errors='backslashreplace')!r} is not a unigram of the file"
        return ""

    def refuse_weights(self) -> None:
        """Refuse nonzero back-off weights in this section, which contains the longest n-grams."""
        for start, line in self._lines():
            weights = line.split()[self.order + 1 :]
            if weights and _float(weights[0]):
                raise self.file.error(start, "the longest n-grams cannot have back-off weights")


def _add_weights(text: bytes) -> bytes:
    return re.sub(rb"(?m)^([^\t\n]+\t[^\t\n]+)$", rb"\1\t0", text)


def _float(field: bytes) -> float:
    try:
        return float(field)
    except ValueError:
        return np.nan


def sections_of(content: bytes, path: Path | str) -> list[Section]:
    r"""Return the sections of a file, compressed or not, one for each order in the header.

    Raises:
        ModelError: if the file is not an ARPA file; if its sections differ from its header; or if
            `\end\` is missing.
    """
    file = ArpaText(_decode(content, path), path)
    data = _DATA.search(file.text)
    if data is None:
        problem = "it has no line \\data\\" if file.text.strip() else "it is empty"
        raise ModelError(f"{path} is not an ARPA file ({problem}), nor a KenLM binary file.")
    # Byte offset and order of each line that begins with a backslash; order 0 for \end\
    headings: list[tuple[int, int]] = []
    position = data.end()
    while (position := file.text.find(b"\\", position)) >= 0:
        start = file.text.rfind(b"\n", 0, position) + 1
        if not file.text[start:position].strip():
            headings.append((start, _order_of(file, start)))
            if not headings[-1][1]:
                break
        position += 1
    counts = _counts(file, data.end(), headings[0][0] if headings else len(file.text))
    if not headings or headings[-1][1]:
        *_, (last, _) = file.lines(data.start(), len(file.text))
        raise file.error(last, r"the file is truncated: its last line is not \end\ but")
    for start, _ in islice(file.lines(headings[-1][0], len(file.text)), 1, None):
        raise file.error(start, "text follows \\end\\")
    sections, (end, _) = [], headings.pop()
    for order, (counted_at, size) in enumerate(counts, start=1):
        start = stop = counted_at
        if headings and headings[0][1] == order:
            start, stop = headings.pop(0)[0], headings[0][0] if headings else end
        elif size:
            at = headings[0][0] if headings else end
            raise file.error(at, rf"the line \{order}-grams: is missing before this line")
        section = Section(file, order, size, counted_at, start, stop)
        if not size and any(True for _ in section._lines()):
            raise section._first_error(set())
        sections.append(section)
    if headings:
        raise file.error(headings[0][0], "the header lists no such section")
    if not sections[0].size:
        raise file.error(sections[0].counted_at, "a model must have at least one 1-gram")
    return sections


def _order_of(file: ArpaText, start: int) -> int:
    r"""Return the order of the section whose heading starts at byte `start`; 0 for `\end\`."""
    end = file.text.find(b"\n", start)
    line = file.text[start : end if end >= 0 else None].strip()
    heading = _HEADING.fullmatch(line)
    if heading is None and not _END.fullmatch(line):
        raise file.error(start, "only \\1-grams: and so on, and \\end\\, may begin with \\")
    return int(heading[1]) if heading else 0


def _counts(file: ArpaText, start: int, stop: int) -> list[tuple[int, int]]:
    """Return, for each order, the byte offset of its header line and the number of n-grams."""
    counts: list[tuple[int, int]] = []
    for at, line in file.lines(start, stop):
        order = len(counts) + 1
        count = _COUNT.fullmatch(line)
        if count is None or int(count[1]) != order:
            raise file.error(at, f"expected 'ngram {order}=' and a number")
        counts.append((at, int(count[2])))
    if not counts:
        line_start = max(0, file.text.rfind(b"\n", 0, start) + 1)
        raise file.error(line_start, "the line 'ngram 1=' must follow this line")
    return counts


def _decode(content: bytes, path: Path | str) -> bytes:
    """Return the decompressed text, with line feeds as line ends.

    The text is not checked for valid UTF-8.

    Raises:
        ModelError: if the content cannot be decompressed, is in UTF-16 or UTF-32, or has a null
            character.
    """
    for magic, decompress in _COMPRESSED.items():
        if content.startswith(magic):
            try:
                content = decompress(content)
            except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
                raise ModelError(f"{path} cannot be decompressed ({error}).") from error
            break
    if b"\0" in content:
        for encoding in ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be"):
            if "\\data\\".encode(encoding) in content:
                raise ModelError(f"{path} is {encoding[:6].upper()}, not UTF-8. Save it in UTF-8.")
    text = content.removeprefix(BOM_UTF8)
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n")
        text = text.replace(b"\r", b" " if b"\n" in text else b"\n")
    if b"\0" in text:
        start = text.rfind(b"\n", 0, text.index(b"\0")) + 1
        raise ArpaText(text, path).error(start, "the file is damaged, it has a null character")
    return text
