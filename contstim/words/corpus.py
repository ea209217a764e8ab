"""Text files as streams of sentences: UTF-8, one sentence a line, or running prose."""

from __future__ import annotations

import gzip
import sys
import zlib
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import regex

from contstim.errors import CorpusError
from contstim.files.files import reading, refuse_device
from contstim.words.sentence import Sentence, normalise_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from contstim.words.text_notes import TextNotes

_CLINGING = "\"'“”‘’«»()[]{}<>,;:*_…–—!?"  # a hyphen may be a minus, a stop an abbreviation's
# Scripts whose end marks Punkt does not know do not shorten words by a full stop either
_COMPLETE = regex.compile(
    r"(?V1s).+?(?:[\p{Sentence_Break=STerm}--[!?]][\p{Sentence_Break=Close}--\p{Ps}]*|\Z)"
)


def read_lines(path: Path | str, notes: TextNotes | None = None) -> Iterator[str]:
    """The non-blank lines of a UTF-8 text, stripped and normalised, read as a stream.

    `-` reads standard input; a name that ends in `.gz` is decompressed. See `normalise_text`.

    Args:
        path: the file.
        notes: receives the counts of odd lines.

    Raises:
        CorpusError: the file is missing, unreadable or damaged, a line is not UTF-8 or holds a null
            character (names it), or nothing but white space was found.
    """
    empty = True
    with _open(path) as file:
        for number, raw in enumerate(_whole(file, path), start=1):
            line = _decode(raw, path, number).strip()
            normal = (notes.normalise if notes and line else normalise_text)(line).strip()
            if normal:
                empty = False
                yield normal
    if empty:
        raise CorpusError(f"{path} holds no text; expected UTF-8, one sentence a line.")


def read_sentences(
    path: Path | str, *, prose: bool = False, notes: TextNotes | None = None
) -> Iterator[Sentence]:
    """The sentences of a text, in order: one a line, or split out of running prose.

    Prose is split by NLTK's unsupervised Punkt algorithm (Kiss & Strunk 2006), trained on the text
    itself, so that nothing is downloaded; and after the end marks of other scripts, such as `。`.
    Around words, commas, colons, quotes, brackets, dashes and end marks are dropped; the full stops
    of abbreviations inside a sentence stay.

    Args:
        path: the file.
        prose: whether the text is running prose.
        notes: receives the counts of odd lines.

    Raises:
        CorpusError: see `read_lines`.
    """
    lines = read_lines(path, notes)
    return _split_prose(lines) if prose else _one_a_line(lines, path)


def _one_a_line(lines: Iterable[str], path: Path | str) -> Iterator[Sentence]:
    empty = True
    for line in lines:
        if any(map(str.isalnum, line)):  # not an ellipsis or a rule between paragraphs
            empty = False
            yield Sentence.parse(line)
    if empty:
        raise CorpusError(f"{path} holds no words, only punctuation.")


def _split_prose(lines: Iterable[str]) -> Iterator[Sentence]:
    from nltk.tokenize.punkt import PunktSentenceTokenizer, PunktTrainer

    # The whole text at once: Punkt learns abbreviations from all of it before it splits any
    text = "\n".join(lines)
    trainer = PunktTrainer()
    trainer.train(text, finalize=True)
    splitter = PunktSentenceTokenizer(trainer.get_params())
    pieces = (splitter.tokenize(part) for part in _COMPLETE.findall(text))
    for piece in chain.from_iterable(pieces):
        if not any(map(str.isalnum, piece)):
            continue
        # The end mark may stand inside quotation marks or brackets: He said "Go!"
        sentence = Sentence.parse(piece)
        # A full stop is taken from the last word alone: inside it belongs to an abbreviation
        *inner, last = sentence.words
        stripped = [*(word.strip(_CLINGING) for word in inner), last.strip(_CLINGING + ".")]
        words = [word for word in stripped if any(map(str.isalnum, word))]
        if words:
            yield Sentence(tuple(words), sentence.end[0])


def _open(path: Path | str) -> AbstractContextManager[IO[bytes]]:
    if str(path) == "-":
        return nullcontext(sys.stdin.buffer)
    with reading(path, CorpusError):
        refuse_device(path)
        if str(path).endswith(".gz"):
            return cast("IO[bytes]", gzip.open(path))
        return Path(path).open("rb")


def _whole(file: IO[bytes], path: Path | str) -> Iterator[bytes]:
    """Lines, whether they end in LF, CR LF or, as on old Macintoshes, CR alone."""
    try:
        for line in file:
            yield from line.splitlines()  # bytes end a line at LF and CR only
    except (OSError, EOFError, zlib.error) as error:  # also a gzip file that is damaged or none
        raise CorpusError(f"Cannot read {path}: {error}.") from error


def _decode(raw: bytes, path: Path | str, number: int) -> str:
    # UTF-16 read as UTF-8 may decode, with a null character between any two letters
    if b"\0" in raw:
        raise CorpusError(
            f"{path} is not a text in UTF-8: line {number} holds a null character. Convert it, for "
            f"instance with 'iconv -f UTF-16 -t UTF-8'."
        )
    try:
        # A byte order mark stands before the first line only; elsewhere it would be part of a word
        return raw.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{path} is not UTF-8: line {number}, byte {error.start + 1} "
            f"(0x{raw[error.start]:02x}). Convert it, for instance with "
            f"'iconv -f LATIN1 -t UTF-8'."
        ) from error
