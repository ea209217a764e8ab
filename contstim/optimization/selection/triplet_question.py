"""Requirements on a set of triplets: an objective, and rules that can be counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from contstim.errors import InputError
from contstim.optimization.selection.programs import LinearRule
from contstim.optimization.selection.quantiles import quantile_edges, quantile_groups, quantile_name
from contstim.vocabulary import REPEATABLE_ENGLISH

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contstim.arrays import FloatArray
    from contstim.stimuli import Triplet

    ModelPair = tuple[str, str]

_ROUNDING = 1e-5
"""How far Eq. 4 may be off, as a share of the largest log-probability: float32 rounds each."""

Objective = Literal["controversiality", "worst-rank"]


@dataclass(frozen=True)
class TripletQuestion:
    """Number of triplets to choose for each model pair, and the objective and rules of the choice.

    Attributes:
        per_pair: triplets for each model pair, at least 1.
        objective: `controversiality` maximises the summed Eq. 4 of the 2023 study; `worst-rank`
            minimises summed ranks as its authors' code does (see `worst_ranks`).
        quantiles: natural sentences are spread evenly over this many quantile groups of p(n|m1),
            and of p(n|m2); None: not at all.
        natural_once: no natural sentence serves twice, in whatever model pair.
        word_cap: no word stands more often in the chosen sentences (compared in lower case).
        uncapped: words for which `word_cap` does not count.
        token_balance: by how many tokens the mean length of the synthetic sentences that a model
            rejects may differ from that of those it accepts, in each model pair, under that model.
        counts: model pairs, as they stand in the triplets, that need another number than
            `per_pair`; 0 leaves one out.
        edges: (model_1, model_2, model) → the edges of its quantile groups, nats, as they were in
            an earlier selection; others are those of the triplets.
    """

    per_pair: int = 10
    objective: Objective = "controversiality"
    quantiles: int | None = 10
    natural_once: bool = False
    word_cap: int | None = None
    uncapped: frozenset[str] = REPEATABLE_ENGLISH
    token_balance: float | None = None
    counts: Mapping[ModelPair, int] = field(default_factory=dict)
    edges: Mapping[tuple[str, str, str], tuple[float, ...]] = field(default_factory=dict)

    def count(self, model_pair: ModelPair) -> int:
        """Number of triplets that a model pair needs."""
        return self.counts.get(model_pair, self.per_pair)


def check_question(triplets: Sequence[Triplet], question: TripletQuestion) -> None:
    """Refuse triplets that cannot be compared, and questions that have no meaning.

    Raises:
        InputError: says what was given and what is allowed.
    """
    if not triplets:
        raise InputError("There are no triplets to choose from.")
    for triplet in triplets:
        _check_triplet(triplet)
    twice = [name for name, n in Counter(t.triplet_id for t in triplets).items() if n > 1]
    if twice:
        raise InputError(f"{len(twice):,} triplets stand twice; the first is {twice[0]}.")
    pairs = dict.fromkeys(model_pair(triplet) for triplet in triplets)
    for first, second in pairs:
        if (second, first) in pairs or first == second:
            raise InputError(
                f"Triplets name the models {first} and {second} in both orders, or one model "
                "twice: every model pair needs one order, in which model_1 rejects synthetic_1."
            )
    unknown = [pair for pair in question.counts if pair not in pairs]
    if unknown:
        raise InputError(
            f"A count is asked for {unknown[0][0]}, {unknown[0][1]}, in which order there are no "
            f"triplets; there are {'; '.join(', '.join(pair) for pair in pairs)}."
        )
    groups = question.quantiles
    if groups is not None and groups < 1:
        raise InputError(f"There are 1 or more quantile groups, not {groups}.")
    for pair in pairs:
        count, least = question.count(pair), 0 if pair in question.counts else 1
        if count < least:
            raise InputError(
                f"Cannot choose {count} triplets for {'-'.join(pair)}; ask for 1 or more."
            )
        if groups is not None and count % groups:
            raise InputError(
                f"{count} triplets for {'-'.join(pair)} cannot be spread evenly over {groups} "
                f"{quantile_name(groups)}s: ask for a multiple, for other quantiles, or for none."
            )
    if question.word_cap is not None and question.word_cap < 1:
        raise InputError(f"A word may occur at least once; {question.word_cap} is not a cap.")
    if question.token_balance is not None and not 0 <= question.token_balance < np.inf:
        raise InputError(f"Mean lengths differ by 0 tokens or more, not {question.token_balance}.")


def _check_triplet(triplet: Triplet) -> None:
    # What is stated was computed from the same numbers, each rounded to float32 on the way.
    c = controversiality(triplet)
    if not np.isfinite(c):
        raise InputError(
            f"{triplet.triplet_id} has a log-probability that is not finite: leave it out."
        )
    largest = max(abs(value) for value in _log_probs(triplet))
    if not abs(c - triplet.controversiality) <= _ROUNDING * max(1.0, largest):
        raise InputError(
            f"{triplet.triplet_id} states the controversiality {triplet.controversiality}, but its "
            f"log-probabilities make it {c}: its columns do not belong together."
        )


def model_pair(triplet: Triplet) -> ModelPair:
    """The models of a triplet in its own order."""
    return triplet.model_1, triplet.model_2


def recomputed(triplet: Triplet) -> Triplet:
    """The triplet with the controversiality that its own log-probabilities make."""
    n_1, n_2, rejected_1, rejected_2 = _log_probs(triplet)
    return replace(triplet, controversiality=n_1 - rejected_1 + n_2 - rejected_2)


def by_model_pair(triplets: Sequence[Triplet]) -> dict[ModelPair, list[int]]:
    """Places of the triplets of each model pair, in order of first occurrence."""
    places: dict[ModelPair, list[int]] = {}
    for place, triplet in enumerate(triplets):
        places.setdefault(model_pair(triplet), []).append(place)
    return places


def controversiality(triplet: Triplet) -> float:
    """Eq. 4 of the 2023 study: log p(n|m1)/p(s1|m1) + log p(n|m2)/p(s2|m2), nats."""
    first, second = losses(triplet)
    return -first - second


def losses(triplet: Triplet) -> tuple[float, float]:
    """The two terms log p(s1|m1)/p(n|m1) and log p(s2|m2)/p(n|m2), nats: the lower, the better."""
    return (
        triplet.log_prob_synthetic_1_model_1 - triplet.log_prob_natural_model_1,
        triplet.log_prob_synthetic_2_model_2 - triplet.log_prob_natural_model_2,
    )


def _log_probs(triplet: Triplet) -> tuple[float, float, float, float]:
    """The four terms of Eq. 4: log p(n|m1), log p(n|m2), log p(s1|m1), log p(s2|m2), nats."""
    return (
        triplet.log_prob_natural_model_1,
        triplet.log_prob_natural_model_2,
        triplet.log_prob_synthetic_1_model_1,
        triplet.log_prob_synthetic_2_model_2,
    )


def natural_log_probs(triplets: Sequence[Triplet]) -> FloatArray:
    """The columns log p(n|m1) and log p(n|m2), (2, n_triplets), nats."""
    return np.array(
        [
            [t.log_prob_natural_model_1 for t in triplets],
            [t.log_prob_natural_model_2 for t in triplets],
        ]
    )


def shown_words(triplet: Triplet) -> Iterator[str]:
    """The words of a triplet's three sentences, in lower case."""
    for sentence in (triplet.natural, triplet.synthetic_1, triplet.synthetic_2):
        yield from map(str.lower, sentence.words)


def surplus_tokens(triplet: Triplet, model: str, tokens: Mapping[tuple[str, str], int]) -> int:
    """Tokens of the synthetic sentence that a model rejects, less those of the one it accepts.

    Raises:
        InputError: a sentence has not been counted under the model.
    """
    texts = [triplet.synthetic_1.text, triplet.synthetic_2.text]
    for text in texts:
        if (text, model) not in tokens:
            raise InputError(
                f"Token balance needs the number of tokens of {text!r} under {model}, which is "
                "not given: write them with 'contstim score --per-word' for all triplets and "
                "models."
            )
    first, second = (tokens[text, model] for text in texts)
    return first - second if model == triplet.model_1 else second - first


def build_rules(
    triplets: Sequence[Triplet],
    question: TripletQuestion,
    tokens: Mapping[tuple[str, str], int],
) -> list[LinearRule]:
    """The rules of a question about these triplets; a rule that cannot be broken is left out."""
    rules: list[LinearRule] = []
    edges = edges_of(triplets, question)
    for pair, places in by_model_pair(triplets).items():
        rules.extend(_spread(triplets, pair, places, question, edges))
        if question.token_balance is not None:
            # Mean lengths differ by at most the balance, so summed ones by as much for every
            # triplet; 1e-9 is for products such as 0.1 * 30 that fall short of a whole number.
            most = int(question.token_balance * question.count(pair) + 1e-9)
            for model in pair:
                surplus = [surplus_tokens(triplets[place], model, tokens) for place in places]
                name = f"balance of {model}'s tokens for {'-'.join(pair)}"
                rules.append(LinearRule(name, places, surplus, -most, most, rank=1))
    if question.natural_once:
        users: dict[str, list[int]] = defaultdict(list)  # natural sentence → its triplets
        for place, triplet in enumerate(triplets):
            users[triplet.natural.bare].append(place)
        rules += [
            LinearRule(f"natural sentence {natural!r}", places, [1] * len(places), 0, 1, rank=1)
            for natural, places in users.items()
            if len(places) > 1
        ]
    if question.word_cap is not None:
        exempt = frozenset(map(str.lower, question.uncapped))
        n_times: dict[str, dict[int, int]] = defaultdict(dict)  # word → triplet → how often
        for place, triplet in enumerate(triplets):
            for word, times in Counter(shown_words(triplet)).items():
                if word not in exempt:
                    n_times[word][place] = times
        # A word too rare to reach the cap, were all its triplets chosen, needs no rule.
        rules += [
            LinearRule(
                f"word {word!r}", list(counts), list(counts.values()), 0, question.word_cap, rank=1
            )
            for word, counts in n_times.items()
            if sum(counts.values()) > question.word_cap
        ]
    return rules


def edges_of(
    triplets: Sequence[Triplet], question: TripletQuestion
) -> dict[tuple[str, str, str], tuple[float, ...]]:
    """The edges of all quantile groups, nats, by (model_1, model_2, model)."""
    if question.quantiles is None:
        return {}
    edges = {}
    for pair, places in by_model_pair(triplets).items():
        values = natural_log_probs([triplets[place] for place in places])
        for model, column in zip(pair, values, strict=True):
            own = tuple(quantile_edges(column, question.quantiles).tolist())
            edges[*pair, model] = question.edges.get((*pair, model), own)
    return edges


def _spread(
    triplets: Sequence[Triplet],
    pair: ModelPair,
    places: list[int],
    question: TripletQuestion,
    edges: Mapping[tuple[str, str, str], tuple[float, ...]],
) -> Iterator[LinearRule]:
    count, groups = question.count(pair), question.quantiles
    ones = [1] * len(places)
    if groups is None or count == 0:
        yield LinearRule(f"triplets for {'-'.join(pair)}", places, ones, count, count)
        return
    each = count // groups
    # `places` are those of the pair's triplets among all; `i` counts among the pair's own.
    values = natural_log_probs([triplets[place] for place in places])
    for model, column in zip(pair, values, strict=True):
        of_place = quantile_groups(column, np.array(edges[*pair, model]))
        for group in range(groups):
            members = [places[i] for i in np.flatnonzero(of_place == group)]
            name = f"{quantile_name(groups)} {group + 1} of p(n|{model}) for {'-'.join(pair)}"
            yield LinearRule(name, members, ones[: len(members)], each, each)
