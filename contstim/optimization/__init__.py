"""Search for a controversial sentence, and exact selection of a set.

Synthesis, from what the rest of the package uses to what it rests on:

    synthesis    one direction, or a triplet; symmetric: a pair of sentences at once
    recipes      the published way to search, and ours; recipe: what one is made of
    climb        the one loop; shaking: new starts for it
    proposals    a better word from exact knowledge; regression: the published way to guess;
                 guided: ours, with visit, belief and experience
    search       exact scores so far, and their cost; candidates: the words that may stand there
    objective    what to minimise and to keep; constraints: what the words must keep
    checks       of what comes in, and of what goes out

Selection: selection, with solver, duals, certificate and verification.
"""
