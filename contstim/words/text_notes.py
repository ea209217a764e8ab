"""Oddities of texts, counted while they are read: other spellings, and tokenised text.

Treebanks and older corpora write punctuation and clitics as words of their own: `I did n't go , he
said .` A model of sub-words has seldom read such text, and scores it far lower than running text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contstim.wording import counted
from contstim.words.sentence import normalise_text

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEAST_SHARE = 0.01
"""Share of tokenised lines from which a text counts as tokenised; below it, lines are misprints."""

# All of the first lines are examined and one in ten of the others, which is fast and enough
_FIRST_LINES, _STRIDE = 10_000, 10
_LONGEST_EXAMPLE = 60

# Looked for before the pattern, which takes longer than parsing the line
_PARTS = (" ,", " .", " n't", " n’t", " '", " ’", "``", "-LRB-", "-RRB-", "@-@", " 、", " 。")
# Not `. . .`, which books write for an ellipsis, nor signs that French has spaces before
_TOKENISED = re.compile(
    r"(?<=[^\s.,]) [,.、。](?! \.)(?!\S)"
    r"|(?<=\w) (?:n['’]t|['’](?:s|re|ve|ll|d|m))(?!\S)"
    r"|(?<!\S)(?:``|'')(?!\S)|-(?:LRB|RRB|LSB|RSB|LCB|RCB)-|@-@",
    re.IGNORECASE,
)


def is_tokenised(line: str) -> bool:
    """True if a line has punctuation or clitics as words of their own."""
    return any(part in line for part in _PARTS) and _TOKENISED.search(line) is not None


@dataclass
class TextNotes:
    """Counts of a text's odd lines, or of the odd cells of a table.

    Attributes:
        lines: number of all.
        examined: number of those that were examined for tokenisation.
        normalised: number of those that `normalise_text` changed.
        tokenised: number of those examined that are tokenised.
        example: the first tokenised line.
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
        """True if a considerable share of the lines is tokenised."""
        return self.tokenised > 0 and self.tokenised >= _LEAST_SHARE * self.examined

    @property
    def facts(self) -> dict[str, float]:
        """Number of normalised lines and share of tokenised ones, if not 0, for a record."""
        facts: dict[str, float] = {"normalised": self.normalised} if self.normalised else {}
        return facts | ({"tokenised": self.tokenised / self.examined} if self.is_tokenised else {})

    def remarks(self, name: object) -> Iterator[str]:
        """A line about the sentences of a text that were changed; none if no sentence was."""
        if self.normalised:
            yield (
                f"{name}: {counted(self.normalised, 'sentence')} of {self.lines:,} changed: "
                "accents composed (NFC), invisible characters removed."
            )

    def warnings(self, name: object) -> Iterator[str]:
        """A warning about a tokenised text; none for other texts."""
        if self.is_tokenised:
            example = self.example[:_LONGEST_EXAMPLE]
            yield (
                f"{name} is tokenised: {self.tokenised / self.examined:.0%} of the sentences have "
                f"spaces before punctuation or parts of words, such as {example!r}. Sub-word "
                "models score such text too low: detokenise it first, for instance with "
                "TreebankWordDetokenizer of nltk. Word-level models that were trained on tokenised "
                "text need it as it is."
            )
