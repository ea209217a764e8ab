"""A second account of what triplets are worth and which rules they keep: an oracle for tests.

Written from the definitions, and apart from the code that selects and checks.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from contstim.english.words import tag_table
from contstim.files.arrays import FloatArray
from contstim.items.stimuli import Triplet
from contstim.optimization.selection.question import TripletQuestion

Models = tuple[str, str]
Tokens = Mapping[tuple[str, str], int]
"""Number of tokens of (text of a sentence, model)."""


def by_models(triplets: Sequence[Triplet]) -> dict[Models, list[Triplet]]:
    groups: dict[Models, list[Triplet]] = defaultdict(list)
    for triplet in triplets:
        groups[triplet.model_1, triplet.model_2].append(triplet)
    return dict(groups)


def demands(triplets: Sequence[Triplet], question: TripletQuestion) -> dict[Models, int]:
    """How many triplets each model pair needs."""
    own = {(first, second): n for first, second, n in question.counts}
    return {models: own.get(models, question.per_pair) for models in by_models(triplets)}


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
    found: dict[str, float] = {}
    for own in by_models(triplets).values():
        worse = rankdata(-disagreements(own), axis=1).max(axis=0)
        ordinal = rankdata(worse, method="ordinal")
        found |= {t.triplet_id: rank for t, rank in zip(own, ordinal, strict=True)}
    return np.array([found[t.triplet_id] for t in triplets])


def new_words(triplet: Triplet) -> list[tuple[str, str]]:
    """Words of the natural sentence and those that took their places, of both synthetic ones."""
    return [
        (before, word)
        for made in (triplet.synthetic_1, triplet.synthetic_2)
        if len(made.words) == len(triplet.natural.words)
        for before, word in zip(triplet.natural.words, made.words, strict=True)
        if word != before
    ]


def misfits(triplet: Triplet) -> int:
    """Number of new words of another part of speech, where each word is of one, as in tags.csv."""
    rows = Path(__file__).with_name("tags.csv").read_text().splitlines()
    tags = dict(row.split(",")[:2] for row in rows)
    pairs = [(tags.get(a.lower()), tags.get(b.lower())) for a, b in new_words(triplet)]
    return sum(before != tag for before, tag in pairs if before)


def worths(triplets: Sequence[Triplet], question: TripletQuestion) -> FloatArray:
    """The part of each triplet in the objective, (n_triplets,)."""
    if question.objective == "controversiality":
        return np.asarray(disagreements(triplets).sum(axis=0))
    if question.objective == "worst-rank":
        return ranks(triplets)
    changes = np.array([len(new_words(triplet)) for triplet in triplets])
    digits = len(str(sum(demands(triplets, question).values()) * changes.max()))
    return np.array([misfits(triplet) for triplet in triplets]) + changes / 10.0**digits


def values_of(
    sets: Iterable[Sequence[Triplet]], triplets: Sequence[Triplet], question: TripletQuestion
) -> list[float]:
    each = dict(zip((t.triplet_id for t in triplets), worths(triplets, question), strict=True))
    return [sum(each[t.triplet_id] for t in chosen) for chosen in sets]


def costs(triplets: Sequence[Triplet], question: TripletQuestion) -> FloatArray:
    """What is minimised, (n_triplets,); controversiality decides among equal sums of ranks."""
    values = worths(triplets, question)
    if question.objective == "readable":
        return values
    if question.objective == "controversiality":
        return -values
    above = disagreements(triplets).sum(axis=0)
    above -= above.min()
    chosen = sum(demands(triplets, question).values())
    return np.asarray(values - above / (2 * chosen * max(1.0, above.max())))


def halves(values: list[float], n: int) -> list[int]:
    """One or two groups by their definition: a value up to the median is in the first."""
    median = np.median(values or [0]) if n == 2 else np.inf
    return [int(value > median) for value in values]


def keeps_rules_of_pair(
    chosen: Sequence[Triplet], own: Sequence[Triplet], count: int, question: TripletQuestion
) -> bool:
    """Whether the triplets chosen for a pair of models, of all its own, keep that pair's rules."""
    if question.objective == "readable":
        least = 5 if question.enough is None else question.enough
        own = [t for t in own if min(disagreements([t])) >= least]
    if len(chosen) != count or any(t not in own for t in chosen):
        return False
    n = question.quantiles or 1
    even = Counter(dict.fromkeys(range(n), count // n))
    columns = ([t.log_prob_natural_model_1 for t in own], [t.log_prob_natural_model_2 for t in own])
    return all(
        Counter(g for t, g in zip(own, halves(column, n), strict=True) if t in chosen) == even
        for column in columns
    )


def keeps_joint_rules(chosen: Sequence[Triplet], question: TripletQuestion, tokens: Tokens) -> bool:
    """Whether a set keeps the rules about sentences, words and tokens."""
    naturals = Counter(t.natural.bare for t in chosen)
    every = " ".join(s.bare.lower() for t in chosen for s in t.sentences).split()
    words = Counter(map(tag_table(question.tags).lemma, every))
    most = np.inf if question.token_balance is None else question.token_balance
    surplus = {
        models: sum(tokens[t.synthetic_1.text, "a"] - tokens[t.synthetic_2.text, "a"] for t in own)
        / len(own)
        for models, own in by_models(chosen).items()
    }
    return (
        (not question.natural_once or max(naturals.values(), default=0) <= 1)
        and (question.word_cap is None or max(words.values(), default=0) <= question.word_cap)
        and all(abs(mean) <= most for mean in surplus.values())
        and not any(
            len(made) == len(other)
            and sum(a.lower() != b.lower() for a, b in zip(made.words, other.words, strict=True))
            < 2
            for one, two in permutations(chosen, 2)
            for made in (one.synthetic_1, one.synthetic_2)
            for other in two.sentences
        )
    )


def keeps_rules(
    chosen: Sequence[Triplet],
    triplets: Sequence[Triplet],
    question: TripletQuestion,
    tokens: Tokens,
) -> bool:
    needs, parts = demands(triplets, question), by_models(chosen)
    return keeps_joint_rules(chosen, question, tokens) and all(
        keeps_rules_of_pair(parts.get(models, []), own, needs[models], question)
        for models, own in by_models(triplets).items()
    )
