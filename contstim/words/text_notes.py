"""Counts of changed and tokenised lines, made while a text is read.

Treebanks and older corpora write punctuation and clitics as separate words: `I did n't go , he
said .` A sub-word model has rarely read such text and scores it far lower than running text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contstim.wording import quantity
from contstim.words.sentence import normalise_text

if TYPE_CHECKING:
    from collections.abc import Iterator

_MIN_SHARE = 0.01
"""Minimum share of tokenised lines in a tokenised text; fewer lines are misprints."""

# For speed, all first lines are examined, but only one in ten of the others
_FIRST_LINES, _STRIDE = 10_000, 10
_MAX_EXAMPLE_LENGTH = 60

# A fast test before the slow pattern
_PARTS = (" ,", " .", " n't", " n’t", " '", " ’", "``", "-LRB-", "-RRB-", "@-@", " 、", " 。")
# Neither the ellipsis `. . .` nor signs that follow a space in French
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
    """Counts of changed and tokenised lines of a text, or cells of a table.

    Attributes:
        lines: number of lines.
        examined: number of lines examined for tokenisation.
        normalised: number of lines that `normalise_text` changed.
        tokenised: number of examined lines that are tokenised.
        example: first tokenised line.
    """

    lines: int = 0
    examined: int = 0
    normalised: int = 0
    tokenised: int = 0
    example: str = ""

    def normalise(self, line: str) -> str:
        """Count a line, and return it normalised."""
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
        """Number of normalised lines, if any, and share of tokenised lines, for a record."""
        facts: dict[str, float] = {"normalised": self.normalised} if self.normalised else {}
        return facts | ({"tokenised": self.tokenised / self.examined} if self.is_tokenised else {})

    def remarks(self, name: object) -> Iterator[str]:
        """Yield a line about normalised sentences, if there are any."""
        if self.normalised:
            yield (
                f"{name}: {quantity(self.normalised, 'sentence')} of {self.lines:,} changed: "
                "combined accents (NFC), and removed invisible characters."
            )

    def warnings(self, name: object) -> Iterator[str]:
        """Yield a warning if the text is tokenised."""
        if self.is_tokenised:
            example = self.example[:_MAX_EXAMPLE_LENGTH]
            yield (
                f"{name} is tokenised: {self.tokenised / self.examined:.0%} of the sentences "
                f"have spaces before punctuation or parts of words, such as {example!r}. "
                "Sub-word models score such text too low: detokenise it first, for instance "
                "with TreebankWordDetokenizer of nltk. For word-level models that were "
                "trained on tokenised text, leave it unchanged."
            )
