"""Our recipe, used where none is named: what it changes in the published one, and why.

Exact scores of masked models are what costs, so they come last: all words are estimated from one
context, a few are scored by drafts, and only a word that still promises half a nat is scored
exactly, under the accept model first. A settled sentence is shaken, and the climb begins anew.
"""

from contstim.optimization.search.guided import ScreeningProposer
from contstim.optimization.search.perturbation import SlackPerturbation
from contstim.optimization.search.recipe import Recipe

DEFAULT = Recipe(
    name="default",
    proposer=ScreeningProposer(
        draft_share=0.25,
        min_draft_passes=32,
        draft_covers=1,
        min_expected_improvement=0.5,
        patience=5,
    ),
    perturbation=SlackPerturbation(max_words=3, max_drafts=8, draft_covers=1, patience=4, tries=4),
)
