"""The study's database: one SQLite file that keeps scores and triplets, written by one process.

database   the file: its tables, opened by one process, recognised as ours; scores of sentences
times      measured times of units of work, beside it
triplets   outcomes of searches by what was searched; natural sentences of pairs of models
"""

from contstim.store.database import Store
from contstim.store.triplets import AssignedSentence, Outcome, Result, Slot, TripletStore

__all__ = ["AssignedSentence", "Outcome", "Result", "Slot", "Store", "TripletStore"]
