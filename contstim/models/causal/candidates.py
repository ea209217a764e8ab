"""The tokens of candidate words in a sentence, cut anew only where that cannot be avoided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from contstim.models.word_tokens import PlaceKind, WordsInPlaces, WordTokens, around
from contstim.models.words import words_are_independent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.models.words import Encoding
    from contstim.sentence import Sentence

    Tokens: TypeAlias = tuple[int, ...]


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
        self._in_places = WordsInPlaces(encode)

    def __call__(
        self, sentence: Sentence, position: int, words: Sequence[str], before: Tokens
    ) -> WordTokens:
        """The tokens of each word at that position, after the tokens before it.

        None at all where the word changes how the words before it are cut.

        Args:
            sentence: where the words would stand.
            position: 0-based.
            words: the candidates.
            before: the tokens of the words before the position.
        """
        if self.independent:
            return self._in_places(words, PlaceKind.of(sentence, position))
        rewritten = self._encode([sentence.replace(position, word) for word in words])
        pairs = [
            around(encoding, position) if encoding.ids[: len(before)] == before else ((), ())
            for encoding in rewritten
        ]
        return WordTokens(tuple(own for own, _ in pairs), tuple(rest for _, rest in pairs))

    def in_place(self, words: Sequence[str], *, initial: bool) -> WordTokens:
        """The tokens of each word at the start of a sentence, or inside one."""
        return self._in_places(words, PlaceKind(inner=not initial))
