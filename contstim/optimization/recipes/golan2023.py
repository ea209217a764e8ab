"""The procedure of Golan et al. (2023), Methods."""

from contstim.optimization.recipe import Recipe
from contstim.optimization.regression import RegressionGuided

GOLAN2023 = Recipe("golan2023", RegressionGuided())
