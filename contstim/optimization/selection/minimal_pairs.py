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
from functools import cached_property
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
from contstim.scores import doubled_ranks
from contstim.stimuli import ControversialMinimalPair, Kind, content_id
from contstim.tables import listed
from contstim.vocabulary import REPEATABLE_ENGLISH

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from scipy.sparse import csr_array

    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.minimal_pair_scores import MinimalPairScores
    from contstim.optimization.selection.programs import Choice
    from contstim.optimization.selection.question import MinimalPairObjective
    from contstim.sentence import Sentence

EXACT = 1e-6  # objective and bound that differ by less are called equal
_SLOPE, _LIMIT = 0.055, 27.0  # a nat, and nats: people's choices between natural sentences in 2023
_MORE = 3  # of each paradigm, more than may be chosen, that the program begins with
_SECONDS = 60.0  # for branch and bound
_NONE = (
    "No set of minimal pairs keeps all rules: pairs of models need the same sentences or words. "
    "Ask for fewer (per_pair), allow more of a paradigm (per_paradigm) or of a word (word_cap), or "
    "give more minimal pairs."
)


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
        n_pairs=len(scores.paradigms),
        most=tuple(
            (*g, n) for g, n in zip(candidates.groups, candidates.most.tolist(), strict=True)
        ),
        price_bound=by_prices,
        prices=tuple(choice.prices.items()),
    )
    pairs = tuple(map(candidates.stimulus, chosen.tolist()))
    _verify(pairs, certificate)
    return MinimalPairSelection(pairs, _verdicts(scores, pairs), certificate)


def _solve(candidates: _Candidates) -> tuple[Choice, IntArray]:
    """The best choice, and the chosen candidates, (n_chosen,); no other could improve it."""
    costs, more = candidates.costs, _MORE
    some = candidates.best(more)
    while True:  # until no candidate could improve the linear program
        linear = best_choice(costs[some], candidates.rules(some), seconds=0.0)
        if linear.chosen is None and len(some) == len(costs):
            raise InfeasibleError(_NONE)
        if linear.chosen is None:
            more *= 8
            some = candidates.best(more)
            continue
        lacking = np.setdiff1d(np.flatnonzero(candidates.reduced(linear.prices) < -EXACT), some)
        if not len(lacking):
            break
        some = np.union1d(some, lacking)
    if linear.whole:
        return linear, some[linear.chosen]
    reduced, least = candidates.reduced(linear.prices), candidates.bound(linear.prices)
    while True:  # until none is so little dearer than its prices that a better set could have it
        choice = best_choice(costs[some], candidates.rules(some), seconds=_SECONDS)
        gap = np.inf  # where no set of these keeps the rules, one with others may
        if choice.chosen is not None:
            chosen = some[choice.chosen]
            gap = costs[chosen].sum() - least
        near = np.flatnonzero(reduced <= gap)
        if len(np.setdiff1d(near, some)):
            some = np.union1d(some, near)
        elif choice.chosen is None:
            raise InfeasibleError(_NONE)
        else:
            return choice, chosen


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
        most: (n_groups,) how many of a cell may be chosen.

    Raises:
        InfeasibleError: a group has too few candidates.
    """

    def __init__(
        self,
        scores: MinimalPairScores,
        question: MinimalPairQuestion,
        excluded: frozenset[tuple[str, ...]],
    ) -> None:

        from scipy.sparse import csr_array, hstack

        self._scores, self._need, margins = scores, question.per_pair // 2, scores.margins
        both = list(permutations(range(len(scores.models)), 2))
        self.groups = [(scores.models[wrong], scores.models[right]) for wrong, right in both]
        usable = _usable(scores, question.floor, excluded)
        rows = [
            np.flatnonzero(
                (margins[:, wrong] < 0) & (margins[:, right] > 0) & usable[:, [wrong, right]].all(1)
            )
            for wrong, right in both
        ]
        worth = _worths(scores, question.objective)
        self._row = np.concatenate(rows)
        self.costs = -np.concatenate([worth(*each) for each in zip(rows, both, strict=True)])
        self._group = np.repeat(np.arange(len(both)), list(map(len, rows)))
        paradigms, paradigm = np.unique(scores.paradigms, return_inverse=True)
        self._cell = self._group * len(paradigms) + paradigm[self._row]
        n_cells = len(both) * len(paradigms)
        of_cells = np.bincount(self._cell, minlength=n_cells).reshape(len(both), -1)
        self.most = self._most(of_cells, question.per_paradigm)
        # Rules: groups, cells, sentences and words; the matrix says which hold of a candidate.
        of_pairs, names_of_pairs, upper = _shared(scores, question)
        self._names = [f"{right} right, {wrong} wrong" for wrong, right in self.groups]
        self._names += [f"{name}, {p}" for name in self._names for p in paradigms]
        self._names += names_of_pairs
        most = np.repeat(self.most, len(paradigms))
        self._upper = np.concatenate([np.full(len(both), self._need), most, upper])
        columns = np.stack([self._group, len(both) + self._cell], axis=1).ravel()
        ends = np.arange(0, len(columns) + 1, 2)
        shape = (len(self.costs), len(both) + n_cells)
        own = csr_array((np.ones(len(columns)), columns, ends), shape=shape)
        self._matrix = hstack([own, of_pairs[self._row]]).tocsr()

    def _most(self, of_cells: IntArray, per_paradigm: int | None) -> IntArray:
        """(n_groups,) how many of a cell may be chosen: as few as suffice, or as asked."""
        tries = np.arange(1, self._need + 1) if per_paradigm is None else np.array([per_paradigm])
        can = np.minimum(of_cells[:, :, None], tries).sum(axis=1)  # (n_groups, n_tries)
        if (short := np.flatnonzero(can[:, -1] < self._need)).size:
            lacking = [
                f"{can[group, -1]:,} can be chosen where {right} is right and {wrong} wrong"
                for group, (wrong, right) in enumerate(self.groups)
                if group in short
            ]
            raise InfeasibleError(
                f"There are too few minimal pairs on which models differ: {self._need} of each "
                f"kind are needed, and {listed(lacking)}. Give more minimal pairs, ask for fewer "
                "(per_pair)" + (", or more of a paradigm (per_paradigm)." if per_paradigm else ".")
            )
        most: IntArray = tries[(can >= self._need).argmax(axis=1)]
        return most

    def best(self, more: int) -> IntArray:
        """The best candidates of each cell, so many more than may be chosen, (n,)."""
        order = np.lexsort((self.costs, self._cell))
        cells = self._cell[order]
        rank = np.arange(len(order)) - np.searchsorted(cells, cells)
        return np.sort(order[rank < self.most[self._group[order]] + more])

    def rules(self, some: IntArray, priced: Mapping[str, float] | None = None) -> list[LinearRule]:
        """The rules about some candidates that can be broken, and those that have a price."""
        part = self._matrix[some].tocsc()
        counts, n_groups = np.diff(part.indptr), len(self.groups)
        binding = counts > self._upper
        binding[:n_groups] = True
        if priced is not None:
            binding |= self._prices(priced) != 0
        return [
            LinearRule(
                self._names[number],
                part.indices[part.indptr[number] : part.indptr[number + 1]].tolist(),
                [1] * int(counts[number]),
                self._need if number < n_groups else 0,
                int(self._upper[number]),
            )
            for number in np.flatnonzero(binding).tolist()
        ]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self._names)}

    def _prices(self, prices: Mapping[str, float]) -> FloatArray:
        """(n_rules,) prices by the numbers of the rules."""
        every = np.zeros(len(self._names))
        every[[self._numbers[name] for name in prices]] = list(prices.values())
        return every

    def reduced(self, prices: Mapping[str, float]) -> FloatArray:
        """(n_candidates,) costs less what the prices give for each."""
        reduced: FloatArray = self.costs - self._matrix @ self._prices(prices)
        return reduced

    def bound(self, prices: Mapping[str, float]) -> float:
        """The bound on summed costs that prices prove over all candidates."""
        # Of candidates that are clearly dearer than their prices none counts
        some = np.flatnonzero(self.reduced(prices) < EXACT)
        return float(priced_bound(self.costs[some].tolist(), self.rules(some, prices), prices))

    def stimulus(self, candidate: int) -> ControversialMinimalPair:
        """The stimulus that a candidate gives."""
        scores, row = self._scores, int(self._row[candidate])
        models = self.groups[self._group[candidate]]
        columns = list(map(scores.models.index, models))
        good, bad = scores.good[row], scores.bad[row]
        of_good, of_bad = scores.log_probs[row][:, columns].tolist()
        return ControversialMinimalPair(
            content_id("minimal", *models, good, bad),
            *(*models, scores.paradigms[row], scores.pair_ids[row], good, bad),
            *(*of_good, *of_bad, Kind.CHANGED if scores.near else Kind.UNACCEPTABLE),
        )


def _usable(
    scores: MinimalPairScores, floor: float | None, excluded: frozenset[tuple[str, ...]]
) -> BoolArray:
    """Mask of pairs that may be chosen for each model, (n_pairs, n_models)."""
    sides = list(zip(scores.good, scores.bad, strict=True))
    # Sentences that look alike to people can be no item, whatever models say
    shown = [
        good.bare.lower() != bad.bare.lower() and excluded.isdisjoint((good.words, bad.words))
        for good, bad in sides
    ]
    usable: BoolArray = np.isfinite(scores.margins) & np.array(shown)[:, None]
    if floor is not None:
        lengths = np.array([[len(s) for s in both] for both in sides])
        usable &= (scores.log_probs >= floor * lengths[:, :, None]).all(axis=1)
    return usable


def _worths(
    scores: MinimalPairScores, objective: MinimalPairObjective
) -> Callable[[IntArray, tuple[int, int]], FloatArray]:
    """Function of rows and two models: what each of these pairs is worth, (n_rows,)."""
    if objective == "evidence":
        logits = _SLOPE * np.clip(scores.margins, -_LIMIT, _LIMIT)
        probs = 1 / (1 + np.exp(-logits))
        # Mean of both directions of Kullback and Leibler's divergence
        return lambda rows, both: (
            np.diff(probs[rows][:, both])[:, 0] * np.diff(logits[rows][:, both])[:, 0] / 2
        )
    sizes = np.abs(scores.margins)
    if objective == "rank":
        sizes = np.stack([doubled_ranks(column) for column in sizes.T], axis=1) / (2 * len(sizes))
    return lambda rows, both: sizes[rows][:, both].min(axis=1)


def _shared(
    scores: MinimalPairScores, question: MinimalPairQuestion
) -> tuple[csr_array, list[str], IntArray]:
    """What minimal pairs may share: (n_pairs, n_rules) of which they have, names, upper limits."""
    from scipy.sparse import csr_array

    lemma, cap = tag_table(question.tags).lemma, question.word_cap
    numbers: dict[str, int] = {}
    columns: list[int] = []
    ends = [0]
    for both in zip(scores.good, scores.bad, strict=True):
        names = {f"sentence {sentence.bare.lower()!r}" for sentence in both}
        if cap is not None:
            names |= {f"word {each!r}" for each in _content_lemmas(both, lemma)}
        columns += (numbers.setdefault(name, len(numbers)) for name in sorted(names))
        ends.append(len(columns))
    shape = (len(scores.good), len(numbers))
    upper = np.array([1 if name.startswith("sentence") else cap or 1 for name in numbers])
    return csr_array((np.ones(len(columns)), columns, ends), shape=shape), list(numbers), upper


def _content_lemmas(sentences: Iterable[Sentence], lemma: Callable[[str], str]) -> set[str]:
    words = {word.lower() for sentence in sentences for word in sentence.words}
    return {lemma(word) for word in words - REPEATABLE_ENGLISH}


def _verdicts(
    scores: MinimalPairScores, chosen: Sequence[ControversialMinimalPair]
) -> dict[str, list[object]]:
    """The table of verdicts by paradigm and models; see `MinimalPairSelection`."""
    paradigms, paradigm = np.unique(scores.paradigms, return_inverse=True)
    selected = Counter((frozenset((c.model_1, c.model_2)), c.paradigm) for c in chosen)
    rows: list[tuple[object, ...]] = []
    for one, two in combinations(range(len(scores.models)), 2):
        right_1, right_2 = scores.margins[:, one] > 0, scores.margins[:, two] > 0
        masks = (right_1 & right_2, right_1 & ~right_2, ~right_1 & right_2, ~right_1 & ~right_2)
        counts = np.stack([np.bincount(paradigm[m], minlength=len(paradigms)) for m in masks])
        names = scores.models[one], scores.models[two]
        rows += (
            (name, *names, *of_paradigm, selected[frozenset(names), name])
            for name, of_paradigm in zip(paradigms.tolist(), counts.T.tolist(), strict=True)
        )
    heads = "paradigm model_1 model_2 both_right model_1_right model_2_right neither_right chosen"
    return dict(zip(heads.split(), map(list, zip(*rows, strict=True)), strict=True))


def _verify(pairs: Sequence[ControversialMinimalPair], certificate: MinimalPairCertificate) -> None:
    """Count the chosen pairs against every rule, and the objective against its bound.

    Raises:
        VerificationError: a rule is broken.
    """
    question, need = certificate.question, certificate.question.per_pair // 2
    most = {(wrong, right): n for wrong, right, n in certificate.most}
    groups = Counter((pair.model_1, pair.model_2) for pair in pairs)
    cells = Counter((pair.model_1, pair.model_2, pair.paradigm) for pair in pairs)
    shown = Counter(s.bare.lower() for pair in pairs for s in (pair.good, pair.bad))
    lemma = tag_table(question.tags).lemma
    words = Counter(w for pair in pairs for w in _content_lemmas((pair.good, pair.bad), lemma))
    holds = {
        "numbers of pairs": groups == dict.fromkeys(most, need),
        "paradigms": all(n <= most[one, two] for (one, two, _), n in cells.items()),
        "sentences": max(shown.values()) == 1,
        "words": question.word_cap is None or max(words.values()) <= question.word_cap,
        "bound": certificate.objective <= certificate.bound + EXACT,
    }
    if broken := [name for name, kept in holds.items() if not kept]:
        raise VerificationError(f"The selection breaks its own rules: {', '.join(broken)}.")
