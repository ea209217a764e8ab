"""Find a sentence that one model accepts and another rejects.

    natural sentence
        |                                 +---------- perturb the best <----------+
        v                                 v                                       | nothing better
    [climb] -- position (random cycle) -> [proposer]                              | anywhere
        ^                                 | screen all words, bounds discard      |
        |                                 | draft the promising ones              |
        |                                 | score the best exactly (evaluator)    |
        +----- better: take the word -----+---- not better: next position --------+

    words: those that the constraints allow; better: judged by the objective

From what the rest of the package uses to what it rests on:

synthesize    one direction, or a triplet; symmetric: a pair of sentences at once
recipes       ways to search under a name: ours (`default`) and the published one (`golan2023`)
climb         the one loop; perturbation: new starts for it
proposers     how a better word is looked for: screen, draft, score exactly
regression    the same in the published way, by lines fitted to a few exact scores
screening     what is expected of each word at a position, and what a search learns in its course
evaluator     exact scores under the models, their cache, their costs, and the log
objectives    what to minimise and to keep; constraints: which words may stand at a position
verification  what is checked before a search, and from scratch after it
"""
