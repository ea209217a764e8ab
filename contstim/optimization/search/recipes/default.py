"""Our recipe, used where none is named: what it changes in the published one, and why.

Exact scores of masked models are what costs, so they come last: all words are estimated from one
context, a few are scored by drafts, and only a word that still promises `worth` nats is scored
exactly, under the accept model first. A settled sentence is shaken, and the climb begins anew.
"""

from contstim.optimization.search.guided import Guided
from contstim.optimization.search.recipe import Recipe
from contstim.optimization.search.shaking import BuyRoom

DEFAULT = Recipe(
    name="default",
    proposer=Guided(share=0.25, least=32, effort=1, worth=0.5, patience=5),
    shaker=BuyRoom(words=3, width=8, effort=1, patience=4, tries=4),
)
