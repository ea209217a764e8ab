"""The study's database: one SQLite file that keeps scores and triplets, written by one process.

scores     log-probabilities of sentences, by model and convention
triplets   outcomes of searches by what was searched; natural sentences of pairs of models
layout     the tables
database   the file: opened by one process, recognised as ours
"""

from contstim.store.scores import Store
from contstim.store.triplets import (
    AssignedSentence,
    JobState,
    Outcome,
    Result,
    Searched,
    Slot,
    Trail,
    TripletStore,
)

__all__ = [
    "AssignedSentence",
    "JobState",
    "Outcome",
    "Result",
    "Searched",
    "Slot",
    "Store",
    "Trail",
    "TripletStore",
]
