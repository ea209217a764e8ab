"""Sentences of the embedded English as a text, for practice and tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from contstim.english import generate
from contstim.files import write_text
from contstim.options import Help, Seed, Writes
from contstim.steps.step import Outcome, Step
from contstim.wording import counted

if TYPE_CHECKING:
    from contstim.reporter import Reporter


class GenerateSentences(Step[None], name="generate sentences"):
    """Make sentences of the embedded English, one a line; some may be the same.

    Example: `contstim generate sentences --number 2000 --out corpus.txt`
    """

    out: Annotated[Path, Writes("The text to write.")]
    number: Annotated[int, Help("Number of sentences.", at_least=1)]
    words: Annotated[int | None, Help("Words of each; by default any number.", at_least=1)] = None
    seed: Seed = 0

    def work(self, reporter: Reporter) -> Outcome[None]:
        """Write the sentences."""
        text = generate(self.number, seed=self.seed, words=self.words)
        write_text(self.out, "".join(f"{sentence.text}\n" for sentence in text))
        reporter.say(f"{self.out}: {counted(self.number, 'sentence')} of the embedded English.")
        return Outcome(None, {"sentences": self.number, "words": self.words, "seed": self.seed})
