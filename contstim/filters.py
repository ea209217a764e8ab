"""Rules for sentences of a corpus that may serve as natural sentences, combined freely."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.sentence import repeats

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from contstim.sentence import Sentence
    from contstim.vocabulary import Vocabulary


class SentenceRule(ABC):
    """A rule that leaves sentences out; `reason` completes "left out because …"."""

    reason: str

    @abstractmethod
    def rejects(self, sentence: Sentence) -> bool:
        """True if the sentence is to be left out."""

    def fresh(self) -> SentenceRule:
        """The rule as it was before it was asked; others than itself where it remembers."""
        return self


@dataclass(frozen=True)
class WordCount(SentenceRule):
    """This many words, or from this many to `most`.

    Raises:
        InputError: fewer than one word is asked for, or the most are fewer than the fewest.
    """

    words: int
    most: int | None = None

    def __post_init__(self) -> None:
        if self.words < 1:
            raise InputError(f"Sentences have 1 word or more, not {self.words}.")
        if self.most is not None and self.most < self.words:
            raise InputError(f"No sentence has {self.words} words or more and at most {self.most}.")

    @property
    def reason(self) -> str:  # type: ignore[override]
        """In words."""
        if self.most in (None, self.words):
            return f"it does not have exactly {self.words} words"
        return f"it does not have {self.words} to {self.most} words"

    def rejects(self, sentence: Sentence) -> bool:
        """See `SentenceRule.rejects`."""
        return not self.words <= len(sentence) <= (self.most or self.words)


@dataclass(frozen=True)
class DistinctWords(SentenceRule):
    """No word twice, compared in lower case, other than those that may repeat."""

    repeatable: frozenset[str] = frozenset()
    reason = "a word occurs twice"

    def rejects(self, sentence: Sentence) -> bool:
        """See `SentenceRule.rejects`."""
        return repeats(sentence.words, self.repeatable)


@dataclass(frozen=True)
class InVocabulary(SentenceRule):
    """Every word stands where the vocabulary lets it stand."""

    vocabulary: Vocabulary
    reason = "a word is not in the vocabulary"

    def rejects(self, sentence: Sentence) -> bool:
        """See `SentenceRule.rejects`."""
        return bool(self.vocabulary.missing(sentence))


@dataclass(frozen=True)
class Without(SentenceRule):
    """None of these words or phrases, compared in lower case and as whole words."""

    phrases: tuple[str, ...]
    reason = "it holds an excluded word or phrase"

    def rejects(self, sentence: Sentence) -> bool:
        """See `SentenceRule.rejects`."""
        # Spaces on both sides, so that "art" is not found in "start" or "artist"
        text = f" {sentence.bare.lower()} "
        return any(f" {' '.join(phrase.lower().split())} " in text for phrase in self.phrases)


class NotIn(SentenceRule):
    """Not a sentence of another text, such as a model's training text; end marks do not count."""

    reason = "it stands in the excluded text"

    def __init__(self, sentences: Iterable[Sentence]) -> None:
        self._seen = {sentence.words for sentence in sentences}

    def rejects(self, sentence: Sentence) -> bool:
        """See `SentenceRule.rejects`."""
        return sentence.words in self._seen


def filter_sentences(
    sentences: Iterable[Sentence],
    rules: Sequence[SentenceRule],
    left_out: Counter[str] | None = None,
) -> Iterator[Sentence]:
    """The distinct sentences that no rule rejects, in order of first occurrence.

    Args:
        sentences: any stream.
        rules: asked in order; the first that rejects gives the reason.
        left_out: counts sentences by reason, where given.
    """
    counts: Counter[str] = Counter() if left_out is None else left_out
    seen: set[tuple[str, ...]] = set()
    for sentence in sentences:
        reason = next((rule.reason for rule in rules if rule.rejects(sentence)), None)
        # Only sentences that stay are remembered: what a rule rejects does not count as earlier
        if reason is None and sentence.words in seen:
            reason = "it occurred before"
        if reason is None:
            seen.add(sentence.words)
            yield sentence
        else:
            counts[reason] += 1


def gains_of_loosening(
    sentences: Iterable[Sentence],
    rules: Sequence[SentenceRule],
    loosenings: Sequence[tuple[int, SentenceRule | None]],
) -> list[int]:
    """Numbers of distinct sentences gained by loosening a single rule, the others as they are.

    Args:
        sentences: the same as were filtered.
        rules: that they were filtered by.
        loosenings: which rule, and what would be asked in its place; None: nothing.
    """
    # Rules that remember what they were asked, such as near-duplicates, are asked again for every
    # loosening; for the others it suffices to know which single one rejects a sentence.
    remember = [place for place, rule in enumerate(rules) if rule.fresh() is not rule]
    instead: dict[int, list[SentenceRule | None]] = {}
    for place, rule in loosenings:
        instead.setdefault(place, []).append(rule)
    candidates: list[tuple[Sentence, int | None]] = []
    for sentence in sentences:
        asked = (i for i, r in enumerate(rules) if i not in remember and r.rejects(sentence))
        broken = list(islice(asked, 2))  # the second tells that loosening one does not help
        if not broken:
            candidates.append((sentence, None))
        elif len(broken) == 1 and any(
            rule is None or not rule.rejects(sentence) for rule in instead.get(broken[0], ())
        ):
            candidates.append((sentence, broken[0]))

    def stay(place: int | None, instead_of: SentenceRule | None) -> int:
        asked = [rules[i].fresh() for i in remember if i != place]
        if place in remember and instead_of is not None:
            asked.append(instead_of.fresh())
        passing = (
            sentence
            for sentence, broken in candidates
            if broken is None
            or (broken == place and (instead_of is None or not instead_of.rejects(sentence)))
        )
        return sum(1 for _ in filter_sentences(passing, asked))

    before = stay(None, None)
    return [stay(place, rule) - before for place, rule in loosenings]
