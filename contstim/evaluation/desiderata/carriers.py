"""The scores of single words in neutral sentences.

A word's score is the sum of its own terms under the model's rule: what is said about the other
words and about the end mark does not count, although models that read from both sides see them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.models.base import require_language_model
from contstim.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.arrays import FloatArray, IntArray
    from contstim.models.base import Scorer
    from contstim.store import Store

GAP = "_"
CARRIERS = ("My word is _", "The next word is _", "She wrote down the word _", GAP)
_BLOCK = 64


@dataclass(frozen=True)
class Carrier:
    """A sentence with a gap for one word; the gap alone is not a context.

    Raises:
        InputError: the text has no gap, or several.
    """

    text: str

    def __post_init__(self) -> None:
        # an end mark may follow the gap without a space
        if self.text.rstrip(".!?").split().count(GAP) != 1:
            raise InputError(
                f"{self.text!r} is not a carrier: write {GAP!r} once, where the word goes, as in "
                f"{CARRIERS[0]!r}."
            )

    @property
    def position(self) -> int:
        """Word position of the gap, from 0."""
        return Sentence.parse(self.text).words.index(GAP)

    def holding(self, word: str) -> Sentence:
        """The sentence with a word in the gap."""
        return Sentence.parse(self.text).replace(self.position, word)


@dataclass(frozen=True, eq=False)
class WordScores:
    """Scores of words under one model.

    Attributes:
        scores: (n_words, n_carriers), nats.
        tokens: (n_words,), into how many tokens each is cut in the first carrier.
    """

    scores: FloatArray
    tokens: IntArray


def score_words(
    model: Scorer,
    words: Sequence[str],
    carriers: Sequence[Carrier],
    *,
    store: Store | None = None,
    progress: Callable[[Scorer, int], None] | None = None,
) -> WordScores:
    """Scores of words in carriers; kept in the store as soon as they are known.

    Raises:
        ModelError: the model has no score for each word (a transform), or cannot score a sentence.
    """
    language_model = require_language_model(model, "A score for each word")
    report = progress or (lambda _model, _n: None)
    columns = []
    for carrier in carriers:
        sentences = [carrier.holding(word) for word in words]
        texts = [sentence.text for sentence in sentences]
        key = f"{model.convention.fingerprint} word {carrier.position}"
        scores = store.log_probs(key, texts) if store else np.full(len(texts), np.nan)
        missing = np.flatnonzero(np.isnan(scores))
        report(model, len(texts) - len(missing))
        # saved block by block: an interrupted run goes on from here
        for start in range(0, len(missing), _BLOCK):
            rows = missing[start : start + _BLOCK]
            terms = language_model.token_log_probs([sentences[row] for row in rows])
            # of all terms of a sentence those of the word's own tokens
            scores[rows] = [
                sum(term.log_prob for term in sentence if term.word == carrier.position)
                for sentence in terms
            ]
            if store:
                store.save(key, model.convention.json, [texts[row] for row in rows], scores[rows])
            report(model, len(rows))
        columns.append(scores)
    # a word that begins the sentence may be cut in another way than one after a space
    counts = model.tokens_per_word(words, initial=not carriers[0].position)
    tokens = np.ones(len(words), np.int64) if counts is None else counts
    return WordScores(np.stack(columns, axis=1), tokens)


def unreadable(
    models: Sequence[Scorer], words: Sequence[str], carriers: Sequence[Carrier]
) -> dict[str, str]:
    """The words that some model cannot score or does not know, each with the reason."""
    reasons: dict[str, str] = {}
    for model in models:
        for word, is_known in zip(words, model.knows(words), strict=True):
            if not is_known:
                reasons.setdefault(word, f"unknown to {model.name}")
        for carrier in carriers:
            reasons_of_words = model.unscorable([carrier.holding(word) for word in words])
            for word, reason in zip(words, reasons_of_words, strict=True):
                if reason:
                    reasons.setdefault(word, f"{model.name}: {reason}")
    return reasons
