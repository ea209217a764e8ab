"""Everyday English made here: a lexicon, a grammar, and sentences drawn from them.

lexicon.tsv, rules.fcfg    the data: words with features, rules with weights
lexicon, inflection        reads the words
grammar, expansion         reads the rules, writes them out as a context-free grammar
derivation                 a sentence with its tree
sampling                   draws derivations; `generate` is what most callers need
"""

from contstim.english.derivation import Derivation, Symbol
from contstim.english.lexicon import Entry, Lexicon, lexicon
from contstim.english.sampling import generate, sample_tree

__all__ = ["Derivation", "Entry", "Lexicon", "Symbol", "generate", "lexicon", "sample_tree"]
