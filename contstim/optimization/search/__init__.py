"""Find a sentence that one model accepts and another rejects.

The search starts from a natural sentence. The log-probability of this sentence under the accept
model is the floor. The search looks for a sentence with the same number of words. This sentence
should be as unlikely as possible under the reject model, but its log-probability under the accept
model must not be below the floor.

    natural sentence
        |
        v
    [climb] ---- next position of a random cycle ----> [proposer]
      ^ | ^                                              | screen: estimate scores of all words;
      | | |                                              |   upper bounds exclude some
      | | |                                              | draft: improve the estimates of the
      | | |                                              |   promising words at a small cost
      | | |                                              | score the best of these exactly
      | | |                                              | (each stage calibrates the one before)
      | | +---- the better word is accepted, if any -----+
      | |
      | | no better word at as many positions in a row as can be changed
      | v
    [perturbation]: replace a few words of the best sentence, then climb again; the search ends
      |             after four such rounds in a row without improvement (six between n-gram models)
      v
    [restarts]: verify the result; if searches are cheap, restart from the natural sentence with
                another seed, until five searches in a row gain almost nothing; return the best
                result

Constraints are rules about words, for example that no word occurs twice. They determine the words
that are allowed at a position. The objective ranks the sentences that reach the floor: the less
likely under the reject model, the better. The evaluator computes exact scores, that is, scores
under the model's own scoring rule. Words are accepted on exact scores only. The search discards
most words because of their estimates, so it can miss a better word. The seed determines the order
of positions and the random perturbations. The search state stores the calibration of the estimates.
At the end, the result is scored again from scratch, and floor and constraints are checked with
these scores.

Modules in reading order, from the public functions down:

synthesize    one direction, a triplet, or a symmetric pair; begin here
recipes       named search methods: ours (`default`), and the published one (`golan2023`)
climb         the search loop
proposers     strategies to find a better word: screen, draft, score exactly; the published one
screening     estimates for each word at a position, and the search state
black_box     estimates for models that only return scores of whole sentences
perturbation  new starts for the loop, some from below the floor
few_changes   another search: it finds sentences with few new words on which the models disagree
              enough, and judges choose one of these sentences
near_pairs    separate from the search: the sentence with one new word on which two models
              disagree most
restarts      repeated searches from one natural sentence, their limits, and the best result
evaluator     exact scores under the models, a cache and a log of these scores, and their costs
objectives    the loss to minimise, and the constraint on scores
constraints   words allowed at a position
verification  checks before a search, and checks from scratch after it
settings      settings of a search, as given by options
"""
