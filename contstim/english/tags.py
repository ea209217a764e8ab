"""Tags of English words, counted in textbooks; `benchmarks/english_tags.py` tells how."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from contstim.tags import TagTable, read_tags


@cache
def english_tags() -> TagTable:
    """Tags of some 46,000 English words, in the basic tagset of the British National Corpus (C5).

    From OpenStax's textbooks (CC BY 4.0), and LemmInflect's list of words (MIT).
    """
    folder = Path(__file__).parent
    table = read_tags(folder / "tags.csv", folder / "tag_pairs.csv")
    return replace(table, name="the embedded table of English tags")
