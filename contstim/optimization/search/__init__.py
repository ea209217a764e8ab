"""Find a sentence that one model accepts and another rejects.

    natural sentence
        |                                  +-------- perturb the best <--------+
        v                                  v                                   | nothing better
    [climb] -- position (random cycle) -> [proposer]                           | anywhere
        ^                                  | screen all words                  |
        |                                  | draft the promising ones          |
        |                                  | score the best exactly            |
        +------ better: take the word -----+-- not better: next position ------+

    words: those that the constraints allow (candidates); judged by the objective;
    exact scores so far: search

From what the rest of the package uses to what it rests on:

synthesis    one direction, or a triplet; symmetric: a pair of sentences at once
recipes      the published way to search, and ours; recipe: what one is made of
climb        the one loop; shaking: new starts for it
proposals    a better word from exact knowledge; regression: the published way to estimate;
             guided: ours, with visit, belief and experience
search       exact scores so far, and their cost; candidates: the words that may stand there
objective    what to minimise and to keep; constraints: what the words must keep
checks       of what comes in, and of what goes out
"""
