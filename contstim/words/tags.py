"""Parts of speech without a tagger: how often words have each tag, and how tags follow each other.

A table of words is counted once, in a text that a tagger or people have tagged. With it the tags of
a sentence are found by a hidden Markov model: of all rows of tags the likeliest, by how often each
tag follows another and how often a word has each tag.

    The      dog      sleeps
    AT0      NN1      VVZ 97 %, NN2 3 %        how often each word has which tag
       often    often, after NN1 NN2 seldom    how often the tags follow one another

The tags are those of the text. The embedded English has the basic tagset of the British National
Corpus (C5), which tells `is` from `sleeps`, and `speak` in "they speak" from "to speak".
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.files.tables import count, read_rows, text
from contstim.words.corpus import read_lines
from contstim.words.frequencies import WordFrequencies
from contstim.words.sentence import normalise_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from contstim.files.arrays import BoolArray
    from contstim.files.tables import Reader
    from contstim.words.sentence import Sentence

START, END = "^", "$"
"""In place of a tag before the first word and after the last."""

_OWN = 0.5  # share of a word's occurrences that have the tag of a word that it may replace
SELDOM = 20
"""Times that tags follow one another less often than by chance before they seldom do."""
_SENTENCES = 10_000  # whose tags are kept
_WORDS = 200_000  # whose shares are kept
_LISTED = 0.5  # share of words that a table of their language has
_UNSEEN = 0.1  # occurrences that any tag is taken to have after any other besides those counted


@dataclass(frozen=True)
class TaggedWord:
    """A word with one of its tags; fields are the columns of a table of tags.

    Attributes:
        word: names as they are written, all other words in lower case.
        tag: a part of speech, as finely divided as the text has it.
        count: how often the word has the tag.
        lemma: the word as dictionaries list it; empty where that is the word itself.
        kinds: what tells apart words of the tag that do not stand in each other's place, with
            spaces between them, the main one first: of nouns person, animal or time, of
            verbs what they often take; empty for any other.
    """

    word: str
    tag: str
    count: int
    lemma: str = ""
    kinds: str = ""


@dataclass(frozen=True)
class TagPair:
    """Two tags that follow one another; fields are the columns of a table of pairs.

    Attributes:
        tag: the first, or `START`.
        next: the second, or `END`.
        count: how often they do.
    """

    tag: str
    next: str
    count: int


def _word_or_tag(cell: object) -> str:
    if not text(cell).strip():
        raise ValueError("it is empty")
    return normalise_text(text(cell))


def _occurrences(cell: object) -> int:
    if not count(cell):
        raise ValueError("it is 0")
    return count(cell)


_READERS: dict[str, Reader] = {
    "str": (_word_or_tag, "word or tag"),
    "int": (_occurrences, "whole number from 1"),
    "lemma": (lambda cell: text(cell or ""), "lemma"),
    "kinds": (lambda cell: text(cell or ""), "text"),
}


@dataclass(frozen=True, eq=False)
class TagTable:
    """How often words have each tag in a text, and how often tags follow one another.

    Attributes:
        name: in messages.
        words: each word with each of its tags.
        pairs: of tags that follow one another; without them a word's tag is its most frequent one.
        names: of tags, in words; others are shown as they are.
    """

    name: str
    words: tuple[TaggedWord, ...]
    pairs: tuple[TagPair, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    _fitting: dict[tuple[str, str, tuple[str, ...], bool], BoolArray] = field(
        default_factory=dict, init=False, repr=False
    )
    _shares: dict[tuple[str, bool], Mapping[str, float]] = field(
        default_factory=dict, init=False, repr=False
    )

    def __repr__(self) -> str:
        return f"<TagTable {self.name}: {len(self._counts):,} words>"

    def shares(self, word: str, *, initial: bool = False) -> Mapping[str, float]:
        """Shares of a word's occurrences with each tag; empty for a word that is not listed.

        Args:
            word: as it is written.
            initial: whether it starts a sentence, where a capital does not tell a name.
        """
        key = word, initial
        if key in self._shares:
            return self._shares[key]
        counts = Counter(self._counts.get(word))
        if word != word.lower() and (initial or not counts):
            counts.update(self._counts.get(word.lower()))
        total = counts.total()
        shares = {tag: count / total for tag, count in counts.items()}
        if len(self._shares) < _WORDS:
            self._shares[key] = shares
        return shares

    def kinds(self, word: str, tag: str) -> list[str]:
        """The kinds of a word with a tag, the main one first; none for words like most."""
        return (self._kinds.get((word, tag)) or self._kinds.get((word.lower(), tag), "")).split()

    def main_kind(self, word: str, tag: str) -> str:
        """The main kind of a word with a tag; empty for words like most."""
        return next(iter(self.kinds(word, tag)), "")

    def fitting(
        self, kind: str, tag: str, words: tuple[str, ...], *, initial: bool = False
    ) -> BoolArray:
        """Words that may stand in place of one of a kind with a tag, (n_words,).

        They have the tag in half of their occurrences or more, and the kind among their kinds; in
        place of a word without a kind they have none.

        Args:
            kind: of the word that is replaced.
            tag: that it has.
            words: to choose from.
            initial: whether it starts a sentence.
        """
        key = kind, tag, words, initial
        if key not in self._fitting:
            fits = (
                self.shares(new, initial=initial).get(tag, 0.0) >= _OWN
                and kind in (self.kinds(new, tag) or [""])
                for new in words
            )
            self._fitting[key] = np.fromiter(fits, np.bool_, len(words))
        return self._fitting[key]

    def lists(self, word: str) -> bool:
        """True if the table has the word, whatever its capital."""
        return word in self._counts or word.lower() in self._counts

    def share_listed(self, words: Collection[str]) -> float:
        """Share of some words that the table has; 1 for no words."""
        return sum(map(self.lists, words)) / len(words) if words else 1.0

    def fits(self, words: Collection[str]) -> bool:
        """True if the table has half of some words or more: it is of their language, perhaps."""
        return self.share_listed(words) >= _LISTED

    def lemma(self, word: str) -> str:
        """The lemma of a word with its most frequent tag; an unlisted word, in lower case."""
        return self._lemmas.get(word) or self._lemmas.get(word.lower()) or word.lower()

    @cached_property
    def _tags_of(self) -> Callable[[Sentence], tuple[str, ...]]:
        return lru_cache(maxsize=_SENTENCES)(self._likeliest_row)

    @cached_property
    def _kinds(self) -> dict[tuple[str, str], str]:
        return {(each.word, each.tag): each.kinds for each in self.words if each.kinds}

    @cached_property
    def _lemmas(self) -> dict[str, str]:
        # The most frequent tag comes last, and stays
        rows = sorted(self.words, key=lambda each: each.count)
        return {each.word: (each.lemma or each.word).lower() for each in rows}

    def forms(self, lemma: str) -> frozenset[str]:
        """The words of a lemma, in lower case; a lemma that is not listed is its only word."""
        return self._forms.get(lemma) or frozenset({lemma})

    @cached_property
    def _forms(self) -> dict[str, frozenset[str]]:
        forms: defaultdict[str, set[str]] = defaultdict(set)
        for word in map(str.lower, self._lemmas):
            forms[self.lemma(word)].add(word)
        return {lemma: frozenset(words) for lemma, words in forms.items()}

    @cached_property
    def frequencies(self) -> WordFrequencies:
        """How often each word is in the text, whatever its tag."""
        counts = {word: sum(tags.values()) for word, tags in self._counts.items()}
        return WordFrequencies(counts, self.name)

    def tags(self, sentence: Sentence) -> tuple[str, ...]:
        """The likeliest tags of a sentence's words; empty for a word that is not listed.

        The row of tags of largest probability under a hidden Markov model of the first order
        (Viterbi 1967, IEEE Transactions on Information Theory 13, 260-269).
        """
        return self._tags_of(sentence)

    def prob_without(self, sentence: Sentence, kind: Callable[[str], bool]) -> float:
        """Probability, under the same model, that no word has a tag of some kind."""
        every = self._log_total(sentence, lambda _: True)
        return exp(self._log_total(sentence, lambda tag: not kind(tag)) - every)

    def _log_total(self, sentence: Sentence, allowed: Callable[[str], bool]) -> float:
        """Log-probability of all rows of allowed tags together, up to a constant."""
        totals = {START: 0.0}
        for index, word in enumerate(sentence.words):
            shares = self.shares(word, initial=index == 0) or {"": 1.0}
            totals = {
                tag: self._log_sum(totals, tag) + log(share) - self._log_share("", tag)
                for tag, share in shares.items()
                if allowed(tag)
            }
        return self._log_sum(totals, END)

    def _log_sum(self, totals: Mapping[str, float], tag: str) -> float:
        return float(np.logaddexp.reduce([p + self._log_share(t, tag) for t, p in totals.items()]))

    def tag_name(self, tag: str) -> str:
        """A tag in words, and those of a word that holds two, such as `it's`; else as it is."""
        parts = [self.names.get(part, part) for part in tag.split("+")]
        return " + ".join(parts) if self.names else tag

    def part_of_speech(self, tag: str) -> str:
        """A tag in words without its features: `noun` for `noun, singular` and `NOUN Case=Nom`.

        `not listed` for the empty tag of a word that is not.
        """
        parts = (self.names.get(part, part) for part in tag.split("+"))
        main = (part.partition("," if self.names else " ")[0] for part in parts)
        return " + ".join(main) or "not listed"

    def odd_sequences(self, sentence: Sentence) -> set[tuple[int, str]]:
        """Places, from 0, before which tags follow that seldom do, if ever, and both in words."""
        total, row = self._after.get("", Counter()).total(), [START, *self.tags(sentence), END]
        odd = set()
        for place, (tag, following) in enumerate(pairwise(row)):
            after = self._after.get(tag, Counter()) if tag else Counter()
            by_chance = after.total() * self._after.get("", after)[following] / max(total, 1)
            if max(after[following], 1) * SELDOM < by_chance:
                odd.add((place, f"{self.tag_name(tag)} before {self.tag_name(following)}"))
        return odd

    def _likeliest_row(self, sentence: Sentence) -> tuple[str, ...]:
        # Of each last tag: the log-probability of the likeliest row that ends in it, and the row
        rows: dict[str, tuple[float, tuple[str, ...]]] = {START: (0.0, ())}
        for index, word in enumerate(sentence.words):
            shares = self.shares(word, initial=index == 0) or {"": 1.0}
            rows = {tag: self._likeliest(rows, tag, share) for tag, share in shares.items()}
        return self._likeliest(rows, END, 1.0)[1][:-1]

    def _likeliest(
        self, rows: Mapping[str, tuple[float, tuple[str, ...]]], tag: str, share: float
    ) -> tuple[float, tuple[str, ...]]:
        """The likeliest row with one more tag, and its log-probability up to a constant."""
        log_prob, row = max(
            (p + self._log_share(last, tag), row) for last, (p, row) in rows.items()
        )
        # p(word | tag) is p(tag | word) / p(tag), times p(word), which is the same for every row
        return log_prob + log(share) - self._log_share("", tag), (*row, tag)

    def _log_share(self, last: str, tag: str) -> float:
        """Log-probability of a tag after another one; after none, among all tags."""
        after = self._after.get(last, Counter())
        return log((after[tag] + _UNSEEN) / (after.total() + _UNSEEN * self._n_tags))

    @cached_property
    def _counts(self) -> dict[str, dict[str, int]]:
        counts: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for each in self.words:
            counts[each.word][each.tag] = counts[each.word].get(each.tag, 0) + each.count
        return dict(counts)

    @cached_property
    def _n_tags(self) -> int:
        return len({each.tag for each in self.words})

    @cached_property
    def _after(self) -> dict[str, Counter[str]]:
        """How often each tag follows another; after none, how often there is each."""
        after: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for pair in self.pairs:
            after[pair.tag][pair.next] += pair.count
            after[""][pair.next] += pair.count
        return dict(after)


def read_tags(path: Path | str, pairs: Path | str | None = None) -> TagTable:
    """A table of tags from a treebank or from tables.

    Args:
        path: a treebank in the format of Universal Dependencies, `.conllu`, of which a tag is the
            part of speech with its features, such as `NOUN Case=Nom|Number=Sing`; or a table with
            the columns word, tag and count, and lemma and kinds, which may be left out.
        pairs: a table of the pairs of tags with the columns tag, next and count.

    Raises:
        InputError: a file cannot be read, or a line is not of its format.
    """
    path = Path(path)
    if path.name.removesuffix(".gz").endswith(".conllu"):
        return _of_treebank(path)
    rows = read_rows(path, TaggedWord, _READERS)
    followers = () if pairs is None else read_rows(pairs, TagPair, _READERS)
    return TagTable(str(path), rows, followers)


def _of_treebank(path: Path) -> TagTable:
    """Counts of a treebank; its words are in lower case but for proper names (PROPN)."""
    words: Counter[tuple[str, str, str]] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for tagged in _sentences_of(path):
        words.update(tagged)
        pairs.update(pairwise([START, *(tag for _, tag, _ in tagged), END]))
    return TagTable(
        str(path),
        tuple(TaggedWord(word, tag, n, lemma) for (word, tag, lemma), n in words.items()),
        tuple(TagPair(*pair, n) for pair, n in pairs.items()),
    )


def _sentences_of(path: Path) -> Iterator[list[tuple[str, str, str]]]:
    """The word, the tag and the lemma of each word of each sentence, without punctuation."""
    sentence: list[tuple[str, str, str]] = []
    for line in read_lines(path):
        if line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != 10:
            raise InputError(f"{path}: {line[:60]!r} has {len(cells)} columns; CoNLL-U has 10.")
        number, word, lemma, upos, _, features, *_ = cells
        if number == "1" and sentence:
            yield sentence
            sentence = []
        # 3-4 is a word that is written as one, and 3.1 one that is not written: their parts follow
        if number.isdigit() and upos != "PUNCT":
            tag = upos if features == "_" else f"{upos} {features}"
            named = word if upos == "PROPN" else word.lower()
            sentence.append((named, tag, "" if lemma == "_" else lemma))
    yield sentence
