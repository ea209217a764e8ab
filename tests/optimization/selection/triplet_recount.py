"""A second account of what triplets are worth and which rules they keep: an oracle for tests.

Written from the definitions, and apart from the code that selects and checks.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from contstim.english.words import tag_table
from contstim.files.arrays import FloatArray, IntArray
from contstim.items.stimuli import Triplet
from contstim.optimization.selection.question import TripletQuestion
from contstim.optimization.selection.triplets import quantile_name


class Counted(NamedTuple):
    """A rule: place of a triplet → what it counts, and the least and greatest sum."""

    weights: dict[int, int]
    least: int
    most: int


def places_of(triplets: Sequence[Triplet]) -> dict[tuple[str, str], list[int]]:
    """Places of each model pair's triplets."""
    places: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, triplet in enumerate(triplets):
        places[triplet.model_1, triplet.model_2].append(place)
    return dict(places)


def needed(question: TripletQuestion, pair: tuple[str, str]) -> int:
    """How many triplets a model pair needs."""
    own = {(first, second): n for first, second, n in question.counts}
    return own.get(pair, question.per_pair)


def disagreements(triplets: Sequence[Triplet]) -> FloatArray:
    """Both terms of Eq. 4, (2, n_triplets), nats: the higher, the more controversial."""
    return np.array(
        [
            [t.log_prob_natural_model_1 - t.log_prob_synthetic_1_model_1 for t in triplets],
            [t.log_prob_natural_model_2 - t.log_prob_synthetic_2_model_2 for t in triplets],
        ]
    )


def ranks(triplets: Sequence[Triplet]) -> FloatArray:
    """1 for the most controversial of its model pair, (n_triplets,), by SciPy's ranks."""
    from scipy.stats import rankdata

    terms, found = disagreements(triplets), np.empty(len(triplets))
    for places in places_of(triplets).values():
        worse = rankdata(-terms[:, places], axis=1).max(axis=0)
        found[places] = rankdata(worse, method="ordinal")
    return found


def new_words(triplet: Triplet) -> list[tuple[str, str]]:
    """Words of the natural sentence and those that took their places, of both synthetic ones."""
    return [
        (before, word)
        for made in (triplet.synthetic_1, triplet.synthetic_2)
        if len(made.words) == len(triplet.natural.words)
        for before, word in zip(triplet.natural.words, made.words, strict=True)
        if word != before
    ]


def changes(triplet: Triplet) -> int:
    """Number of new words."""
    return len(new_words(triplet))


def misfits(triplet: Triplet) -> int:
    """Number of new words of another part of speech, where each word is of one, as in tags.csv."""
    rows = Path(__file__).with_name("tags.csv").read_text().splitlines()
    tags = dict(row.split(",")[:2] for row in rows)
    pairs = [(tags.get(a.lower()), tags.get(b.lower())) for a, b in new_words(triplet)]
    return sum(before != tag for before, tag in pairs if before)


def costs(triplets: Sequence[Triplet], question: TripletQuestion) -> FloatArray:
    """What is minimised, (n_triplets,); the second measure decides among equal sums."""
    values: FloatArray = disagreements(triplets).sum(axis=0)
    if question.objective == "controversiality":
        return -values
    chosen = sum(needed(question, pair) for pair in places_of(triplets))
    if question.objective == "readable":
        most = chosen * max(map(changes, triplets))
        digits = next(k for k in range(1, 20) if most < 10**k)
        return np.array([misfits(t) + changes(t) / 10**digits for t in triplets])
    above = values - values.min()
    tie_break = above / (2 * chosen * max(1.0, above.max()))
    found: FloatArray = ranks(triplets) - tie_break
    return found


def quantile_places(values: FloatArray, n: int) -> IntArray:
    """0-based quantile groups: k is the first whose edge, interpolated exactly, is not below.

    Between two neighbours in size an edge admits the lower one only, so that the edge's own value
    is not needed.
    """
    ordered = np.sort(values)
    tops = ordered[[(len(values) - 1) * k // n for k in range(1, n + 1)]]
    return np.searchsorted(tops, values, side="left").astype(np.int64)


def surplus(triplet: Triplet, model: str, tokens: Mapping[tuple[str, str], int]) -> int:
    """Tokens under a model of the sentence that it rejects, less those of the one it accepts."""
    first, second = (
        tokens[sentence.text, model] for sentence in (triplet.synthetic_1, triplet.synthetic_2)
    )
    return first - second if triplet.model_1 == model else second - first


def words_of(triplet: Triplet) -> list[str]:
    """All words of a triplet's sentences, in lower case, as often as they stand there."""
    sentences = (triplet.natural, triplet.synthetic_1, triplet.synthetic_2)
    return [word.lower() for sentence in sentences for word in sentence.words]


def counted_rules(
    triplets: Sequence[Triplet], question: TripletQuestion, tokens: Mapping[tuple[str, str], int]
) -> dict[str, Counted]:
    """Every rule of a question, by the name that prices refer to."""
    rules: dict[str, Counted] = {}
    for pair, places in places_of(triplets).items():
        rules |= _rules_of_pair(triplets, places, pair, question, tokens)
    if question.natural_once:
        for place, triplet in enumerate(triplets):
            _count(rules, f"natural sentence {triplet.natural.bare!r}", place, 1)
    if question.word_cap is not None:
        exempt = {word.lower() for word in question.uncapped}
        for place, triplet in enumerate(triplets):
            for word in words_of(triplet):
                if word not in exempt:
                    lemma = tag_table(question.tags).lemma(word)
                    _count(rules, f"word {lemma!r}", place, question.word_cap)
    return rules | likeness(triplets)


def likeness(triplets: Sequence[Triplet]) -> dict[str, Counted]:
    """For each synthetic sentence with a gap: one triplet that fills it, or many natural ones."""
    made: dict[str, set[int]] = defaultdict(set)
    natural: dict[str, set[int]] = defaultdict(set)
    for place, triplet in enumerate(triplets):
        for texts, sentences in ((natural, triplet.sentences[:1]), (made, triplet.sentences[1:])):
            for words in (sentence.bare.lower().split() for sentence in sentences):
                for gap in range(len(words)):
                    texts[" ".join([*words[:gap], "…", *words[gap + 1 :]])].add(place)
    rules = {}
    for text, places in made.items():
        others = natural[text] - places
        most = len(others) or 1
        weights = dict.fromkeys(places, most) | dict.fromkeys(others, 1)
        rules[f"sentences like {text!r}"] = Counted(weights, 0, most)
    return rules


def _count(rules: dict[str, Counted], name: str, place: int, most: int) -> None:
    weights = rules.setdefault(name, Counted({}, 0, most)).weights
    weights[place] = weights.get(place, 0) + 1


def _rules_of_pair(
    triplets: Sequence[Triplet],
    places: list[int],
    pair: tuple[str, str],
    question: TripletQuestion,
    tokens: Mapping[tuple[str, str], int],
) -> dict[str, Counted]:
    name, needs, n = "-".join(pair), needed(question, pair), question.quantiles
    rules, every = {}, places
    if question.objective == "readable":
        least = 5 if question.enough is None else question.enough
        low = {place for place in places if min(disagreements([triplets[place]])) < least}
        title = f"{name} triplets of less than {least:g} nats on a side"
        rules[title] = Counted(dict.fromkeys(low, 1), 0, 0)
        places = [place for place in places if place not in low]
    own = [triplets[place] for place in places]
    rules[f"triplets for {name}"] = Counted(dict.fromkeys(places, 1), needs, needs)
    columns = ([t.log_prob_natural_model_1 for t in own], [t.log_prob_natural_model_2 for t in own])
    for model, column in zip(pair, columns, strict=True):
        for group in range(n or 0):
            inside = quantile_places(np.array(column), n or 1) == group if own else []
            members = {place: 1 for place, here in zip(places, inside, strict=True) if here}
            each = needs // (n or 1)
            title = f"{quantile_name(n or 1)} {group + 1} of p(n|{model}) for {name}"
            rules[title] = Counted(members, each, each)
        if question.token_balance is not None:
            most = int(question.token_balance * needs + 1e-9)
            weights = {place: surplus(triplets[place], model, tokens) for place in every}
            rules[f"balance of {model}'s tokens for {name}"] = Counted(weights, -most, most)
    return rules
