"""What to hide in a sentence, what to ask there, and how the answers add up to a score.

An example: `The dog sleeps.`, each word a token, between special tokens. Their numbers:

    [CLS] The dog sleeps  .  [SEP]
      0    1   2    3     4    5

Rule `pll-original` hides each token once, the end mark included, and asks for it: four passes,
weight 1 each. Rule `chain` hides every set of words. A hidden word is asked for with the share of
the orders in which exactly the words outside the set stand before it; for each word, the shares add
up to 1:

    pass  The  dog  sleeps    terms of the score (hidden words are _)
    0      _   dog  sleeps    1/3 log p(The)
    1     The   _   sleeps    1/3 log p(dog)
    2      _    _   sleeps    1/6 log p(The) + 1/6 log p(dog)
    3     The  dog    _       1/3 log p(sleeps)
    4      _   dog    _       1/6 log p(The) + 1/6 log p(sleeps)
    5     The   _     _       1/6 log p(dog) + 1/6 log p(sleeps)
    6      _    _     _       1/3 log p(The) + 1/3 log p(dog) + 1/3 log p(sleeps)

Each term is a question of the plan: `row` is its pass, `token` the number of its word, `weight` the
share. Here row = 0 1 2 2 3 4 4 5 5 6 6 6 and token = 1 2 1 2 3 1 3 2 3 1 2 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from contstim.arrays import BoolArray, FloatArray, IntArray

Pattern: TypeAlias = tuple[int, ...]
"""For each token the position of its word, `END_MARK` or `SPECIAL`; see `words.Encoding`."""


ALWAYS = -1
"""Stands for a sample's number where a question is part of every sample."""


@dataclass(frozen=True, eq=False)
class Plan:
    """A scoring rule for all sentences with the same number of tokens in each word.

    The score is the weighted sum of log p(token | the tokens that are not hidden).

    Attributes:
        hidden: the tokens that each pass hides, (n_passes, n_tokens).
        row: the pass of each question, (n_questions,).
        token: the hidden token that each question is about, (n_questions,).
        weight: the weight of its log-probability, (n_questions,), positive.
        draw_of: where the plan is the mean of independent samples, the sample that each question
            belongs to, (n_questions,); `ALWAYS` for those that every sample shares.
    """

    hidden: BoolArray
    row: IntArray
    token: IntArray
    weight: FloatArray
    draw_of: IntArray | None = None

    @property
    def n_bytes(self) -> int:
        """How much memory its arrays take."""
        arrays = (self.hidden, self.row, self.token, self.weight, self.draw_of)
        return sum(array.nbytes for array in arrays if array is not None)

    def score(self, log_probs: FloatArray) -> float:
        """The score in nats from the answers, (n_questions,)."""
        return float(self.weight @ log_probs)

    def by_token(self, log_probs: FloatArray) -> FloatArray:
        """The part of each token, (n_tokens,), nats; they sum to the score."""
        return _sums(self.token, self.weight * log_probs, self.hidden.shape[1])

    def standard_error(self, log_probs: FloatArray) -> float:
        """Standard error of the score in nats; 0 where the plan is not a sample."""
        if self.draw_of is None:
            return 0.0
        n_draws = int(self.draw_of.max()) + 1
        sampled = self.draw_of != ALWAYS
        values = (self.weight * log_probs)[sampled]
        parts = _sums(self.draw_of[sampled], values, n_draws)  # (n_draws,): value / n_draws
        return float(parts.std(ddof=1) * np.sqrt(len(parts)))


def all_hidden(n_tokens: int, positions: IntArray, hidden: BoolArray) -> BoolArray:
    """Spread what is hidden among some tokens, (n, k), over the whole text, (n, n_tokens)."""
    spread = np.zeros((len(hidden), n_tokens), np.bool_)
    spread[:, positions] = hidden
    return spread


def _sums(group: IntArray, values: FloatArray, n_groups: int) -> FloatArray:
    return np.bincount(group, values, n_groups).astype(np.float64, copy=False)
