"""The procedure of Golan et al. (2023), Methods, "Generating synthetic controversial sentences".

Words are replaced one at a time at positions in random cycles, first words by words of the
sentence-initial list, until as many positions in a row as the sentence has words bring nothing.
N-gram models rank all words exactly. For models that read from left to right the words likely
enough after those before them are scored exactly. For masked models scores are predicted from an
approximation by a line that is refitted after each exact score; where both models are masked, both
are predicted. A word is taken when its exact scores lower the loss and keep the constraint.

What no setting below shows: masked models are scored by the mean over all orders of the words, not
by 100 orders drawn at random (`@chain-sampled` has these); no score is computed twice in a search,
nor a position tried again with the same sentence, which changes passes but no step.
"""

from contstim.optimization.recipe import Recipe
from contstim.optimization.regression import RegressionGuided

GOLAN2023 = Recipe(
    name="golan2023",
    proposer=RegressionGuided(
        # Of a word's first token; ours, of all its tokens where these have been read anyway.
        # In the paper for GPT-2; here for every model that reads from left to right.
        threshold=-10.0,
        lowered=5.0,
        fewest=10,
        # Each line starts from the words with the highest and the lowest approximation and from
        # the word that stands there. Ours never falls: a better approximation predicts no worse.
        patience=5,
    ),
)
