"""Readers of files by what they must hold, with which a study is checked before it runs."""

from __future__ import annotations

from collections import deque
from importlib import import_module
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_LINES = 1_000  # of a text; a corpus may be large

_READERS = {
    "minimal pair scores": "contstim.items.minimal_pair_scores:MinimalPairScores.read",
    "minimal pairs": "contstim.items.stimuli:read_controversial_minimal_pairs",
    "pair counts": "contstim.items.counts:read_pair_counts",
    "pairs": "contstim.items.stimuli:read_pairs",
    "repeatable words": "contstim.words.vocabulary:read_repeatable",
    "scores": "contstim.items.scores:ScoreTable.read",
    "sentences": "contstim.items.stimuli:read_stimuli",
    "stimuli": "contstim.items.stimuli:read_stimulus_table",
    "tags": "contstim.english.tags:tag_table",
    "token counts": "contstim.items.counts:read_token_counts",
    "trials": "contstim.items.stimuli:read_trials",
    "triplets": "contstim.items.stimuli:read_triplets",
    "vocabulary": "contstim.words.vocabulary:Vocabulary.load",
    "words": "contstim.words.word_rules:read_words",
}


def check_content(path: Path, content: str) -> None:
    """Read a file, or the beginning of a text, as what it must hold.

    Args:
        path: a file, or of minimal pairs a folder.
        content: `text`, `reviews`, `minimal pair data`, or a name of a table or list of words.

    Raises:
        InputError: it holds something else.
    """
    from contstim.evaluation.minimal_pairs import pair_files, read_minimal_pairs
    from contstim.items.reviews import read_reviews
    from contstim.words.corpus import read_lines

    if content == "text":
        deque(islice(read_lines(path), _LINES), maxlen=0)
    elif content == "reviews":
        read_reviews([path])
    elif content == "minimal pair data":
        read_minimal_pairs(pair_files(path))
    else:
        module, _, name = _READERS[content].partition(":")
        attrgetter(name)(import_module(module))(path)
