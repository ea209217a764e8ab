"""Masked scoring written out word for word, one full forward pass for each set of hidden places."""

from collections.abc import Callable
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
import torch

from contstim.models.checkpoints import Checkpoint
from contstim.words.sentence import END_MARKS, Sentence


class Literal:
    """One sentence under a checkpoint; words found by tokenizing the text up to each word's end."""

    def __init__(self, checkpoint: Checkpoint, sentence: Sentence, *, restricted: bool) -> None:
        self.model, self.tokenizer = checkpoint.model, checkpoint.tokenizer
        self.ids = self.tokenizer(sentence.text)["input_ids"]
        special = self.tokenizer.get_special_tokens_mask(self.ids, already_has_special_tokens=True)
        body = [i for i, is_special in enumerate(special) if not is_special]
        self.words: list[list[int]] = []  # the places of each word's tokens
        for n in range(1, len(sentence) + 1):
            prefix = " ".join(sentence.words[:n])
            length = len(self.tokenizer(prefix, add_special_tokens=False)["input_ids"])
            done = sum(map(len, self.words))
            self.words.append(body[done:length])
        self.end = body[sum(map(len, self.words)) :]
        self.last = len(self.ids) - 1
        self.vocabulary = self.tokenizer.get_vocab()
        self.restricted = restricted
        self.log_p = cache(self._log_p)
        self.logits = cache(self._logits)
        self.like = cache(self._like)

    def _log_p(self, place: int, hidden: frozenset[int]) -> float:
        logits = self.logits(hidden)[place].double()
        if self.restricted:
            like = self.like(self.ids[place], len(logits))
            logits = torch.where(torch.tensor(like), logits, -torch.inf)
        return float(logits.log_softmax(-1)[self.ids[place]])

    def _logits(self, hidden: frozenset[int]) -> torch.Tensor:
        """Of every token of the vocabulary at every place, (n_tokens, n_vocabulary)."""
        ids = torch.tensor([self.ids])
        ids[0, list(hidden)] = self.tokenizer.mask_token_id
        with torch.inference_mode():
            logits: torch.Tensor = self.model(input_ids=ids).logits[0]
        return logits

    def _like(self, token: int, n: int) -> np.ndarray[Any, Any]:
        """Which tokens begin (or end) words if this one does, or which do not if it does not."""
        names = dict(enumerate(self.tokenizer.convert_ids_to_tokens(list(range(n)))))
        ids = [i for i in names if i not in self.tokenizer.all_special_ids]
        boundary = np.array([self._is_boundary(str(names[i])) for i in range(n)])
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
        """The mean over all orders of the words, and of the tokens of each word."""
        return float(np.mean(self._of_orders(np.mean)))

    def mixture(self) -> float:
        """The log of the mean probability over the same orders."""
        return float(_log_mean(self._of_orders(_log_mean)))

    def _of_orders(self, mean: Callable[[list[float]], float]) -> list[float]:
        """Log-probability of every order of the words; words are averaged over their tokens."""
        totals = []
        for order in permutations(range(len(self.words))):
            later = set(order)
            total = 0.0
            for word in order:
                later.remove(word)
                outside = {place for w in later for place in self.words[w]}
                total += self._word(self.words[word], outside, mean)
            totals.append(total)
        return totals

    def _word(
        self, places: list[int], outside: set[int], mean: Callable[[list[float]], float]
    ) -> float:
        orders = permutations(places)
        totals = [
            sum(self.log_p(t, frozenset(outside | set(order[i:]))) for i, t in enumerate(order))
            for order in orders
        ]
        return float(mean(totals))

    def pll(self, rule: str) -> float:
        """Kauf & Ivanova (2023), equations 1 to 4."""
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
