"""Parts of speech of words, from counts in a tagged text.

A table of tags counts how often each word has each tag, and how often one tag follows another. From
these counts, a hidden Markov model computes the likeliest tag sequence of a sentence.

    The      dog      sleeps
    AT0      NN1      VVZ 97 %, NN2 3 %           frequency of each word's tags
    NN1 often follows AT0; VVZ often follows NN1, NN2 rarely      frequency of tag pairs

A table has the tagset of its text. The included English table uses the basic tagset of the British
National Corpus (C5).
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
from contstim.words.sentence import Sentence, normalise_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from contstim.files.arrays import BoolArray
    from contstim.files.tables import Reader

START, END = "^", "$"
"""Tags before the first word and after the last word."""

# A new word can replace another word if at least this share of the new word's occurrences have the
# tag of the replaced word
_MIN_TAG_SHARE = 0.5
SELDOM = 20
"""A tag pair is odd if its expected count, divided by its observed count, exceeds this value.

The expected count assumes that adjacent tags are independent.
"""
_MAX_CACHED_SENTENCES = 10_000
_MAX_CACHED_WORDS = 200_000
# If a table lists at least this share of a text's words, both are probably in the same language
_MIN_SHARE_LISTED = 0.5
_PSEUDOCOUNT = 0.1  # added to the count of every tag pair


@dataclass(frozen=True)
class TaggedWord:
    """A word with one of its tags; fields are the columns of a table of tags.

    Attributes:
        word: word; names are as written, all other words are in lower case.
        lemma: dictionary form; empty if it is the word itself.
        kinds: subclasses of the part of speech, separated by spaces, the main one first. A noun's
            kinds are person, animal or time. A verb's kinds are its frequent complements. Other
            words have no kinds. `TagTable.fitting` uses the kinds.
    """

    word: str
    tag: str
    count: int
    lemma: str = ""
    kinds: str = ""


def _word_or_tag(cell: object) -> str:
    if not text(cell).strip():
        raise ValueError("it is empty")
    return normalise_text(text(cell))


def _positive_count(cell: object) -> int:
    if not count(cell):
        raise ValueError("it is 0")
    return count(cell)


_READERS: dict[str, Reader] = {
    "str": (_word_or_tag, "word or tag"),
    "int": (_positive_count, "whole number from 1"),
    "lemma": (lambda cell: text(cell or ""), "lemma"),
    "kinds": (lambda cell: text(cell or ""), "text"),
}


@dataclass(frozen=True, eq=False)
class TagTable:
    """Counts of each word's tags and of tag pairs in a text.

    Attributes:
        pairs: two adjacent tags → their count. The first tag may be `START`, and the second `END`.
            Without pairs, each word gets its most frequent tag.
        names: tag → name for display.
    """

    name: str
    words: tuple[TaggedWord, ...]
    pairs: Mapping[tuple[str, str], int] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    _fitting: dict[tuple[str, str, tuple[str, ...], bool], BoolArray] = field(
        default_factory=dict, init=False
    )
    _shares: dict[tuple[str, bool], Mapping[str, float]] = field(default_factory=dict, init=False)

    def __repr__(self) -> str:
        return f"<TagTable {self.name}: {len(self._counts):,} words>"

    def shares(self, word: str, *, initial: bool = False) -> Mapping[str, float]:
        """Return the share of each tag among a word's occurrences; empty for an unlisted word.

        At the start of a sentence (`initial`), a capital does not indicate a name. So occurrences
        of the word in lower case count, too.
        """
        key = word, initial
        if key in self._shares:
            return self._shares[key]
        counts = Counter(self._counts.get(word))
        if word != word.lower() and (initial or not counts):
            counts.update(self._counts.get(word.lower()))
        total = counts.total()
        shares = {tag: count / total for tag, count in counts.items()}
        if len(self._shares) < _MAX_CACHED_WORDS:
            self._shares[key] = shares
        return shares

    def kinds(self, word: str, tag: str) -> list[str]:
        """Return the kinds of a word with a tag, the main kind first; see `TaggedWord`."""
        return (self._kinds.get((word, tag)) or self._kinds.get((word.lower(), tag), "")).split()

    def main_kind(self, word: str, tag: str) -> str:
        """Return the main kind of a word with a tag; empty if it has no kind."""
        return next(iter(self.kinds(word, tag)), "")

    def fitting(
        self, kind: str, tag: str, words: tuple[str, ...], *, initial: bool = False
    ) -> BoolArray:
        """Return a mask of the candidates `words` that fit a replaced word, (n_words,).

        `kind` and `tag` are the kind and the tag of the replaced word. At least half of a
        candidate's occurrences must have this tag. The candidate must also have this kind; if
        `kind` is empty, the candidate must have no kind. `initial` means that the replaced word
        starts a sentence.
        """
        key = kind, tag, words, initial
        if key not in self._fitting:
            fits = (
                self.shares(new, initial=initial).get(tag, 0.0) >= _MIN_TAG_SHARE
                and kind in (self.kinds(new, tag) or [""])
                for new in words
            )
            self._fitting[key] = np.fromiter(fits, np.bool_, len(words))
        return self._fitting[key]

    def lists(self, word: str) -> bool:
        """Return True if the table has the word, as written or in lower case."""
        return word in self._counts or word.lower() in self._counts

    def share_listed(self, words: Collection[str]) -> float:
        """Return the share of `words` that the table lists; 1 if there are no words."""
        return sum(map(self.lists, words)) / len(words) if words else 1.0

    def fits(self, words: Collection[str]) -> bool:
        """Return True if the table lists at least half of the words.

        Otherwise the words are probably in another language than the table.
        """
        return self.share_listed(words) >= _MIN_SHARE_LISTED

    def lemma(self, word: str) -> str:
        """Return a word's lemma for its most frequent tag; for an unlisted word, its lower case."""
        return self._lemmas.get(word) or self._lemmas.get(word.lower()) or word.lower()

    @cached_property
    def _cached_tags(self) -> Callable[[Sentence], tuple[str, ...]]:
        return lru_cache(maxsize=_MAX_CACHED_SENTENCES)(self._viterbi)

    @cached_property
    def _kinds(self) -> dict[tuple[str, str], str]:
        return {(tagged.word, tagged.tag): tagged.kinds for tagged in self.words if tagged.kinds}

    @cached_property
    def _lemmas(self) -> dict[str, str]:
        # Rows with the highest counts come last, so that the most frequent tag's lemma remains
        rows = sorted(self.words, key=lambda tagged: tagged.count)
        return {tagged.word: (tagged.lemma or tagged.word).lower() for tagged in rows}

    def forms(self, lemma: str) -> frozenset[str]:
        """Return the words with a lemma, in lower case; for an unlisted lemma, only the lemma."""
        return self._forms.get(lemma) or frozenset({lemma})

    @cached_property
    def _forms(self) -> dict[str, frozenset[str]]:
        forms: defaultdict[str, set[str]] = defaultdict(set)
        for word in map(str.lower, self._lemmas):
            forms[self.lemma(word)].add(word)
        return {lemma: frozenset(words) for lemma, words in forms.items()}

    @cached_property
    def frequencies(self) -> WordFrequencies:
        """Count of each word in the text, over all tags."""
        counts = {word: sum(tags.values()) for word, tags in self._counts.items()}
        return WordFrequencies(counts, self.name)

    def tags(self, sentence: Sentence) -> tuple[str, ...]:
        """Return the likeliest tags of a sentence's words; an unlisted word has an empty tag.

        The model is a first-order hidden Markov model (Viterbi 1967, IEEE Transactions on
        Information Theory 13, 260-269).
        """
        return self._cached_tags(sentence)

    def prob_without(self, sentence: Sentence, predicate: Callable[[str], bool]) -> float:
        """Return the probability that no word has a tag for which the predicate is true.

        The probability is that of the hidden Markov model.
        """
        log_total = self._log_total(sentence, lambda _: True)
        return exp(self._log_total(sentence, lambda tag: not predicate(tag)) - log_total)

    def _log_total(self, sentence: Sentence, allowed: Callable[[str], bool]) -> float:
        """Compute the log-probability that all tags are allowed, plus a constant."""
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
        """Return the display name of a tag. A word such as `it's` has a tag with two parts."""
        parts = [self.names.get(part, part) for part in tag.split("+")]
        return " + ".join(parts) if self.names else tag

    def part_of_speech(self, tag: str) -> str:
        """Return a tag's name without features, such as `noun` for `noun, singular`.

        For the empty tag of an unlisted word, return `not listed`.
        """
        parts = (self.names.get(part, part) for part in tag.split("+"))
        main = (part.partition("," if self.names else " ")[0] for part in parts)
        return " + ".join(main) or "not listed"

    def odd_sequences(self, sentence: Sentence) -> set[tuple[int, str]]:
        """Return the odd tag pairs of a sentence; see `SELDOM`.

        Each entry is the 0-based position of the pair's second word, and a text such as `noun
        before article`.
        """
        total = self._next_counts.get("", Counter()).total()
        tags = [START, *self.tags(sentence), END]
        odd = set()
        for position, (tag, following) in enumerate(pairwise(tags)):
            next_counts = self._next_counts.get(tag, Counter()) if tag else Counter()
            n_following = self._next_counts.get("", next_counts)[following]
            by_chance = next_counts.total() * n_following / max(total, 1)
            if max(next_counts[following], 1) * SELDOM < by_chance:
                odd.add((position, f"{self.tag_name(tag)} before {self.tag_name(following)}"))
        return odd

    def _viterbi(self, sentence: Sentence) -> tuple[str, ...]:
        # Last tag → log-probability and tags of the likeliest sequence that ends in this tag
        rows: dict[str, tuple[float, tuple[str, ...]]] = {START: (0.0, ())}
        for index, word in enumerate(sentence.words):
            shares = self.shares(word, initial=index == 0) or {"": 1.0}
            rows = {tag: self._extend_best(rows, tag, share) for tag, share in shares.items()}
        return self._extend_best(rows, END, 1.0)[1][:-1]

    def _extend_best(
        self, rows: Mapping[str, tuple[float, tuple[str, ...]]], tag: str, share: float
    ) -> tuple[float, tuple[str, ...]]:
        """Extend all sequences by a tag, and return the likeliest extended sequence.

        The result has two values: the log-probability of this sequence plus a constant, and the
        tags of this sequence.
        """
        extended = ((p + self._log_share(last, tag), row) for last, (p, row) in rows.items())
        log_prob, row = max(extended)
        # p(word | tag) = p(tag | word) · p(word) / p(tag); p(word) is the same for all sequences
        return log_prob + log(share) - self._log_share("", tag), (*row, tag)

    def _log_share(self, last: str, tag: str) -> float:
        """Return log p(tag | last), or log p(tag) if `last` is empty."""
        next_counts = self._next_counts.get(last, Counter())
        total = next_counts.total() + _PSEUDOCOUNT * self._n_tags
        return log((next_counts[tag] + _PSEUDOCOUNT) / total)

    @cached_property
    def _counts(self) -> dict[str, dict[str, int]]:
        counts: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for tagged in self.words:
            counts[tagged.word][tagged.tag] = counts[tagged.word].get(tagged.tag, 0) + tagged.count
        return dict(counts)

    @cached_property
    def _n_tags(self) -> int:
        return len({tagged.tag for tagged in self.words})

    @cached_property
    def _next_counts(self) -> dict[str, Counter[str]]:
        """Tag → counts of the tags that follow it; "" → counts of all tags."""
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for (tag, following), n in self.pairs.items():
            counts[tag][following] += n
            counts[""][following] += n
        return dict(counts)


def read_tags(path: Path | str) -> TagTable:
    """Read a table of tags from a treebank or from a table.

    Args:
        path: treebank in the format of Universal Dependencies (`.conllu`), or table with the
            columns `word`, `tag` and `count`, and optional columns `lemma` and `kinds`. Tags of a
            treebank are parts of speech with features, such as `NOUN Case=Nom|Number=Sing`.

    Raises:
        InputError: if the file cannot be read, or a line has another format.
    """
    path = Path(path)
    if path.name.removesuffix(".gz").endswith(".conllu"):
        return _read_treebank(path)
    return TagTable(str(path), read_rows(path, TaggedWord, _READERS))


def _read_treebank(path: Path) -> TagTable:
    words: Counter[tuple[str, str, str]] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for tagged in _treebank_sentences(path):
        words.update(tagged)
        pairs.update(pairwise([START, *(tag for _, tag, _ in tagged), END]))
    rows = (TaggedWord(word, tag, n, lemma) for (word, tag, lemma), n in words.items())
    return TagTable(str(path), tuple(rows), pairs)


def _treebank_sentences(path: Path) -> Iterator[list[tuple[str, str, str]]]:
    """Yield each sentence as a list of (word, tag, lemma); punctuation marks are left out."""
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
        # Skip multiword tokens (3-4), whose words follow, and empty nodes (3.1)
        if number.isdigit() and upos != "PUNCT":
            tag = upos if features == "_" else f"{upos} {features}"
            spelling = word if upos == "PROPN" else word.lower()
            sentence.append((spelling, tag, "" if lemma == "_" else lemma))
    yield sentence
