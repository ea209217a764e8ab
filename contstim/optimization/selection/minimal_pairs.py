"""Exact selection of minimal pairs on which two models give different verdicts.

A model's verdict is the sentence of a minimal pair that it finds likelier. Where two models differ,
one agrees with the grammar and the other does not. Of all minimal pairs and pairs of models there
may be a million such candidates; few of them matter. A linear program over the best of each
paradigm gives prices of the rules, with which all others are priced
(`contstim.optimization.selection.programs`): those that could improve the choice join the program,
until none is left.
"""

from __future__ import annotations

from collections import Counter
from importlib import metadata
from itertools import combinations, permutations
from math import fsum
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from contstim.english.tags import tag_table
from contstim.errors import InfeasibleError, InputError, VerificationError
from contstim.optimization.selection.programs import LinearRule, best_choice, priced_bound
from contstim.optimization.selection.question import (
    MinimalPairCertificate,
    MinimalPairQuestion,
    MinimalPairSelection,
)
from contstim.optimization.selection.triplet_rules import EXACT
from contstim.scores import doubled_ranks
from contstim.stimuli import ControversialMinimalPair, Kind, content_id
from contstim.tables import listed
from contstim.vocabulary import REPEATABLE_ENGLISH

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from contstim.arrays import FloatArray, IntArray
    from contstim.minimal_pair_scores import MinimalPairScores
    from contstim.optimization.selection.programs import Choice
    from contstim.optimization.selection.question import MinimalPairObjective

_SLOPE, _LIMIT = 0.055, 27.0  # a nat, and nats: people's choices between natural sentences in 2023
_MORE = 3  # of each paradigm, more than may be chosen, that the program begins with
_SECONDS = 60.0  # for branch and bound


def select_minimal_pairs(
    scores: MinimalPairScores,
    question: MinimalPairQuestion | None = None,
    *,
    excluded: Collection[tuple[str, ...]] = (),
) -> MinimalPairSelection:
    """Choose, for every two models, the minimal pairs on which their verdicts differ most.

    For every two models each is right in half of the pairs; paradigms have even shares, as far as
    they hold disagreements; no sentence stands in two of the chosen pairs.

    Args:
        scores: log-probabilities of both sentences of all minimal pairs under all models.
        question: what to choose.
        excluded: words of sentences that no chosen pair may show.

    Raises:
        InputError: fewer than two models.
        InfeasibleError: there are too few disagreements; says between which models.
        VerificationError: no set was found in time, or the set breaks a rule.
    """
    started = perf_counter()
    question = question or MinimalPairQuestion()
    if len(scores.models) < 2:
        raise InputError("Verdicts differ between models: give scores of two or more.")
    candidates = _Candidates(scores, question, frozenset(excluded))
    choice, chosen = _solve(candidates)
    by_prices = -candidates.bound(choice.prices)
    objective = fsum(-candidates.costs[chosen])
    bound = min(by_prices, EXACT - choice.bound)
    rules = candidates.rules(chosen)
    broken = [rule.name for rule in rules if not rule.lower <= len(rule.members) <= rule.upper]
    broken += ["its bound"] * (objective > bound + EXACT)
    if broken:
        raise VerificationError(f"The selection breaks its own rules: {listed(broken)}.")
    certificate = MinimalPairCertificate(
        objective=objective,
        bound=bound,
        status="optimal" if bound - objective <= 2 * EXACT else "gap",
        solver=choice.solver,
        version=metadata.version("scipy"),
        tie_rule="among sets that are worth the same the solver's stands",
        candidates=len(candidates.costs),
        seconds=perf_counter() - started,
        question=question,
        models=scores.models,
        n_pairs=len(scores.pairs),
        most=tuple((*g, n) for g, n in zip(candidates.groups, candidates.most, strict=True)),
        price_bound=by_prices,
        prices=tuple(choice.prices.items()),
    )
    pairs = tuple(map(candidates.stimulus, chosen.tolist()))
    return MinimalPairSelection(pairs, _verdicts(scores, pairs), certificate)


def _solve(candidates: _Candidates) -> tuple[Choice, IntArray]:
    """The best choice, and the chosen candidates, (n_chosen,); no other could improve it."""
    costs, more, seconds = candidates.costs, _MORE, 0.0
    some = candidates.best(more)
    while True:
        choice = best_choice(costs[some], [*candidates.rules(some)], seconds=seconds)
        if choice.chosen is None:
            if len(some) == len(costs):
                raise candidates.infeasible("pairs of models need the same sentences or words")
            more *= 8
            some = np.union1d(some, candidates.best(more))
            continue
        chosen = some[choice.chosen]
        # Those that could improve the linear program; then those that a better whole set could
        # have, which are dearer than their prices by no more than the set than its bound
        gap = float(costs[chosen].sum()) - candidates.bound(choice.prices) if seconds else -EXACT
        near = np.flatnonzero(candidates.reduced(choice.prices) <= gap)
        if len(every := np.union1d(some, near)) > len(some):
            some = every
        elif seconds or choice.whole:
            return choice, chosen
        else:
            seconds = _SECONDS


class _Candidates:
    """Minimal pairs and two models whose verdicts on them differ.

    A group of candidates is of two models and which of them is right, a cell of a group and a
    paradigm.

    Args:
        scores: of all minimal pairs.
        question: what to choose.
        excluded: words of sentences that no chosen pair may show.

    Attributes:
        groups: (model that is wrong, model that is right) of each.
        costs: (n_candidates,) worth, negated.
        most: of each group, how many of a cell may be chosen.

    Raises:
        InfeasibleError: a group has too few candidates.
    """

    def __init__(
        self,
        scores: MinimalPairScores,
        question: MinimalPairQuestion,
        excluded: frozenset[tuple[str, ...]],
    ) -> None:
        from scipy.sparse import csr_array, eye_array

        self._scores, self._question = scores, question
        self.groups = list(permutations(scores.models, 2))
        wrong, right = np.array(list(permutations(range(len(scores.models)), 2))).T
        verdicts = self._usable(question.floor, excluded)
        differ = (verdicts[:, wrong] < 0) & (verdicts[:, right] > 0)
        self._group, self._row = np.nonzero(differ.T)
        self.costs = -self._worth(question.objective, wrong[self._group], right[self._group])
        names, paradigm = np.unique([pair.paradigm for pair in scores.pairs], return_inverse=True)
        self._cell = self._group * len(names) + paradigm[self._row]
        n_cells = len(self.groups) * len(names)
        of_cells = np.bincount(self._cell, minlength=n_cells).reshape(-1, len(names))
        need = question.per_pair // 2
        self.most = self._most(of_cells, need, question.per_paradigm)
        # Rules by number, of groups, cells, sentences and words; which of them concern a candidate
        limits = {
            f"{right} prefers the {self._scores.good_name} one, {wrong} the other": (need, need)
            for wrong, right in self.groups
        }
        for group, most in zip([*limits], self.most, strict=True):
            limits |= {f"{group}, {name}": (0, most) for name in names.tolist()}
        rows, shared, upper = zip(*_shared(scores, question), strict=True)
        limits |= {name: (0, most) for name, most in zip(shared, upper, strict=True)}
        numbers = {name: number for number, name in enumerate(limits)}
        entries = np.ones(len(rows)), (rows, [numbers[rule] for rule in shared])
        of_pairs = csr_array(entries, shape=(len(scores.pairs), len(limits)))
        each = eye_array(len(limits), format="csr")
        own = each[self._group] + each[len(self.groups) + self._cell]
        self._limits, self._matrix = limits, own + of_pairs[self._row]

    def _usable(self, floor: float | None, excluded: frozenset[tuple[str, ...]]) -> FloatArray:
        """(n_pairs, n_models) 1 for the acceptable sentence, -1 for the other; 0 if not usable."""
        scores = self._scores
        sides = [(pair.good, pair.bad) for pair in scores.pairs]
        # Sentences that look alike to people can be no item, whatever models say
        shown = [
            good.bare.lower() != bad.bare.lower() and excluded.isdisjoint((good.words, bad.words))
            for good, bad in sides
        ]
        usable = np.isfinite(scores.margins) & np.array(shown)[:, None]
        if floor is not None:
            lengths = np.array([[len(s) for s in both] for both in sides])
            usable &= (scores.log_probs >= floor * lengths[:, :, None]).all(axis=1)
        return np.where(usable, np.sign(scores.margins), 0.0)

    def _worth(self, objective: MinimalPairObjective, *models: IntArray) -> FloatArray:
        """Worth of candidates, (n_candidates,), with the numbers of their two models."""
        margins = self._scores.margins
        if objective == "evidence":
            logits = _SLOPE * np.clip(margins, -_LIMIT, _LIMIT)
            wrong, right = (logits[self._row, m] for m in models)
            # Mean of both directions of Kullback and Leibler's divergence
            return (1 / (1 + np.exp(-right)) - 1 / (1 + np.exp(-wrong))) * (right - wrong) / 2
        sizes = np.abs(margins)
        if objective == "rank":
            ranks = [doubled_ranks(column) for column in sizes.T]
            sizes = np.stack(ranks, axis=1) / (2 * len(sizes))
        return np.minimum(*(sizes[self._row, m] for m in models))

    def infeasible(self, why: str) -> InfeasibleError:
        """The error that no set keeps the rules, which names those that can be loosened."""
        limits, question = ("per_paradigm", "floor", "word_cap"), self._question
        loosen = "".join(f"loosen `{n}`, " for n in limits if getattr(question, n) is not None)
        return InfeasibleError(
            f"No set of minimal pairs keeps all rules: {why}. Ask for fewer (`per_pair`), {loosen}"
            "or give more minimal pairs."
        )

    def _most(self, of_cells: IntArray, need: int, asked: int | None) -> list[int]:
        """For each group, how many of a cell may be chosen: as few as suffice, or as asked."""
        tries = np.arange(1, need + 1) if asked is None else np.array([asked])
        can = np.minimum(of_cells[:, :, None], tries).sum(axis=1)  # (n_groups, n_tries)
        lacking = [
            f"{n:,} can be chosen where {right} does and {other} does not"
            for (other, right), n in zip(self.groups, can[:, -1].tolist(), strict=True)
            if n < need
        ]
        if lacking:
            raise self.infeasible(
                f"for every two models {need:,} are needed on which only the first prefers the "
                f"{self._scores.good_name} one, and as many on which only the second does; "
                f"{listed(lacking)}"
            )
        return [int(tries[first]) for first in (can >= need).argmax(axis=1)]

    def best(self, more: int) -> IntArray:
        """The best candidates of each cell, so many more than may be chosen, (n,)."""
        order = np.lexsort((self.costs, self._cell))
        cells = self._cell[order]
        rank = np.arange(len(order)) - np.searchsorted(cells, cells)
        return np.sort(order[rank < np.array(self.most)[self._group[order]] + more])

    def rules(self, some: IntArray, prices: Collection[str] = ()) -> Iterator[LinearRule]:
        """The rules about some candidates that can be broken, and those that have a price."""
        part = self._matrix[some].tocsc()
        for number, (name, (lower, upper)) in enumerate(self._limits.items()):
            members = part.indices[part.indptr[number] : part.indptr[number + 1]]
            if lower or len(members) > upper or name in prices:
                yield LinearRule(name, members.tolist(), [1] * len(members), lower, upper)

    def reduced(self, prices: Mapping[str, float]) -> FloatArray:
        """(n_candidates,) costs less what the prices give for each."""
        every = np.array([prices.get(name, 0.0) for name in self._limits])
        reduced: FloatArray = self.costs - self._matrix @ every
        return reduced

    def bound(self, prices: Mapping[str, float]) -> float:
        """The bound on summed costs that prices prove over all candidates."""
        # Of candidates that are clearly dearer than their prices none counts
        some = np.flatnonzero(self.reduced(prices) < EXACT)
        return float(priced_bound(self.costs[some].tolist(), [*self.rules(some, prices)], prices))

    def stimulus(self, candidate: int) -> ControversialMinimalPair:
        """The stimulus that a candidate gives."""
        scores, row = self._scores, int(self._row[candidate])
        models = self.groups[self._group[candidate]]
        pair = scores.pairs[row]
        of_good, of_bad = scores.log_probs[row][:, list(map(scores.models.index, models))].tolist()
        return ControversialMinimalPair(
            content_id("minimal", *models, pair.good, pair.bad),
            *(*models, pair.paradigm, pair.pair_id, pair.good, pair.bad),
            *(*of_good, *of_bad, Kind.CHANGED if scores.near else Kind.UNACCEPTABLE),
        )


def _shared(
    scores: MinimalPairScores, question: MinimalPairQuestion
) -> Iterator[tuple[int, str, int]]:
    """What minimal pairs may share: row, rule about a sentence or word, and its upper limit."""
    lemma = tag_table(question.tags).lemma
    for row, pair in enumerate(scores.pairs):
        both = (pair.good, pair.bad)
        own = {f"sentence {sentence.bare.lower()!r}": 1 for sentence in both}
        if question.word_cap is not None:
            words = {word.lower() for sentence in both for word in sentence.words}
            lemmas = map(lemma, words - REPEATABLE_ENGLISH)
            own |= {f"word {each!r}": question.word_cap for each in lemmas}
        # In order, so that rules have one in every process
        yield from ((row, *rule) for rule in sorted(own.items()))


def _verdicts(
    scores: MinimalPairScores, chosen: Sequence[ControversialMinimalPair]
) -> dict[str, list[object]]:
    """The table of verdicts by paradigm and models; see `MinimalPairSelection`."""
    names, paradigm = np.unique([pair.paradigm for pair in scores.pairs], return_inverse=True)
    selected = Counter((frozenset((c.model_1, c.model_2)), c.paradigm) for c in chosen)
    rows: list[tuple[object, ...]] = []
    for both, right in zip(
        combinations(scores.models, 2), combinations((scores.margins > 0).T, 2), strict=True
    ):
        # In each paradigm 0: both right, 1: the first, 2: the second, 3: neither
        kind = 4 * paradigm + 3 - 2 * right[0] - right[1]
        counts = np.bincount(kind, minlength=4 * len(names)).reshape(-1, 4)
        rows += (
            (name, *both, *of_paradigm, selected[frozenset(both), name])
            for name, of_paradigm in zip(names.tolist(), counts.tolist(), strict=True)
        )
    heads = "paradigm model_1 model_2 both_right model_1_right model_2_right neither_right chosen"
    return dict(zip(heads.split(), map(list, zip(*rows, strict=True)), strict=True))
