"""Small score tables that several tests of selection ask about."""

from __future__ import annotations

import numpy as np

from contstim.scores import ScoreTable
from contstim.sentence import Sentence

WORDS = "cats dogs owls purr bark hoot at in the moon loudly somewhere".split()


def random_table(n_sentences: int = 60, n_models: int = 3, seed: int = 0) -> ScoreTable:
    """Distinct sentences of various lengths, scores that tie now and then."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(n_sentences, 1))
    scores = np.round(shared + rng.normal(size=(n_sentences, n_models)), 1) - 20
    texts = [f"Row{r} {' '.join(rng.permutation(WORDS)[: 2 + r % 5])}." for r in range(n_sentences)]
    return ScoreTable(
        tuple(map(Sentence.parse, texts)), tuple(f"model-{m}" for m in range(n_models)), scores
    )


def repetitive_table() -> ScoreTable:
    """Every third sentence says a word twice (in two cases), every third one a repeatable one."""
    plain = random_table(24, 2, seed=3)
    assert plain.sentences is not None
    extra = ["Dogs see dogs", "The owls see the", ""]
    texts = [f"{extra[r % 3]} row{r}".strip() for r in range(len(plain.sentences))]
    return ScoreTable(tuple(map(Sentence.parse, texts)), plain.models, plain.log_probs)
