"""Recipes, that is, named search methods: ours and the published one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.optimization.search.perturbation import Oscillation, Perturbation
from contstim.optimization.search.proposers import RegressionProposer, ScreeningProposer
from contstim.optimization.search.restarts import SINGLE, SearchBudget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.models.base import Scorer
    from contstim.optimization.search.proposers import Proposer


@dataclass(frozen=True, repr=False)
class Recipe:
    """A method to search for a controversial sentence.

    Attributes:
        perturbation: method for new starts; None for a single round.
        capitals: whether new words in studies need a capital at the start of a sentence, and lower
            case inside it (`constraints.capitals`).
        plausible: level of a quantile, from 0 to 1, for studies without judges (models that choose
            sensible sentences). Under each model of the pair, a natural sentence must be at least
            as likely as this quantile of the natural sentences. 0 means no minimum.
        restarts: budget of repeated searches from one natural sentence.
        with_cheap_words: perturbation and budget that replace `perturbation` and `restarts` if all
            models have `cheap_replacements`, such as n-gram models; None to replace nothing.
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

    def between(self, models: Sequence[Scorer]) -> Recipe:
        """Return the recipe for searches between these models."""
        if self.with_cheap_words is None or not all(m.cheap_replacements for m in models):
            return self
        perturbation, restarts = self.with_cheap_words
        return replace(self, perturbation=perturbation, restarts=restarts, with_cheap_words=None)


DEFAULT = Recipe(
    name="default",
    capitals=True,
    # Reason for this level: participants agree more about pairs above it. Consider the published
    # synthetic pairs with a transformer. At least nine of ten participants agreed about 80 % of the
    # pairs whose natural sentence is above the first quartile under both models, and about 59 % of
    # the other pairs. Higher quantiles hardly increase agreement (docs/figures.md)
    plausible=0.25,
    proposer=ScreeningProposer(),
    perturbation=Perturbation(),
    restarts=SearchBudget(searches=20, patience=5, min_gain=0.5, passes=4000),
    # The optimum is known for two n-gram models and a small vocabulary. With `Perturbation`,
    # searches end six nats above the optimum. With `Oscillation`, they end less than two nats above
    # it (benchmarks/optimality.py). One search with many rounds comes closer to the optimum than
    # several searches in the same time
    with_cheap_words=(Oscillation(), SINGLE),
)
"""The default recipe.

It differs from the published recipe in three ways:

* Exact scores of masked models are expensive, so they come last. One pass gives estimates of all
  words. Drafts (cheaper scores) cover a few words. Only words with an expected improvement above
  half a nat are scored exactly, under the accept model first.
* At a local optimum, the search changes a few words (a perturbation) and continues.
* Between n-gram models, the way to a new start may lead through sentences that are less likely than
  the natural sentence under the accept model.
"""

GOLAN2023 = Recipe(name="golan2023", proposer=RegressionProposer())
"""The procedure of Golan et al. (2023), "Generating synthetic controversial sentences" in Methods.

Words are replaced at positions in random cycles. New first words come from the list of words that
may start a sentence. The search ends after n positions in a row without improvement, where n is the
number of words of the sentence. We follow the authors' published code for details that the paper
does not specify.

Differences that are not settings of `RegressionProposer`:

* Each model uses its own scoring rule. The published scores of GPT-2 are `@chain` with the context
  `". "`, which the user has to set. Masked models are scored by the mean over all orders of the
  words, without a term for the end mark. The authors used 100 random orders (`@chain-sampled`).
* Scores of a masked model are estimated by log p(word | all other words). This estimate treats the
  tokens of a word as independent. The authors averaged over the orders of the tokens, which needs a
  pass for each prefix of each word.
* Of equally good words, the first word in the vocabulary is accepted, not a random one.
* No score is computed twice, and no position is tried again with the same sentence. This changes
  the number of passes but no step.
* Models whose scores are not log-probabilities (`+mean`, `+slor`, classifiers) are refused, because
  `RegressionProposer.threshold` is a limit of log p(word | words before), which they do not have.
"""

RECIPES = {recipe.name: recipe for recipe in (DEFAULT, GOLAN2023)}
"""All recipes by name, also for the command line."""


def recipe_named(name: str) -> Recipe:
    """Return the recipe with a name.

    Raises:
        InputError: if no recipe has this name; the message lists the recipes.
    """
    if name not in RECIPES:
        raise InputError(f"There is no recipe {name!r}; there are {', '.join(RECIPES)}.")
    return RECIPES[name]
