"""Flags for reviewers: what in a stimulus deserves a second look, item by item.

A flag is a hint, not a verdict. Flags rest on the rules of words (`contstim.words.word_rules`), on
word frequencies (`contstim.words.frequencies`), on the other items, and on how well a synthetic
sentence matches its natural one (`contstim.items.matching`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from contstim.items.matching import MISFIT, changes_of, match
from contstim.items.reviews import naturals_of, undecided
from contstim.items.stimuli import CONTROVERSIAL, Condition, Pair, Trial, Triplet
from contstim.wording import counted
from contstim.words.frequencies import WordFrequencies
from contstim.words.sentence import all_but_one
from contstim.words.tags import SELDOM
from contstim.words.word_rules import MANY_NAMES, WordRules

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from contstim.items.reviews import ReviewedItem, Stimulus
    from contstim.items.scores import ScoreTable
    from contstim.words.sentence import Sentence
    from contstim.words.tags import TagTable

_AROUND_WORDS = ".,;:!?…\"“”„«»()[]{}'‘’‚–—"
_NATURAL = (Condition.NATURAL_CONTROVERSIAL, Condition.RANDOM_NATURAL)
_FEWEST, _PER_HUNDRED = 5, 2  # items in which a word stands before it stands often
# Of published items with three misfits and more people agree on fewer, and a parser reads fewer
_MISFITS = 3
_CHARACTERS, _ZIPF = 12, 0.7  # two standard deviations of natural sentences of eight words
_LOWEST = 0.05  # quantile of the natural sentences' least likely words
_SMALL = 1.0  # nats


class FlagKind(StrEnum):
    """Kind of a flag."""

    BLOCKED = "block list"
    DEBRIS = "not a word"
    NAME = "name"
    RARE = "rare word"
    REPEATED = "repeated word"
    FREQUENT = "word in many items"
    SIMILAR = "similar item"
    SPEECH = "other parts of speech"
    SEQUENCE = "odd sequence"
    UNLIKELY = "unlikely word"
    AGREEING = "models agree"
    LENGTH = "other length"
    FREQUENCY = "other frequency"


@dataclass(frozen=True)
class Flag:
    """A remark about an item.

    Attributes:
        item_id: the item.
        kind: what is noticed.
        detail: a sentence that says so.
    """

    item_id: str
    kind: FlagKind
    detail: str


@dataclass(frozen=True)
class FlagSettings:
    """Settings of flags: the rules, frequencies and limits that they rest on.

    Attributes:
        rules: what counts as a word, and which are blocked.
        repeatable: in lower case; words that may stand twice in a sentence.
        frequencies: how often words are in a text; None: the items' own words.
        rare: words below it are rare, on the Zipf scale.
        often: words in more items than this stand often; None: 5 items, or 2 in 100.
        tags: parts of speech of words; None, or where it lists too few of the items' words: not
            looked at.
        scores: of the sentences of trials, nats; triplets and pairs tell whether models disagree.
        judged: log-probability of each word of a sentence under a further model, nats.
    """

    rules: WordRules = field(default_factory=WordRules)
    repeatable: frozenset[str] = frozenset()
    frequencies: WordFrequencies | None = None
    rare: float = 3.0
    often: int | None = None
    tags: TagTable | None = None
    scores: ScoreTable | None = None
    judged: Mapping[Sentence, Sequence[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class FlaggedItems:
    """The flags of some items.

    Attributes:
        flags: in the order of the items; each word of an item has one flag of its kind.
        explanations: what each kind means and rests on, or why it was not looked for.
        n_items: how many were looked at.
        table: of tags, by which parts of speech were told; None where none fits.
    """

    flags: tuple[Flag, ...]
    explanations: dict[FlagKind, str]
    n_items: int
    table: TagTable | None

    @property
    def share(self) -> float:
        """Share of the items that have any."""
        return len(self.by_item) / max(1, self.n_items)

    @property
    def text(self) -> str:
        """Share of the items that have any, and of how many kinds, in a line."""
        items = Counter(kind for kind, _ in {(f.kind, f.item_id) for f in self.flags})
        kinds = ", ".join(f"{kind} {items[kind]:,}" for kind in FlagKind if items[kind])
        return (
            f"{len(self.by_item):,} of {counted(self.n_items, 'item')} ({self.share:.0%}) have "
            f"flags{': ' * bool(kinds)}{kinds}."
        )

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
    distinct = set().union(*sentences.values())
    details, explanations = _word_details(distinct, settings)
    table, of_table = _fitting_table(distinct, settings.tags)
    naturals = naturals_of(every)
    made = [
        (item, natural, sentence)
        for item in items
        for sentence, natural in zip(item.sentences, naturals[item.item_id], strict=True)
        if natural is not None
    ]
    often = settings.often
    if often is None:
        sources = {item.source_id or item.item_id for item in items}
        often = max(_FEWEST, _PER_HUNDRED * len(sources) // 100)
    flags: dict[str, list[Flag]] = {item.item_id: [] for item in items}
    for flag in (
        *_of_words(sentences, details, settings.repeatable),
        *_frequent(every, items, often, settings),
        *_similar(items, sentences),
        *(flag for each in made for flag in _of_match(*each, table)),
        *_unlikely(made, settings.judged),
        *_agreeing(every, settings.scores),
    ):
        flags[flag.item_id].append(flag)
    explanations |= of_table | _explanations(often, settings)
    return FlaggedItems(
        tuple(flag for of_item in flags.values() for flag in of_item),
        {kind: explanations[kind] for kind in FlagKind},
        len(items),
        table,
    )


def _explanations(often: int, settings: FlagSettings) -> dict[FlagKind, str]:
    """Meaning of those kinds of flags that need no text and no table."""
    return {
        FlagKind.BLOCKED: "A word is on the block list, which has "
        f"{counted(len(settings.rules.blocked), 'word')}.",
        FlagKind.DEBRIS: "A word is not one by its spelling: it holds a digit or another sign, or "
        "is a single letter, an abbreviation, or a part that was cut off.",
        FlagKind.REPEATED: "A word stands twice or more in one sentence; articles and prepositions "
        "that may repeat, only in a row.",
        FlagKind.FREQUENT: f"A word stands in more than {counted(often, 'item')}. Of synthetic "
        "sentences only the words that were changed count, and no function words.",
        FlagKind.SIMILAR: "A sentence of another item is the same, or differs by one word. "
        "Trials of one triplet or of different groups are not compared.",
        FlagKind.UNLIKELY: f"A word of a synthetic sentence is less likely under the judge than "
        f"the least likely one of {1 - _LOWEST:.0%} of the natural sentences."
        if settings.judged
        else "Not looked for: name a model that is none of those compared with --judge.",
        FlagKind.AGREEING: "Both models prefer the same sentence; of a triplet, a model finds the "
        f"one that it is to reject less than {_SMALL:g} nat less likely than the natural one. "
        "Trials are looked at only where their scores are given (--scores).",
        FlagKind.LENGTH: f"A synthetic sentence is more than {_CHARACTERS} characters longer or "
        "shorter than its natural one. All models find longer sentences less likely.",
    }


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
    frequencies, rarest = settings.frequencies, ""  # a word that the text never has
    if frequencies is None:
        words_of = Counter(word for s in sentences for word in s.words) or {"": 0}
        frequencies = WordFrequencies(words_of, "the text of the items")
        rarest = min(words, key=frequencies.zipf, default="")
    lowest = frequencies.zipf(rarest)
    if lowest >= settings.rare:
        return {}, (
            f"Rare words were not looked for: {frequencies.source} is so short that even the "
            f"rarest word has Zipf {lowest:.1f}. Give a longer text with --text, or a higher "
            "--rare."
        )
    zipfs = {word: frequencies.zipf(word) for word in words}
    return {word: zipf for word, zipf in zipfs.items() if zipf < settings.rare}, (
        f"A word is below {settings.rare:g} on the Zipf scale (10 in a thousand million words is "
        f"1, a thousand is 3), by how often it stands in {frequencies.source}."
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
            yield Flag(item_id, kind, noticed[kind, word])


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
    changed = changes_of(stimuli)
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
            for place in (range(len(sentence)) if counts_all else places)
        )
        words_of[item.item_id] = [w for w in words if w and w not in exempt]
        for word in words_of[item.item_id]:
            sources[word].add(item.source_id or item.item_id)
    for item_id, of_item in words_of.items():
        for word in of_item:
            if len(sources[word]) > often:
                detail = f"“{word}” stands in {len(sources[word]):,} items."
                yield Flag(item_id, FlagKind.FREQUENT, detail)


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
            yield Flag(item.item_id, FlagKind.SIMILAR, detail)


def _fitting_table(
    sentences: Iterable[Sentence], table: TagTable | None
) -> tuple[TagTable | None, dict[FlagKind, str]]:
    """The table of tags if it lists half of the words, and the kinds of flags that rest on it."""
    kinds = (FlagKind.SPEECH, FlagKind.SEQUENCE, FlagKind.FREQUENCY)
    words = {word for sentence in sentences for word in sentence.words}
    if table is None or not table.fits(words):
        reason = "Not looked for: most words have no part of speech. Give a table with --tags."
        return None, dict.fromkeys(kinds, reason)
    explanations = (
        f"{_MISFITS} new words of a sentence or more, or more than half of them, hardly ever have "
        f"the part of speech of the words that they replaced: in less than {MISFIT:.0%} of their "
        f"uses, by {table.name}. People agree on fewer of such items.",
        f"Parts of speech follow one another {SELDOM} times more seldom than by chance, and in the "
        "natural sentence others did."
        if table.pairs
        else f"Not looked for: {table.name} does not tell which follow one another.",
        f"New words are rarer or more frequent, by more than {_ZIPF:g} on the Zipf scale for the "
        "mean of a sentence. All models find rarer words less likely.",
    )
    return table, dict(zip(kinds, explanations, strict=True))


def _of_match(
    item: ReviewedItem, natural: Sentence, sentence: Sentence, table: TagTable | None
) -> Iterable[Flag]:
    """Differences of a synthetic sentence from its natural one."""
    text, details = f"“{sentence.text}”", {}
    longer = len(sentence.bare) - len(natural.bare)
    if abs(longer) > _CHARACTERS:
        how = "longer" if longer > 0 else "shorter"
        details[FlagKind.LENGTH] = f"{text} is {abs(longer)} characters {how}."
    if table is not None:
        found = match(natural, sentence, table)
        misfits = [f"“{sentence.words[i]}” for “{natural.words[i]}”" for i in sorted(found.misfits)]
        if len(misfits) >= min(_MISFITS, len(found.changed) // 2 + 1):
            details[FlagKind.SPEECH] = f"{', '.join(misfits)}."
        if abs(found.zipf) > _ZIPF:
            how = "more frequent" if found.zipf > 0 else "rarer"
            details[FlagKind.FREQUENCY] = f"The words of {text} are {how} by {abs(found.zipf):.1f}."
        if found.changed and (odd := table.odd_sequences(sentence) - table.odd_sequences(natural)):
            both = {i: " ".join(sentence.words[max(i - 1, 0) : i + 1]) for i, _ in odd}
            rows = (f"“{both[i]}”: {tags}" for i, tags in sorted(odd))
            details[FlagKind.SEQUENCE] = f"{'; '.join(rows)}."
    return [Flag(item.item_id, kind, text) for kind, text in details.items()]


def _unlikely(
    made: Sequence[tuple[ReviewedItem, Sentence, Sentence]],
    judged: Mapping[Sentence, Sequence[float]],
) -> Iterator[Flag]:
    """Synthetic sentences with a word that is too unlikely for a natural one."""
    worst = {natural: min(judged[natural]) for _, natural, _ in made if judged}
    lowest = float(np.quantile([*worst.values()], _LOWEST)) if worst else -np.inf
    for item, natural, sentence in made if judged else ():
        word = min(range(len(sentence)), key=judged[sentence].__getitem__)
        least = judged[sentence][word]
        if least < min(lowest, worst[natural]):
            detail = f"“{sentence.words[word]}” in “{sentence.text}” (surprisal {-least:.1f})."
            yield Flag(item.item_id, FlagKind.UNLIKELY, detail)


def _agreeing(stimuli: Iterable[Stimulus], scores: ScoreTable | None) -> Iterator[Flag]:
    """Items of which both models prefer the same sentence, or nearly so."""
    for each in stimuli:
        if isinstance(each, Triplet):
            detail = f"A model finds its sentence {min(each.drops):.1f} nats less likely."
            agree, name = min(each.drops) < _SMALL, each.triplet_id
        else:
            detail = "Both models prefer the same sentence."
            agree, name = _prefer_the_same(each, scores), each.trial_id
        if agree:
            yield Flag(name, FlagKind.AGREEING, detail)


def _prefer_the_same(each: Pair | Trial, scores: ScoreTable | None) -> bool:
    if isinstance(each, Pair):
        return not each.controversial
    models = {each.model_1, each.model_2}
    if each.condition not in CONTROVERSIAL or scores is None or not models <= {*scores.models}:
        return False
    rows = scores.rows_of((each.sentence_1, each.sentence_2))
    one, other = (np.subtract(*scores.column(model)[rows]) for model in models)
    return bool(one * other > 0)
