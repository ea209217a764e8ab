"""A server that is a process of its own, with a network that costs next to nothing.

    python -m tests.models.server.hashed PORT TOKENIZER.json

What follows a text is drawn from a table by a hash of all tokens of the text, in their order.
"""

import sys
import threading
from collections.abc import Sequence

import numpy as np
from tokenizers import Tokenizer

from tests.models.server.fakes import FakeServer, Row

_STATES = 997


class HashedNetwork:
    def __init__(self, n_vocabulary: int) -> None:
        logits = 2 * np.random.default_rng(5).standard_normal((_STATES, n_vocabulary))
        self._log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))

    def __call__(self, row: Row) -> np.ndarray:
        state, states = 1, []
        for token in row:
            state = (31 * state + token + 1) % _STATES
            states.append(state)
        return np.asarray(self._log_probs[states])

    def score(self, row: Row, n_context: int) -> float:
        log_probs = self(row)
        return float(sum(log_probs[i - 1, row[i]] for i in range(n_context, len(row))))


class TextsOfTokens:
    """A tokenizer that only writes, without `transformers`, which takes seconds to import."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))


def main(port: str, path: str) -> None:
    tokenizer = Tokenizer.from_file(path)
    network = HashedNetwork(tokenizer.get_vocab_size())
    fake = FakeServer(network, TextsOfTokens(tokenizer))
    with fake.running(int(port)):
        threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
