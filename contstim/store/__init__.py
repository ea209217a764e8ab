"""The study's database: one SQLite file that keeps scores and triplets, written by one process.

scores     log-probabilities of sentences, by model and convention
triplets   searches for triplets: what was asked, what came of each
layout     the tables, one layout after another
database   the file: opened by one process, brought to the present layout
"""

from contstim.store.scores import Store
from contstim.store.triplets import Job, JobState, Outcome, StoreEdit, Trail, TripletStore

__all__ = ["Job", "JobState", "Outcome", "Store", "StoreEdit", "Trail", "TripletStore"]
