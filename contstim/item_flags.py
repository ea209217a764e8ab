"""Flags for reviewers: what in a stimulus deserves a second look, item by item.

A flag is a hint and no verdict. Each kind rests on what the package knows already: the rules of
words (`contstim.word_rules`), their frequencies (`contstim.frequencies`), and the other items.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from contstim.frequencies import WordFrequencies
from contstim.reviews import changed_words, undecided
from contstim.sentence import all_but_one
from contstim.stimuli import Condition
from contstim.word_rules import MANY_NAMES, WordRules
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from contstim.reviews import ReviewedItem, Stimulus
    from contstim.sentence import Sentence

_AROUND_WORDS = ".,;:!?…\"“”„«»()[]{}'‘’‚–—"
_NATURAL = (Condition.NATURAL_CONTROVERSIAL, Condition.RANDOM_NATURAL)
_FEWEST, _PER_HUNDRED = 5, 2  # items in which a word stands before it stands often


class FlagKind(StrEnum):
    """Kind of a flag."""

    BLOCKED = "block list"
    DEBRIS = "not a word"
    NAME = "name"
    RARE = "rare word"
    REPEATED = "repeated word"
    FREQUENT = "word in many items"
    SIMILAR = "similar item"


@dataclass(frozen=True)
class Flag:
    """A remark about an item.

    Attributes:
        item_id: the item.
        kind: what is noticed.
        subject: the word, or the other item's identifier.
        detail: a sentence that says so.
    """

    item_id: str
    kind: FlagKind
    subject: str
    detail: str


@dataclass(frozen=True)
class FlagSettings:
    """Settings of flags: the rules, frequencies and limits that they rest on.

    Attributes:
        rules: what counts as a word, and which are blocked.
        repeatable: in lower case; words that may stand twice in a sentence.
        frequencies: how often words are in a text; None: the items' own words.
        text: what the explanations call that text.
        rare: words below it are rare, on the Zipf scale.
        often: words in more items than this stand often; None: 5 items, or 2 in 100.
    """

    rules: WordRules = field(default_factory=WordRules)
    repeatable: frozenset[str] = frozenset()
    frequencies: WordFrequencies | None = None
    text: str = "the text"
    rare: float = 3.0
    often: int | None = None


@dataclass(frozen=True)
class FlaggedItems:
    """The flags of some items.

    Attributes:
        flags: in the order of the items; each word of an item has one flag of its kind.
        explanations: what each kind means and rests on, or why it was not looked for.
    """

    flags: tuple[Flag, ...]
    explanations: dict[FlagKind, str]

    @cached_property
    def by_item(self) -> dict[str, list[Flag]]:
        """The flags of each item that has any, by its identifier."""
        flags: dict[str, list[Flag]] = defaultdict(list)
        for flag in self.flags:
            flags[flag.item_id].append(flag)
        return dict(flags)


def flag_items(stimuli: Iterable[Stimulus], settings: FlagSettings | None = None) -> FlaggedItems:
    """Look at the words of all items, and at the items beside one another.

    The shuffled sentences of catch trials are left out: they have their natural sentence's words.

    Raises:
        InputError: a pair has no texts.
    """
    every, settings = list(stimuli), settings or FlagSettings()
    items = undecided(every)
    sentences = {
        item.item_id: item.sentences[:1] if item.condition == Condition.CATCH else item.sentences
        for item in items
    }
    details, explanations = _word_details(set().union(*sentences.values()), settings)
    often = settings.often
    if often is None:
        sources = {item.source_id or item.item_id for item in items}
        often = max(_FEWEST, _PER_HUNDRED * len(sources) // 100)
    flags: dict[str, list[Flag]] = {item.item_id: [] for item in items}
    for flag in (
        *_of_words(sentences, details, settings.repeatable),
        *_frequent(every, items, often, settings),
        *_similar(items, sentences),
    ):
        flags[flag.item_id].append(flag)
    explanations |= {
        FlagKind.BLOCKED: f"A word is on the block list (`blocked`), which has "
        f"{counted(len(settings.rules.blocked), 'word')}.",
        FlagKind.DEBRIS: "A word is not one by its spelling: it holds a digit or another sign, or "
        "is a single letter, an abbreviation, or a part that was cut off.",
        FlagKind.REPEATED: "A word stands twice or more in one sentence; articles and prepositions "
        "that may repeat, only in a row.",
        FlagKind.FREQUENT: f"A word stands in more than {counted(often, 'item')}. Of synthetic "
        "sentences only the words that were changed count, and no function words.",
        FlagKind.SIMILAR: "A sentence of another item is the same, or differs by one word. "
        "Trials of one triplet or of different groups are not compared.",
    }
    return FlaggedItems(
        tuple(flag for of_item in flags.values() for flag in of_item),
        {kind: explanations[kind] for kind in FlagKind},
    )


def _word_details(
    sentences: Collection[Sentence], settings: FlagSettings
) -> tuple[dict[str, tuple[FlagKind, str]], dict[FlagKind, str]]:
    """Flag of each word by itself, one at most, and what each kind of flag rests on."""
    rules = settings.rules
    words = {_bare(word) for s in sentences for word in s.words} - {""}
    names, names_rest_on = _names(words, sentences, settings)
    rare, rare_rests_on = _rare(words, sentences, settings)
    details: dict[str, tuple[FlagKind, str]] = {}
    for word in sorted(words):
        reason = rules.misspelled(word)
        if rules.unwanted(word) is not None:
            details[word] = (FlagKind.BLOCKED, f"“{word}” is on the block list.")
        elif reason is not None:
            detail = f"“{word}” is not a word by its spelling: {reason}."
            details[word] = (FlagKind.DEBRIS, detail)
        elif word in names:
            details[word] = (FlagKind.NAME, f"“{word}” is a name.")
        elif word in rare:
            details[word] = (FlagKind.RARE, f"“{word}” is rare (Zipf {rare[word]:.1f}).")
    return details, {FlagKind.NAME: names_rest_on, FlagKind.RARE: rare_rests_on}


def _names(
    words: Collection[str], sentences: Collection[Sentence], settings: FlagSettings
) -> tuple[set[str], str]:
    """Words that are names, and what tells so."""
    inner = [_bare(word) for s in sentences for word in s.words[1:]]
    # A text's capitals are those of names and of first words, which `is_name` sets against how
    # often the word is small
    inside = Counter(inner)
    if settings.frequencies is not None:
        inside.update(settings.frequencies.counts)
    rules = settings.rules
    # Other capitalised words stand at the start alone, where a capital tells nothing
    candidates = [word for word in words if inside[word] and rules.misspelled(word) is None]
    names = {word for word in candidates if rules.is_name(word, inside)}
    share = sum(word in names for word in inner) / max(1, len(inner))
    if share > MANY_NAMES and not rules.common:  # as in German, where nouns are capitalised
        return set(), (
            f"Names were not looked for: {share:.0%} of the words inside sentences are "
            "capitalised, so that capitals do not tell names."
        )
    return names, "A word is always capitalised inside sentences."


def _rare(
    words: Collection[str], sentences: Collection[Sentence], settings: FlagSettings
) -> tuple[dict[str, float], str]:
    """The Zipf value of each word that is rare, and what tells so."""
    frequencies, source = settings.frequencies, settings.text
    rarest = ""  # a word that the text never has
    if frequencies is None:
        source = "the text of the items"
        frequencies = WordFrequencies.of(sentences) if sentences else WordFrequencies({"": 0})
        rarest = min(words, key=frequencies.zipf, default="")
    lowest = frequencies.zipf(rarest)
    if lowest >= settings.rare:
        return {}, (
            f"Rare words were not looked for: {source} is so short that even the rarest word has "
            f"Zipf {lowest:.1f}. Give a longer text with --text, or a higher --rare."
        )
    zipfs = {word: frequencies.zipf(word) for word in words}
    return {word: zipf for word, zipf in zipfs.items() if zipf < settings.rare}, (
        f"A word is below {settings.rare:g} on the Zipf scale (10 in a thousand million words is "
        f"1, a thousand is 3), by how often it stands in {source}."
    )


def _of_words(
    sentences: Mapping[str, Sequence[Sentence]],
    details: Mapping[str, tuple[FlagKind, str]],
    repeatable: Collection[str],
) -> Iterable[Flag]:
    """The flags of each item's words: each word once, in the order of the kinds."""
    order = list(FlagKind)
    for item_id, of_item in sentences.items():
        noticed: dict[tuple[FlagKind, str], str] = {}
        for sentence in of_item:
            bare = [word for word in map(_bare, sentence.words) if word]
            for word in filter(details.__contains__, bare):
                kind, detail = details[word]
                noticed[kind, word] = detail
            folded = [word.lower() for word in bare]
            doubled = {word for word, after in pairwise(folded) if word == after}
            for word, times in Counter(folded).items():
                # "in the house in the town" is well-formed, "in in the house" is not
                if word in doubled or (times > 1 and word not in repeatable):
                    often = "twice" if times == 2 else f"{times} times"
                    how = "twice in a row" if word in doubled else f"{often} in a sentence"
                    noticed[FlagKind.REPEATED, word] = f"“{word}” stands {how}."
        for kind, word in sorted(noticed, key=lambda entry: order.index(entry[0])):
            yield Flag(item_id, kind, word, noticed[kind, word])


def _bare(word: str) -> str:
    """A word without the punctuation around it; empty where it is nothing else."""
    return word.strip(_AROUND_WORDS)


def _frequent(
    stimuli: Sequence[Stimulus],
    items: Sequence[ReviewedItem],
    often: int,
    settings: FlagSettings,
) -> Iterable[Flag]:
    """Words that stand in more than so many items."""
    changed = changed_words(stimuli)
    # Trials of one triplet share its words: they are one item here.
    sources: dict[str, set[str]] = defaultdict(set)
    words_of: dict[str, list[str]] = {}
    exempt = settings.rules.common | settings.rules.unfinished | settings.repeatable
    for item in items:
        natural = item.kind == "pair" or item.condition in _NATURAL
        counts_all = natural and settings.rules.common
        words = dict.fromkeys(
            _bare(sentence.words[place]).lower()
            for sentence, places in zip(item.sentences, changed[item.item_id], strict=True)
            for place in (range(len(sentence)) if counts_all else sorted(places))
        )
        words_of[item.item_id] = [w for w in words if w and w not in exempt]
        for word in words_of[item.item_id]:
            sources[word].add(item.source_id or item.item_id)
    for item_id, of_item in words_of.items():
        for word in of_item:
            if len(sources[word]) > often:
                detail = f"“{word}” stands in {len(sources[word]):,} items."
                yield Flag(item_id, FlagKind.FREQUENT, word, detail)


_Entry = tuple[int, tuple[int, tuple[str, ...]]]  # group; see `all_but_one`


def _similar(
    items: Sequence[ReviewedItem], sentences: dict[str, tuple[Sentence, ...]]
) -> Iterable[Flag]:
    """Sentences that another item has too, or but for one word."""
    holders: dict[_Entry, list[tuple[ReviewedItem, Sentence]]] = defaultdict(list)
    entries_of: dict[str, list[_Entry]] = defaultdict(list)
    for item in items:
        for sentence in dict.fromkeys(sentences[item.item_id]):
            words = tuple(_bare(word).lower() for word in sentence.words)
            for shared in sorted(all_but_one(words)):
                entry = item.group, shared
                holders[entry].append((item, sentence))
                entries_of[item.item_id].append(entry)
    for item in items:
        others: dict[str, Sentence] = {}
        for entry in entries_of[item.item_id]:
            for other, sentence in holders[entry]:
                if (other.source_id or other.item_id) != (item.source_id or item.item_id):
                    others.setdefault(other.item_id, sentence)
        if others:
            first = next(iter(others))
            more = f", and {len(others) - 1:,} more" if len(others) > 1 else ""
            same = others[first] in sentences[item.item_id]
            detail = (
                f"{'The same sentence' if same else 'All but one word of a sentence'} stands in "
                f"{first}: “{others[first].text}”{more}."
            )
            yield Flag(item.item_id, FlagKind.SIMILAR, first, detail)
