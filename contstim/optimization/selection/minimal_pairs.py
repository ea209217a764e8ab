"""Exact selection of minimal pairs on which two models give different verdicts.

verdict    the sentence of a minimal pair that is likelier under a model
candidate  a minimal pair, and two models with different verdicts: one is right (it prefers the
           acceptable sentence), the other is wrong
half       the candidates of two models in which the same model is right
cell       the candidates of one half and one paradigm
share      the number of selected candidates of a cell

Shares are as even as possible (leximin): as few cells as possible have a share of 0, then as few as
possible have a share of 1, and so on. An integer linear program (see `solver`) finds such shares.
For each k = 1, 2, …, the program has one variable (column) for every cell. This variable is called
level k of the cell, and is 0 or 1. The sum of a cell's levels is at most the cell's share. The
program maximises the number of cells whose level 1 is 1, then the number of cells whose level 2 is
1, and so on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations, permutations
from math import fsum
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from contstim.english.words import tag_table
from contstim.errors import InfeasibleError, InputError
from contstim.files.tables import join_names
from contstim.items.reviews import ItemKind
from contstim.items.scores import doubled_ranks
from contstim.items.stimuli import ControversialMinimalPair, Kind, content_id
from contstim.optimization.selection.question import (
    Certificate,
    MinimalPairQuestion,
    MinimalPairSelection,
)
from contstim.optimization.selection.reviewed import ChangedItem, changed_items, review_goals
from contstim.optimization.selection.solver import LinearRule, Program, group_indices, solve
from contstim.optimization.selection.verification import verify_minimal_pairs
from contstim.wording import grouped
from contstim.words.vocabulary import REPEATABLE_ENGLISH

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from contstim.files.arrays import BoolArray, FloatArray, IntArray
    from contstim.items.minimal_pair_scores import MinimalPairScores
    from contstim.items.reviews import Review
    from contstim.optimization.selection.question import MinimalPairObjective
    from contstim.optimization.selection.solver import Solution

# The margin of a pair is the difference of its two log-probabilities under a model, nats.
# `_SLOPE`: log odds of a choice for each nat of the margin
# `_LIMIT`: margin above which the log odds do not increase, nats
# `_SLOPE` and `_LIMIT` were fitted to choices between natural sentences in the study of 2023 (Golan
# et al.)
_SLOPE, _LIMIT = 0.055, 27.0


def select_minimal_pairs(
    scores: MinimalPairScores,
    question: MinimalPairQuestion | None = None,
    *,
    review: Review | None = None,
) -> MinimalPairSelection:
    """Select, for every two models, the minimal pairs on which their verdicts differ most.

    A model is right if it prefers the acceptable sentence. For every two models, the first model is
    right in half of the selected pairs, and the second model in the other half. No sentence is in
    two pairs. The pairs are spread as evenly as possible over paradigms (see the docstring of the
    module). Of all sets that satisfy these rules, the selected set has the best objective.

    After a review, sentences of rejected items are excluded. As many other reviewed minimal pairs
    as possible are selected again, even if the numbers of pairs then become less even.

    Args:
        scores: log-probabilities of both sentences of all minimal pairs under all models.
        question: number of pairs, objective and rules.
        review: review of earlier selections.

    Raises:
        InputError: if there are fewer than two models.
        InfeasibleError: if two models disagree on too few pairs (the message names the models), or
            no set satisfies the rules.
        VerificationError: if the time limit was reached, or the set breaks a rule.
    """
    started = perf_counter()
    question = question or MinimalPairQuestion()
    if len(scores.models) < 2:
        raise InputError(f"The scores must be of at least 2 models, got {len(scores.models)}.")
    candidates = _Candidates(scores, question, review)
    program = candidates.program(candidates.even_share)
    solution = solve(program)
    if solution is not None and not candidates.is_even(solution):
        program = candidates.program(question.per_paradigm or question.per_pair // 2)
        solution = solve(program)
    if solution is None:
        raise candidates.infeasible("several pairs of models need the same sentences or words")
    chosen = np.flatnonzero(solution.chosen[: len(candidates.costs)])
    objective = fsum(-candidates.costs[chosen])
    values = (objective, max(objective, -solution.bound))
    tie_rule, n_candidates = "the solver chooses among sets of equal value", len(candidates.costs)
    certificate = Certificate.of(question, values, n_candidates, tie_rule, solution.exact)
    pairs = tuple(map(candidates.stimulus, chosen.tolist()))
    changed = candidates.lost + changed_items(program, candidates.kept, solution.chosen)
    selection = MinimalPairSelection(pairs, _verdict_table(scores, pairs), certificate, changed)
    verify_minimal_pairs(scores, selection, review=review)
    certificate = replace(certificate, seconds=perf_counter() - started)
    return replace(selection, certificate=certificate)


class _Candidates:
    """Candidates, and the program that selects some of them.

    The docstring of the module defines the terms.

    Attributes:
        groups: (model that is wrong, model that is right) of each half.
        costs: (n_candidates,) values of the candidates, negated.
        kept: identifier of a kept item → index of its candidate. A kept item was reviewed and not
            rejected.
        lost: kept items that are not candidates.
        even_share: largest share in the most even selection. This number ignores that two halves
            may need the same sentences or words.

    Raises:
        InfeasibleError: if a half has too few candidates.
    """

    def __init__(
        self, scores: MinimalPairScores, question: MinimalPairQuestion, review: Review | None
    ) -> None:
        self._scores, self._question, self._review = scores, question, review
        self.groups = list(permutations(scores.models, 2))
        wrong, right = np.array(list(permutations(range(len(scores.models)), 2))).T
        verdicts = self._verdicts(question.floor)
        differ = (verdicts[:, wrong] < 0) & (verdicts[:, right] > 0)
        kept_cells = self._kept_cells(differ)
        if review is not None:
            allowed = differ & ~self._shows(review.rejected_words)[:, None]
            for row, group in kept_cells.values():
                allowed[row, group] = True
            differ = allowed
        self._group, self._row = np.nonzero(differ.T)
        self.kept = {
            name: int(np.flatnonzero((self._row == row) & (self._group == group))[0])
            for name, (row, group) in kept_cells.items()
        }
        self.costs = -self._value(question.objective, wrong[self._group], right[self._group])
        self._names, paradigm = np.unique([p.paradigm for p in scores.pairs], return_inverse=True)
        self._cell = self._group * len(self._names) + paradigm[self._row]
        self._need, n_cells = question.per_pair // 2, len(self.groups) * len(self._names)
        self._cap = question.per_paradigm or self._need
        sizes = np.bincount(self._cell, minlength=n_cells).clip(max=self._cap)
        group_limits = self._group_limits(sizes.reshape(-1, len(self._names)))
        self._sizes, self.even_share = sizes, int(group_limits.max())
        order = np.lexsort((self.costs, self._cell))
        in_order = self._cell[order]
        # Rank of a candidate by cost among the candidates of its cell, minus the largest share that
        # is expected in its half
        self._order = np.empty_like(order)
        self._order[order] = np.arange(len(order)) - np.searchsorted(in_order, in_order)
        self._order -= np.repeat(group_limits, len(self._names))[self._cell]
        self._order[[*self.kept.values()]] = -1

    def _kept_cells(self, differ: BoolArray) -> dict[str, tuple[int, int]]:
        """Return identifier of a kept item → (row of the pair, index of the half); set `lost`."""
        review = self._review
        self._all_kept = [] if review is None else review.kept_items(ItemKind.MINIMAL_PAIR)
        items = {name: item for of_file in self._all_kept for name, item in of_file.items()}
        pairs = self._scores.pairs if items else ()
        rows = {(pair.good, pair.bad): row for row, pair in enumerate(pairs)}
        groups = {models: number for number, models in enumerate(self.groups)}
        cells, lost = {}, []
        for name, item in items.items():
            row = rows.get((item.sentence_1, item.sentence_2))
            group = groups.get((item.model_1, item.model_2))
            if row is None or group is None:
                lost.append(ChangedItem(name, "the scores lack its sentences or models"))
            elif not differ[row, group]:
                rule = "its models prefer the same sentence, or one is below the floor"
                key = "" if self._question.floor is None else "floor"
                lost.append(ChangedItem(name, rule, key))
            else:
                cells[name] = (row, group)
        self.lost = tuple(lost)
        return cells

    def _shows(self, words: Collection[tuple[str, ...]]) -> BoolArray:
        """Return a mask of the minimal pairs with a sentence in `words`, (n_pairs,)."""
        pairs = self._scores.pairs
        return np.array([pair.good.words in words or pair.bad.words in words for pair in pairs])

    def program(self, n_levels: int) -> Program:
        """Build the program; its columns are the candidates, then levels 1 … n_levels of cells."""
        n_candidates, rules = len(self.costs), self._rules()
        # A cell with fewer than k candidates has no column for level k
        cells = np.flatnonzero(self._sizes)
        levels = [
            (int(cell), k)
            for k in range(1, n_levels + 1)
            for cell in cells[self._sizes[cells] >= k]
        ]
        columns = grouped((cell, n_candidates + n) for n, (cell, _) in enumerate(levels))
        for cell, level_columns in columns.items():
            of_cell = rules[len(self.groups) + cell]
            members = np.append(of_cell.members, level_columns)
            weights = np.repeat([1, -1], [len(of_cell.members), len(level_columns)])
            rules.append(LinearRule(f"{of_cell.name}, levels", members, weights, 0, np.inf))
        level_of_column = np.append(np.zeros(n_candidates), [k for _, k in levels])
        shows = np.zeros(len(level_of_column), dtype=np.bool_)
        if self._review is not None:
            shows[:n_candidates] = self._shows(self._review.shown_words)[self._row]
        goals = review_goals(self._all_kept, self.kept, shows)
        goals += [np.where(level_of_column == k, -1.0, 0.0) for k in range(1, n_levels + 1)]
        program = Program.of([*goals, np.append(self.costs, np.zeros(len(levels)))], rules)
        return replace(program, order=np.append(self._order, np.full(len(levels), -1)))

    def _rules(self) -> list[LinearRule]:
        """Return the rules on halves, cells, sentences and words, in this order."""

        def rule(name: str, members: IntArray, lower: int, upper: int, key: str) -> LinearRule:
            return LinearRule(name, members, np.ones_like(members), lower, upper, key)

        good, need = self._scores.good_name, self._need
        text = "{} prefers the {} one, {} the other"
        halves = [text.format(right, good, wrong) for wrong, right in self.groups]
        cells = [f"{half}, {name}" for half in halves for name in self._names.tolist()]
        of_half = zip(halves, group_indices(self._group, len(halves)), strict=True)
        of_cell = zip(cells, group_indices(self._cell, len(cells)), strict=True)
        rules = [rule(name, members, need, need, "per_pair") for name, members in of_half]
        rules += [rule(name, members, 0, self._cap, "per_paradigm") for name, members in of_cell]
        of_row = group_indices(self._row, len(self._scores.pairs))
        shared = _shared(self._scores, self._question)
        by_rule = grouped(((name, limit), of_row[row]) for row, name, limit in shared)
        for (name, limit), parts in by_rule.items():
            key = "word_cap" if name.startswith("word ") else ""
            rules.append(rule(name, np.concatenate(parts), 0, limit, key))
        return rules

    def is_even(self, solution: Solution) -> bool:
        """Return True if no share is larger than `even_share`."""
        chosen = solution.chosen[: len(self.costs)]
        return int(np.bincount(self._cell[chosen]).max(initial=0)) <= self.even_share

    def _verdicts(self, floor: float | None) -> FloatArray:
        """Return verdicts, (n_pairs, n_models).

        A verdict is 1 if the acceptable sentence is likelier, and -1 if the other sentence is
        likelier. The verdict is 0 for ties, and for pairs that cannot be selected. `floor` is the
        minimum log-probability per word, nats.
        """
        scores = self._scores
        sides = [(pair.good, pair.bad) for pair in scores.pairs]
        # Participants cannot compare sentences that differ only in case or end marks
        differs = [good.bare.lower() != bad.bare.lower() for good, bad in sides]
        usable = np.isfinite(scores.margins) & np.array(differs)[:, None]
        if floor is not None:
            lengths = np.array([[len(s) for s in both] for both in sides])
            usable &= (scores.log_probs >= floor * lengths[:, :, None]).all(axis=1)
        return np.where(usable, np.sign(scores.margins), 0.0)

    def _value(self, objective: MinimalPairObjective, *models: IntArray) -> FloatArray:
        """Compute the objective of each candidate, (n_candidates,), from its models' indices."""
        margins = self._scores.margins
        if objective == "evidence":
            logits = _SLOPE * np.clip(margins, -_LIMIT, _LIMIT)
            wrong, right = (logits[self._row, m] for m in models)
            # Mean of the Kullback-Leibler divergences in both directions
            return (1 / (1 + np.exp(-right)) - 1 / (1 + np.exp(-wrong))) * (right - wrong) / 2
        sizes = np.abs(margins)
        if objective == "rank":
            ranks = [doubled_ranks(column) for column in sizes.T]
            sizes = np.stack(ranks, axis=1) / (2 * len(sizes))
        return np.minimum(*(sizes[self._row, m] for m in models))

    def infeasible(self, why: str) -> InfeasibleError:
        limits, question = ("per_paradigm", "floor", "word_cap"), self._question
        loosen = "".join(f"loosen `{n}`, " for n in limits if getattr(question, n) is not None)
        return InfeasibleError(
            f"No set of minimal pairs satisfies all rules: {why}. Lower `per_pair`, {loosen}"
            "or use more minimal pairs."
        )

    def _group_limits(self, sizes: IntArray) -> IntArray:
        """For each half, return the smallest limit on shares that allows enough pairs, (n_groups,).

        `sizes` are the numbers of candidates in each cell, (n_groups, n_paradigms).
        """
        need = self._need
        limits = np.arange(1, need + 1)
        # Number of pairs that each limit allows for each half, (n_groups, n_limits)
        allowed = np.minimum(sizes[:, :, None], limits).sum(axis=1)
        shortages = [
            f"there are only {n:,} on which {right} does and {wrong} does not"
            for (wrong, right), n in zip(self.groups, allowed[:, -1].tolist(), strict=True)
            if n < need
        ]
        if shortages:
            raise self.infeasible(
                f"for every two models, {need:,} pairs are needed on which only the first model "
                f"prefers the {self._scores.good_name} sentence, and as many on which only the "
                f"second model does; {join_names(shortages)}"
            )
        smallest: IntArray = limits[(allowed >= need).argmax(axis=1)]
        return smallest

    def stimulus(self, candidate: int) -> ControversialMinimalPair:
        """Return the stimulus of a candidate."""
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
    """Yield (row of a pair, name of a rule, maximum number of selected pairs under the rule).

    Each rule is about one sentence or one word of the pair.
    """
    lemma = tag_table(question.tags).lemma
    for row, pair in enumerate(scores.pairs):
        both = (pair.good, pair.bad)
        limits = {f"sentence {sentence.bare.lower()!r}": 1 for sentence in both}
        if question.word_cap is not None:
            words = {word.lower() for sentence in both for word in sentence.words}
            lemmas = map(lemma, words - REPEATABLE_ENGLISH)
            limits |= {f"word {word!r}": question.word_cap for word in lemmas}
        # The order of the rules must be the same in every process
        yield from ((row, *rule) for rule in sorted(limits.items()))


def _verdict_table(
    scores: MinimalPairScores, chosen: Sequence[ControversialMinimalPair]
) -> dict[str, list[object]]:
    """Return `MinimalPairSelection.verdicts`."""
    names, paradigm = np.unique([pair.paradigm for pair in scores.pairs], return_inverse=True)
    selected = Counter((frozenset((c.model_1, c.model_2)), c.paradigm) for c in chosen)
    rows: list[tuple[object, ...]] = []
    is_right = dict(zip(scores.models, (scores.margins > 0).T, strict=True))
    for both in combinations(scores.models, 2):
        # In each paradigm, 0: both models are right, 1: only the first, 2: only the second,
        # 3: neither
        kind = 4 * paradigm + 3 - 2 * is_right[both[0]] - is_right[both[1]]
        counts = np.bincount(kind, minlength=4 * len(names)).reshape(-1, 4)
        rows += (
            (name, *both, *of_paradigm, selected[frozenset(both), name])
            for name, of_paradigm in zip(names.tolist(), counts.tolist(), strict=True)
        )
    heads = "paradigm model_1 model_2 both_right model_1_right model_2_right neither_right chosen"
    return dict(zip(heads.split(), map(list, zip(*rows, strict=True)), strict=True))
