"""Words that are signs of models and not words of a language: `<s>`, `[MASK]`, `<|endoftext|>`.

A model that met one in a sentence would obey it: begin anew, end, or hide a word. So none is ever
in a vocabulary, whatever the models, and models read them as plain text or refuse the sentence.
"""

from __future__ import annotations

import re

SPACE_SIGN = "▁"
"""How SentencePiece writes a space."""

# Of BERT, GLM, LLaMA and their kin; other bracketed words, such as [1], are text
_BRACKETED = "mask|gmask|smask|unk|pad|cls|sep|bos|eos|sos|eod|eop|eot|nl|inst|/inst"
_SPECIAL = re.compile(
    rf"<[^<>\s]+>|\[(?:{_BRACKETED})\d*\]|\[unused\d+\]|<\||\|>|{SPACE_SIGN}", re.IGNORECASE
)


def special_sign(text: str) -> str | None:
    """The first sign of a model in a text; None where it is plain.

    Signs are whatever stands between `<` and `>`, the names of special tokens in brackets, in
    whatever case, and the mark by which SentencePiece writes a space.
    """
    match = _SPECIAL.search(text)
    return None if match is None else match[0]
