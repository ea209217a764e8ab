"""Flags for reviewers: possible problems of an item (a pair, a triplet or a trial)."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from contstim.items.matching import MISFIT, changes_of, match
from contstim.items.reviews import naturals_of, undecided_items
from contstim.items.stimuli import CONTROVERSIAL, Condition, Pair, Trial, Triplet
from contstim.wording import grouped, quantity
from contstim.words.frequencies import WordFrequencies
from contstim.words.sentence import all_but_one
from contstim.words.tags import SELDOM
from contstim.words.word_rules import MANY_NAMES, WordRules

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from contstim.files.arrays import FloatArray
    from contstim.items.reviews import ReviewedItem, Stimulus
    from contstim.items.scores import ScoreTable
    from contstim.words.sentence import Sentence
    from contstim.words.tags import TagTable

_AROUND_WORDS = ".,;:!?…\"“”„«»()[]{}'‘’‚–—"
_NATURAL = (Condition.NATURAL_CONTROVERSIAL, Condition.RANDOM_NATURAL)
# A frequent word is in more than 5 items and in more than 2 % of the items
_MIN_ITEMS, _PER_HUNDRED = 5, 2
# Misfits are new words of another part of speech than the replaced words (see `Match.misfits`). In
# the 2023 study, participants agreed less about items with three or more misfits
_MIN_MISFITS = 3
# Maximum differences between a synthetic sentence and its natural sentence, in characters and in
# mean Zipf frequency (see `FlagSettings.rare`). Each limit is twice the standard deviation of the
# number of characters, or of the mean Zipf frequency, over natural sentences of eight words
_MAX_CHARACTERS, _MAX_ZIPF = 12, 0.7
# A synthetic sentence is flagged if it has a word that is less likely than a limit, and less likely
# than every word of its natural sentence. For each natural sentence, take the log-probability of
# its least likely word. The limit is this quantile of these values
_QUANTILE = 0.05
# A drop is the score of the natural sentence minus that of the sentence that the model rejects (see
# `Triplet.drops`). A drop below the limit is flagged. The first limit is for scores in nats. The
# second is for other scores, in standard deviations of the model's scores of natural sentences
_SMALL_DROP, _SMALL_DROP_SDS = 1.0, 0.1


class FlagKind(StrEnum):
    """Kind of a flag; `FlaggedItems.explanations` explains each kind."""

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
    """A possible problem of an item; `detail` describes the problem in one sentence."""

    item_id: str
    kind: FlagKind
    detail: str


@dataclass(frozen=True)
class FlagSettings:
    """Settings of flags: rules, frequencies and limits.

    Attributes:
        rules: rules about words, for example a list of blocked words.
        repeatable: words that may occur several times in a sentence, in lower case.
        frequencies: word frequencies in a text; None to count words in the items.
        rare: words with a lower Zipf value are rare. The Zipf value is the base-10 logarithm of
            the frequency in a billion words.
        often: words in more than `often` items are frequent; None for 5 items or 2 % of the items,
            whichever is more.
        tags: table of part-of-speech tags. Parts of speech are checked only if the table lists at
            least half of the items' words.
        scores: log-probabilities of the sentences of trials, nats. Triplets and pairs do not need
            this table, because their own tables contain scores or ranks.
        judged: sentence → log-probability of each word under a judge, nats. A judge is a model that
            the study does not compare.
    """

    rules: WordRules = field(default_factory=WordRules)
    repeatable: frozenset[str] = frozenset()
    frequencies: WordFrequencies | None = None
    rare: float = 3.0
    often: int | None = None
    tags: TagTable | None = None
    scores: ScoreTable | None = None
    judged: Mapping[Sentence, FloatArray] = field(default_factory=dict)


@dataclass(frozen=True)
class FlaggedItems:
    """Flags of a set of items.

    Attributes:
        flags: flags in the order of the items.
        explanations: kind of a flag → condition under which an item has this flag, or reason why
            this kind was not checked.
        table: table of tags; None if no suitable table was given.
    """

    flags: tuple[Flag, ...]
    explanations: dict[FlagKind, str]
    n_items: int
    table: TagTable | None

    @property
    def share(self) -> float:
        """Share of items with at least one flag."""
        return len(self.by_item) / max(1, self.n_items)

    @property
    def text(self) -> str:
        """One-line summary: share of items with flags, and number of items with each kind."""
        items = Counter(kind for kind, _ in {(f.kind, f.item_id) for f in self.flags})
        kinds = ", ".join(f"{kind} {items[kind]:,}" for kind in FlagKind if items[kind])
        return (
            f"{len(self.by_item):,} of {quantity(self.n_items, 'item')} ({self.share:.0%}) have "
            f"flags{': ' * bool(kinds)}{kinds}."
        )

    @cached_property
    def by_item(self) -> dict[str, list[Flag]]:
        """Identifier of an item → its flags; items without flags are omitted."""
        return grouped((flag.item_id, flag) for flag in self.flags)


def flag_items(stimuli: Iterable[Stimulus], settings: FlagSettings | None = None) -> FlaggedItems:
    """Find possible problems of items; see `FlagKind`.

    sentence_2 of a catch trial is not checked, because it is the shuffled sentence_1.

    Raises:
        InputError: if a pair has no texts.
    """
    stimuli_list, settings = list(stimuli), settings or FlagSettings()
    items = undecided_items(stimuli_list)
    sentences = {
        item.item_id: item.sentences[:1] if item.condition == Condition.CATCH else item.sentences
        for item in items
    }
    distinct = set().union(*sentences.values())
    details, explanations = _word_details(distinct, settings)
    table, table_explanations = _select_table(distinct, settings.tags)
    naturals = naturals_of(stimuli_list)
    comparisons = [
        (item, natural, sentence)
        for item in items
        for sentence, natural in zip(item.sentences, naturals[item.item_id], strict=True)
        if natural is not None
    ]
    often = settings.often
    if often is None:
        sources = {item.source_id or item.item_id for item in items}
        often = max(_MIN_ITEMS, _PER_HUNDRED * len(sources) // 100)
    flags = (
        *_word_flags(sentences, details, settings.repeatable),
        *_frequent_flags(stimuli_list, items, often, settings),
        *_similar_flags(items, sentences),
        *(flag for comparison in comparisons for flag in _match_flags(*comparison, table)),
        *_unlikely_flags(comparisons, settings.judged),
        *_agreement_flags(stimuli_list, settings.scores),
    )
    explanations |= table_explanations | _explanations(often, settings)
    positions = {item_id: position for position, item_id in enumerate(sentences)}
    return FlaggedItems(
        tuple(sorted(flags, key=lambda flag: positions[flag.item_id])),
        {kind: explanations[kind] for kind in FlagKind},
        len(items),
        table,
    )


def _explanations(often: int, settings: FlagSettings) -> dict[FlagKind, str]:
    # `_word_details` and `_select_table` explain all other kinds of flags
    return {
        FlagKind.BLOCKED: "A word is on the list of blocked words "
        f"({quantity(len(settings.rules.blocked), 'word')}).",
        FlagKind.DEBRIS: (
            "A string is not spelled like a word: it contains a digit or another sign, or is "
            "a single letter, an abbreviation or a fragment."
        ),
        FlagKind.REPEATED: (
            "A word occurs at least twice in one sentence. Words that may repeat, such as "
            "articles and prepositions, are flagged only if two occurrences are adjacent."
        ),
        FlagKind.FREQUENT: (
            f"A word occurs in more than {quantity(often, 'item')}. In synthetic sentences "
            "only new words count. Function words do not count."
            if settings.rules.common
            else "A new word of a synthetic sentence occurs in more than "
            f"{quantity(often, 'item')}. Words that may repeat do not count."
        ),
        FlagKind.SIMILAR: (
            "Another item has the same sentence, or a sentence that differs by one word. Trials "
            "of the same triplet and trials of different groups are not compared."
        ),
        FlagKind.UNLIKELY: (
            "Under the judge, a word of a synthetic sentence is less likely than every word of "
            f"its natural sentence. Only {_QUANTILE:.0%} of all natural sentences have such an "
            "unlikely word."
        )
        if settings.judged
        else "Not checked: there is no judge. Name one with --judge. A judge is a model that the "
        "study does not compare.",
        FlagKind.AGREEING: (
            "A pair or a trial has this flag if both models prefer the same sentence. A triplet "
            "has it if a model hardly prefers the natural sentence to the sentence that this "
            "model should reject: the log-probability of the natural sentence is less than "
            f"{_SMALL_DROP:g} nat higher. Trials are checked only with --scores."
        ),
        FlagKind.LENGTH: (
            f"A synthetic sentence is more than {_MAX_CHARACTERS} characters longer or shorter "
            "than the natural sentence. Longer sentences are less likely under all models."
        ),
    }


def _word_details(
    sentences: Collection[Sentence], settings: FlagSettings
) -> tuple[dict[str, tuple[FlagKind, str]], dict[FlagKind, str]]:
    """Find words that deserve a flag.

    Return two dictionaries. The first is word → kind and detail of the word's flag. The second
    explains the flags of names and of rare words: kind → explanation.
    """
    rules = settings.rules
    words = {_strip_punctuation(word) for s in sentences for word in s.words} - {""}
    names, names_explanation = _find_names(words, sentences, settings)
    rare, rare_explanation = _find_rare(words, sentences, settings)
    details: dict[str, tuple[FlagKind, str]] = {}
    for word in sorted(words):
        reason = rules.misspelled(word)
        if rules.unwanted(word) is not None:
            details[word] = (FlagKind.BLOCKED, f"“{word}” is a blocked word.")
        elif reason is not None:
            details[word] = (FlagKind.DEBRIS, f"“{word}” is not spelled like a word: {reason}.")
        elif word in names:
            details[word] = (FlagKind.NAME, f"“{word}” is a name.")
        elif word in rare:
            details[word] = (FlagKind.RARE, f"“{word}” is rare (Zipf {rare[word]:.1f}).")
    return details, {FlagKind.NAME: names_explanation, FlagKind.RARE: rare_explanation}


def _find_names(
    words: Collection[str], sentences: Collection[Sentence], settings: FlagSettings
) -> tuple[set[str], str]:
    """Return the words that are names, and the explanation of the flag."""
    # Every first word of a sentence has a capital. So only later words show which words are names
    inner = [_strip_punctuation(word) for s in sentences for word in s.words[1:]]
    # `frequencies` also count the first words of sentences, which have capitals. Nevertheless,
    # common words do not become names: `is_name` requires capitals in nearly all occurrences
    inside = Counter(inner)
    if settings.frequencies is not None:
        inside.update(settings.frequencies.counts)
    rules = settings.rules
    # Skip words that occur only at the start of sentences: `is_name` would count them as names
    candidates = [word for word in words if inside[word] and rules.misspelled(word) is None]
    names = {word for word in candidates if rules.is_name(word, inside)}
    share = sum(word in names for word in inner) / max(1, len(inner))
    if share > MANY_NAMES and not rules.common:  # as in German, where all nouns have capitals
        return set(), (
            f"Names were not checked: {share:.0%} of the words inside sentences are "
            "capitalised, so capitals do not indicate names."
        )
    return names, "A word is nearly always capitalised inside sentences."


def _find_rare(
    words: Collection[str], sentences: Collection[Sentence], settings: FlagSettings
) -> tuple[dict[str, float], str]:
    """Return the Zipf value of each rare word, and the explanation of the flag."""
    frequencies, rarest = settings.frequencies, ""  # "" has the frequency of unknown words
    if frequencies is None:
        word_counts = Counter(word for s in sentences for word in s.words) or {"": 0}
        frequencies = WordFrequencies(word_counts, "the text of the items")
        rarest = min(words, key=frequencies.zipf, default="")
    lowest = frequencies.zipf(rarest)
    if lowest >= settings.rare:
        return {}, (
            f"Rare words were not checked: {frequencies.source} is too short. Even the rarest "
            f"word has a Zipf frequency of {lowest:.1f} in it. Name a longer text with --text, "
            "or raise --rare."
        )
    zipfs = {word: frequencies.zipf(word) for word in words}
    return {word: zipf for word, zipf in zipfs.items() if zipf < settings.rare}, (
        f"A word has a Zipf frequency below {settings.rare:g} in {frequencies.source} (3 means "
        "1,000 occurrences in a billion words)."
    )


def _word_flags(
    sentences: Mapping[str, Sequence[Sentence]],
    details: Mapping[str, tuple[FlagKind, str]],
    repeatable: Collection[str],
) -> Iterable[Flag]:
    """Yield flags of words, item by item.

    An item has one flag for each kind and word, in the order of `FlagKind`.
    """
    order = list(FlagKind)
    for item_id, item_sentences in sentences.items():
        details_by_kind: dict[tuple[FlagKind, str], str] = {}
        for sentence in item_sentences:
            bare = [word for word in map(_strip_punctuation, sentence.words) if word]
            for word in filter(details.__contains__, bare):
                kind, detail = details[word]
                details_by_kind[kind, word] = detail
            folded = [word.lower() for word in bare]
            doubled = {word for word, following in pairwise(folded) if word == following}
            for word, times in Counter(folded).items():
                # "in the house in the town" is grammatical; "in in the house" is not
                if word in doubled or (times > 1 and word not in repeatable):
                    often = "twice" if times == 2 else f"{times} times"
                    how = "twice in a row" if word in doubled else f"{often} in one sentence"
                    details_by_kind[FlagKind.REPEATED, word] = f"“{word}” occurs {how}."
        for kind, word in sorted(details_by_kind, key=lambda entry: order.index(entry[0])):
            yield Flag(item_id, kind, details_by_kind[kind, word])


def _strip_punctuation(word: str) -> str:
    return word.strip(_AROUND_WORDS)


def _frequent_flags(
    stimuli: Sequence[Stimulus], items: Sequence[ReviewedItem], often: int, settings: FlagSettings
) -> Iterable[Flag]:
    changed = changes_of(stimuli)
    # The trials of a triplet count as one item, because these trials share sentences
    sources: dict[str, set[str]] = defaultdict(set)
    words_of: dict[str, list[str]] = {}
    exempt = settings.rules.common | settings.rules.unfinished | settings.repeatable
    for item in items:
        natural = item.kind == "pair" or item.condition in _NATURAL
        counts_all = natural and settings.rules.common
        words = dict.fromkeys(
            _strip_punctuation(sentence.words[position]).lower()
            for sentence, positions in zip(item.sentences, changed[item.item_id], strict=True)
            for position in (range(len(sentence)) if counts_all else positions)
        )
        # A single letter, such as "I", counts as a function word
        words_of[item.item_id] = [w for w in words if len(w) > 1 and w not in exempt]
        for word in words_of[item.item_id]:
            sources[word].add(item.source_id or item.item_id)
    for item_id, item_words in words_of.items():
        for word in item_words:
            if len(sources[word]) > often:
                detail = f"“{word}” occurs in {len(sources[word]):,} items."
                yield Flag(item_id, FlagKind.FREQUENT, detail)


# Group of participants; and an entry of `all_but_one`: a position, and the words at other positions
_Entry = tuple[int, tuple[int, tuple[str, ...]]]


def _similar_flags(
    items: Sequence[ReviewedItem], sentences: dict[str, tuple[Sentence, ...]]
) -> Iterable[Flag]:
    # Two sentences share an entry if they are equal, or if they have the same number of words and
    # differ by one word
    holders: dict[_Entry, list[tuple[ReviewedItem, Sentence]]] = defaultdict(list)
    entries_of: dict[str, list[_Entry]] = defaultdict(list)
    for item in items:
        for sentence in dict.fromkeys(sentences[item.item_id]):
            words = tuple(_strip_punctuation(word).lower() for word in sentence.words)
            for shared in sorted(all_but_one(words)):
                entry = item.group, shared
                holders[entry].append((item, sentence))
                entries_of[item.item_id].append(entry)
    for item in items:
        similar_items: dict[str, Sentence] = {}
        for entry in entries_of[item.item_id]:
            for holder, sentence in holders[entry]:
                if (holder.source_id or holder.item_id) != (item.source_id or item.item_id):
                    similar_items.setdefault(holder.item_id, sentence)
        if similar_items:
            first = next(iter(similar_items))
            further = f", and {len(similar_items) - 1:,} more" if len(similar_items) > 1 else ""
            is_same = similar_items[first] in sentences[item.item_id]
            detail = (
                f"{'The same sentence' if is_same else 'A sentence that differs by one word'} "
                f"is in {first}: “{similar_items[first].text}”{further}."
            )
            yield Flag(item.item_id, FlagKind.SIMILAR, detail)


def _select_table(
    sentences: Iterable[Sentence], table: TagTable | None
) -> tuple[TagTable | None, dict[FlagKind, str]]:
    """Return the table of tags, and the explanations of the flags that need the table.

    If the table lists too few words of the sentences, None replaces the table.
    """
    kinds = (FlagKind.SPEECH, FlagKind.SEQUENCE, FlagKind.FREQUENCY)
    words = {word for sentence in sentences for word in sentence.words}
    if table is None or not table.fits(words):
        reason = "Not checked: most words have no part of speech. Name a table with --tags."
        return None, dict.fromkeys(kinds, reason)
    explanations = (
        f"At least {_MIN_MISFITS} new words of a sentence, or more than half of its new words, "
        "have another part of speech than the words that they replace. More precisely, they have "
        f"the part of speech of the replaced word in less than {MISFIT:.0%} of their uses, "
        f"according to {table.name}. Participants agree less about such items.",
        "Two adjacent words have an odd sequence of parts of speech. In texts, this sequence is "
        f"more than {SELDOM} times rarer than expected by chance. The natural sentence has no odd "
        "sequence at this position."
        if table.pairs
        else f"Not checked: {table.name} contains no sequences of parts of speech.",
        f"The mean Zipf frequency of a synthetic sentence differs by more than {_MAX_ZIPF:g} "
        "from that of its natural sentence. Rarer words are less likely under all models.",
    )
    return table, dict(zip(kinds, explanations, strict=True))


def _match_flags(
    item: ReviewedItem, natural: Sentence, sentence: Sentence, table: TagTable | None
) -> Iterable[Flag]:
    text, details = f"“{sentence.text}”", {}
    longer = len(sentence.bare) - len(natural.bare)
    if abs(longer) > _MAX_CHARACTERS:
        how = "longer" if longer > 0 else "shorter"
        details[FlagKind.LENGTH] = (
            f"{text} is {abs(longer)} characters {how} than the natural sentence."
        )
    if table is not None:
        comparison = match(natural, sentence, table)
        positions = sorted(comparison.misfits)
        misfits = [f"“{sentence.words[i]}” for “{natural.words[i]}”" for i in positions]
        if len(misfits) >= min(_MIN_MISFITS, len(comparison.changed) // 2 + 1):
            details[FlagKind.SPEECH] = f"{', '.join(misfits)}."
        if abs(comparison.zipf) > _MAX_ZIPF:
            how = "more frequent" if comparison.zipf > 0 else "rarer"
            details[FlagKind.FREQUENCY] = (
                f"The words of {text} are {how} than those of the natural sentence (mean Zipf "
                f"frequencies differ by {abs(comparison.zipf):.1f})."
            )
        odd_sequences = table.odd_sequences(sentence) - table.odd_sequences(natural)
        if odd_sequences and comparison.changed:
            rows = (
                f"“{' '.join(sentence.words[max(i - 1, 0) : i + 1])}”: {tags}"
                for i, tags in sorted(odd_sequences)
            )
            details[FlagKind.SEQUENCE] = f"{'; '.join(rows)}."
    return [Flag(item.item_id, kind, detail) for kind, detail in details.items()]


def _unlikely_flags(
    comparisons: Sequence[tuple[ReviewedItem, Sentence, Sentence]],
    judged: Mapping[Sentence, FloatArray],
) -> Iterator[Flag]:
    # Log-probability of the least likely word of each natural sentence, nats
    worst = {natural: min(judged[natural]) for _, natural, _ in comparisons if judged}
    lowest = float(np.quantile([*worst.values()], _QUANTILE)) if worst else -np.inf
    for item, natural, sentence in comparisons if judged else ():
        word = int(judged[sentence].argmin())
        least = judged[sentence][word]
        if least < min(lowest, worst[natural]):
            detail = f"“{sentence.words[word]}” in “{sentence.text}” (surprisal {-least:.1f} nats)."
            yield Flag(item.item_id, FlagKind.UNLIKELY, detail)


def _agreement_flags(stimuli: Iterable[Stimulus], scores: ScoreTable | None) -> Iterator[Flag]:
    for stimulus in stimuli:
        if isinstance(stimulus, Triplet):
            drop, unit = min(stimulus.drops), stimulus.drop_unit
            detail = f"Of both models' drops in log-probability, the smaller is {drop:.1f} nats."
            if not stimulus.in_nats:
                detail = f"Of both models' drops in scores, the smaller is {drop:.2f} {unit}."
            limit = _SMALL_DROP if stimulus.in_nats else _SMALL_DROP_SDS
            agree, name = drop < limit, stimulus.triplet_id
        else:
            detail = "Both models prefer the same sentence."
            agree, name = _prefer_same_sentence(stimulus, scores), stimulus.trial_id
        if agree:
            yield Flag(name, FlagKind.AGREEING, detail)


def _prefer_same_sentence(stimulus: Pair | Trial, scores: ScoreTable | None) -> bool:
    if isinstance(stimulus, Pair):
        return not stimulus.controversial
    models = {stimulus.model_1, stimulus.model_2}
    if stimulus.condition not in CONTROVERSIAL or scores is None or not models <= {*scores.models}:
        return False
    rows = scores.rows_of((stimulus.sentence_1, stimulus.sentence_2))
    first, second = (np.subtract(*scores.column(model)[rows]) for model in models)
    return bool(first * second > 0)
