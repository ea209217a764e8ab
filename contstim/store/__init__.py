"""The study's database: one SQLite file that keeps scores and triplets, written by one process."""

from contstim.store.scores import Store
from contstim.store.triplets import Job, Outcome, State, Trail, TripletStore

__all__ = ["Job", "Outcome", "State", "Store", "Trail", "TripletStore"]
