"""The chain rule where all orders are too many: an average of independent, unbiased samples.

Every sample depends only on the seed and the number of tokens in each word, so that sentences which
differ in words alone are compared on the same orders.

The exact mean over orders is a mean over cells (w, s): word w scored while s words are hidden, w
and s - 1 others at random. Words differ in probability far more than one word does between
contexts, so a good sample scores every word equally often:

* an *order* scores each word once, at the size that falls to it (Golan et al., 2023);
* a *cover* fills every cell: for each size s the words are dealt, in random order, into sets of s
  that together hold each word. One pass scores all words of its set.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import ModelError
from contstim.models.masked.orders import order_weights, subsets, tokens_per_word
from contstim.models.masked.plan import ALWAYS, Plan, all_hidden

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.models.masked.plan import Pattern

N_ORDERS = 100
"""How many orders the published estimator averages."""

_ENOUGH = 8  # covers that must fit the budget; a standard error from fewer says little
_MOST = 128  # samples; by then the passes of further ones are mostly known


@dataclass(frozen=True, eq=False)
class _Question:
    """Tokens, as indices among the tokens of words, asked for while some of these are hidden."""

    hidden: BoolArray  # (n,)
    tokens: IntArray
    weights: FloatArray


def orders_plan(pattern: Pattern, seed: int, n_orders: int = N_ORDERS) -> Plan:
    """The mean over random orders of the words, as in 2023.

    The tokens of a word are uncovered in a random order too, one for each order of the words, where
    the published code averages over all.
    """
    sizes = tokens_per_word(pattern)
    rng = _generator(seed, sizes)
    return _plan(pattern, [list(_order(rng, sizes)) for _ in range(n_orders)])


def budget_plan(pattern: Pattern, seed: int, budget: int) -> Plan:
    """An estimate of the mean over all orders, from at most `budget` distinct passes.

    Where all sets of hidden words cost at most half the budget, only the orders of tokens within
    words are sampled. Elsewhere as many covers are taken as the budget allows or, for long
    sentences, as many orders.

    Raises:
        ModelError: the budget does not allow two orders.
    """
    sizes = tokens_per_word(pattern)
    rng = _generator(seed, sizes)
    always, sample = _scheme(rng, sizes, budget)
    seen = {question.hidden.tobytes() for question in always}
    samples: list[list[_Question]] = []
    while len(samples) < _MOST:
        questions = list(sample())
        seen |= {question.hidden.tobytes() for question in questions}
        if len(seen) > budget:
            break
        samples.append(questions)
    if len(samples) < 2:
        raise ModelError(
            f"A sentence of {len(sizes)} words in {sizes.sum()} tokens needs about "
            f"{2 * sizes.sum()} passes or more; the budget is {budget}. Raise pass_budget, or use "
            f"a pseudo-log-likelihood rule such as pll-word-l2r."
        )
    return _plan(pattern, samples, always)


def draft_plan(pattern: Pattern, seed: int, covers: int) -> Plan:
    """A rough estimate of the mean over all orders, from few passes.

    The mean of some covers of the words. Those of sentences with as many words are the same,
    whatever their tokens, so that what one word's replacement changes is seen in the same contexts.
    Without any cover, each word counts once, given all others, its tokens as if independent.
    """
    sizes = tokens_per_word(pattern)
    if not covers:
        word = np.repeat(np.arange(len(sizes)), sizes)
        weight = sizes.astype(np.float64)
        alone = [_whole_words(one, weight, word, sizes) for one in np.eye(len(sizes), dtype=bool)]
        return replace(_plan(pattern, [], alone), draw_of=None)
    rng = np.random.default_rng([seed, len(sizes)])
    drawn = [list(_sets(rng, len(sizes))) for _ in range(covers)]
    inner_rng = _generator(seed, sizes)
    samples = [list(chain(*_cover(inner_rng, sizes, 1, sets))) for sets in drawn]
    return replace(_plan(pattern, samples), draw_of=None)


def _scheme(
    rng: np.random.Generator, sizes: IntArray, budget: int
) -> tuple[list[_Question], Callable[[], Iterable[_Question]]]:
    """What is asked in any case, and how one sample of the rest is drawn."""
    n = len(sizes)
    within = sum(_n_sets(k) - 1 for k in sizes.tolist())  # passes for the tokens of all words
    if (1 << n) - 1 <= budget // 2 and within * _ENOUGH <= budget // 2:
        n_inner = min(n, max(1, budget // (2 * _ENOUGH * within)))
        return list(_every_set(sizes)), lambda: _cover(rng, sizes, n_inner)[1]
    n_inner = min(n, max(1, _n_sets(n) // within)) if within else 0
    if (_n_sets(n) + n_inner * within) * _ENOUGH <= budget:
        return [], lambda: chain(*_cover(rng, sizes, n_inner))
    return [], lambda: _order(rng, sizes)


def _every_set(sizes: IntArray) -> Iterator[_Question]:
    """All sets of hidden words; each word's tokens all at once."""
    sets = subsets(len(sizes))
    word = np.repeat(np.arange(len(sizes)), sizes)  # (n_tokens,)
    for chosen, weight in zip(sets, order_weights(sets), strict=True):
        yield _whole_words(chosen, np.full(len(sizes), weight), word, sizes)


def _whole_words(
    chosen: BoolArray, weight: FloatArray, word: IntArray, sizes: IntArray
) -> _Question:
    """The first token of every hidden word in its own random order: the mean over its tokens."""
    hidden = chosen[word]
    tokens = np.flatnonzero(hidden)
    return _Question(hidden, tokens, weight[word[tokens]] / sizes[word[tokens]])


def _order(rng: np.random.Generator, sizes: IntArray) -> Iterator[_Question]:
    """One random order of the words and, within each word, of its tokens."""
    word = np.repeat(np.arange(len(sizes)), sizes)
    turn = rng.permutation(len(sizes))[word]  # (n,): when each token's word is uncovered
    hidden = np.ones(len(word), np.bool_)
    for token in np.lexsort((rng.random(len(word)), turn)):
        yield _Question(hidden.copy(), np.array([token]), np.ones(1))
        hidden[token] = False


def _cover(
    rng: np.random.Generator,
    sizes: IntArray,
    n_inner: int,
    sets: Iterable[tuple[BoolArray, FloatArray]] | None = None,
) -> tuple[list[_Question], list[_Question]]:
    """One cover of the words, and covers of the tokens of each word within some of its sets.

    With all of a word's tokens hidden, its set of words is the pass; the other sizes of its cover
    cost passes of their own. They are taken at `n_inner` evenly spaced sizes from a random start.
    The sets of words are drawn unless they are given.
    """
    n = len(sizes)
    word = np.repeat(np.arange(n), sizes)  # (n_tokens,)
    members = np.split(np.arange(len(word)), np.cumsum(sizes)[:-1])
    spaced = (rng.random((n, 1)) + np.arange(n_inner)) * n / max(1, n_inner)
    due = {(w, 1 + int(s)) for w in np.flatnonzero(sizes > 1).tolist() for s in spaced[w]}
    outer: list[_Question] = []
    inner: list[_Question] = []
    for chosen, weight in _sets(rng, n) if sets is None else sets:
        outer.append(_whole_words(chosen, weight, word, sizes))
        size = int(chosen.sum())
        for w in np.flatnonzero(chosen).tolist():
            if (w, size) in due:
                due.remove((w, size))
                inner += _cover_within(rng, outer[-1].hidden, members[w], 1 / n_inner)
    return outer, inner


def _cover_within(
    rng: np.random.Generator, hidden: BoolArray, members: IntArray, scale: float
) -> Iterator[_Question]:
    for chosen, weight in _sets(rng, len(members)):
        if not chosen.all():
            inner = hidden.copy()
            inner[members] = chosen
            yield _Question(inner, members[chosen], scale * weight[chosen])


def _sets(rng: np.random.Generator, n: int) -> Iterator[tuple[BoolArray, FloatArray]]:
    """Sets of each size 1 … n that hold each of n things, and each thing's weight in its set, (n,).

    Seen from a thing, the others in its set are random; its weights add up to 1, equally divided
    over the sizes.
    """
    for size in range(1, n + 1):
        order, starts = rng.permutation(n), range(0, n, size)
        sets = np.zeros((len(starts), n), np.bool_)
        for i, start in enumerate(starts):
            sets[i, order[(start + np.arange(size)) % n]] = True
        weights = sets / (n * sets.sum(axis=0))
        yield from zip(sets, weights, strict=True)


def _n_sets(n: int) -> int:
    return sum(-(-n // size) for size in range(1, n + 1))


def _generator(seed: int, sizes: IntArray) -> np.random.Generator:
    return np.random.default_rng([seed, *sizes.tolist()])


def _plan(
    pattern: Pattern, samples: list[list[_Question]], always: Sequence[_Question] = ()
) -> Plan:
    """What is asked in any case plus the mean of the samples."""
    positions = np.flatnonzero(np.array(pattern) >= 0)
    asked = [*always, *chain.from_iterable(samples)]
    rows: dict[bytes, int] = {}
    row = [rows.setdefault(question.hidden.tobytes(), len(rows)) for question in asked]
    lengths = [len(question.tokens) for question in asked]
    draw = np.repeat([ALWAYS, *range(len(samples))], [len(always), *map(len, samples)])
    sampled = np.repeat(draw != ALWAYS, lengths)
    weight = np.concatenate([question.weights for question in asked])
    hidden = np.frombuffer(b"".join(rows), np.bool_).reshape(len(rows), -1)
    return Plan(
        hidden=all_hidden(len(pattern), positions, hidden),
        row=np.repeat(row, lengths),
        token=positions[np.concatenate([question.tokens for question in asked])],
        weight=np.where(sampled, weight / max(1, len(samples)), weight),
        draw_of=np.repeat(draw, lengths),
    )
