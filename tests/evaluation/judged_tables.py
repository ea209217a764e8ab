"""A small set of judged sentences, as a table and as values."""

from pathlib import Path

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
    """Pairs of sentences with random judgements and scores that follow them loosely."""
    rng = np.random.default_rng(seed)
    people = rng.normal(size=2 * n)
    sentences = {f"s{i}": Sentence((f"w{i}", "is")) for i in range(2 * n)}
    pairs = tuple(
        JudgedPair(f"s{2 * i}", f"s{2 * i + 1}", phenomenon=f"p{i % 3}") for i in range(n)
    )
    noise = rng.normal(size=(2 * n, models))
    scores = JudgedScores(
        tuple(f"m{i}" for i in range(models)), 7 * people[:, None] - 30 + 9 * noise
    )
    return Judgements(sentences, people, pairs), scores
