"""Find a sentence that one model (the accept model) accepts and another (the reject model) rejects.

The search starts from a natural sentence. The log-probability of this sentence under the accept
model is the floor. The search looks for a new sentence with equally many words. The new sentence
should be as unlikely as possible under the reject model. Its log-probability under the accept model
must not be below the floor.

    natural sentence
        |
        v
    [climb] ---- next position of a random cycle ----> [proposer]
      ^ | ^                                              | screen: estimate scores of all words;
      | | |                                              |   upper bounds exclude some
      | | |                                              | draft: improve the estimates of the
      | | |                                              |   promising words at a small cost
      | | |                                              | score the best of these exactly
      | | |                                              | (each stage corrects the estimates
      | | |                                              |   of the previous stage)
      | | +---- the better word is accepted, if any -----+
      | |
      | | no better word at n positions in a row (n: number of positions that can change)
      | v
    [perturbation]: replace a few words of the best sentence, then climb again; the search ends
      |             after four such rounds in a row without improvement (six between n-gram models)
      v
    [restarts]: verify the result; if searches are cheap, restart from the natural sentence with
                another seed, until five searches in a row gain almost nothing; return the best
                result

Exact scores are scores under the model's own scoring rule. The search accepts a word only if the
exact scores of the sentence with this word are better. The search discards most words because of
their estimates, so it can miss a better word. The seed determines the order of positions and the
random perturbations. At the end, the result is scored again. The search then checks that the new
scores are not below the floor, and that the words fulfil the constraints.

Modules in reading order:

synthesize    searches for a sentence, for a triplet, or for two sentences at once; begin here
recipes       named search methods: ours (`default`), and the published one (`golan2023`)
climb         the search loop
proposers     two strategies to find a better word: ours and the published one
screening     estimates for each word at a position, and the search state
black_box     estimates for models that only return scores of whole sentences
perturbation  new starts for the loop: two methods, one of which allows sentences below the floor
              between two rounds
few_changes   another search. It lists sentences that have few new words and on which the models
              disagree enough. Further models, called judges, choose one of these sentences
near_pairs    another search, for the one new word that makes two models disagree most
restarts      repeated searches from one natural sentence, their limits, and the best result
evaluator     exact scores, their cache, log and costs
objectives    the loss to minimise, and the constraint on scores
opponents     scores with different units, made comparable
constraints   rules about the words allowed at a position, for example that no word occurs twice
verification  checks before a search, and checks of its result
settings      settings of a search, as given by options
"""
