"""Everyday English made here: a lexicon, a grammar, and sentences drawn from them.

lexicon.tsv, rules.fcfg    the data: words with features, rules with weights
lexicon                    reads the words, and finds those that have some features
grammar                    reads the rules, writes them out as a context-free grammar
sampling                   draws derivations; `generate` is what most callers need

How "Both women love Germany." comes about (`sample_tree(random.Random(5), words=4)`):

1. Among the rules for S stands (shortened, with its share of 4 in 100)

       S -> NP[role=quant, sem=?s, agr=?a] QPRED[subj=?s, agr=?a] [0.04]

   `grammar` writes it out for every value that ?s and ?a have together in the lexicon. With
   ?s = adult and ?a = they, subject and verb agree, and only verbs whose subjects are adults stay:

       S -> NP[agr=they,role=quant,sem=adult] QPRED[agr=they,subj=adult]

2. Below, QPRED becomes a verb in the present and its object. The lexicon has "love" with
   obj=field|city|country, so the object is a name of one of these.
3. `sampling` knows how many words every symbol can have, and with which probability. Of four words
   it gives two to NP and two to QPRED, and so on downwards, until it draws "both", "women", "love"
   and "Germany" by their weights.
4. A `Derivation` writes the words as a sentence: a capital, an end mark, "a" or "an".
"""

from contstim.english.lexicon import Entry, Lexicon, Symbol, lexicon
from contstim.english.sampling import Derivation, generate, sample_tree

__all__ = ["Derivation", "Entry", "Lexicon", "Symbol", "generate", "lexicon", "sample_tree"]
