"""Exact selection of triplets: linear rules, costs of triplets, and the selection."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from math import ceil, fsum
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.english.words import tag_table
from contstim.errors import InfeasibleError, InputError
from contstim.files.tables import join_names
from contstim.items.matching import match
from contstim.items.reviews import ItemKind
from contstim.items.scores import doubled_ranks
from contstim.items.stimuli import repeated_item
from contstim.optimization.selection.question import (
    Certificate,
    TripletQuestion,
    TripletSelection,
    demand,
)
from contstim.optimization.selection.reviewed import ChangedItem, changed_items, review_goals
from contstim.optimization.selection.solver import (
    EXACT,
    LinearRule,
    Program,
    least_violations,
    solve,
)
from contstim.optimization.selection.verification import verify_triplets
from contstim.wording import grouped
from contstim.words.sentence import all_but_one

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contstim.files.arrays import FloatArray, IntArray
    from contstim.items.reviews import Review, ReviewedItem
    from contstim.items.stimuli import Triplet
    from contstim.optimization.selection.question import ModelPair, Objective


def select_triplets(
    triplets: Sequence[Triplet],
    question: TripletQuestion | None = None,
    *,
    tokens: Mapping[tuple[str, str], int] | None = None,
    review: Review | None = None,
) -> TripletSelection:
    """Select the best triplets for every pair of models.

    The question has the rules and the objective. The selection is an integer linear program. If all
    rules are about quantiles, the program is an assignment problem, so the linear relaxation has a
    solution in whole numbers. Other rules may need branch and bound.

    After a review, rejected triplets are excluded. As many other reviewed triplets as possible are
    selected again, even if the objective becomes worse. Rejected triplets still count for quantiles
    and ranks, so that a review does not change the groups and ranks of other triplets.

    Args:
        triplets: candidates for all pairs of models.
        question: number of triplets, objective and rules. The default is the ten most readable
            triplets of each pair of models. Under each of the two models, these triplets have
            one natural sentence from each decile of log-probability.
        tokens: (text of a sentence, model) → number of tokens, for `token_balance`.
        review: review of earlier selections.

    Raises:
        InputError: if the triplets or the question are invalid.
        InfeasibleError: if no set satisfies the rules; the message names violated rules.
        VerificationError: if the time limit was reached without any set, or the result failed
            `verify_triplets`.
    """
    started = perf_counter()
    question = question or TripletQuestion()
    triplets = usable_triplets(triplets)
    units = {triplet.drop_unit for triplet in triplets}
    if question.objective == "readable" and units == {"nats"}:
        question = replace(question, enough=question.least_drop(triplets[0]))  # for the certificate
    if question.objective != "readable" and len(units) > 1:
        raise InputError(
            f"`objective` {question.objective} needs drops of one unit, got {join_names(units)}. "
            "Use readable, or select triplets of each unit separately."
        )
    needs = demand(question, by_model_pair(triplets))
    rules = build_rules(triplets, question, needs, tokens or {})
    costs, values, unit = triplet_costs(triplets, question, sum(needs.values()))
    index = {triplet.triplet_id: number for number, triplet in enumerate(triplets)}
    kept_items: list[dict[str, ReviewedItem]] = []
    shows = np.zeros(len(triplets), dtype=np.bool_)
    if review is not None:
        kept_items = review.kept_items(ItemKind.TRIPLET)
        rejected = [number for name, number in index.items() if name in review.rejected]
        rules.append(LinearRule("a triplet was rejected", rejected, [1] * len(rejected), 0, 0))
        words = review.shown_words
        shows[:] = [any(s.words in words for s in t.sentences) for t in triplets]
    program = Program.of([*review_goals(kept_items, index, shows), costs], rules)
    solution = solve(program, seconds=question.seconds)
    if solution is None:
        raise _infeasible(triplets, question, program)
    chosen = tuple(triplets[number] for number in np.flatnonzero(solution.chosen).tolist())
    objective = fsum(values[solution.chosen])
    bound = as_bound(solution.bound * unit, objective, question.objective)
    certificate = Certificate.of(
        question, (objective, bound), len(triplets), TIE_RULES[question.objective], solution.exact
    )
    names = [name for items in kept_items for name in items]
    changed = [ChangedItem(n, "it is not among the triplets") for n in names if n not in index]
    members = {name: index[name] for name in names if name in index}
    changed += changed_items(program, members, solution.chosen)
    selection = TripletSelection(chosen, certificate, tuple(changed))
    verify_triplets(triplets, selection, tokens=tokens, review=review)
    certificate = replace(certificate, seconds=perf_counter() - started)
    return replace(selection, certificate=certificate)


def _infeasible(
    triplets: Sequence[Triplet], question: TripletQuestion, program: Program
) -> InfeasibleError:
    broken = least_violations(program)
    worst_first = sorted(broken.items(), key=lambda item: -item[1])[:10]
    rules = "; ".join(f"{program.names[rule]} ({by})" for rule, by in worst_first)
    keys = dict.fromkeys(("per_pair", *(program.keys[rule] for rule, _ in worst_first)))
    loosen = join_names(f"`{key}`" for key in keys if key)
    message = (
        f"No set of triplets satisfies all rules. The closest set violates {len(broken):,} of "
        f"them, each by the number in brackets: {rules}. Use more triplets, or loosen {loosen}."
    )
    enough = Counter((t.model_1, t.model_2) for t in triplets if has_enough(t, question))
    total = Counter((t.model_1, t.model_2) for t in triplets)
    if parts := [f"{'-'.join(p)} {enough[p]} of {n}" for p, n in total.items() if enough[p] < n]:
        least = {f"{question.least_drop(t):g} {t.drop_unit}": None for t in triplets}
        message += (
            f" Triplets with drops of at least {' or '.join(least)} under both models: "
            f"{join_names(parts)}. If these are too few, lower `enough`."
        )
    return InfeasibleError(message)


# Tolerance for the controversiality of float32 scores, relative to the largest absolute score
_ROUNDING = 1e-5
_QUANTILES = {4: "quartile", 5: "quintile", 10: "decile", 100: "percentile"}

TIE_RULES = {
    "readable": "of sets with equal numbers of misfits and of new words, the judges' favourite is "
    "chosen if judges chose the sentences; otherwise the solver chooses",
    "controversiality": "the solver chooses among sets of equal controversiality",
    "worst-rank": "losses that tie share their mean rank, worst ranks that tie are ranked by first "
    "occurrence; of sets of equal rank sum the more controversial one is chosen: a triplet costs "
    "its rank, less its controversiality over the least in a share too small to add up to one rank",
}


def usable_triplets(triplets: Sequence[Triplet]) -> list[Triplet]:
    """Check triplets, and compute their controversiality from their log-probabilities.

    Raises:
        InputError: if there are no triplets, a triplet is repeated or invalid, or two rows name the
            same models in different orders.
    """
    if not triplets:
        raise InputError("There are no triplets to select from. Use a table with rows.")
    if twice := repeated_item(triplets):
        raise InputError(f"The triplet {twice} occurs twice. Remove one of them.")
    pairs = by_model_pair(triplets)
    for first, second in pairs:
        if (second, first) in pairs or first == second:
            raise InputError(
                f"Triplets must name two models in the same order in all rows, got {first} and "
                f"{second}. Swap model_1 and model_2, and the columns that belong to them."
            )
    usable = []
    for triplet in triplets:
        natural_1, natural_2 = triplet.log_prob_natural_model_1, triplet.log_prob_natural_model_2
        rejected = triplet.log_prob_synthetic_1_model_1, triplet.log_prob_synthetic_2_model_2
        controversiality = natural_1 - rejected[0] + natural_2 - rejected[1]
        if not triplet.in_nats:
            controversiality = sum(triplet.drops)
        if not np.isfinite(controversiality):
            raise InputError(f"{triplet.triplet_id} has a score that is not finite. Leave it out.")
        largest = max(map(abs, (natural_1, natural_2, *rejected, 1.0)))
        if not abs(controversiality - triplet.controversiality) <= _ROUNDING * largest:
            raise InputError(
                f"{triplet.triplet_id} has the controversiality {triplet.controversiality}, but "
                f"{controversiality} follows from its log-probabilities. The columns of its row do "
                "not belong together; search the triplets again."
            )
        usable.append(replace(triplet, controversiality=controversiality))
    return usable


def by_model_pair(triplets: Sequence[Triplet]) -> dict[ModelPair, list[int]]:
    """Return the indices of the triplets of each model pair, in order of first occurrence."""
    return grouped(((t.model_1, t.model_2), index) for index, t in enumerate(triplets))


def has_enough(triplet: Triplet, question: TripletQuestion) -> bool:
    """Return True if both drops of a triplet are at least `question.least_drop(triplet)`."""
    return min(triplet.drops) >= question.least_drop(triplet)


def worst_ranks(triplets: Sequence[Triplet]) -> FloatArray:
    """Rank triplets as the published code does, (n_triplets,), from 1 (most controversial).

    Model m1 rejects the synthetic sentence s1, and model m2 rejects s2; n is the natural sentence.
    Among the triplets of two models, rank log p(s1|m1)/p(n|m1), and rank log p(s2|m2)/p(n|m2). Tied
    triplets get their mean rank. Then sort the triplets by the worse of their two ranks, and number
    them. If the worse ranks of triplets are equal, the order of `triplets` decides.
    """
    ranks = np.empty(len(triplets))
    for indices in by_model_pair(triplets).values():
        both = -np.array([triplets[index].drops for index in indices]).T  # (2, n_of_pair)
        worse = np.maximum(*map(doubled_ranks, both))
        ranks[np.array(indices)[np.argsort(worse, kind="stable")]] = np.arange(1, len(indices) + 1)
    return ranks


def triplet_costs(
    triplets: Sequence[Triplet], question: TripletQuestion, n_chosen: int
) -> tuple[FloatArray, FloatArray, float]:
    """Return the costs and the values of the triplets, (n_triplets,) each, and the costs' unit.

    The objective is the sum of the values over a set of `n_chosen` triplets. The solver minimises
    the summed cost. A cost is value / unit plus a small term, which decides only between sets with
    equal sums of values.

        objective          value                         unit                  term
        readable           misfits + 10^-d * new words   10^-d, if judges      judges' drops
                                                         chose, otherwise 1
        controversiality   Eq. 4 of the 2023 study       1 nat; the cost is -value
        worst-rank         `worst_ranks`                 1 rank                - Eq. 4

    A misfit is a new word of another part of speech than the word that it replaces. The number of
    decimals d is so large that 10^-d times the number of new words in a set is less than 1. For
    example, 2.034 means 2 misfits and 34 new words (d = 3). The terms are so small that they sum to
    at most half a unit over a set.
    """
    if question.objective == "readable":
        table = tag_table(question.tags)
        both = (
            match(t.natural, synthetic, table) for t in triplets for synthetic in t.sentences[1:]
        )
        counts = np.array([(len(m.misfits), len(m.changed)) for m in both])
        misfits, changed = counts.reshape(-1, 2, 2).sum(axis=1).T
        digits = len(str(n_chosen * int(changed.max())))
        unit = 10.0**-digits
        costs: FloatArray = misfits + changed / 10.0**digits
        drops = np.array([(t.judge_drop_1 or 0.0) + (t.judge_drop_2 or 0.0) for t in triplets])
        above = drops - drops.min()
        if not above.any():
            return costs, costs, 1.0
        return costs / unit + above / (2 * n_chosen * above.max()), costs, unit
    nats = np.array([sum(triplet.drops) for triplet in triplets])
    if question.objective == "controversiality":
        return -nats, nats, 1.0
    ranks, above = worst_ranks(triplets), nats - nats.min()
    return ranks - above / (2 * n_chosen * above.max(initial=1.0)), ranks, 1.0


def as_bound(cost: float, value: float, objective: Objective) -> float:
    """Convert a lower bound on the summed cost to a bound on the summed value.

    `cost` is in the unit of the values. `value` is the summed value of the selected set. If the
    bound contradicts `value` because of rounding errors, return `value`.
    """
    if objective == "controversiality":
        return max(-cost, value)
    return min(float(ceil(cost - EXACT)) if objective == "worst-rank" else cost, value)


def build_rules(
    triplets: Sequence[Triplet],
    question: TripletQuestion,
    needs: Mapping[ModelPair, int],
    tokens: Mapping[tuple[str, str], int],
) -> list[LinearRule]:
    """Build the linear rules of a question; omit maxima that no set can exceed.

    For `needs`, see `demand`; for `tokens`, see `select_triplets`.

    Raises:
        InputError: if triplets cannot be spread evenly over quantiles, or tokens are missing.
    """
    rules: list[LinearRule] = []
    pairs = by_model_pair(triplets)
    for pair, count in needs.items():
        sufficient = [index for index in pairs[pair] if has_enough(triplets[index], question)]
        if low := sorted({*pairs[pair]} - {*sufficient}):
            least, unit = question.least_drop(triplets[low[0]]), triplets[low[0]].drop_unit
            name = f"{'-'.join(pair)} triplets of less than {least:g} {unit} on a side"
            rules.append(LinearRule(name, low, [1] * len(low), 0, 0, "enough"))
        rules.extend(_quantile_rules(triplets, sufficient, pair, count, question.quantiles))
        if question.token_balance is not None:
            # The difference of sums is `count` times the difference of means. Without 1e-9, a
            # product that should be whole may be rounded down
            max_surplus = int(question.token_balance * count + 1e-9)
            for model in pair:
                surplus = [surplus_tokens(triplets[index], model, tokens) for index in pairs[pair]]
                name = f"balance of {model}'s tokens for {'-'.join(pair)}"
                limits = (-max_surplus, max_surplus, "token_balance")
                rules.append(LinearRule(name, pairs[pair], surplus, *limits))
    exempt = frozenset(map(str.lower, question.uncapped))
    # (name, maximum, key) of a rule → index of a triplet → number of uses
    uses: dict[tuple[str, int, str], dict[int, int]] = defaultdict(dict)
    if question.natural_once:
        for index, triplet in enumerate(triplets):
            uses[f"natural sentence {triplet.natural.bare!r}", 1, "natural_once"][index] = 1
    if question.word_cap is not None:
        lemma = tag_table(question.tags).lemma
        for index, triplet in enumerate(triplets):
            words = (word.lower() for sentence in triplet.sentences for word in sentence.words)
            for word, times in Counter(lemma(word) for word in words if word not in exempt).items():
                uses[f"word {word!r}", question.word_cap, "word_cap"][index] = times
    rules += [
        LinearRule(name, list(times), list(times.values()), 0, limit, key)
        for (name, limit, key), times in uses.items()
        if sum(times.values()) > limit
    ]
    return [*rules, *_distinctness_rules(triplets)]


def _distinctness_rules(triplets: Sequence[Triplet]) -> Iterator[LinearRule]:
    """Forbid that a synthetic sentence is similar to a sentence of another triplet.

    Sentences are similar if they differ at no more than one position. Each rule is about a set of
    sentences that are equal except at one position. If a triplet has a synthetic sentence in the
    set, no other selected triplet may have a sentence in the set. If no selected triplet has such a
    synthetic sentence, any number of triplets may have natural sentences in the set.
    """
    with_synthetic, natural = defaultdict[Any, set[int]](set), defaultdict[Any, set[int]](set)
    for index, triplet in enumerate(triplets):
        users_of_role = (natural, with_synthetic, with_synthetic)
        for sentence, users_of_entry in zip(triplet.sentences, users_of_role, strict=True):
            # Rules must have the same names in every process
            for entry in sorted(all_but_one(tuple(map(str.lower, sentence.words)))):
                users_of_entry[entry].add(index)
    rule_names: dict[tuple[frozenset[int], frozenset[int]], str] = {}
    for (position, words), synthetic_users in with_synthetic.items():
        natural_users = natural[position, words] - synthetic_users
        if len(synthetic_users) + len(natural_users) > 1:
            text = " ".join((*words[:position], "…", *words[position:]))
            users = (frozenset(synthetic_users), frozenset(natural_users))
            rule_names.setdefault(users, f"sentences like {text!r}")
    for (first, second), name in rule_names.items():
        limit = max(1, len(second))
        weights = [limit] * len(first) + [1] * len(second)
        yield LinearRule(name, [*sorted(first), *sorted(second)], weights, 0, limit)


def _quantile_rules(
    triplets: Sequence[Triplet], indices: list[int], pair: ModelPair, count: int, quantiles: int
) -> Iterator[LinearRule]:
    """Yield the rules on the number of triplets of two models.

    There is a rule for each quantile group. If `quantiles` is 0, one rule covers all triplets.
    `indices` are the triplets of the pair for which `has_enough` is True.
    """
    if not quantiles or not count:
        name = f"triplets for {'-'.join(pair)}"
        yield LinearRule(name, indices, [1] * len(indices), count, count, "per_pair")
        return
    share, remainder = divmod(count, quantiles)
    if remainder:
        raise InputError(
            f"{count} triplets for {'-'.join(pair)} cannot be spread evenly over {quantiles} "
            f"{quantile_name(quantiles)}s. Set `per_pair` to a multiple of {quantiles}, or change "
            "`quantiles`."
        )
    sufficient = [triplets[index] for index in indices]
    log_probs = [(t.log_prob_natural_model_1, t.log_prob_natural_model_2) for t in sufficient]
    # log p(n|m1) and log p(n|m2), nats
    for model, column in zip(pair, np.array(log_probs).reshape(-1, 2).T, strict=True):
        edges = quantile_edges(column, quantiles) if indices else np.zeros(quantiles + 1)
        groups = quantile_groups(column, edges)
        for group in range(quantiles):
            members = [indices[i] for i in np.flatnonzero(groups == group)]
            name = f"{quantile_name(quantiles)} {group + 1} of p(n|{model}) for {'-'.join(pair)}"
            yield LinearRule(name, members, [1] * len(members), share, share, "quantiles")


def surplus_tokens(triplet: Triplet, model: str, tokens: Mapping[tuple[str, str], int]) -> int:
    """Return the number of tokens of the rejected minus the accepted synthetic sentence.

    Raises:
        InputError: if the number of tokens of a sentence under the model is missing.
    """
    texts = [triplet.synthetic_1.text, triplet.synthetic_2.text]
    for text in texts:
        if (text, model) not in tokens:
            raise InputError(
                f"`token_balance` needs the number of tokens of {text!r} under {model}, which is "
                "missing. Write the tokens of all triplets and models with 'contstim score "
                "--per-word'."
            )
    first, second = (tokens[text, model] for text in texts)
    return first - second if model == triplet.model_1 else second - first


def quantile_name(n: int) -> str:
    """Return the name of one of n quantile groups, such as `decile` for n = 10."""
    return _QUANTILES.get(n, f"{n}-quantile")


def quantile_edges(values: FloatArray, n: int) -> FloatArray:
    """Compute the n + 1 edges of n quantile groups of finite values, as `pandas.qcut` does.

    As in pandas, inexact fractions are rounded up, so that a value on an edge is in the lower
    group.
    """
    shares = np.linspace(0, 1, n + 1)
    inexact = n * shares != np.arange(n + 1)
    shares[inexact] = np.nextafter(shares[inexact], 1)
    return np.quantile(values, shares)


def quantile_groups(values: FloatArray, edges: FloatArray) -> IntArray:
    """Return the 0-based quantile group of each value: `pandas.qcut(values, n, labels=False)`.

    A value on an edge is in the lower group. If two edges are equal because of ties, the group
    between them is empty (pandas raises an error).
    """
    # If edge g is the first that is not below a value, the value is in group g - 1; the smallest
    # value is in the first group
    groups = np.searchsorted(edges, values, side="left")
    return np.clip(groups, 1, len(edges) - 1).astype(np.int64) - 1
