"""Rules that select natural sentences from a corpus.

Texts from books or the web have lines that are not sentences: titles, references, parts of lists,
captions. Each of the `whole_sentence_rules` detects one property of such lines.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice, pairwise, starmap
from operator import eq
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.wording import quantity
from contstim.words import clauses
from contstim.words.sentence import Sentence, all_but_one, repeats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from contstim.words.tags import TagTable
    from contstim.words.vocabulary import Vocabulary
    from contstim.words.word_rules import WordRules

_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"), ("“", "”"), ("«", "»"))
_HIGH_PROBABILITY = 0.9  # results with a higher probability count as certain
# A tag is a part of speech. A word's main tag is the tag of at least this share of its occurrences
_MAIN_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class SentenceRule:
    """A rule that rejects sentences.

    Attributes:
        reason: reason for a rejection, such as "a word occurs twice".
        loosened_by: setting that loosens or removes the rule, for messages.
        looser: function that returns a dictionary: looser setting → rule with this setting. None if
            the rule can only be removed.
        fresh: for a rule that remembers the sentences it accepted, a function that returns a copy
            with an empty memory; None for all other rules.
    """

    reason: str
    rejects: Callable[[Sentence], bool]
    loosened_by: str = "`every_line`, which also removes other rules for whole sentences"
    looser: Callable[[], dict[str, SentenceRule]] | None = None
    fresh: Callable[[], SentenceRule] | None = None


def word_count(words: int, max_words: int | None = None) -> SentenceRule:
    """Require from `words` to `max_words` words; by default exactly `words` words.

    Raises:
        InputError: if `words` is below 1 or above `max_words`.
    """
    max_words = words if max_words is None else max_words
    if not 1 <= words <= max_words:
        raise InputError(
            f"`words` must be a range with a minimum of at least 1, got {words} to {max_words}."
        )
    wider = [(words - 1, max_words)] * (words > 1) + [(words, max_words + 1)]
    number = f"exactly {words}" if words == max_words else f"{words} to {max_words}"
    return SentenceRule(
        f"it does not have {number} words",
        lambda sentence: not words <= len(sentence) <= max_words,
        looser=lambda: {f"`words` {low}-{high}": word_count(low, high) for low, high in wider},
    )


def distinct_words(repeatable: frozenset[str] = frozenset()) -> SentenceRule:
    """Require that no word except `repeatable` words occurs twice; the case of words is ignored."""
    return SentenceRule(
        "a word occurs twice", lambda sentence: repeats(sentence.words, repeatable), "`repeats`"
    )


def in_vocabulary(vocabulary: Vocabulary) -> SentenceRule:
    """Require that the vocabulary allows every word at its position."""
    return SentenceRule(
        "a word is not in the vocabulary",
        lambda sentence: bool(vocabulary.missing_words(sentence)),
        "a larger `vocabulary`",
    )


def without(phrases: Iterable[str]) -> SentenceRule:
    """Exclude sentences that contain one of `phrases`, which may be single words.

    Only whole words match; case is ignored.
    """
    # Spaces on both sides, so that "art" does not match "start" or "artist"
    spaced = [f" {' '.join(phrase.lower().split())} " for phrase in phrases]

    def rejects(sentence: Sentence) -> bool:
        text = f" {sentence.bare.lower()} "
        return any(phrase in text for phrase in spaced)

    return SentenceRule("it contains an excluded word or phrase", rejects, "a shorter `without`")


def not_in(sentences: Iterable[Sentence]) -> SentenceRule:
    """Exclude `sentences`, such as those of a training text; end marks are ignored."""
    seen = {sentence.words for sentence in sentences}
    return SentenceRule(
        "it occurs in an excluded text, such as a training text",
        lambda sentence: sentence.words in seen,
        "another `exclude`",
    )


def finite_verb(table: TagTable) -> SentenceRule:
    """Require a verb in the present or past tense, or a modal verb (English).

    The table must have the basic tagset of the British National Corpus (C5).
    """

    def rejects(sentence: Sentence) -> bool:
        # An unlisted word has no tag, so it may be the verb
        if any(clauses.may_be_verb(word) and not table.lists(word) for word in sentence.words):
            return False
        return table.prob_without(sentence, clauses.is_finite) > _HIGH_PROBABILITY

    return SentenceRule("it has no finite verb", rejects)


def whole_statement(table: TagTable) -> SentenceRule:
    """Exclude subordinate clauses, incomplete sentences, and questions without question mark.

    The table must have the tagset that `finite_verb` requires.
    """

    def rejects(sentence: Sentence) -> bool:
        words, tags = tuple(map(str.lower, sentence.words)), _tag_modal(table, sentence)
        if clauses.lacks_a_part(words, tags):
            return True
        if sentence.is_question:
            return False
        shares = table.shares(sentence.words[0], initial=True)
        # A finite verb at the start indicates a question, unless the verb can be a command
        if tags[0] in clauses.FINITE and clauses.INFINITIVE.isdisjoint(shares):
            return True
        # At the start, "However" is usually an adverb, although its tag may be a conjunction
        if shares.get("AV0", 0) >= _MAIN_SHARE and tags[0] in ("AVQ", "CJS"):
            return False
        is_clause = clauses.is_subordinate(words, tags) and not clauses.is_exclamation(words)
        is_part = is_clause and clauses.n_main_verbs(words, tags) < 2
        return is_part or clauses.has_order_of_question(words, tags)

    return SentenceRule("it begins like a question or a part of a sentence", rejects)


def _tag_modal(table: TagTable, sentence: Sentence) -> tuple[str, ...]:
    """Tag a sentence, and correct the tag of a modal verb at the start ("Will incumbents win")."""
    first, *later_tags = table.tags(sentence)
    is_modal = table.shares(sentence.words[0], initial=True).get("VM0", 0) > _HIGH_PROBABILITY
    if is_modal and not any(clauses.is_finite(tag) and tag != "VVB" for tag in later_tags):
        first = "VM0"
    return first, *later_tags


def _starts_small(sentence: Sentence) -> bool:
    # The first letter may follow a quotation mark
    return next(filter(str.isalpha, sentence.words[0]), "").islower()


def _lacks_partner(sentence: Sentence) -> bool:
    signs = Counter(sentence.text)
    if signs["„"]:  # in German, the mark “ closes a quotation
        return signs["„"] != signs["“"] + signs["”"]
    return signs['"'] % 2 == 1 or any(signs[a] != signs[b] for a, b in _BRACKETS)


def few_names(names: frozenset[str], max_names: int) -> SentenceRule:
    """Require that at most `max_names` words of a sentence are in `names`.

    Raises:
        InputError: if `max_names` is below 0.
    """
    if max_names < 0:
        raise InputError(f"`names` must be at least 0, got {max_names}.")
    return SentenceRule(
        f"it has more than {quantity(max_names, 'name')}" if max_names else "it has a name",
        lambda sentence: sum(word in names for word in sentence.words) > max_names,
        looser=lambda: {f"`names` {max_names + 1}": few_names(names, max_names + 1)},
    )


def unlike_earlier() -> SentenceRule:
    """Require that a sentence differs by at least two words from earlier sentences of equal length.

    Use this rule as the last one. The rule remembers each sentence that it accepts, and must not
    remember sentences that a later rule rejects.
    """
    seen: set[tuple[int, tuple[str, ...]]] = set()

    def rejects(sentence: Sentence) -> bool:
        entries = all_but_one(tuple(map(str.lower, sentence.words)))
        if not entries.isdisjoint(seen):
            return True
        seen.update(entries)
        return False

    reason = "it differs from an earlier sentence by one word"
    return SentenceRule(reason, rejects, fresh=unlike_earlier)


def whole_sentence_rules(
    rules: WordRules, names: Iterable[str], *, most_names: int = 1, tags: TagTable | None = None
) -> list[SentenceRule]:
    """Return rules that accept only whole sentences, in the order in which they must be applied.

    For `names`, see `TextWords.names`. Without `tags`, rules about verbs are omitted.
    """
    names = frozenset(names)
    # Fast rules come first. The last rule must see only sentences that all other rules accept
    return [
        SentenceRule("it does not start with a capital letter", _starts_small),
        SentenceRule(
            "its last word cannot end a sentence",  # such as `the` or `of`
            lambda sentence: sentence.words[-1].lower() in rules.unfinished,
        ),
        SentenceRule(
            "a word occurs twice in a row",
            lambda sentence: any(starmap(eq, pairwise(sentence.bare.lower().split()))),
        ),
        SentenceRule("a quotation mark or bracket is not closed", _lacks_partner),
        SentenceRule(
            "it contains a blocked word, or a string that is not a word",
            lambda sentence: any(rules.misspelled(w) or rules.unwanted(w) for w in sentence.words),
            "a shorter list `blocked`, if a blocked word is the cause",
        ),
        SentenceRule(
            "a word inside it is capitalised but not a name",  # as in headings
            lambda sentence: any(
                rules.is_capitalised(word) and word not in names for word in sentence.words[1:]
            ),
        ),
        few_names(names, most_names),
        *([] if tags is None else [finite_verb(tags), whole_statement(tags)]),
        unlike_earlier(),
    ]


def filter_sentences(
    sentences: Iterable[Sentence],
    rules: Sequence[SentenceRule],
    left_out: Counter[str] | None = None,
) -> Iterator[Sentence]:
    """Yield the distinct sentences that no rule rejects, in order of first occurrence.

    `left_out` counts rejected sentences by reason. A sentence counts for the first rule that
    rejects it.
    """
    counts: Counter[str] = Counter() if left_out is None else left_out
    seen: set[tuple[str, ...]] = set()
    for sentence in sentences:
        reason = next((rule.reason for rule in rules if rule.rejects(sentence)), None)
        if reason is None and sentence.words in seen:
            reason = "it occurred before"
        if reason is None:
            seen.add(sentence.words)
            yield sentence
        else:
            counts[reason] += 1


def costs_of_rules(
    sentences: Iterable[Sentence], rules: Sequence[SentenceRule]
) -> list[tuple[int, str, str]]:
    """For each rule, compute how many more distinct sentences pass if only this rule is loosened.

    Returns:
        For each looser setting: number of additional sentences, reason of the loosened rule, and
        the setting. The largest number is first.
    """
    loosenings: dict[SentenceRule, Mapping[str, SentenceRule | None]] = {
        rule: rule.looser() if rule.looser else {rule.loosened_by: None} for rule in rules
    }
    # Stateless rules remember no sentences. For speed, apply them only once. A sentence that breaks
    # two stateless rules is not a candidate, because only one rule is loosened at a time
    stateless = [rule for rule in rules if rule.fresh is None]
    candidates: list[tuple[Sentence, SentenceRule | None]] = []
    for sentence in sentences:
        broken = list(islice((rule for rule in stateless if rule.rejects(sentence)), 2))
        if not broken:
            candidates.append((sentence, None))
        elif len(broken) == 1 and any(
            rule is None or not rule.rejects(sentence) for rule in loosenings[broken[0]].values()
        ):
            candidates.append((sentence, broken[0]))

    def count_accepted(
        loosened: SentenceRule | None = None, instead: SentenceRule | None = None
    ) -> int:
        fresh_rules = [r.fresh() for r in rules if r.fresh is not None and r is not loosened]
        passing = (sentence for sentence, broken in candidates if broken in (None, loosened))
        rules_applied = fresh_rules if instead is None else [instead, *fresh_rules]
        return sum(1 for _ in filter_sentences(passing, rules_applied))

    n_before = count_accepted()
    costs = [
        (count_accepted(rule, instead) - n_before, rule.reason, name)
        for rule, alternatives in loosenings.items()
        for name, instead in alternatives.items()
    ]
    return sorted(costs, key=lambda cost: -cost[0])
