"""The study's database: one SQLite file with scores and triplets, used by one process at a time.

database   the file, its tables and its lock; scores of sentences
times      measured times of work, in a file next to the database
triplets   cached results of searches, and floors: lowest plausible log-probabilities of sentences
"""

from contstim.store.database import Store
from contstim.store.triplets import Result, TripletStore

__all__ = ["Result", "Store", "TripletStore"]
