"""The study's database: one SQLite file that keeps scores and triplets, written by one process."""

from contstim.store.scores import Store
from contstim.store.triplets import Job, JobState, Outcome, Trail, TripletStore

__all__ = ["Job", "JobState", "Outcome", "Store", "Trail", "TripletStore"]
