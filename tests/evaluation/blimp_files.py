"""A few minimal pairs in BLiMP's format."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def row(paradigm: str, number: int, good: str, bad: str, **more: Any) -> Row:
    """A row with BLiMP's names for its fields."""
    return {
        "sentence_good": good,
        "sentence_bad": bad,
        "linguistics_term": paradigm.rpartition("_")[0],
        "UID": paradigm,
        "one_prefix_method": "one_prefix_prefix" in more,
        "two_prefix_method": "two_prefix_word" in more,
        "pairID": str(number),
        **more,
    }


def one_prefix(prefix: str, good: str, bad: str) -> Row:
    fields = ("one_prefix_prefix", "one_prefix_word_good", "one_prefix_word_bad")
    return dict(zip(fields, (prefix, good, bad), strict=True))


def two_prefix(good: str, bad: str, word: str) -> Row:
    fields = ("two_prefix_prefix_good", "two_prefix_prefix_bad", "two_prefix_word")
    return dict(zip(fields, (good, bad, word), strict=True))


_SENTENCES = (
    ("agreement_1", "The dog sleeps.", "The dog sleep."),
    ("agreement_1", "The dogs sleep.", "The dogs sleeps."),
    ("agreement_1", "The cat is here.", "The cat is here."),
    ("agreement_2", "The dog sleeps.", "The dogs sleeps."),
    ("agreement_2", "The women read books.", "The woman read books."),
    ("island_1", "Who did she see?", "Who did she see him?"),
    ("island_1", "What do they read?", "What they do read?"),
)
_PREFIXES: tuple[Row, ...] = (
    one_prefix("The dog", "sleeps", "sleep"),
    one_prefix("The dogs", "sleep", "sleeps"),
    one_prefix("The cat", "is here", "is here"),
    two_prefix("The dog", "The dogs", "sleeps"),
    two_prefix("The women", "The woman", "read"),
    {},
    {},
)
ROWS = tuple(
    row(paradigm, number, good, bad, **more)
    for number, ((paradigm, good, bad), more) in enumerate(zip(_SENTENCES, _PREFIXES, strict=True))
)


def write_rows(path: Path, rows: Iterable[Row]) -> Path:
    """A file of JSON lines."""
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    return path


def write_folder(folder: Path, rows: Iterable[Row] = ROWS) -> Path:
    """A folder with a file for each paradigm."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = list(rows)
    for paradigm in dict.fromkeys(one["UID"] for one in listed):
        write_rows(folder / f"{paradigm}.jsonl", [one for one in listed if one["UID"] == paradigm])
    return folder
