"""The tokens of candidate words in a sentence, from the cache where the tokenizer allows it.

With GPT-2's tokenizer, `dogs` after a space is the token `Ġdogs` in every sentence: no token
reaches across a space, so the tokens of `dogs` are looked up once for all inner places. With a
tokenizer that has a token `big dogs`, the sentence `The big ? bark.` is cut with each word in
place; a word that changes the tokens of `The big`, as `dogs` does, has no tokens after them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from contstim.models.word_tokens import PlaceKind, WordsInPlaces, WordTokens, word_and_rest
from contstim.models.words import words_are_independent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.models.words import Encoding
    from contstim.sentence import Sentence

    Tokens: TypeAlias = tuple[int, ...]


class CandidateTokens:
    """Cuts candidate words as they would be cut in a sentence.

    If no token of the vocabulary reaches across a space, a word's tokens depend on its kind of
    place only: first or not, last or not, and the end mark. If some token does, every sentence is
    cut with each word in place.

    Args:
        tokenizer: a `transformers` tokenizer.
        encode: cuts whole sentences into tokens.

    Attributes:
        independent: whether the tokens of a word depend on its kind of place only.
    """

    def __init__(
        self, tokenizer: Any, encode: Callable[[Sequence[Sentence]], list[Encoding]]
    ) -> None:
        self._encode = encode
        self.independent = words_are_independent(tokenizer)
        self._in_places = WordsInPlaces(encode)

    def __call__(
        self, sentence: Sentence, position: int, words: Sequence[str], before: Tokens
    ) -> WordTokens:
        """The tokens of each word at that position.

        A word that changes the tokens before it has no tokens here.

        Args:
            sentence: the sentence in which a word is replaced.
            position: 0-based.
            words: the candidates.
            before: the tokens of the words before the position.
        """
        if self.independent:
            return self._in_places(words, PlaceKind.of(sentence, position))
        # a word whose neighbours before it keep their tokens has its own
        rewritten = self._encode([sentence.replace(position, word) for word in words])
        pairs = [
            word_and_rest(encoding, position) if encoding.ids[: len(before)] == before else ((), ())
            for encoding in rewritten
        ]
        return WordTokens(tuple(tokens for tokens, _ in pairs), tuple(rest for _, rest in pairs))

    def in_place(self, words: Sequence[str], *, initial: bool) -> WordTokens:
        """The tokens of each word at the start of a sentence, or inside one."""
        return self._in_places(words, PlaceKind(inner=not initial))
