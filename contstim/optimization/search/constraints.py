"""Words allowed at a position: the words of the vocabulary that satisfy every constraint."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from contstim.models.caching import WORDS, SizedCache
from contstim.wording import grouped
from contstim.words.vocabulary import WordTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence, Set

    from contstim.files.arrays import BoolArray
    from contstim.optimization.search.objectives import ScoredSentence
    from contstim.words.frequencies import WordFrequencies
    from contstim.words.sentence import Sentence
    from contstim.words.tags import TagTable
    from contstim.words.vocabulary import Vocabulary

    Kind: TypeAlias = Callable[[str, str], str]
    Uses: TypeAlias = Callable[[Sequence[str], Sequence[str], Kind], dict[int, str]]
    Words: TypeAlias = tuple[str, ...]
    Mask: TypeAlias = Callable[[Sentence, Sentence, int, Words], BoolArray]


_ARTICLES = ("a", "an")
_ROUNDING = 1e-9  # rounding error of sums of a few numbers


@dataclass(frozen=True)
class Constraint:
    """A rule about the words of a synthetic sentence.

    A search changes a natural sentence word by word. The current sentence is the result so far.

    Attributes:
        allowed: function that returns a mask of the words that may replace the current word,
            (n_words,). Its arguments are the natural sentence, the current sentence, a 0-based
            position, and the words.
        fixed: 0-based positions that never change.
        lasting: whether `allowed` depends only on the natural sentence, and never on the current
            sentence.
    """

    name: str
    allowed: Mask
    fixed: frozenset[int] = frozenset()
    lasting: bool = False


def no_repeats(repeatable: Iterable[str] = ()) -> Constraint:
    """Forbid new words that already occur at another position of the sentence.

    Words are compared in lower case. `repeatable` words are always allowed.
    """

    def find_allowed(_natural: Sentence, sentence: Sentence, index: int, words: Words) -> BoolArray:
        other_words = {word.lower() for i, word in enumerate(sentence.words) if i != index}
        return ~_mask_listed(words, other_words.difference(repeatable))

    return Constraint("no_repeats", find_allowed)


def fixed(positions: Iterable[int]) -> Constraint:
    """Keep the natural sentence's words at the given 0-based positions."""
    fixed_positions = frozenset(positions)
    return Constraint(
        "fixed",
        lambda _n, _s, i, words: np.full(len(words), i not in fixed_positions),
        fixed_positions,
        lasting=True,
    )


def only_words(listed: Iterable[str]) -> Constraint:
    """Allow only new words whose lower case is in a list."""
    chosen = frozenset(listed)
    return Constraint(
        "only_words", lambda _n, _s, _i, words: _mask_listed(words, chosen), lasting=True
    )


def without_words(listed: Iterable[str]) -> Constraint:
    """Forbid new words whose lower case is in a list."""
    excluded = frozenset(listed)
    return Constraint(
        "without_words", lambda _n, _s, _i, words: ~_mask_listed(words, excluded), lasting=True
    )


def same_length(margin: int = 0) -> Constraint:
    """Require as many characters as in the natural sentence, or at most `margin` more or fewer."""

    def find_allowed(natural: Sentence, sentence: Sentence, index: int, words: Words) -> BoolArray:
        # Count the characters of spaces and of all words except the word at `index`. Then add the
        # length of each new word
        n_characters = len(sentence.bare) - len(sentence.words[index])
        within: BoolArray = np.abs(_lengths(words) + (n_characters - len(natural.bare))) <= margin
        return within

    return Constraint("same_length", find_allowed)


def same_frequency(frequencies: WordFrequencies, margin: float) -> Constraint:
    """Require a mean word frequency (Zipf) within `margin` of the natural sentence's mean."""
    zipf = frequencies.zipf

    def find_allowed(natural: Sentence, sentence: Sentence, index: int, words: Words) -> BoolArray:
        # Compute the sum of frequencies without the word at `index`, minus the sum of all
        # frequencies in the natural sentence. Then add the frequency of each new word
        pairs = zip(sentence.words, natural.words, strict=True)
        difference = sum(zipf(new) - zipf(old) for new, old in pairs if new != old)
        differences = _zipfs(frequencies, words) + (difference - zipf(sentence.words[index]))
        within: BoolArray = np.abs(differences) <= margin * len(natural) + _ROUNDING
        return within

    return Constraint("same_frequency", find_allowed)


def max_changes(maximum: int) -> Constraint:
    """Allow at most `maximum` new words."""

    def find_allowed(natural: Sentence, sentence: Sentence, index: int, words: Words) -> BoolArray:
        # If the other positions already have `maximum` new words, only the natural word is allowed
        pairs = enumerate(zip(natural.words, sentence.words, strict=True))
        if sum(new != old for i, (old, new) in pairs if i != index) < maximum:
            return np.ones(len(words), np.bool_)
        return np.array([word == natural.words[index] for word in words], np.bool_)

    return Constraint("max_changes", find_allowed)


def capitals(vocabulary: Vocabulary) -> Constraint | None:
    """Require capitals for new words at the start of a sentence, and lower case inside it.

    The vocabulary has one list of words for the start of a sentence, and one for positions inside
    it. The rule applies to a word if one of these lists contains the word both with and without a
    capital. For example, the second list may contain `The` and `the`, because a text contains
    headings. All other words, such as names, are always allowed. Return None if the rule applies to
    no words, as in vocabularies made with `contstim.words.word_rules`.
    """
    inner, initial = set(vocabulary.inner), set(vocabulary.initial)
    not_inside = frozenset(
        word
        for word in inner
        if (word[0] != word[0].lower() and word[0].lower() + word[1:] in inner)
        or (word != word.lower() and word.lower() in inner)
    )
    # str.capitalize would turn `iPhone` into `Iphone`
    not_initial = frozenset(w for w in initial if w[0].upper() + w[1:] in initial - {w})

    def find_allowed(natural: Sentence, _sentence: Sentence, index: int, words: Words) -> BoolArray:
        misplaced = not_inside if index else not_initial
        return ~_members(words, misplaced - {natural.words[index]})

    return Constraint("capitals", find_allowed, lasting=True) if not_inside or not_initial else None


def same_tags(natural: Sentence, table: TagTable, uses: Uses | None = None) -> Constraint:
    """Require that a new word has the tag and the kind of the natural word at its position.

    A tag is a part of speech, and a kind is a finer class, such as transitive verbs (see
    `TagTable`). A word of the natural sentence that the table does not list cannot be replaced.

    The table has the main kind of each word, which is its most frequent kind. In the natural
    sentence, a word may have another kind than its main kind. For such words, the function `uses`
    returns a map, 0-based position → kind; see `contstim.english.words.verb_uses`.
    """
    tags = table.tags(natural)
    kinds = dict(enumerate(map(table.main_kind, natural.words, tags)))
    if uses is not None:
        kinds |= uses(natural.words, tags, table.main_kind)

    def find_allowed(_natural: Sentence, _current: Sentence, index: int, words: Words) -> BoolArray:
        fitting = table.fitting(kinds[index], tags[index], words, initial=index == 0).copy()
        fitting[_indices(words).get(natural.words[index], [])] = True
        return fitting

    return Constraint("same_tags", find_allowed, lasting=True)


def articles(article: Callable[[str], str]) -> Constraint:
    """Require that the English articles "a" and "an" match the sound of the next word.

    The function `article` returns the article for a word.
    """

    def find_allowed(_natural: Sentence, sentence: Sentence, index: int, words: Words) -> BoolArray:
        fits = np.ones(len(words), np.bool_)
        before = sentence.words[index - 1].lower() if index else ""
        if before in _ARTICLES:
            fits &= _have_an(article, words) == (before == "an")
        if index + 1 < len(sentence):
            wrong = {*_ARTICLES} - {article(sentence.words[index + 1])}
            fits &= ~_mask_listed(words, wrong)
        return fits

    return Constraint("articles", find_allowed)


@dataclass(frozen=True, eq=False)
class Position:
    """A position of a sentence, and the candidate words for it.

    Attributes:
        current: current sentence with its scores.
        index: 0-based position.
        words: candidate words, (n_words,).
        allowed: mask of the words that may replace the current word, (n_words,).
        visit: number of positions that the search has visited so far, including this position; 0
            outside of a search.
    """

    current: ScoredSentence
    index: int
    words: Words
    allowed: BoolArray
    visit: int

    @property
    def sentence(self) -> Sentence:
        """Current sentence."""
        return self.current.sentence

    @property
    def word(self) -> str:
        """Current word at the position."""
        return self.sentence.words[self.index]

    @property
    def column(self) -> int:
        """Index of the current word in `words`."""
        return _indices(self.words)[self.word]

    def replace(self, word: str) -> Sentence:
        """Return the current sentence with a new word at the position."""
        return self.sentence.replace(self.index, word)


@dataclass(frozen=True)
class Candidates:
    """Candidate words for the positions of a natural sentence."""

    vocabulary: Vocabulary
    natural: Sentence
    constraints: tuple[Constraint, ...] = ()

    @cached_property
    def positions(self) -> tuple[int, ...]:
        """0-based positions that are not fixed."""
        positions = range(len(self.natural))
        return tuple(p for p in positions if not any(p in c.fixed for c in self.constraints))

    @property
    def blocked(self) -> list[int]:
        """0-based positions that are not fixed, but where no word may replace the natural word."""
        return [p for p in self.positions if not self.allowed(self.natural, p).any()]

    def at(self, current: ScoredSentence, index: int, visit: int = 0) -> Position:
        """Return a position of a sentence, with the candidate words for this position."""
        words, allowed = self.vocabulary.at(index), self.allowed(current.sentence, index)
        return Position(current, index, words, allowed, visit)

    def allowed(self, sentence: Sentence, index: int) -> BoolArray:
        """Return a mask of the words that may replace the current word, (n_words,).

        The mask is False for the current word.
        """
        return self._mask_allowed(self.constraints, sentence, index, self.vocabulary.at(index))

    @cached_property
    def possible(self) -> dict[int, tuple[str, ...]]:
        """0-based position → new words that all lasting constraints allow.

        See `Constraint.lasting`.
        """
        lasting = [constraint for constraint in self.constraints if constraint.lasting]
        words = {index: self.vocabulary.at(index) for index in self.positions}
        return {
            index: WordTuple(
                compress(listed, self._mask_allowed(lasting, self.natural, index, listed))
            )
            for index, listed in words.items()
        }

    def allowed_now(self, sentence: Sentence, index: int) -> BoolArray:
        """Return a mask of those words of `possible[index]` that all constraints allow, (n_words,).

        The mask is False for the current word.
        """
        changing = [constraint for constraint in self.constraints if not constraint.lasting]
        return self._mask_allowed(changing, sentence, index, self.possible[index])

    def _mask_allowed(
        self, constraints: Iterable[Constraint], sentence: Sentence, index: int, words: Words
    ) -> BoolArray:
        allowed = np.ones(len(words), np.bool_)
        for constraint in constraints:
            allowed &= constraint.allowed(self.natural, sentence, index, words)
        allowed[_indices(words).get(sentence.words[index], [])] = False
        return allowed

    def broken(self, sentence: Sentence) -> list[str]:
        """Return a message for each broken constraint, and one for words outside the vocabulary."""
        missing = self.vocabulary.missing_words(sentence)
        faults = [f"words outside the vocabulary: {', '.join(missing)}"] if missing else []
        for index, (old, new) in enumerate(zip(self.natural.words, sentence.words, strict=True)):
            words = self.vocabulary.at(index)
            if new == old or new not in _indices(words):
                continue
            for constraint in self.constraints:
                allowed = constraint.allowed(self.natural, sentence, index, words)
                if not allowed[_indices(words)[new]]:
                    faults.append(f"{constraint.name} does not allow {new!r} as word {index + 1}")
        return faults


def _mask_listed(words: Words, chosen: Set[str]) -> BoolArray:
    """Return a mask of the words whose lower case is in `chosen`, (n_words,)."""
    indices = _indices_by_lower_case(words)
    listed = np.zeros(len(words), np.bool_)
    listed[[index for word in chosen for index in indices.get(word, ())]] = True
    return listed


# Each visit of a position needs these values for tens of thousands of words, so they are cached
_indices = SizedCache(lambda words: {word: i for i, word in enumerate(words)}, len, WORDS)
_indices_by_lower_case = SizedCache(
    lambda words: grouped((word.lower(), i) for i, word in enumerate(words)), len, WORDS
)
_lengths = SizedCache(lambda words: np.fromiter(map(len, words), np.int64, len(words)), len, WORDS)
_zipfs = SizedCache(
    lambda frequencies, words: np.array([*map(frequencies.zipf, words)], np.float64), len, WORDS
)
_have_an = SizedCache(
    lambda article, words: np.array([article(word) == "an" for word in words], np.bool_), len, WORDS
)
_members = SizedCache(
    lambda words, chosen: np.fromiter((w in chosen for w in words), np.bool_, len(words)),
    len,
    WORDS,
)
