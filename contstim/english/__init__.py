"""Generated everyday English: a lexicon, a grammar, and sentences sampled from them.

lexicon.tsv, rules.fcfg    data: words with features, rules with weights
lexicon                    reads the words, and finds entries by their features
grammar                    reads the rules, and expands them into a context-free grammar
sampling                   samples derivations; most callers need only `generate`

How "Both women love Germany." is derived (`sample_tree(random.Random(5), words=4)`):

1. This is one rule for S (sentence), shortened. Its share among all rules for S is 4 in 100:

       S -> NP[role=quant, sem=?s, agr=?a] QPRED[subj=?s, agr=?a] [0.04]

   `grammar` expands it for every pair of values that ?s and ?a have in the lexicon. With ?s = adult
   and ?a = they, subject and verb agree, and only verbs with adult subjects remain:

       S -> NP[agr=they,role=quant,sem=adult] QPRED[agr=they,subj=adult]

2. QPRED becomes a verb in the present tense and its object. In the lexicon, "love" has
   obj=field|city|country, so the object is a name of one of these classes.
3. `sampling` computes the probability of each length for every symbol. Here it assigns two words
   to NP (noun phrase) and two to QPRED, and then continues with the children of NP and QPRED.
   Finally, it draws the words "both", "women", "love" and "Germany" in proportion to their weights.
4. A `Derivation` writes the words as a sentence, with an initial capital and an end mark. It also
   chooses between "a" and "an".
"""

from contstim.english.lexicon import Entry, Lexicon, Symbol, lexicon
from contstim.english.sampling import Derivation, generate, sample_tree

__all__ = ["Derivation", "Entry", "Lexicon", "Symbol", "generate", "lexicon", "sample_tree"]
