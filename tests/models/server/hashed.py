"""A server in a separate process, with a network that needs almost no time.

    python -m tests.models.server.hashed PORT TOKENIZER.json

Distributions of next tokens are rows of a table, selected by a hash of all tokens in order.
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


class TokenDecoder:
    """A tokenizer that only decodes, without `transformers`, whose import takes seconds."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))


def main(port: str, path: str) -> None:
    tokenizer = Tokenizer.from_file(path)
    network = HashedNetwork(tokenizer.get_vocab_size())
    fake = FakeServer(network, TokenDecoder(tokenizer))
    with fake.running(int(port)):
        threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
