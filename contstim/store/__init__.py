"""The study's database: one SQLite file that keeps scores and triplets, written by one process."""

from contstim.store.scores import Store
from contstim.store.triplets import Outcome, State, Trail, TripletStore

__all__ = ["Outcome", "State", "Store", "Trail", "TripletStore"]
