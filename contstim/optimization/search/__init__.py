"""Find a sentence that one model accepts and another rejects.

    natural sentence
        |
        v
    [climb] ---- next position of a random cycle ----> [proposer]
      ^ | ^                                              | screen all words; bounds rule some out
      | | |                                              | draft the promising ones
      | | |                                              | score the best of these exactly
      | | |                                              | (each stage calibrates the one before)
      | | +---- the better word is taken, or none is ----+
      | |
      | | no better word at any position
      | v
    [perturbation]: a few words of the best sentence replaced; the search ends when that brings
                    nothing better either

The constraints say which words may stand at a position, the objective which sentence is better, and
the evaluator scores exactly: nothing is taken on an estimate. What a search learns on the way is in
its state. At the end the result is scored again from scratch, and every constraint checked on that.

From what the rest of the package uses to what it rests on, in the order in which to read them:

synthesize    one direction, or a triplet; begin here
symmetric     a pair of sentences at once
recipes       ways to search under a name: ours (`default`) and the published one (`golan2023`)
climb         the one loop
proposers     how a better word is looked for: screen, draft, score exactly
screening     what is expected of each word at a position, and the state: what a search has learned
regression    a better word in the published way, by lines fitted to a few exact scores
perturbation  new starts for the loop
evaluator     exact scores under the models, their cache, their costs, and the log
objectives    what to minimise and to keep
constraints   which words may stand at a position
verification  what is checked before a search, and from scratch after it
json_facts    what a search found as plain values
"""
