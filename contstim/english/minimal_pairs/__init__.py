"""Minimal pairs made here: sentences of the embedded grammar, and each with one thing wrong.

template     how a paradigm writes a sentence and what goes wrong in it
paradigm     a paradigm: a short entry in a TOML file; `paradigms/` holds those that ship
generation   draws pairs from paradigms; `generate_pairs` is what most callers need
pair         a pair in the fields of BLiMP, made of two sentences, and its file

The file format and the idea of a paradigm: Warstadt, Parrish, Liu, Mohananey, Peng, Wang & Bowman
(2020), *BLiMP: The Benchmark of Linguistic Minimal Pairs for English*. Words and paradigms are our
own.
"""

from contstim.english.minimal_pairs.generation import Generator, generate_pairs
from contstim.english.minimal_pairs.pair import LabelledPair, refuse_other_pairs, write_pairs
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
