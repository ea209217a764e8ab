"""The procedure of Golan et al. (2023), Methods."""

from contstim.optimization.proposals import ExactRanking
from contstim.optimization.recipe import Recipe

GOLAN2023 = Recipe("golan2023", ExactRanking)
