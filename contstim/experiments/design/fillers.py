"""Trials that belong to no model pair: random natural pairs, and catch trials."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from contstim.errors import InfeasibleError
from contstim.sentence import Sentence
from contstim.stimuli import Condition, Kind, Trial, content_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import numpy as np

    from contstim.reviews import ReviewedItem

Wanted: TypeAlias = "Mapping[tuple[Condition, int], int]"
"""Trials of a condition that a group, from 1, is to have."""

_SHUFFLES = 100


def filler_trials(
    natural: Iterable[Sentence],
    used: frozenset[str],
    wanted: Wanted,
    *,
    rng: np.random.Generator,
    same_length: bool = False,
    standing: Sequence[Trial] = (),
    rejected: frozenset[tuple[str, ...]] = frozenset(),
) -> list[Trial]:
    """Random natural pairs and catch trials for every group, of sentences used nowhere else.

    A catch trial sets a natural sentence against its own words in another order.

    Args:
        natural: where sentences are drawn from, and how words are written inside one is seen.
        used: sentences (without end marks) that stand in other trials.
        wanted: how many trials each group is to have.
        rng: draws and shuffles.
        same_length: whether both sentences of a random pair have as many words.
        standing: such trials that stay in their groups, see `standing_fillers`.
        rejected: the words of sentences that are not drawn.

    Raises:
        InfeasibleError: too few sentences are left, or one cannot be shuffled.
    """
    natural = list(natural)
    used |= {text for trial in standing for text in (trial.sentence_1.bare, trial.sentence_2.bare)}
    free = {s.bare: s for s in natural if s.bare not in used and s.words not in rejected}
    # The group of each trial to be drawn: the first group's first
    stay = Counter((trial.condition, trial.group) for trial in standing)
    random_groups, catch_groups = (
        [g for (c, g), n in wanted.items() if c is kind for _ in range(n - stay[c, g])]
        for kind in (Condition.RANDOM_NATURAL, Condition.CATCH)
    )
    # In random order the first sentences that can be shuffled at all become catch trials, and the
    # rest, two by two, random pairs.
    drawn = [list(free.values())[place] for place in rng.permutation(len(free))]
    n_random, n_catch = len(random_groups), len(catch_groups)
    catch = [s for s in drawn if len(set(_lower(s))) > 1][:n_catch]
    chosen = set(catch)
    rest = [sentence for sentence in drawn if sentence not in chosen]
    couples = list(islice(_couples(rest, same_length=same_length), n_random))
    if len(catch) < n_catch or len(couples) < n_random:
        alike = " (both of a pair of equally many words, as in natural pairs)" * same_length
        beside = f" beside the {len(standing):,} trials that stay" if standing else ""
        raise InfeasibleError(
            f"{max(g for _, g in wanted)} groups need{beside} {2 * n_random:,} sentences for "
            f"random pairs{alike} and {n_catch:,} of two or more different words for catch trials, "
            f"{2 * n_random + n_catch:,} in all; only {len(free):,} are used nowhere else. Give "
            f"more natural sentences: a longer text, or looser rules for what is taken from it."
        )
    trials = list(standing)
    for (first, second), group in zip(couples, random_groups, strict=True):
        trials.append(_trial(Condition.RANDOM_NATURAL, first, second, Kind.NATURAL, group))
    # No shuffled sentence may be another sentence of the experiment, shuffled or not.
    texts, inside = set(used) | free.keys(), as_inside(natural)
    for sentence, group in zip(catch, catch_groups, strict=True):
        shuffled = _shuffle(sentence, texts, inside, rng)
        texts.add(shuffled.bare)
        trials.append(_trial(Condition.CATCH, sentence, shuffled, Kind.SHUFFLED, group))
    return trials


def _couples(
    sentences: Iterable[Sentence], *, same_length: bool
) -> Iterator[tuple[Sentence, Sentence]]:
    """Each sentence in turn with the next one, or the next of as many words."""
    left = list(sentences)[::-1]
    while left:
        first = left.pop()
        fits = (p for p in reversed(range(len(left))) if len(left[p]) == len(first))
        place = next(fits, None) if same_length else len(left) - 1
        if place is not None and place >= 0:
            yield first, left.pop(place)


def standing_fillers(
    reviewed: Iterable[ReviewedItem],
    natural: Iterable[Sentence],
    used: frozenset[str],
    wanted: Wanted,
) -> list[Trial]:
    """Random pairs and catch trials that stay as they were, so many as a group is to have.

    A trial stays if its group is still there, its natural sentences are still among those to draw
    from, and neither of its sentences now stands in another trial.

    Args:
        reviewed: trials of any condition that were not rejected.
        natural: as in `filler_trials`.
        used: as in `filler_trials`.
        wanted: as in `filler_trials`.
    """
    texts = {sentence.bare for sentence in natural}
    vacant = Counter(wanted)
    stay = []
    for item in reviewed:
        first, second = item.sentences
        is_catch = item.condition == Condition.CATCH
        key = (Condition(item.condition), item.group)
        drawn = {first.bare} if is_catch else {first.bare, second.bare}
        if vacant[key] > 0 and drawn <= texts and used.isdisjoint((first.bare, second.bare)):
            vacant[key] -= 1
            kind = Kind.SHUFFLED if is_catch else Kind.NATURAL
            stay.append(
                replace(_trial(key[0], first, second, kind, item.group), trial_id=item.item_id)
            )
            used |= {first.bare, second.bare}
    return stay


def as_inside(sentences: Iterable[Sentence]) -> Callable[[str], str]:
    """Function that writes the first word of a sentence as it is written inside one.

    In lower case, unless the sentences have it more often with its capital inside (`Paris`, `I`);
    words that have another capital (`NATO`) or are a form of `I` keep it always.
    """
    seen = Counter(word for sentence in sentences for word in sentence.words[1:])

    def inside(word: str) -> str:
        lower = word[:1].lower() + word[1:]
        named = word == "I" or word.startswith(("I'", "I’")) or lower != word.lower()
        return word if named or seen[word] > seen[lower] else lower

    return inside


def _shuffle(
    sentence: Sentence, taken: set[str], inside: Callable[[str], str], rng: np.random.Generator
) -> Sentence:
    """The sentence's words in another order that is not among the texts taken.

    It begins with a capital as the sentence does, and the sentence's first word is written as
    inside one (`as_inside`), so that capitals do not give it away.
    """
    first, *rest = sentence.words
    capital = first[0].isupper()
    words = [inside(first) if capital else first, *rest]
    for _ in range(_SHUFFLES):
        start, *others = (words[place] for place in rng.permutation(len(words)).tolist())
        start = start[0].upper() + start[1:] if capital else start
        other = Sentence((start, *others), sentence.end)
        # In lower case: an order that only moves a capital is the same to a reader.
        if _lower(other) != _lower(sentence) and other.bare not in taken:
            return other
    raise InfeasibleError(
        f"{sentence.text!r} has no order of words that is not itself a sentence of the experiment: "
        "leave it out of the natural sentences."
    )


def _lower(sentence: Sentence) -> tuple[str, ...]:
    return tuple(map(str.lower, sentence.words))


def _trial(
    condition: Condition, natural: Sentence, other: Sentence, kind: Kind, group: int
) -> Trial:
    """A natural sentence against another of some kind; it names no models and has no source."""
    trial_id = content_id("trial", condition, natural, other)
    return Trial(trial_id, group, condition, "", "", natural, other, Kind.NATURAL, kind, "")
