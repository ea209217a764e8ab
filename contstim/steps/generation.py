"""Sentences and labelled minimal pairs of the embedded English, for practice and tests."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from contstim.english import generate
from contstim.english.minimal_pairs import generate_pairs, refuse_other_pairs, write_pairs
from contstim.english.paradigm import choose_paradigms, read_paradigms, shipped_paradigms
from contstim.files.files import write_text
from contstim.options import Help, Reads, Seed, Writes
from contstim.steps.step import Outcome, Step
from contstim.wording import quantity

if TYPE_CHECKING:
    from contstim.reporter import Reporter
    from contstim.words.sentence import Sentence


class GenerateSentences(Step[None], name="generate sentences"):
    """Generate sentences of the embedded English, one per line; sentences may repeat.

    The embedded English is a lexicon and a grammar that come with contstim.

    Example: `contstim generate sentences --number 2000 --out corpus.txt`
    """

    out: Annotated[Path, Writes("The text to write.")]
    number: Annotated[int, Help("Number of sentences.", at_least=1)]
    words: Annotated[int | None, Help("Words per sentence; by default any number.", at_least=1)] = (
        None
    )
    seed: Seed = 0

    def sentences(self) -> list[Sentence]:
        """Generate the sentences, without writing them."""
        return generate(self.number, seed=self.seed, words=self.words)

    def work(self, reporter: Reporter) -> Outcome[None]:
        """Write the sentences."""
        write_text(self.out, "".join(f"{sentence.text}\n" for sentence in self.sentences()))
        reporter.say(f"{self.out}: {quantity(self.number, 'sentence')} of the embedded English.")
        return Outcome(None, {"sentences": self.number, "words": self.words, "seed": self.seed})


class GenerateMinimalPairs(Step[None], name="generate minimal-pairs"):
    """Generate labelled minimal pairs in the file format of BLiMP.

    contstim provides 57 paradigms of 11 phenomena. Your own paradigm is a short entry in a TOML
    file: see docs/minimal-pairs-of-your-own.md.

    Example: `contstim generate minimal-pairs --per-paradigm 1000 --out pairs`
    """

    out: Annotated[Path, Writes("Output folder, with a file per paradigm.", record="minimal-pairs")]
    per_paradigm: Annotated[int, Help("Number of distinct pairs per paradigm.", at_least=1)] = 1000
    paradigms: Annotated[tuple[Path, ...], Reads("TOML file of your own paradigms.")] = ()
    only: Annotated[tuple[str, ...], Help("A paradigm or phenomenon; by default all.")] = ()
    seed: Seed = 0

    def work(self, reporter: Reporter) -> Outcome[None]:
        """Generate the pairs, and write them."""
        paradigms = [paradigm for path in self.paradigms for paradigm in read_paradigms(path)]
        chosen = choose_paradigms(paradigms or shipped_paradigms(), self.only)
        names = [paradigm.uid for paradigm in chosen]
        # Benchmarks read all files of a folder, so the output folder must not have files of other
        # paradigms. Check this before the pairs are generated
        refuse_other_pairs(self.out, names)
        pairs = generate_pairs(
            self.per_paradigm,
            seed=self.seed,
            paradigms=chosen,
            progress=partial(reporter.progress, "paradigms"),
        )
        write_pairs(self.out, pairs)
        phenomena = {paradigm.phenomenon for paradigm in chosen}
        reporter.say(
            f"{self.out}: {quantity(len(pairs), 'pair')} of {quantity(len(chosen), 'paradigm')} "
            f"({quantity(len(phenomena), 'phenomenon', 'phenomena')})."
        )
        facts = {"seed": self.seed, "per_paradigm": self.per_paradigm, "paradigms": names}
        return Outcome(None, facts)
