"""Exact selection of minimal pairs on which two models give different verdicts.

A model's verdict is the sentence of a minimal pair that it finds likelier. Where two models differ,
one agrees with the grammar and the other does not. Of all minimal pairs and pairs of models there
may be a million such candidates. They are in cells: a cell is a paradigm and a half, the minimal
pairs on which one model of two is right. Where the candidates of each half allow it, every count of
a cell is one of two neighbouring numbers, which are rules of a linear program. Where halves need
the same sentences or words, the most even counts are found first
(`contstim.optimization.selection.shares`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from importlib import metadata
from itertools import combinations, permutations
from math import fsum
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from contstim.english.tags import tag_table
from contstim.errors import InfeasibleError, InputError, VerificationError
from contstim.files.tables import listed
from contstim.items.scores import doubled_ranks
from contstim.items.stimuli import ControversialMinimalPair, Kind, content_id
from contstim.optimization.selection.question import (
    MinimalPairCertificate,
    MinimalPairQuestion,
    MinimalPairSelection,
)
from contstim.optimization.selection.shares import Program, solve, with_even_counts
from contstim.optimization.selection.triplet_rules import EXACT
from contstim.optimization.selection.verification import verify_minimal_pairs
from contstim.words.vocabulary import REPEATABLE_ENGLISH

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from contstim.files.arrays import FloatArray, IntArray
    from contstim.items.minimal_pair_scores import MinimalPairScores
    from contstim.optimization.selection.programs import Choice
    from contstim.optimization.selection.question import MinimalPairObjective

_SLOPE, _LIMIT = 0.055, 27.0  # a nat, and nats: people's choices between natural sentences in 2023


def select_minimal_pairs(
    scores: MinimalPairScores,
    question: MinimalPairQuestion | None = None,
    *,
    excluded: Collection[tuple[str, ...]] = (),
) -> MinimalPairSelection:
    """Choose, for every two models, the minimal pairs on which their verdicts differ most.

    For every two models, each is right in half of the pairs. No sentence is in two of the chosen
    pairs. A share is the number of pairs of one paradigm in one half. Shares are as even as
    possible: the fewest are 0, then the fewest are 1, and so on. Of all such sets, the chosen one
    has the best objective.

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
    program, choice, columns, most_even = _solve(candidates)
    by_prices = -program.exact_bound(choice.prices)
    chosen = columns[columns < len(candidates.costs)]
    objective = fsum(-candidates.costs[chosen])
    bound = min(by_prices, EXACT - choice.bound)
    broken = [
        rule.name
        for rule in program.rules(columns)
        if not rule.lower <= sum(rule.weights) <= rule.upper
    ]
    broken += ["its bound"] * (objective > bound + EXACT)
    if broken:
        raise VerificationError(f"The selection breaks its own rules: {listed(broken)}.")
    certificate = MinimalPairCertificate(
        objective=objective,
        bound=bound,
        status="optimal" if most_even and bound - objective <= 2 * EXACT else "gap",
        solver=choice.solver,
        version=metadata.version("scipy"),
        tie_rule="among sets that are worth the same the solver's stands",
        candidates=len(candidates.costs),
        seconds=perf_counter() - started,
        question=question,
        models=scores.models,
        n_pairs=len(scores.pairs),
        shares=candidates.shares(chosen),
        price_bound=by_prices,
        prices=tuple(choice.prices.items()),
    )
    pairs = tuple(map(candidates.stimulus, chosen.tolist()))
    selection = MinimalPairSelection(pairs, _verdicts(scores, pairs), certificate)
    verify_minimal_pairs(scores, selection, excluded=excluded)
    return selection


def _solve(candidates: _Candidates) -> tuple[Program, Choice, IntArray, bool]:
    """The program, the best choice, its columns, and whether no shares are more even."""
    program, most_even = candidates.program(even=True), True
    solved = solve(program, grow=False)
    if solved is None:
        with_levels = with_even_counts(
            candidates.program(even=False), candidates.available, candidates.total
        )
        if with_levels is not None:
            program, most_even = with_levels
            solved = solve(program)
    if solved is None:
        raise candidates.infeasible("pairs of models need the same sentences or words")
    return program, *solved, most_even


class _Candidates:
    """Minimal pairs and two models whose verdicts on them differ.

    A half is of two models and which of them is right, a cell of a half and a paradigm.

    Args:
        scores: of all minimal pairs.
        question: what to choose.
        excluded: words of sentences that no chosen pair may show.

    Attributes:
        groups: (model that is wrong, model that is right) of each half.
        costs: (n_candidates,) worth, negated.
        available: rule of a cell, by number → number of pairs that may be chosen.
        total: number of pairs that are chosen.

    Raises:
        InfeasibleError: a half has too few candidates.
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
        need, n_cells = question.per_pair // 2, len(self.groups) * len(names)
        cap = question.per_paradigm or need
        sizes = np.bincount(self._cell, minlength=n_cells).clip(max=cap)
        most = np.repeat(self._most(sizes.reshape(-1, len(names)), need), len(names))
        self.available = {len(self.groups) + n: k for n, k in enumerate(sizes.tolist()) if k}
        self.total = need * len(self.groups)
        # Rules by number, of halves, cells, sentences and words; which of them concern a candidate
        limits = {
            f"{right} prefers the {self._scores.good_name} one, {wrong} the other": (need, need)
            for wrong, right in self.groups
        }
        cells = [f"{group}, {name}" for group in limits for name in names.tolist()]
        even = zip(cells, np.minimum(sizes, most - 1).tolist(), most.tolist(), strict=True)
        self._even = {cell: (least, largest) for cell, least, largest in even}
        limits |= dict.fromkeys(cells, (0, cap))
        rows, shared, upper = zip(*_shared(scores, question), strict=True)
        limits |= {name: (0, largest) for name, largest in zip(shared, upper, strict=True)}
        numbers = {name: number for number, name in enumerate(limits)}
        entries = np.ones(len(rows)), (rows, [numbers[rule] for rule in shared])
        of_pairs = csr_array(entries, shape=(len(scores.pairs), len(limits)))
        each = eye_array(len(limits), format="csr")
        own = each[self._group] + each[len(self.groups) + self._cell]
        order = np.lexsort((self.costs, self._cell))
        in_order = self._cell[order]
        place = np.empty_like(order)
        place[order] = np.arange(len(order)) - np.searchsorted(in_order, in_order)
        place -= most[self._cell]
        self._program = Program(self.costs, csr_array(own + of_pairs[self._row]), limits, place)

    def program(self, *, even: bool) -> Program:
        """All rules.

        Args:
            even: whether each share is one of two neighbouring numbers, or all that is available.
        """
        own = self._program
        return replace(own, limits={**own.limits, **self._even}) if even else own

    def shares(self, chosen: IntArray) -> tuple[int, ...]:
        """How many shares are 1 or more, 2 or more, and so on."""
        sizes = np.unique(self._cell[chosen], return_counts=True)[1]
        return tuple(int((sizes >= k).sum()) for k in range(1, sizes.max(initial=0) + 1))

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

    def _most(self, sizes: IntArray, need: int) -> IntArray:
        """For each half, the least largest share with which it has enough pairs, (n_groups,).

        Args:
            sizes: (n_groups, n_paradigms) pairs of each cell that may be chosen.
            need: pairs of each half.
        """
        tries = np.arange(1, need + 1)
        can = np.minimum(sizes[:, :, None], tries).sum(axis=1)  # (n_groups, n_tries)
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
        most: IntArray = tries[(can >= need).argmax(axis=1)]
        return most

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
