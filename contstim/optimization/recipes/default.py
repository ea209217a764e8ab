"""The recipe that is used where none is named."""

from contstim.optimization.proposals import ExactRanking
from contstim.optimization.recipe import Recipe

DEFAULT = Recipe("default", ExactRanking)
