"""Literal masked scoring, with one full forward pass for each set of hidden positions."""

from collections.abc import Callable
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
import torch

from contstim.models.checkpoints import Checkpoint
from contstim.words.sentence import END_MARKS, Sentence


class Literal:
    """Scores one sentence; finds words by tokenizing the text up to the end of each word."""

    def __init__(self, checkpoint: Checkpoint, sentence: Sentence, *, restricted: bool) -> None:
        self.model, self.tokenizer = checkpoint.model, checkpoint.tokenizer
        self.ids = self.tokenizer(sentence.text)["input_ids"]
        special = self.tokenizer.get_special_tokens_mask(self.ids, already_has_special_tokens=True)
        body = [i for i, is_special in enumerate(special) if not is_special]
        self.words: list[list[int]] = []  # token positions of each word
        for n in range(1, len(sentence) + 1):
            prefix = " ".join(sentence.words[:n])
            length = len(self.tokenizer(prefix, add_special_tokens=False)["input_ids"])
            n_assigned = sum(map(len, self.words))
            self.words.append(body[n_assigned:length])
        self.end = body[sum(map(len, self.words)) :]
        self.last = len(self.ids) - 1
        self.vocabulary = self.tokenizer.get_vocab()
        self.restricted = restricted
        self.log_p = cache(self._log_p)
        self.logits = cache(self._logits)
        self.same_class = cache(self._same_class)

    def _log_p(self, position: int, hidden: frozenset[int]) -> float:
        logits = self.logits(hidden)[position].double()
        if self.restricted:
            same_class = self.same_class(self.ids[position], len(logits))
            logits = torch.where(torch.tensor(same_class), logits, -torch.inf)
        return float(logits.log_softmax(-1)[self.ids[position]])

    def _logits(self, hidden: frozenset[int]) -> torch.Tensor:
        """Return logits of all tokens at all positions, shape (n_tokens, n_vocabulary)."""
        ids = torch.tensor([self.ids])
        ids[0, list(hidden)] = self.tokenizer.mask_token_id
        with torch.inference_mode():
            logits: torch.Tensor = self.model(input_ids=ids).logits[0]
        return logits

    def _same_class(self, token: int, n: int) -> np.ndarray[Any, Any]:
        """Return a mask of the tokens in this token's class: at word boundaries, or not."""
        token_by_id = dict(enumerate(self.tokenizer.convert_ids_to_tokens(list(range(n)))))
        ids = [i for i in token_by_id if i not in self.tokenizer.all_special_ids]
        boundary = np.array([self._is_boundary(str(token_by_id[i])) for i in range(n)])
        allowed = np.isin(np.arange(n), ids)
        result: np.ndarray[Any, Any] = allowed & (boundary == boundary[token])
        return result

    def _is_boundary(self, token: str) -> bool:
        if "the</w>" in self.vocabulary:
            return token.endswith("</w>") and token not in {m + "</w>" for m in END_MARKS}
        if token in END_MARKS:
            return True
        if any(t.startswith("##") for t in self.vocabulary):
            return not token.startswith("##")
        return token.startswith(("Ġ", "▁"))

    def chain(self) -> float:
        """Return the mean over all orders of the words and of the tokens of each word."""
        return float(np.mean(self._score_orders(np.mean)))

    def mixture(self) -> float:
        """Return the log of the mean probability over the same orders."""
        return float(_log_mean(self._score_orders(_log_mean)))

    def _score_orders(self, mean: Callable[[list[float]], float]) -> list[float]:
        """Return the log-probability of every order of words, averaged over orders of tokens."""
        totals = []
        for order in permutations(range(len(self.words))):
            later = set(order)
            total = 0.0
            for word in order:
                later.remove(word)
                outside = {position for w in later for position in self.words[w]}
                total += self._score_word(self.words[word], outside, mean)
            totals.append(total)
        return totals

    def _score_word(
        self, positions: list[int], outside: set[int], mean: Callable[[list[float]], float]
    ) -> float:
        orders = permutations(positions)
        totals = [
            sum(self.log_p(t, frozenset(outside | set(order[i:]))) for i, t in enumerate(order))
            for order in orders
        ]
        return float(mean(totals))

    def pll(self, rule: str) -> float:
        """Return the score of Kauf & Ivanova (2023), equations 1 to 4."""
        total = 0.0
        for word in [*self.words, self.end]:
            for i, token in enumerate(word):
                hidden = {
                    "pll-original": {token},
                    "pll-word-l2r": set(word[i:]),
                    "pll-whole-word": set(word),
                    "pll-sentence-l2r": set(range(token, self.last + 1)),
                }[rule]
                total += self.log_p(token, frozenset(hidden))
        return total


def _log_mean(log_probs: list[float]) -> float:
    return float(np.log(np.mean(np.exp(log_probs))))
