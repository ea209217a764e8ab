"""Minimal pairs made here: sentences of the embedded grammar, and each with one thing wrong.

paradigm     a paradigm: a short entry in a TOML file; `paradigms/` holds those that ship
generation   draws pairs from paradigms, in the fields of BLiMP; `generate_pairs` is what most
             callers need

The file format and the idea of a paradigm: Warstadt, Parrish, Liu, Mohananey, Peng, Wang & Bowman
(2020), *BLiMP: The Benchmark of Linguistic Minimal Pairs for English*. Words and paradigms are our
own.
"""

from contstim.english.minimal_pairs.generation import (
    Generator,
    LabelledPair,
    generate_pairs,
    refuse_other_pairs,
    write_pairs,
)
from contstim.english.minimal_pairs.paradigm import (
    Paradigm,
    choose_paradigms,
    read_paradigms,
    shipped_paradigms,
)

__all__ = [
    "Generator",
    "LabelledPair",
    "Paradigm",
    "choose_paradigms",
    "generate_pairs",
    "read_paradigms",
    "refuse_other_pairs",
    "shipped_paradigms",
    "write_pairs",
]
