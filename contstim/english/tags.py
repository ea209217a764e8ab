"""Tags of English words, counted in textbooks by `benchmarks/english_tags.py`."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path

from contstim.files.tables import read_table
from contstim.words.tags import TagTable, read_tags


@cache
def english_tags() -> TagTable:
    """Return tags of some 46,000 English words, in the British National Corpus's C5 tagset.

    Sources: OpenStax's textbooks (CC BY 4.0), LemmInflect's list of words (MIT) and WordNet 3.1
    (licence in wordnet.txt).
    """
    folder = Path(__file__).parent
    table = read_tags(folder / "tags.csv", folder / "tag_pairs.csv")
    names = dict(zip(*read_table(folder / "tag_names.csv").values(), strict=True))
    return replace(table, name="the embedded table of English tags", names=names)


def tag_table(path: Path | str | None) -> TagTable:
    """Return the table of tags in a file, or the table of English words without a file.

    A file is read again only after it has changed.

    Raises:
        InputError: if the file cannot be read.
    """
    if path is None:
        return english_tags()
    return _read_tags(str(path), Path(path).stat().st_mtime_ns if Path(path).exists() else 0)


@lru_cache(maxsize=2)
def _read_tags(path: str, _changed: int) -> TagTable:
    return read_tags(path)
