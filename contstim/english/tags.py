"""Tags of English words, counted in textbooks; `benchmarks/english_tags.py` tells how."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path

from contstim.files.tables import read_table
from contstim.words.tags import TagTable, read_tags


@cache
def english_tags() -> TagTable:
    """Tags of some 46,000 English words, in the basic tagset of the British National Corpus (C5).

    From OpenStax's textbooks (CC BY 4.0), LemmInflect's list of words (MIT) and WordNet 3.1 (its
    licence stands in wordnet.txt).
    """
    folder = Path(__file__).parent
    table = read_tags(folder / "tags.csv", folder / "tag_pairs.csv")
    names = dict(zip(*read_table(folder / "tag_names.csv").values(), strict=True))
    return replace(table, name="the embedded table of English tags", names=names)


def tag_table(path: Path | str | None) -> TagTable:
    """A table of tags from a file; without one that of English words.

    A file is read once, and again when it has changed.

    Raises:
        InputError: it cannot be read.
    """
    if path is None:
        return english_tags()
    return _read_tags(str(path), Path(path).stat().st_mtime_ns if Path(path).exists() else 0)


@lru_cache(maxsize=2)
def _read_tags(path: str, _changed: int) -> TagTable:
    return read_tags(path)
