"""Words that may stand at a position: those of the vocabulary that every constraint allows."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from contstim.models.caching import WORDS, SizedCache
from contstim.words.vocabulary import WordTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence, Set

    from contstim.files.arrays import BoolArray, IntArray
    from contstim.optimization.search.objectives import ScoredSentence
    from contstim.words.frequencies import WordFrequencies
    from contstim.words.sentence import Sentence
    from contstim.words.tags import TagTable
    from contstim.words.vocabulary import Vocabulary

    Kind: TypeAlias = Callable[[str, str], str]
    Uses: TypeAlias = Callable[[Sequence[str], Sequence[str], Kind], dict[int, str]]
    Mask: TypeAlias = Callable[[Sentence, Sentence, int, tuple[str, ...]], BoolArray]


_ARTICLES = ("a", "an")
_ROUNDING = 1e-9  # of sums of a few numbers


@dataclass(frozen=True)
class Constraint:
    """A rule about the words of a sentence that is made from a natural one; they combine freely.

    Attributes:
        name: in messages.
        allowed: given the natural sentence, the sentence as it stands, a 0-based position and
            words, which of these may replace the word that stands there, (n_words,).
        fixed: 0-based positions that are never to change.
        lasting: whether it allows the same words however the sentence stands.
    """

    name: str
    allowed: Mask
    fixed: frozenset[int] = frozenset()
    lasting: bool = False


def no_repeats(repeatable: Iterable[str] = ()) -> Constraint:
    """No word occurs twice, compared in lower case, save those listed and those of the natural one.

    Args:
        repeatable: words that may occur twice, in lower case.
    """

    def allowed(
        _natural: Sentence, sentence: Sentence, position: int, words: tuple[str, ...]
    ) -> BoolArray:
        others = {word.lower() for i, word in enumerate(sentence.words) if i != position}
        return ~_listed(words, others.difference(repeatable))

    return Constraint("no_repeats", allowed)


def fixed(positions: Iterable[int]) -> Constraint:
    """Some 0-based positions keep the natural sentence's words."""
    some = frozenset(positions)
    return Constraint(
        "fixed", lambda _n, _s, i, words: np.full(len(words), i not in some), some, lasting=True
    )


def only_words(listed: Iterable[str]) -> Constraint:
    """New words come from a list, in lower case, with which they are compared in lower case."""
    some = frozenset(listed)
    return Constraint("only_words", lambda _n, _s, _i, words: _listed(words, some), lasting=True)


def without_words(listed: Iterable[str]) -> Constraint:
    """New words are none of a list, in lower case, with which they are compared in lower case."""
    some = frozenset(listed)
    return Constraint(
        "without_words", lambda _n, _s, _i, words: ~_listed(words, some), lasting=True
    )


def same_length(margin: int = 0) -> Constraint:
    """About as many characters as the natural sentence, at most `margin` more or fewer."""

    def allowed(
        natural: Sentence, sentence: Sentence, position: int, words: tuple[str, ...]
    ) -> BoolArray:
        # Characters of the sentence without the word, spaces included, and then with each word.
        others = len(sentence.bare) - len(sentence.words[position])
        within: BoolArray = np.abs(_lengths(words) + (others - len(natural.bare))) <= margin
        return within

    return Constraint("same_length", allowed)


def same_frequency(frequencies: WordFrequencies, margin: float) -> Constraint:
    """About the natural sentence's mean frequency of words, at most `margin` (Zipf) off."""
    zipf = frequencies.zipf
    zipfs_of = SizedCache(
        lambda words: np.fromiter(map(zipf, words), np.float64, len(words)), len, WORDS
    )

    def allowed(
        natural: Sentence, sentence: Sentence, position: int, words: tuple[str, ...]
    ) -> BoolArray:
        # Of the sentence without the word, less the natural one, and then with each word
        pairs = zip(sentence.words, natural.words, strict=True)
        others = sum(zipf(new) - zipf(old) for new, old in pairs if new != old)
        without = others - zipf(sentence.words[position])
        within: BoolArray = np.abs(zipfs_of(words) + without) <= margin * len(natural) + _ROUNDING
        return within

    return Constraint("same_frequency", allowed)


def max_changes(most: int) -> Constraint:
    """At most so many words differ from the natural sentence's, whose own may always come back."""

    def allowed(
        natural: Sentence, sentence: Sentence, position: int, words: tuple[str, ...]
    ) -> BoolArray:
        # Words that are new at other positions; if they use up what is allowed, this one may only
        # become the natural sentence's again.
        pairs = enumerate(zip(natural.words, sentence.words, strict=True))
        if sum(new != old for i, (old, new) in pairs if i != position) < most:
            return np.ones(len(words), np.bool_)
        return np.array([word == natural.words[position] for word in words], np.bool_)

    return Constraint("max_changes", allowed)


def capitals(vocabulary: Vocabulary) -> Constraint | None:
    """New words are capitalised only at the start of a sentence, and small only inside it.

    Names are capitalised anywhere: they are the capitalised words of the vocabulary that stand
    nowhere in it in small letters. The natural sentence's words stay as they are. A list that was
    made by the rules for words has no word in both cases: None. One of every word of a text holds
    `The` beside `the` for words inside sentences, from headings and from quotations.
    """
    inner, initial = set(vocabulary.inner), set(vocabulary.initial)
    not_inside = frozenset(
        word
        for word in inner
        if (word[0] != word[0].lower() and word[0].lower() + word[1:] in inner)
        or (word != word.lower() and word.lower() in inner)
    )
    # Not str.capitalize, which writes `iPhone` as `Iphone`
    small = frozenset(w for w in initial if w[0].upper() + w[1:] in initial - {w})

    def allowed(
        natural: Sentence, _sentence: Sentence, position: int, words: tuple[str, ...]
    ) -> BoolArray:
        misplaced = not_inside if position else small
        return ~_members(words, misplaced - {natural.words[position]})

    return Constraint("capitals", allowed, lasting=True) if not_inside or small else None


def same_tags(natural: Sentence, table: TagTable, uses: Uses | None = None) -> Constraint:
    """New words have the tag and a kind of the word that they replace; see `TagTable.fitting`.

    A word that the table does not list stays, as does one that no other may replace. The natural
    sentence's words may come back.

    Args:
        natural: the sentence, which is tagged as it stands.
        table: how often words have which tag.
        uses: the kinds that words at 0-based positions have in the sentence, in place of their main
            ones; see `contstim.english.frames.verb_uses`.
    """
    tags = table.tags(natural)
    kinds = dict(enumerate(map(table.main_kind, natural.words, tags)))
    if uses is not None:
        kinds |= uses(natural.words, tags, table.main_kind)

    def allowed(
        _natural: Sentence, _sentence: Sentence, position: int, words: tuple[str, ...]
    ) -> BoolArray:
        old = natural.words[position]
        fitting = table.fitting(kinds[position], tags[position], words, initial=position == 0)
        return fitting | _members(words, frozenset({old}))

    return Constraint("same_tags", allowed, lasting=True)


def articles(article: Callable[[str], str]) -> Constraint:
    """The English articles "a" and "an" stand before words of the right sound.

    Args:
        article: the one of the two that stands before a word.
    """
    articles_of = SizedCache(
        lambda words: np.array([article(word) == "an" for word in words], np.bool_), len, WORDS
    )

    def allowed(
        _natural: Sentence, sentence: Sentence, position: int, words: tuple[str, ...]
    ) -> BoolArray:
        fits = np.ones(len(words), np.bool_)
        if position and sentence.words[position - 1].lower() in _ARTICLES:
            before = sentence.words[position - 1].lower()
            fits &= articles_of(words) == (before == "an")
        if position + 1 < len(sentence):
            wrong = {*_ARTICLES} - {article(sentence.words[position + 1])}
            fits &= ~_listed(words, wrong)
        return fits

    return Constraint("articles", allowed)


@dataclass(frozen=True, eq=False)
class Position:
    """A position of a sentence where a better word is looked for, and the words for it.

    Attributes:
        current: the sentence as it stands.
        index: 0-based.
        words: all words of the vocabulary for the position.
        allowed: which of them may replace the one that stands there, (n_words,).
        visit: the number of the climb's visit, from 1; 0 outside of visits.
    """

    current: ScoredSentence
    index: int
    words: tuple[str, ...]
    allowed: BoolArray
    visit: int

    @property
    def sentence(self) -> Sentence:
        """The sentence as it stands."""
        return self.current.sentence

    @property
    def word(self) -> str:
        """The word that stands there."""
        return self.sentence.words[self.index]

    @property
    def column(self) -> int:
        """The index among `words` of the word that stands there."""
        return _places(self.words)[self.word]

    def replace(self, word: str) -> Sentence:
        """The sentence with another word there."""
        return self.sentence.replace(self.index, word)


@dataclass(frozen=True)
class Candidates:
    """Words for the positions of sentences that are made from a natural one.

    Attributes:
        vocabulary: all words, by where they may stand.
        natural: the sentence that the search started from.
        constraints: what new words must keep.
    """

    vocabulary: Vocabulary
    natural: Sentence
    constraints: tuple[Constraint, ...] = ()

    @cached_property
    def positions(self) -> tuple[int, ...]:
        """The 0-based positions that are not fixed."""
        every = range(len(self.natural))
        return tuple(p for p in every if not any(p in c.fixed for c in self.constraints))

    @property
    def blocked(self) -> list[int]:
        """The 0-based positions that are not fixed and where no other word may stand at first."""
        return [p for p in self.positions if not self.allowed(self.natural, p).any()]

    def at(self, current: ScoredSentence, index: int, visit: int = 0) -> Position:
        """A position of a sentence, and the words for it."""
        words, allowed = self.vocabulary.at(index), self.allowed(current.sentence, index)
        return Position(current, index, words, allowed, visit)

    def allowed(self, sentence: Sentence, index: int) -> BoolArray:
        """Mask of the vocabulary's words that may replace that at a 0-based position, (n_words,).

        The word itself is none of them.
        """
        return self._allowed(self.constraints, sentence, index, self.vocabulary.at(index))

    @cached_property
    def possible(self) -> dict[int, tuple[str, ...]]:
        """By 0-based position, the new words that lasting constraints allow there."""
        lasting = [constraint for constraint in self.constraints if constraint.lasting]
        words = {index: self.vocabulary.at(index) for index in self.positions}
        return {
            index: WordTuple(compress(every, self._allowed(lasting, self.natural, index, every)))
            for index, every in words.items()
        }

    def allowed_now(self, sentence: Sentence, index: int) -> BoolArray:
        """Mask of the possible words that may replace the natural one at a position, (n_words,)."""
        others = [constraint for constraint in self.constraints if not constraint.lasting]
        return self._allowed(others, sentence, index, self.possible[index])

    def _allowed(
        self,
        constraints: Iterable[Constraint],
        sentence: Sentence,
        index: int,
        words: tuple[str, ...],
    ) -> BoolArray:
        allowed = np.ones(len(words), np.bool_)
        for constraint in constraints:
            allowed &= constraint.allowed(self.natural, sentence, index, words)
        allowed[_places(words).get(sentence.words[index], [])] = False
        return allowed

    def broken(self, sentence: Sentence) -> list[str]:
        """Faults of a finished sentence, vocabulary included; empty if there are none."""
        missing = self.vocabulary.missing(sentence)
        faults = [f"words outside the vocabulary: {', '.join(missing)}"] if missing else []
        for index, (old, new) in enumerate(zip(self.natural.words, sentence.words, strict=True)):
            words = self.vocabulary.at(index)
            if new == old or new not in _places(words):
                continue
            for constraint in self.constraints:
                allowed = constraint.allowed(self.natural, sentence, index, words)
                if not allowed[_places(words)[new]]:
                    faults.append(f"{constraint.name} does not allow {new!r} as word {index + 1}")
        return faults


def _listed(words: tuple[str, ...], chosen: Set[str]) -> BoolArray:
    """Which words are among some, in lower case, (n_words,)."""
    places = _by_lower_case(words)
    listed = np.zeros(len(words), np.bool_)
    for word in chosen:
        for index in places.get(word, ()):  # mostly one or none: quicker than indexing by a list
            listed[index] = True
    return listed


# A vocabulary's tens of thousands of words are asked about at every visit: computed once.


def _places_by_lower_case(words: tuple[str, ...]) -> dict[str, list[int]]:
    places: defaultdict[str, list[int]] = defaultdict(list)
    for index, word in enumerate(words):
        places[word.lower()].append(index)
    return dict(places)


def _find_places(words: tuple[str, ...]) -> dict[str, int]:
    return {word: index for index, word in enumerate(words)}


def _count_characters(words: tuple[str, ...]) -> IntArray:
    return np.fromiter(map(len, words), np.int64, len(words))


def _find_members(words: tuple[str, ...], chosen: frozenset[str]) -> BoolArray:
    return np.fromiter((word in chosen for word in words), np.bool_, len(words))


_places = SizedCache(_find_places, len, WORDS)
_by_lower_case = SizedCache(_places_by_lower_case, len, WORDS)
_lengths = SizedCache(_count_characters, len, WORDS)
_members = SizedCache(_find_members, len, WORDS)
