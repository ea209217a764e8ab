"""Independent objective values and rules of triplets, an oracle for tests.

This uses the definitions, not the code that selects and checks.
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
"""Token counts by (text of a sentence, model)."""


def group_by_models(triplets: Sequence[Triplet]) -> dict[Models, list[Triplet]]:
    groups: dict[Models, list[Triplet]] = defaultdict(list)
    for triplet in triplets:
        groups[triplet.model_1, triplet.model_2].append(triplet)
    return dict(groups)


def required_counts(triplets: Sequence[Triplet], question: TripletQuestion) -> dict[Models, int]:
    """Return the number of triplets that each model pair needs."""
    specified = {(first, second): n for first, second, n in question.counts}
    return {
        models: specified.get(models, question.per_pair) for models in group_by_models(triplets)
    }


def disagreements(triplets: Sequence[Triplet]) -> FloatArray:
    """Return both terms of Eq. 4, (2, n_triplets), in nats; higher is more controversial."""
    return np.array(
        [
            [t.log_prob_natural_model_1 - t.log_prob_synthetic_1_model_1 for t in triplets],
            [t.log_prob_natural_model_2 - t.log_prob_synthetic_2_model_2 for t in triplets],
        ]
    )


def ranks(triplets: Sequence[Triplet]) -> FloatArray:
    """Return SciPy's ranks within each model pair, (n_triplets,); 1 is the most controversial."""
    rank_by_id: dict[str, float] = {}
    for group in group_by_models(triplets).values():
        worse_ranks = rankdata(-disagreements(group), axis=1).max(axis=0)
        ordinal_ranks = rankdata(worse_ranks, method="ordinal")
        rank_by_id |= {t.triplet_id: rank for t, rank in zip(group, ordinal_ranks, strict=True)}
    return np.array([rank_by_id[t.triplet_id] for t in triplets])


def new_words(triplet: Triplet) -> list[tuple[str, str]]:
    """Return (old word, new word) for all changes in both synthetic sentences."""
    return [
        (old_word, word)
        for synthetic in (triplet.synthetic_1, triplet.synthetic_2)
        if len(synthetic.words) == len(triplet.natural.words)
        for old_word, word in zip(triplet.natural.words, synthetic.words, strict=True)
        if word != old_word
    ]


def count_misfits(triplet: Triplet) -> int:
    """Return the number of new words with another part of speech, by the tags in tags.csv."""
    rows = Path(__file__).with_name("tags.csv").read_text().splitlines()
    tags = dict(row.split(",")[:2] for row in rows)
    pairs = [(tags.get(a.lower()), tags.get(b.lower())) for a, b in new_words(triplet)]
    return sum(old_tag != new_tag for old_tag, new_tag in pairs if old_tag)


def objective_values(triplets: Sequence[Triplet], question: TripletQuestion) -> FloatArray:
    """Return the contribution of each triplet to the objective, (n_triplets,)."""
    if question.objective == "controversiality":
        return np.asarray(disagreements(triplets).sum(axis=0))
    if question.objective == "worst-rank":
        return ranks(triplets)
    changes = np.array([len(new_words(triplet)) for triplet in triplets])
    digits = len(str(sum(required_counts(triplets, question).values()) * changes.max()))
    return np.array([count_misfits(triplet) for triplet in triplets]) + changes / 10.0**digits


def set_values(
    sets: Iterable[Sequence[Triplet]], triplets: Sequence[Triplet], question: TripletQuestion
) -> list[float]:
    values = zip(triplets, objective_values(triplets, question), strict=True)
    value_by_id = {t.triplet_id: value for t, value in values}
    return [sum(value_by_id[t.triplet_id] for t in chosen) for chosen in sets]


def costs(triplets: Sequence[Triplet], question: TripletQuestion) -> FloatArray:
    """Return the minimized costs, (n_triplets,); controversiality breaks ties of rank sums."""
    values = objective_values(triplets, question)
    if question.objective == "readable":
        return values
    if question.objective == "controversiality":
        return -values
    controversiality = disagreements(triplets).sum(axis=0)
    controversiality -= controversiality.min()
    size = sum(required_counts(triplets, question).values())
    return np.asarray(values - controversiality / (2 * size * max(1.0, controversiality.max())))


def assign_halves(values: list[float], n: int) -> list[int]:
    """Return one or two groups by definition: values up to the median are in the first."""
    median = np.median(values or [0]) if n == 2 else np.inf
    return [int(value > median) for value in values]


def satisfies_pair_rules(
    chosen: Sequence[Triplet], group: Sequence[Triplet], count: int, question: TripletQuestion
) -> bool:
    """Return whether the chosen triplets of a model pair satisfy the rules of that pair."""
    if question.objective == "readable":
        min_nats = 5 if question.enough is None else question.enough
        group = [t for t in group if min(disagreements([t])) >= min_nats]
    if len(chosen) != count or any(t not in group for t in chosen):
        return False
    n = question.quantiles or 1
    even_counts = Counter(dict.fromkeys(range(n), count // n))
    columns = (
        [t.log_prob_natural_model_1 for t in group],
        [t.log_prob_natural_model_2 for t in group],
    )
    return all(
        Counter(g for t, g in zip(group, assign_halves(column, n), strict=True) if t in chosen)
        == even_counts
        for column in columns
    )


def satisfies_joint_rules(
    chosen: Sequence[Triplet], question: TripletQuestion, tokens: Tokens
) -> bool:
    """Return whether a set satisfies the rules about sentences, words and tokens."""
    naturals = Counter(t.natural.bare for t in chosen)
    all_words = " ".join(s.bare.lower() for t in chosen for s in t.sentences).split()
    words = Counter(map(tag_table(question.tags).lemma, all_words))
    max_surplus = np.inf if question.token_balance is None else question.token_balance
    surplus = {
        models: sum(
            tokens[t.synthetic_1.text, "a"] - tokens[t.synthetic_2.text, "a"] for t in group
        )
        / len(group)
        for models, group in group_by_models(chosen).items()
    }
    return (
        (not question.natural_once or max(naturals.values(), default=0) <= 1)
        and (question.word_cap is None or max(words.values(), default=0) <= question.word_cap)
        and all(abs(mean) <= max_surplus for mean in surplus.values())
        and not any(
            len(synthetic) == len(sentence)
            and sum(
                a.lower() != b.lower() for a, b in zip(synthetic.words, sentence.words, strict=True)
            )
            < 2
            for first, second in permutations(chosen, 2)
            for synthetic in (first.synthetic_1, first.synthetic_2)
            for sentence in second.sentences
        )
    )


def satisfies_rules(
    chosen: Sequence[Triplet],
    triplets: Sequence[Triplet],
    question: TripletQuestion,
    tokens: Tokens,
) -> bool:
    counts, chosen_by_models = required_counts(triplets, question), group_by_models(chosen)
    return satisfies_joint_rules(chosen, question, tokens) and all(
        satisfies_pair_rules(chosen_by_models.get(models, []), group, counts[models], question)
        for models, group in group_by_models(triplets).items()
    )
