"""Find a sentence that one model accepts and another rejects.

A natural sentence is given. The accept model's floor is the log-probability that it gives this
sentence. Wanted is the sentence, of as many words, that the reject model finds as unlikely as can
be while the accept model keeps it at or above its floor.

    natural sentence
        |
        v
    [climb] ---- next position of a random cycle ----> [proposer]
      ^ | ^                                              | screen: expect something of all words;
      | | |                                              |   true bounds rule some out
      | | |                                              | draft: expect better of the promising
      | | |                                              |   ones, by a part of a score's work
      | | |                                              | score the best of these exactly
      | | |                                              | (each stage corrects the one before)
      | | +---- the better word is taken, or none is ----+
      | |
      | | no better word was found at as many positions in a row as can be changed
      | v
    [perturbation]: a few words of the best sentence replaced, and the climb again; the search ends
      |             when four such rounds in a row bring nothing better
      v
    [restarts]: the result is verified, and where searching is cheap the whole begins anew from the
                natural sentence with another seed, until five searches in a row gain next to
                nothing; the best result of all is kept

Constraints are rules about words: which may stand at a position, and that none stands twice. The
objective says which of two sentences is better: among those that reach the floor, the one that the
reject model finds less likely. The evaluator scores exactly, that is, by the model's own scoring
rule. A word is taken only on exact scores; most words are discarded on what is expected of them,
so that a better one can be missed. Chance, which the seed decides, orders the positions and places
the perturbations. What a search learns on the way is in its state. At the end the result is scored
again from scratch; floor and constraints are checked on that.

From what the rest of the package uses to what it rests on, in the order in which to read them:

synthesize    one direction, a triplet, or a symmetric pair; begin here
recipes       ways to search under a name: ours (`default`), and the published one
              (`golan2023`)
climb         the one loop
proposers     how a better word is looked for: screen, draft, score exactly; the published way
screening     what is expected of each word at a position, and the state: what a search has learned
black_box     what is expected of sentences where only scores of whole ones are known
perturbation  new starts for the loop, some from below the floor
near_pairs    apart from all this: of sentences with one new word, the one on which two models
              disagree most about which is likelier
restarts      how often and how long a sentence is searched, and the best of all searches
evaluator     exact scores under the models, their cache, their costs, and the log
objectives    what to minimise and to keep
constraints   which words may stand at a position
verification  what is checked before a search, and from scratch after it
settings      what is asked of a search, as options have it
"""
