"""The recipes, by name: the published procedure, and ours."""

from contstim.optimization.search.recipes.default import DEFAULT
from contstim.optimization.search.recipes.golan2023 import GOLAN2023

RECIPES = {recipe.name: recipe for recipe in (DEFAULT, GOLAN2023)}

__all__ = ["DEFAULT", "GOLAN2023", "RECIPES"]
