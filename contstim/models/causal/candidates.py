"""The tokens of candidate words in the places where they would stand.

A word alone and a word in a sentence may be cut differently: at the start there is no space before
it, at the end the end mark may join its last token. So each kind of place has its own list, cut
from words that stand in such a place, and the lists are remembered.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from contstim.models.words import words_are_independent
from contstim.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.models.words import Encoding

    Tokens: TypeAlias = tuple[int, ...]

_NEIGHBOUR = "a"


class CandidateTokens:
    """Cuts candidate words as they would be cut in a sentence.

    Where no token of the vocabulary reaches across a space, a word's tokens depend on its kind of
    place only: first or not, last or not, and the end mark. Otherwise every sentence is cut anew.

    Args:
        tokenizer: a `transformers` tokenizer.
        encode: cuts whole sentences; a word's tokens depend on nothing else of the model.

    Attributes:
        independent: whether words are cut without regard to their neighbours.
    """

    def __init__(
        self, tokenizer: Any, encode: Callable[[Sequence[Sentence]], list[Encoding]]
    ) -> None:
        self._encode = encode
        self.independent = words_are_independent(tokenizer)
        self._remembered = lru_cache(maxsize=16)(self._cut)

    def __call__(
        self, sentence: Sentence, position: int, words: Sequence[str], before: Tokens
    ) -> list[Tokens]:
        """The tokens of each word at that position, after the tokens before it.

        None at all where the word changes how the words before it are cut.

        Args:
            sentence: where the words would stand.
            position: 0-based.
            words: the candidates.
            before: the tokens of the words before the position.
        """
        if self.independent:
            last = position == len(sentence) - 1
            return list(self._remembered(tuple(words), position > 0, last, sentence.end))
        rewritten = self._encode([sentence.replace(position, word) for word in words])
        return [
            word_tokens(encoding, position) if encoding.ids[: len(before)] == before else ()
            for encoding in rewritten
        ]

    def counts(self, words: Sequence[str], *, initial: bool) -> list[int]:
        """How many tokens each word has at the start of a sentence, or inside one."""
        return [len(tokens) for tokens in self._remembered(tuple(words), not initial, False, ".")]

    def _cut(self, words: tuple[str, ...], inner: bool, last: bool, end: str) -> list[Tokens]:
        before, after = (_NEIGHBOUR,) * inner, (_NEIGHBOUR,) * (not last)
        framed = [Sentence((*before, word, *after), end) for word in words]
        return [word_tokens(encoding, int(inner)) for encoding in self._encode(framed)]


def word_tokens(encoding: Encoding, position: int) -> Tokens:
    """The tokens of the word at a 0-based position; none where the tokenizer drops the word."""
    pairs = zip(encoding.ids, encoding.word_of, strict=True)
    return tuple(token for token, word in pairs if word == position)
