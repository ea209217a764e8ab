"""Trials that belong to no model pair: random natural pairs, and catch trials."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InfeasibleError
from contstim.sentence import Sentence
from contstim.stimuli import Condition, Kind, Trial, content_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_SHUFFLES = 100


def filler_trials(
    natural: Iterable[Sentence],
    used: frozenset[str],
    *,
    groups: int,
    random_per_group: int,
    catch_per_group: int,
    rng: np.random.Generator,
) -> list[Trial]:
    """Random natural pairs and catch trials for every group, of sentences used nowhere else.

    A catch trial sets a natural sentence against its own words in another order. It begins with a
    capital as the natural one does, and the natural one's first word is written as inside a
    sentence (`as_inside`), so that capitals do not give it away.

    Args:
        natural: where sentences are drawn from, without replacement, and how words are written
            inside sentences is seen.
        used: sentences (without end marks) that stand in other trials.
        groups: how many groups there are.
        random_per_group: random natural pairs for each group.
        catch_per_group: catch trials for each group.
        rng: draws and shuffles.

    Raises:
        InfeasibleError: too few sentences are left, or one cannot be shuffled.
    """
    natural = list(natural)
    free = list({s.bare: s for s in natural if s.bare not in used}.values())
    drawn = [free[place] for place in rng.permutation(len(free))]
    catch = [s for s in drawn if len(set(_lower(s))) > 1][: groups * catch_per_group]
    taken = set(catch)
    rest = [sentence for sentence in drawn if sentence not in taken]
    needs = groups * (2 * random_per_group + catch_per_group)
    if len(catch) < groups * catch_per_group or len(rest) < 2 * groups * random_per_group:
        raise InfeasibleError(
            f"{groups} groups need {groups * 2 * random_per_group:,} sentences for random pairs "
            f"and {groups * catch_per_group:,} of two or more different words for catch trials, "
            f"{needs:,} in all; only {len(free):,} are used nowhere else. Give more --sentences."
        )
    taken_texts = set(used) | {sentence.bare for sentence in free}
    numbers = np.repeat(np.arange(1, groups + 1), random_per_group).tolist()
    trials = [_random(rest[2 * i], rest[2 * i + 1], group) for i, group in enumerate(numbers)]
    numbers = np.repeat(np.arange(1, groups + 1), catch_per_group).tolist()
    shuffled = _shuffle_all(catch, taken_texts, as_inside(natural), rng)
    return trials + [_catch(*both, group) for both, group in zip(shuffled, numbers, strict=True)]


def as_inside(sentences: Iterable[Sentence]) -> Callable[[str], str]:
    """How the first word of a sentence is written inside one.

    In lower case, unless the sentences have it more often with its capital inside (`Paris`, `I`);
    words that have another capital (`NATO`) or are a form of `I` keep it always.
    """
    seen = Counter(word for sentence in sentences for word in sentence.words[1:])

    def inside(word: str) -> str:
        lower = word[:1].lower() + word[1:]
        named = word == "I" or word.startswith(("I'", "I’")) or lower != word.lower()
        return word if named or seen[word] > seen[lower] else lower

    return inside


def _shuffle_all(
    sentences: Sequence[Sentence],
    taken: set[str],
    inside: Callable[[str], str],
    rng: np.random.Generator,
) -> Iterator[tuple[Sentence, Sentence]]:
    for sentence in sentences:
        shuffled = _shuffle(sentence, taken, inside, rng)
        taken.add(shuffled.bare)
        yield sentence, shuffled


def _shuffle(
    sentence: Sentence, taken: set[str], inside: Callable[[str], str], rng: np.random.Generator
) -> Sentence:
    for _ in range(_SHUFFLES):
        order = rng.permutation(len(sentence.words)).tolist()
        other = _in_order(sentence, order, inside)
        if _lower(other) != _lower(sentence) and other.bare not in taken:
            return other
    raise InfeasibleError(
        f"{sentence.text!r} has no order of words that is not itself a sentence of the experiment: "
        "leave it out of --sentences."
    )


def _in_order(sentence: Sentence, order: Sequence[int], inside: Callable[[str], str]) -> Sentence:
    first, *rest = sentence.words
    capital = first[0].isupper()
    words = [inside(first) if capital else first, *rest]
    start, *others = (words[place] for place in order)
    return Sentence((start[0].upper() + start[1:] if capital else start, *others), sentence.end)


def _lower(sentence: Sentence) -> tuple[str, ...]:
    return tuple(map(str.lower, sentence.words))


def _random(first: Sentence, second: Sentence, group: int) -> Trial:
    both = first, second
    trial_id = content_id("trial", Condition.RANDOM_NATURAL, *both)
    return Trial(
        trial_id, group, Condition.RANDOM_NATURAL, "", "", *both, Kind.NATURAL, Kind.NATURAL, ""
    )


def _catch(sentence: Sentence, shuffled: Sentence, group: int) -> Trial:
    both = sentence, shuffled
    trial_id = content_id("trial", Condition.CATCH, *both)
    return Trial(trial_id, group, Condition.CATCH, "", "", *both, Kind.NATURAL, Kind.SHUFFLED, "")
