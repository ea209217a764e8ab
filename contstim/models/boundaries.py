"""Tokens that may stand where a word begins (or ends), and probabilities among those alone.

A sub-word model spreads its probability over word beginnings and continuations alike. Where a
sentence must consist of given words, each token's probability is renormalised over the tokens that
could stand there without joining or splitting a word (Golan et al., 2023, Methods): the class to
which the observed token belongs. For one fixed number of tokens per word, the model then defines a
distribution over sentences of exactly these words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from contstim.errors import ModelError
from contstim.models.batching import log_softmax32, to_device
from contstim.models.words import token_texts
from contstim.words.sentence import is_end

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contstim.files.arrays import BoolArray, IntArray

CLASSES_VERSION = 2
"""Number of the definition of classes, a part of the fingerprints of rules that use them."""

NO_CLASS = -1
WITHIN = 0
BOUNDARY = 1

_CONTINUES = "##"
_BEGINS = ("Ġ", "▁")
_ENDS = "</w>"
_BLANKS = ("\n", "\t", "\r", "Ċ", "ĉ", "č")  # the latter as byte-level BPE writes them


def token_classes(tokenizer: Any, n_tokens: int) -> IntArray:
    """The class of each token, (n_tokens,): `BOUNDARY`, `WITHIN` or `NO_CLASS`.

    Where tokens mark the beginning of a word (WordPiece, byte-level BPE, SentencePiece), `BOUNDARY`
    holds the word-initial tokens and the end marks of all scripts, alone or with closing signs.
    Where they mark its end (`</w>`), it holds the word-final tokens except the end marks. Special
    tokens, the unknown token among them, and outputs that no token of the tokenizer uses belong to
    no class.

    The kind of tokenizer follows from its vocabulary: of `##`, `Ġ`, `▁` and `</w>`, the mark that
    most tokens have. Of the vocabulary `[CLS] dog ##s sleep .`, where `##` marks continuations,
    `dog`, `sleep` and `.` are `BOUNDARY`, `##s` is `WITHIN` and `[CLS]` is of no class.

    Args:
        tokenizer: a `transformers` tokenizer.
        n_tokens: number of outputs of the model, which may exceed the tokenizer's vocabulary.

    Raises:
        ModelError: no token is marked, so that words cannot be told apart.
    """
    vocabulary = _trained_tokens(tokenizer, n_tokens)
    mark, marked = _word_mark(vocabulary)
    if not marked:
        raise ModelError(
            "The tokenizer marks neither beginnings nor ends of words (##, Ġ, ▁, </w>). Use "
            "chain-unrestricted or a pseudo-log-likelihood."
        )
    texts = token_texts(tokenizer)
    ends = {
        id_
        for token, id_ in vocabulary.items()
        if is_end(texts.get(token, token).removesuffix(_ENDS))
    }
    # In WordPiece the unmarked tokens begin words; elsewhere the marked ones begin or end them
    if mark == _CONTINUES:
        boundary = set(vocabulary.values()) - marked | ends
    else:
        boundary = marked - ends if mark == _ENDS else marked | ends
    # In this order: outputs without a token keep no class, and special tokens lose theirs again
    classes = np.full(n_tokens, NO_CLASS, np.int64)
    classes[list(vocabulary.values())] = WITHIN
    classes[list(boundary)] = BOUNDARY
    added = tokenizer.added_tokens_decoder.items()
    special = {*tokenizer.all_special_ids, *(id_ for id_, token in added if token.special)}
    classes[[i for i in special if i < n_tokens]] = NO_CLASS
    return classes


def word_completing(tokenizer: Any, n_tokens: int) -> BoolArray:
    """Mask of the tokens that, coming next, say that the word before is complete, (n_tokens,).

    Those that begin a word, end marks, white space, special tokens, and outputs without a token:
    all but those that go on with the word. For tokenizers that mark where words begin.

    Args:
        tokenizer: a `transformers` tokenizer.
        n_tokens: number of outputs of the model.

    Raises:
        ModelError: the tokenizer marks where words end, or neither.
    """
    vocabulary = _trained_tokens(tokenizer, n_tokens)
    mark, _ = _word_mark(vocabulary)
    if mark == _ENDS:
        raise ModelError(
            "The tokenizer marks where words end (</w>): a word's surprisal needs no correction."
        )
    completing: BoolArray = token_classes(tokenizer, n_tokens) != WITHIN
    completing[[i for token, i in vocabulary.items() if token.startswith(_BLANKS)]] = True
    return completing


def _trained_tokens(tokenizer: Any, n_tokens: int) -> dict[str, int]:
    everything: dict[str, int] = tokenizer.get_vocab()
    return {token: i for token, i in everything.items() if i < n_tokens}  # some were never trained


def _word_mark(vocabulary: Mapping[str, int]) -> tuple[str, set[int]]:
    """The mark of words that most tokens have, and those tokens."""
    marks = {
        _CONTINUES: [t for t in vocabulary if t.startswith(_CONTINUES)],
        **{mark: [t for t in vocabulary if t.startswith(mark)] for mark in _BEGINS},
        _ENDS: [t for t in vocabulary if t.endswith(_ENDS)],
    }
    mark = max(marks, key=lambda m: len(marks[m]))
    return mark, {vocabulary[token] for token in marks[mark]}


class Normaliser:
    """Log-probabilities from logits, over the whole vocabulary or within classes of tokens.

    A token without a class, such as the unknown token, is normalised over the whole vocabulary.

    Args:
        classes: the class of each token, (n_tokens,); None for no restriction.
        device: where the logits are.
    """

    def __init__(self, classes: IntArray | None, device: torch.device | str = "cpu") -> None:
        self.classes = classes
        self._logits_at_once = _LOGITS_AT_ONCE[torch.device(device).type != "cpu"]
        # The tokens of each class, and the place of each token among those of its class
        self._members: dict[int, Tensor] = {}
        if classes is not None:
            self._place = np.arange(len(classes))
            for c in (WITHIN, BOUNDARY):
                members = np.flatnonzero(classes == c)
                self._place[members] = np.arange(len(members))
                # Kept on the device: made once for a model, used in every pass
                self._members[c] = torch.from_numpy(members).to(device)

    def log_probs(self, logits: Tensor, rows: IntArray, tokens: IntArray) -> Tensor:
        """Log p of each token (q,) in a row (q,) of the logits (k, n_tokens), within its class.

        In nats, of float32 or better, as float64.
        """
        result = torch.empty(len(rows), dtype=torch.float64, device=logits.device)
        kind_of = np.full(len(rows), NO_CLASS) if self.classes is None else self.classes[tokens]
        # A few rows at a time, whose log-probabilities stay in a processor's cache
        step = max(1, self._logits_at_once // logits.shape[1])
        slice_of = rows // step
        for number in np.unique(slice_of).tolist():
            for kind in np.unique(kind_of[slice_of == number]).tolist():
                # The questions about tokens of one class, the rows that they are about, and the
                # index among these rows
                questions = np.flatnonzero((slice_of == number) & (kind_of == kind))
                used, index = np.unique(rows[questions], return_inverse=True)
                part, token = logits[number * step : (number + 1) * step], tokens[questions]
                if len(used) < len(part):
                    part = logits.index_select(0, self._there(used, logits))
                if kind != NO_CLASS:
                    # Not `part[:, members]`, which takes four times as long
                    part, token = part.index_select(1, self._members[kind]), self._place[token]
                log_probs = log_softmax32(part)
                there = log_probs[self._there(index, logits), self._there(token, logits)]
                result[self._there(questions, logits)] = there.double()
        return result

    def log_softmax(self, logits: Tensor) -> Tensor:
        """Log p of every token within its class, (..., n_tokens), in float32 or better."""
        result = log_softmax32(logits)
        for members in self._members.values():
            result[..., members] = log_softmax32(logits.index_select(-1, members))
        return result

    @staticmethod
    def _there(indices: IntArray, logits: Tensor) -> Tensor:
        return to_device(indices.reshape(-1), logits.device)


# On a CPU, whose caches hold 4 MB rather than 200 MB, and on a GPU, which is faster with many
_LOGITS_AT_ONCE = (2**20, 2**28)
