"""Eight judged sentences, and minimal pairs in the format of BLiMP."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from contstim.evaluation.acceptability import JudgedPair, Judgements
from contstim.evaluation.judged_scores import JudgedScores
from contstim.words.sentence import Sentence

ITEMS = """\
id,item,label,phenomenon,sentence,judgement
a1,a,1,agreement,The dog sleeps,6.5
a2,a,*,agreement,The dog sleep,2
a3,a,ok,agreement,The dogs sleep,6
a4,a,??,agreement,The dogs sleeps,2.5
b1,b,1,islands,Who did she see,5
b2,b,0,islands,Who did she wonder whether saw,5.5
c1,c,1,islands,What did he say,
c2,c,0,islands,What did he say that happened,1
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def simulated(n: int, models: int, seed: int = 0) -> tuple[Judgements, JudgedScores]:
    """Return pairs of sentences with random judgements and correlated scores."""
    rng = np.random.default_rng(seed)
    judgements = rng.normal(size=2 * n)
    sentences = {f"s{i}": Sentence((f"w{i}", "is")) for i in range(2 * n)}
    names = zip(*[iter(sentences)] * 2, strict=True)
    pairs = tuple(JudgedPair(a, b, phenomenon=f"p{i % 3}") for i, (a, b) in enumerate(names))
    values = 7 * judgements[:, None] - 30 + 9 * rng.normal(size=(2 * n, models))
    scores = JudgedScores(tuple(f"m{i}" for i in range(models)), values)
    return Judgements(sentences, judgements, pairs), scores


Row = dict[str, Any]


def make_row(paradigm: str, number: int, good: str, bad: str, **fields: Any) -> Row:
    """Return a row with the names of BLiMP's fields."""
    return {
        "sentence_good": good,
        "sentence_bad": bad,
        "linguistics_term": paradigm.rpartition("_")[0],
        "UID": paradigm,
        "one_prefix_method": "one_prefix_prefix" in fields,
        "two_prefix_method": "two_prefix_word" in fields,
        "pairID": str(number),
        **fields,
    }


def one_prefix_fields(prefix: str, good: str, bad: str) -> Row:
    names = ("one_prefix_prefix", "one_prefix_word_good", "one_prefix_word_bad")
    return dict(zip(names, (prefix, good, bad), strict=True))


def two_prefix_fields(good: str, bad: str, word: str) -> Row:
    names = ("two_prefix_prefix_good", "two_prefix_prefix_bad", "two_prefix_word")
    return dict(zip(names, (good, bad, word), strict=True))


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
    one_prefix_fields("The dog", "sleeps", "sleep"),
    one_prefix_fields("The dogs", "sleep", "sleeps"),
    one_prefix_fields("The cat", "is here", "is here"),
    two_prefix_fields("The dog", "The dogs", "sleeps"),
    two_prefix_fields("The women", "The woman", "read"),
    {},
    {},
)
ROWS = tuple(
    make_row(paradigm, number, good, bad, **_PREFIXES[number])
    for number, (paradigm, good, bad) in enumerate(_SENTENCES)
)


def write_rows(path: Path, rows: Iterable[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_folder(folder: Path, rows: Iterable[Row] = ROWS) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    items = list(rows)
    for paradigm in dict.fromkeys(row["UID"] for row in items):
        write_rows(folder / f"{paradigm}.jsonl", [row for row in items if row["UID"] == paradigm])
    return folder
