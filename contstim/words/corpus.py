"""Read sentences from UTF-8 text files with one sentence per line, or with running prose.

Treebanks and older corpora are tokenised: punctuation and clitics are separate words, as in `I did
n't go , he said .` Sub-word models give such text far lower scores than normal text. `TextNotes`
therefore counts tokenised lines while a text is read.
"""

from __future__ import annotations

import gzip
import re
import sys
import zlib
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import regex

from contstim.errors import CorpusError
from contstim.files.files import reading, refuse_device
from contstim.wording import quantity
from contstim.words.sentence import Sentence, normalise_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Signs that are removed around words. The hyphen is not removed, because it may be a minus. The
# full stop is not removed here, because it may end an abbreviation
_PUNCTUATION = "\"'“”‘’«»()[]{}<>,;:*_…–—!?"
# NLTK's Punkt does not know end marks of non-Latin scripts, such as `。`. So texts are first split
# at these marks, which do not occur in abbreviations
_SENTENCE_SPAN = regex.compile(
    r"(?V1s).+?(?:[\p{Sentence_Break=STerm}--[!?]][\p{Sentence_Break=Close}--\p{Ps}]*|\Z)"
)

# A text counts as tokenised if at least this share of its examined lines is tokenised.
#
# In a text that is not tokenised, a few lines may look tokenised because of misprints
_MIN_SHARE = 0.01

# For speed, examine the first 10,000 lines, and then one line in ten
_FIRST_LINES, _STRIDE = 10_000, 10

# Search these strings first, because `_TOKENISED` is slower. A line that contains none of them
# cannot match `_TOKENISED`
_PARTS = (" ,", " .", " n't", " n’t", " '", " ’", "``", "-LRB-", "-RRB-", "@-@", " 、", " 。")
# The pattern does not match the ellipsis `. . .`. It also does not match signs before which French
# has a space, such as `!`
_TOKENISED = re.compile(
    r"(?<=[^\s.,]) [,.、。](?! \.)(?!\S)"
    r"|(?<=\w) (?:n['’]t|['’](?:s|re|ve|ll|d|m))(?!\S)"
    r"|(?<!\S)(?:``|'')(?!\S)|-(?:LRB|RRB|LSB|RSB|LCB|RCB)-|@-@",
    re.IGNORECASE,
)


def is_tokenised(line: str) -> bool:
    """Return True if a line has punctuation or clitics as separate words."""
    return any(part in line for part in _PARTS) and _TOKENISED.search(line) is not None


@dataclass
class TextNotes:
    """Counts of the changed lines and of the tokenised lines of a text.

    In a table of sentences, each cell with a sentence counts as a line.

    Attributes:
        examined: number of lines examined for tokenisation.
        normalised: number of lines that `normalise_text` changed.
        tokenised: number of examined lines that are tokenised.
        example: first tokenised line; empty if there is none.
    """

    lines: int = 0
    examined: int = 0
    normalised: int = 0
    tokenised: int = 0
    example: str = ""

    def normalise(self, line: str) -> str:
        """Count a line, and return the normalised line."""
        self.lines += 1
        if self.lines <= _FIRST_LINES or self.lines % _STRIDE == 0:
            self.examined += 1
            if is_tokenised(line):
                self.tokenised += 1
                self.example = self.example or line
        if line.isascii():
            return line
        normal = normalise_text(line)
        self.normalised += normal != line
        return normal

    @property
    def is_tokenised(self) -> bool:
        """True if at least 1 % of the examined lines are tokenised."""
        return self.tokenised > 0 and self.tokenised >= _MIN_SHARE * self.examined

    @property
    def facts(self) -> dict[str, float]:
        """Facts for a record: number of normalised lines, and share of tokenised lines.

        The number is omitted if no line was changed. The share is omitted if `is_tokenised` is
        False.
        """
        facts: dict[str, float] = {"normalised": self.normalised} if self.normalised else {}
        return facts | ({"tokenised": self.tokenised / self.examined} if self.is_tokenised else {})

    def remarks(self, name: object) -> Iterator[str]:
        """Yield a message if lines were changed."""
        if self.normalised:
            yield (
                f"{name}: normalised {quantity(self.normalised, 'sentence')} of {self.lines:,}. "
                "Accents were combined with their letters (Unicode NFC), and invisible characters "
                "were removed."
            )

    def warnings(self, name: object) -> Iterator[str]:
        """Yield a warning if the text is tokenised."""
        if self.is_tokenised:
            yield (
                f"{name} is tokenised: {self.tokenised / self.examined:.0%} of the sentences "
                "have spaces before punctuation or before parts of words (for example, "
                f"{self.example[:60]!r}). Sub-word models score such text too low. Detokenise the "
                "text first, for instance with TreebankWordDetokenizer of nltk. For word-level "
                "models that were trained on tokenised text, leave the text unchanged."
            )


def read_lines(path: Path | str, notes: TextNotes | None = None) -> Iterator[str]:
    """Yield the non-blank lines of a UTF-8 text, stripped and normalised (`normalise_text`).

    The path `-` is standard input. Files whose names end in `.gz` are decompressed.

    Raises:
        CorpusError: if the file cannot be read or contains only white space; if a line is not UTF-8
            or has a null character.
    """
    empty = True
    with _open(path) as file:
        for number, raw in enumerate(_split_lines(file, path), start=1):
            line = _decode(raw, path, number).strip()
            normal = (notes.normalise if notes and line else normalise_text)(line).strip()
            if normal:
                empty = False
                yield normal
    if empty:
        raise CorpusError(f"{path} contains no text. Use UTF-8 with one sentence per line.")


def read_sentences(
    path: Path | str, *, prose: bool = False, notes: TextNotes | None = None
) -> Iterator[Sentence]:
    """Yield the sentences of a text in order.

    By default, each line with a letter or digit is a sentence. Running prose is split by NLTK's
    Punkt algorithm (Kiss & Strunk 2006), which learns abbreviations from the text itself. Prose is
    also split at end marks of non-Latin scripts, such as `。`. Punctuation around the words of
    prose is removed, except full stops of abbreviations inside a sentence. `notes` counts changed
    and tokenised lines.

    Raises:
        CorpusError: see `read_lines`; without `prose`, also if no line has a letter or digit.
    """
    lines = read_lines(path, notes)
    return _split_prose(lines) if prose else _parse_lines(lines, path)


def _parse_lines(lines: Iterable[str], path: Path | str) -> Iterator[Sentence]:
    empty = True
    for line in lines:
        if any(map(str.isalnum, line)):  # skips lines such as "* * *"
            empty = False
            yield Sentence.parse(line)
    if empty:
        raise CorpusError(f"{path} contains no words, only punctuation. Use another text.")


def _split_prose(lines: Iterable[str]) -> Iterator[Sentence]:
    from nltk.tokenize.punkt import PunktSentenceTokenizer, PunktTrainer

    text = "\n".join(lines)
    trainer = PunktTrainer()
    trainer.train(text, finalize=True)
    splitter = PunktSentenceTokenizer(trainer.get_params())
    pieces = chain.from_iterable(map(splitter.tokenize, _SENTENCE_SPAN.findall(text)))
    for sentence in map(Sentence.parse, (p for p in pieces if any(map(str.isalnum, p)))):
        # Except in the last word, a full stop belongs to an abbreviation
        *inner, last = sentence.words
        stripped = [*(word.strip(_PUNCTUATION) for word in inner), last.strip(_PUNCTUATION + ".")]
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


def _split_lines(file: IO[bytes], path: Path | str) -> Iterator[bytes]:
    # Lines end in LF, CR LF or, on old Macintoshes, CR
    try:
        for line in file:
            yield from line.splitlines()  # bytes.splitlines splits at LF and CR only
    except (OSError, EOFError, zlib.error) as error:  # also for invalid gzip files
        raise CorpusError(f"Cannot read {path}: {error}.") from error


def _decode(raw: bytes, path: Path | str, number: int) -> str:
    # UTF-16 text can be valid UTF-8, with a null character between letters
    if b"\0" in raw:
        raise CorpusError(
            f"{path} is not UTF-8 text: line {number} contains a null character. Convert it, "
            "for instance with 'iconv -f UTF-16 -t UTF-8'."
        )
    try:
        # Only the first line can have a byte order mark
        return raw.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{path} is not UTF-8: line {number}, byte {error.start + 1} "
            f"(0x{raw[error.start]:02x}). Convert it, for instance with 'iconv -f LATIN1 -t UTF-8'."
        ) from error
