"""The recipe that is used where none is named."""

from contstim.optimization.guided import Guided
from contstim.optimization.recipe import Recipe
from contstim.optimization.shaking import BuyRoom

DEFAULT = Recipe("default", Guided(), BuyRoom())
