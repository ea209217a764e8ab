"""Trials that belong to no model pair: random natural pairs, and catch trials."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from contstim.errors import InfeasibleError
from contstim.sentence import Sentence
from contstim.stimuli import Condition, Kind, Trial, content_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy as np

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

    A catch trial sets a natural sentence against its own words in another order.

    Args:
        natural: where sentences are drawn from, and how words are written inside one is seen.
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
    # In random order the first sentences that can be shuffled at all become catch trials, and the
    # rest, two by two, random pairs.
    drawn = [free[place] for place in rng.permutation(len(free))]
    n_random, n_catch = groups * random_per_group, groups * catch_per_group
    catch = [s for s in drawn if len(set(_lower(s))) > 1][:n_catch]
    chosen = set(catch)
    rest = [sentence for sentence in drawn if sentence not in chosen]
    if len(catch) < n_catch or len(rest) < 2 * n_random:
        raise InfeasibleError(
            f"{groups} groups need {2 * n_random:,} sentences for random pairs and {n_catch:,} of "
            f"two or more different words for catch trials, {2 * n_random + n_catch:,} in all; "
            f"only {len(free):,} are used nowhere else. Give more --sentences."
        )
    trials = []
    for i in range(n_random):
        first, second, group = rest[2 * i], rest[2 * i + 1], i // random_per_group + 1
        trials.append(_trial(Condition.RANDOM_NATURAL, first, second, Kind.NATURAL, group))
    # No shuffled sentence may be another sentence of the experiment, shuffled or not.
    texts, inside = set(used) | {sentence.bare for sentence in free}, as_inside(natural)
    for i, sentence in enumerate(catch):
        shuffled, group = _shuffle(sentence, texts, inside, rng), i // catch_per_group + 1
        texts.add(shuffled.bare)
        trials.append(_trial(Condition.CATCH, sentence, shuffled, Kind.SHUFFLED, group))
    return trials


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
        "leave it out of --sentences."
    )


def _lower(sentence: Sentence) -> tuple[str, ...]:
    return tuple(map(str.lower, sentence.words))


def _trial(
    condition: Condition, natural: Sentence, other: Sentence, kind: Kind, group: int
) -> Trial:
    """A natural sentence against another of some kind; it names no models and has no source."""
    trial_id = content_id("trial", condition, natural, other)
    return Trial(trial_id, group, condition, "", "", natural, other, Kind.NATURAL, kind, "")
