"""Tokens that steer a network instead of standing for text: `[MASK]`, `</s>`, `<|endoftext|>`.

A tokenizer reads such a name in a sentence as the token itself, so that the network begins anew or
fills a gap. Sentences are checked twice: their text for the names, and their tokens, since a
tokenizer may accept a name in another case too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from contstim.errors import ModelError
from contstim.sentence import SPACE_SIGN, special_sign

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import BoolArray
    from contstim.sentence import Sentence


@dataclass(frozen=True)
class _Special:
    """The tokens of a tokenizer that may not occur in a sentence.

    Attributes:
        names: a pattern of their names.
        ids: their ids, without that of the unknown token, to which any text may lead.
        size: number of tokens of the tokenizer, which changes when tokens are added.
    """

    names: re.Pattern[str]
    ids: frozenset[int]
    size: int


# Weak: an entry goes with its tokenizer; the pattern of a large vocabulary takes a moment to make
_cache: WeakKeyDictionary[Any, _Special] = WeakKeyDictionary()


def refuse_special_tokens(tokenizer: Any, sentences: Sequence[Sentence]) -> None:
    """Refuse sentences that name a special token of the tokenizer.

    Raises:
        ModelError: a sentence does; names the token.
    """
    names = _special(tokenizer).names
    for sentence in sentences:
        match = names.search(sentence.text)
        if match is not None:
            raise _refusal(sentence, match[0])


def refuse_special_ids(
    tokenizer: Any, sentence: Sentence, ids: Sequence[int], added: Sequence[int] | BoolArray
) -> None:
    """Refuse a sentence whose text became a special token.

    Args:
        tokenizer: a `transformers` tokenizer.
        sentence: the sentence.
        ids: its tokens, (n_tokens,).
        added: which of them the tokenizer adds to every text, (n_tokens,).

    Raises:
        ModelError: a token is special; names it.
    """
    special = _special(tokenizer).ids
    if special.isdisjoint(ids):  # nearly always
        return
    for id_, is_added in zip(ids, added, strict=True):
        if id_ in special and not is_added:
            raise _refusal(sentence, str(tokenizer.convert_ids_to_tokens(int(id_))))


def readable(tokenizer: Any, words: Sequence[str]) -> BoolArray:
    """Mask of the words read as tokens, none of them unknown or special, (n_words,)."""
    special = _special(tokenizer)
    # Texts may lead to the unknown token, which is not special; but it tells no word apart
    never = {*special.ids, tokenizer.unk_token_id}
    rows = tokenizer(list(words), add_special_tokens=False)["input_ids"] if words else []
    is_readable = (
        len(row) > 0 and never.isdisjoint(row) and special.names.search(word) is None
        for word, row in zip(words, rows, strict=True)
    )
    return np.fromiter(is_readable, np.bool_, len(words))


def _refusal(sentence: Sentence, token: str) -> ModelError:
    return ModelError(
        f"{sentence.text[:60]!r} holds {token!r}, which this tokenizer reads as a special token, "
        f"not as a word. Leave the sentence out."
    )


def _special(tokenizer: Any) -> _Special:
    special = _cache.get(tokenizer)
    if special is None or special.size != len(tokenizer):
        special = _cache[tokenizer] = _find(tokenizer)
    return special


def _find(tokenizer: Any) -> _Special:
    """Every token that is called special, and added ones that look like it (`<tool_call>`).

    Other added tokens are words of a user.
    """
    names = {str(token) for token in tokenizer.all_special_tokens}
    ids = set(tokenizer.all_special_ids)
    for id_, token in tokenizer.added_tokens_decoder.items():
        if token.special or special_sign(token.content):
            names.add(token.content)
            ids.add(id_)
    if any(token[:1] == SPACE_SIGN and token[1:].isalpha() for token in tokenizer.get_vocab()):
        names.add(SPACE_SIGN)  # would be read as a space
    # the longest first, so that a message names the whole token
    stripped = sorted({name.strip() for name in names} - {""}, key=len, reverse=True)
    pattern = "|".join(map(re.escape, stripped)) or r"(?!)"  # which matches nothing
    return _Special(re.compile(pattern), frozenset(ids - {tokenizer.unk_token_id}), len(tokenizer))
