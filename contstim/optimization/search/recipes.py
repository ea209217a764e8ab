"""Recipes, ways to search under a name: ours and the published one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.optimization.search.perturbation import Oscillation, Perturbation
from contstim.optimization.search.proposers import RegressionProposer, ScreeningProposer
from contstim.optimization.search.restarts import SINGLE, SearchBudget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.models.base import LanguageModel
    from contstim.optimization.search.proposers import Proposer


@dataclass(frozen=True, repr=False)
class Recipe:
    """A way to search for a controversial sentence.

    Attributes:
        name: what it is called on the command line and in records.
        proposer: how a better word is looked for.
        perturbation: how new starts are made; None for a single round.
        capitals: whether studies, unless told otherwise, put in capitalised words only where
            capitals may stand (`constraints.Capitals`).
        plausible: the quantile of natural sentences that, unless told otherwise, no sentence of a
            study is rarer than under the model that accepts it; 0 for no floor.
        restarts: how often and how long a sentence is searched if nothing else is asked for.
        with_cheap_words: the perturbation, and how often and how long a sentence is searched,
            between models that all have `cheap_replacements`; None for the same as elsewhere.
    """

    name: str
    proposer: Proposer
    perturbation: Perturbation | None = None
    capitals: bool = False
    plausible: float = 0.0
    restarts: SearchBudget = SINGLE
    with_cheap_words: tuple[Perturbation, SearchBudget] | None = None

    def __repr__(self) -> str:
        return f"<Recipe {self.name}>"

    def between(self, models: Sequence[LanguageModel]) -> Recipe:
        """The recipe as it is followed in searches between these models."""
        if self.with_cheap_words is None or not all(m.cheap_replacements for m in models):
            return self
        perturbation, restarts = self.with_cheap_words
        return replace(self, perturbation=perturbation, restarts=restarts, with_cheap_words=None)


DEFAULT = Recipe(
    name="default",
    capitals=True,
    # Where one of the two models is a transformer, nine of ten people agree about 80 % of the
    # published synthetic pairs whose natural sentence is above the first quartile under both, and
    # about 59 % of the others; above it, agreement hardly rises (docs/figures.md).
    plausible=0.25,
    proposer=ScreeningProposer(),
    perturbation=Perturbation(),
    restarts=SearchBudget(searches=20, patience=5, min_gain=0.5, passes=4000),
    # With the perturbation above, searches between n-gram models over few words end six nats above
    # the best sentence that there is; with this one, less than two (benchmarks/optimality.py). Many
    # rounds of it in one search come nearer in the same time than several searches do.
    with_cheap_words=(Oscillation(), SINGLE),
)
"""Our recipe, used where none is named: what it changes in the published one, and why.

Exact scores of masked models are what costs, so they come last: all words are screened with one
context, a few are scored by drafts, and only a word that still promises half a nat is scored
exactly, under the accept model first. A settled sentence is perturbed, and the climb begins anew.
Between n-gram models exact scores of all words cost next to nothing, and new starts may cross
sentences below the floor.
"""

GOLAN2023 = Recipe(name="golan2023", proposer=RegressionProposer())
"""The procedure of Golan et al. (2023), "Generating synthetic controversial sentences" in Methods.

Words are replaced at positions in random cycles, first words by words of the sentence-initial list,
until as many positions in a row as the sentence has words bring nothing. N-gram models rank all
words exactly. For models that read from left to right the words likely enough after those before
them are scored exactly. For masked models and the BiLSTM, scores are predicted from an
approximation by a line that is refitted after each exact score; where both models are approximated,
both are predicted. A word is taken when its exact scores lower the loss and keep the constraint.
Where the paper leaves something open, the authors' published code decides.

What no setting of `RegressionProposer` shows, and where it deviates:

* Scores are those of each model's own rule. The published ones of GPT-2 are `@chain` with the
  context `". "`, which is for the user to set; masked models are scored by the mean over all orders
  of the words, not by 100 orders drawn at random, and without a term for the end mark
  (`@chain-sampled` has the 100 orders).
* The approximation of a masked model is log p(word | all other words) with the tokens of a word
  taken as independent; the authors average over the orders in which its tokens may be revealed,
  which takes a pass for each beginning of each word.
* Of equally good words the first in the vocabulary is taken, not one drawn at random.
* No score is computed twice in a search, nor a position tried again with the same sentence, which
  changes passes but no step.
* Models whose scores are not log-probabilities (`+mean`, `+slor`, classifiers) are refused: a
  threshold for log p(word | words before) and a floor for log p(sentence) say nothing about them.
"""

RECIPES = {recipe.name: recipe for recipe in (DEFAULT, GOLAN2023)}
"""All recipes by name; one that is added here can be asked for on the command line."""


def recipe_named(name: str) -> Recipe:
    """The recipe of a name.

    Raises:
        InputError: there is none; says which there are.
    """
    if name not in RECIPES:
        raise InputError(f"There is no recipe {name!r}; there are {', '.join(RECIPES)}.")
    return RECIPES[name]
