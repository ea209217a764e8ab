"""Classes of tokens at word boundaries, and probabilities normalised within a class.

A sub-word model distributes its probability over two classes of tokens: tokens at word boundaries,
and tokens within words. If the number of tokens of each word is fixed, only one of these classes
can occur at each position. So the probability of the observed token is renormalised over its class
(Golan et al., 2023, Methods). Then the probabilities add up to 1 over all sentences whose words
have these numbers of tokens.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from contstim.errors import ModelError
from contstim.models.batching import entropy, log_softmax32, to_device
from contstim.models.words import token_texts
from contstim.words.sentence import is_end

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contstim.files.arrays import BoolArray, FloatArray, IntArray

CLASSES_VERSION = 2
"""Version of the definition of classes; part of the fingerprints of rules that use classes."""

NO_CLASS = -1
WITHIN = 0
BOUNDARY = 1

_CONTINUATION_MARK = "##"
_ENDING_MARK = "</w>"
_BLANKS = ("\n", "\t", "\r", "Ċ", "ĉ", "č")  # the last three are \n, \t and \r in byte-level BPE


def token_classes(tokenizer: Any, n_tokens: int) -> IntArray:
    """Return the class of each token, (n_tokens,): `BOUNDARY`, `WITHIN` or `NO_CLASS`.

    End marks are tokens that end a sentence, for example the full stops of all scripts. Some
    tokenizers mark where words begin (WordPiece, byte-level BPE, SentencePiece). Then `BOUNDARY`
    contains the word-initial tokens and the end marks. Other tokenizers mark where words end
    (`</w>`). Then `BOUNDARY` contains the word-final tokens, but not the end marks. Special tokens,
    including the unknown token, have no class. Outputs of the network that correspond to no token
    in the vocabulary have no class either.

    The most frequent mark in the vocabulary, `##`, `Ġ`, `▁` or `</w>`, determines the kind of
    tokenizer. In the vocabulary `[CLS] dog ##s sleep .`, `##` marks continuations. So `dog`,
    `sleep` and `.` are `BOUNDARY`, `##s` is `WITHIN`, and `[CLS]` has no class.

    Raises:
        ModelError: if no token has a mark, so that word boundaries are unknown.
    """
    vocabulary = _trained_tokens(tokenizer, n_tokens)
    mark, marked = _word_mark(vocabulary)
    if not marked:
        raise ModelError(
            "The tokenizer marks neither beginnings nor ends of words (##, Ġ, ▁, </w>). Use "
            "another rule: log-likelihood, chain-unrestricted or a pseudo-log-likelihood."
        )
    texts = token_texts(tokenizer)
    ends = {
        id_
        for token, id_ in vocabulary.items()
        if is_end(texts.get(token, token).removesuffix(_ENDING_MARK))
    }
    # In WordPiece, tokens without a mark begin words. Other marks show where words begin or end
    if mark == _CONTINUATION_MARK:
        boundary = set(vocabulary.values()) - marked | ends
    else:
        boundary = marked - ends if mark == _ENDING_MARK else marked | ends
    # Later assignments overwrite earlier ones
    classes = np.full(n_tokens, NO_CLASS, np.int64)
    classes[list(vocabulary.values())] = WITHIN
    classes[list(boundary)] = BOUNDARY
    added = tokenizer.added_tokens_decoder.items()
    special = {*tokenizer.all_special_ids, *(id_ for id_, token in added if token.special)}
    classes[[i for i in special if i < n_tokens]] = NO_CLASS
    return classes


def word_completing(tokenizer: Any, n_tokens: int) -> BoolArray:
    """Return a mask of the tokens that do not continue the word before them, (n_tokens,).

    These are word-initial tokens, end marks, white space and special tokens. Outputs that
    correspond to no token are also included. The tokenizer must mark where words begin.

    Raises:
        ModelError: if the tokenizer marks the ends of words, or has no marks.
    """
    vocabulary = _trained_tokens(tokenizer, n_tokens)
    mark, marked = _word_mark(vocabulary)
    if mark == _ENDING_MARK or not marked:
        ends = "where words end (</w>), so surprisals need no boundary correction"
        marks = ends if marked else "no beginnings of words (##, Ġ, ▁)"
        raise ModelError(f"The tokenizer marks {marks}. Remove `boundary_correction`.")
    completing: BoolArray = token_classes(tokenizer, n_tokens) != WITHIN
    completing[[i for token, i in vocabulary.items() if token.startswith(_BLANKS)]] = True
    return completing


def _trained_tokens(tokenizer: Any, n_tokens: int) -> dict[str, int]:
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    # The network has no outputs for tokens with an id of `n_tokens` or more
    return {token: i for token, i in vocabulary.items() if i < n_tokens}


def _word_mark(vocabulary: Mapping[str, int]) -> tuple[str, set[int]]:
    """Return the most frequent word mark, and the ids of tokens with this mark."""
    beginnings = (_CONTINUATION_MARK, "Ġ", "▁")
    marks = {mark: [t for t in vocabulary if t.startswith(mark)] for mark in beginnings}
    marks[_ENDING_MARK] = [t for t in vocabulary if t.endswith(_ENDING_MARK)]
    mark = max(marks, key=lambda m: len(marks[m]))
    return mark, {vocabulary[token] for token in marks[mark]}


class Normaliser:
    """Function from logits to log-probabilities, over the whole vocabulary or within classes.

    A token without a class, such as the unknown token, is normalised over the whole vocabulary.
    `classes` is the result of `token_classes`, or None to use the whole vocabulary.
    """

    def __init__(self, classes: IntArray | None, device: torch.device | str = "cpu") -> None:
        self.classes = classes
        # Number of logits to normalise at once. On a CPU, these logits fit into caches of 4 MB
        self._logits_at_once = 2**20 if torch.device(device).type == "cpu" else 2**28
        # Tokens of each class, and index of each token within its class
        self._members: dict[int, Tensor] = {}
        if classes is not None:
            self._index_in_class = np.arange(len(classes))
            for c in (WITHIN, BOUNDARY):
                members = np.flatnonzero(classes == c)
                self._index_in_class[members] = np.arange(len(members))
                self._members[c] = torch.from_numpy(members).to(device)

    def log_probs(
        self, logits: Tensor, rows: IntArray, tokens: IntArray, *, entropies: bool = False
    ) -> Tensor:
        """Return log p of tokens, (q,), nats; each token is normalised within its class.

        Values are computed in float32 or higher precision and returned as float64.

        Args:
            logits: k rows of logits over the vocabulary, (k, n_tokens).
            rows: for each of q tokens, the row of logits that predicts the token, (q,).
            tokens: ids of the tokens, (q,).
            entropies: whether to return also the entropy within the token's class, nats. The shape
                of the result is then (q, 2).
        """
        shape = (len(rows), 2) if entropies else (len(rows),)
        result = torch.empty(shape, dtype=torch.float64, device=logits.device)
        kind_of = np.full(len(rows), NO_CLASS) if self.classes is None else self.classes[tokens]
        on_device = partial(to_device, device=logits.device)
        step = max(1, self._logits_at_once // logits.shape[1])
        slice_of = rows // step
        for i in np.unique(slice_of).tolist():
            for kind in np.unique(kind_of[slice_of == i]).tolist():
                # A query is a pair of a row and a token. `queries` are those in this slice of the
                # rows whose tokens have this class. `used` are their rows, each once
                queries = np.flatnonzero((slice_of == i) & (kind_of == kind))
                used, index = np.unique(rows[queries], return_inverse=True)
                part, token = logits[i * step : (i + 1) * step], tokens[queries]
                if len(used) < len(part):
                    part = logits.index_select(0, on_device(used))
                if kind != NO_CLASS:
                    # `part[:, members]` would take four times as long
                    part = part.index_select(1, self._members[kind])
                    token = self._index_in_class[token]
                log_probs = log_softmax32(part)
                row = on_device(index)
                values = log_probs[row, on_device(token)].double()
                if entropies:
                    values = torch.stack([values, entropy(log_probs)[row]], dim=1)
                result[on_device(queries)] = values
        return result

    def log_softmax(self, logits: Tensor) -> Tensor:
        """Return log p of each token within its class, (..., n_tokens), in float32 or higher."""
        result = log_softmax32(logits)
        for members in self._members.values():
            result[..., members] = log_softmax32(logits.index_select(-1, members))
        return result

    def entropies(self, log_probs: FloatArray, tokens: Sequence[int]) -> FloatArray:
        """Return the entropy within the class of each token, (q,), nats.

        `log_probs` is a row of the result of `log_softmax`, (n_tokens,).
        """
        classes = np.full(len(log_probs), WITHIN) if self.classes is None else self.classes
        values = torch.from_numpy(log_probs)
        by_class = {c: float(entropy(values[classes == c])) for c in (WITHIN, BOUNDARY)}
        # nan for tokens without a class, because `log_softmax` does not normalise over all tokens
        return np.array([by_class.get(c, np.nan) for c in classes[tokens].tolist()])
