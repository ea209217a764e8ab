"""The scoring rules of masked models; a new rule is an entry of `RULES`.

The chain rules begin with a fully masked sentence and make its words visible one by one. They
average over many orders of the words; see `plan`. `chain-mixture` averages probabilities instead of
their logs. The end mark is always visible and never scored.

The pseudo-log-likelihood rules ask for one token at a time. Salazar, Liang, Nguyen & Kirchhoff
(2020) hide only this token (`pll-original`). Kauf & Ivanova (2023, *A better way to do masked
language model scoring*, equations 1 to 4) hide more tokens, because later tokens of a word reveal
its earlier tokens. These rules score every token, including the end mark, but no special tokens.

If the mean over all orders takes too many passes, `chain` averages independent, unbiased estimates.
Each estimate comes from a random sample of passes. The samples depend only on the seed and the
number of tokens in each word. So two sentences with, for example, words of 1, 2 and 1 tokens are
compared on the same samples.

A pass, one run of the network, hides a set of words and scores words of this set. In the exact mean
over orders of n words, a word is scored in every set that contains it. These sets have 1 to n
words. For each size, the weights of the word in the sets of this size add up to 1/n.
Log-probabilities differ far more between words than between the contexts of one word. A good sample
therefore scores every word equally often. There are two kinds of samples:

* An *order* scores each word once, in a set of random size (Golan et al., 2023).
* A *cover* scores each word in sets of every size. For each size s, the words are put in random
  order and split into sets of s words. One pass hides a set and scores all its words.

A cover of three words 0, 1, 2 may consist of these six passes. The weights of each word add up to
1/3 for each size:

    size  order    sets hidden      weight of each word in its set
    1     2 0 1    2 | 0 | 1        1/3
    2     1 2 0    1 2 | 0 1        1/3 for words 2 and 0; 1/6 for word 1, which is in both sets
    3     0 2 1    0 2 1            1/3

If the last set is too small, words from the beginning of the order are added to it. For example,
word 1 is added to the second set of size 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from contstim.errors import ModelError
from contstim.models.masked.plan import (
    EVERY_SAMPLE,
    Pattern,
    Plan,
    as_mixture,
    n_passes,
    order_weights,
    subsets,
    tokens_per_word,
)
from contstim.models.words import SPECIAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from contstim.files.arrays import BoolArray, FloatArray, IntArray


N_ORDERS = 100
"""Number of orders that Golan et al. (2023) average."""

_MIN_COVERS = 8  # with fewer covers, the standard error is unreliable
_MAX_SAMPLES = 128  # for a mean; further samples mostly repeat earlier passes
_MAX_ORDERS = 1024  # for a mixture; further orders mostly repeat earlier passes


Pass: TypeAlias = "tuple[BoolArray, IntArray, FloatArray]"
"""A pass and its q questions: mask of the hidden tokens, (n,); indices of the tokens in question,
(q,); and weights of the answers, (q,). Masks and indices refer to the n tokens of words, without
the end mark and special tokens."""


def chain_plan(
    pattern: Pattern, seed: int = 0, budget: int | None = None, *, in_orders: bool = False
) -> Plan:
    """Plan the exact mean over all orders of the words, and of the tokens within each word.

    If the exact mean takes more passes than the budget, plan an estimate; see `budget_plan`.

    Golan et al. (2023) average 100 random orders, in which most sets of hidden words occur
    repeatedly. One pass that hides the set M gives log p(w | words outside M) for every word w of
    M. With probability (n-|M|)! (|M|-1)! / n!, exactly the words outside M precede w in a random
    order of n words. So the mean over all n! orders is

        sum over M, w in M of  (n-|M|)! (|M|-1)! / n!  log p(w | words outside M).

    Within each M, the same formula averages the orders of the k tokens of a word. One of the passes
    of this average hides all k tokens and all other words of M. It is equal to the pass that hides
    M, so it is not repeated.
    """
    if budget is not None and n_passes(pattern) > budget:
        return budget_plan(pattern, seed, budget, in_orders=in_orders)
    sizes = tokens_per_word(pattern)
    members = _members(sizes)
    sets, weights = subsets(len(sizes)), order_weights(subsets(len(sizes)))
    passes = _all_sets(sizes)
    for w in np.flatnonzero(sizes > 1).tolist():
        parts = subsets(sizes[w])[:-1]  # (n_parts, k): all but the whole word
        shares = order_weights(parts)
        for i in np.flatnonzero(sets[:, w]).tolist():  # every M that contains the word
            for part, share in zip(parts, weights[i] * shares, strict=True):
                hidden, tokens = _partly(passes[i], members[w], part)
                passes.append((hidden, tokens, np.full(len(tokens), share)))
    return replace(_plan(pattern, [], passes), sample_of=None)


def orders_plan(pattern: Pattern, seed: int, n_orders: int = N_ORDERS) -> Plan:
    """Plan the mean over random orders of the words, as in Golan et al. (2023).

    Each sample has one random order of the words, and one random order of the tokens within each
    word. The published code differs: it averages over all orders of the tokens within a word.
    """
    sizes = tokens_per_word(pattern)
    rng = _generator(seed, sizes)
    return _plan(pattern, [list(_order(rng, sizes)) for _ in range(n_orders)])


def budget_plan(pattern: Pattern, seed: int, budget: int, *, in_orders: bool = False) -> Plan:
    """Plan an estimate of the mean over all orders, from at most `budget` distinct passes.

    The first of these schemes that is possible is used:

    1. All sets of words, and covers of the tokens within words. Half of the budget must suffice for
       the sets, and the other half for 8 covers.
    2. Covers of the words. The budget must allow 8 of them.
    3. Orders.

    A mixture (`in_orders`) always requires orders.

    Raises:
        ModelError: if the budget does not allow two samples.
    """
    sizes = tokens_per_word(pattern)
    rng = _generator(seed, sizes)
    common: list[Pass] = []
    draw_sample: Callable[[], Iterable[Pass]] = partial(_order, rng, sizes)
    if not in_orders:
        common, draw_sample = _scheme(rng, sizes, budget)
    distinct = {hidden.tobytes() for hidden, _, _ in common}
    samples: list[list[Pass]] = []
    while len(samples) < (_MAX_ORDERS if in_orders else _MAX_SAMPLES):
        sample = list(draw_sample())
        distinct |= {hidden.tobytes() for hidden, _, _ in sample}
        if len(distinct) > budget:
            break
        samples.append(sample)
    if len(samples) < 2:
        raise ModelError(
            f"A sentence of {len(sizes)} words in {sizes.sum()} tokens needs about "
            f"{2 * sizes.sum()} passes; the budget is {budget}. Raise pass_budget, or use a "
            "pseudo-log-likelihood rule such as pll-word-l2r."
        )
    return _plan(pattern, samples, common)


def draft_plan(pattern: Pattern, seed: int, covers: int) -> Plan:
    """Plan a rough estimate of the mean over all orders, from few passes.

    The estimate is the mean over `covers` covers of the words. With 0 covers, each word is scored
    once, given all others, and its tokens are treated as independent.

    The covers of the words depend only on the seed and the number of words. So a word and its
    replacement are compared in equal contexts, even if their numbers of tokens differ.
    """
    sizes = tokens_per_word(pattern)
    if not covers:
        # `_whole_words` divides a word's weight by its number of tokens. Here each token must have
        # the weight 1, so the word's weight is its number of tokens
        weight = sizes.astype(np.float64)
        passes = [_whole_words(word, weight, sizes) for word in np.eye(len(sizes), dtype=bool)]
        return replace(_plan(pattern, [], passes), sample_of=None)
    rng = np.random.default_rng([seed, len(sizes)])  # for the words
    sets_of_covers = [list(_sets(rng, len(sizes))) for _ in range(covers)]
    inner_rng = _generator(seed, sizes)  # for the tokens within words
    samples = [list(chain(*_cover(inner_rng, sizes, 1, sets))) for sets in sets_of_covers]
    return replace(_plan(pattern, samples), sample_of=None)


def _scheme(
    rng: np.random.Generator, sizes: IntArray, budget: int
) -> tuple[list[Pass], Callable[[], Iterable[Pass]]]:
    """Return passes that every sample contains, and a function that draws a sample's other passes.

    `sizes` are the numbers of tokens of the words, (n_words,); see `budget_plan` for the schemes.
    """
    n = len(sizes)
    # Number of additional passes for one cover of the tokens of each word. One set of such a cover
    # contains all tokens of the word. This set needs no additional pass, because another pass of
    # the plan already hides all these tokens. So 1 is subtracted for each word
    within = sum(_n_sets(k) - 1 for k in sizes.tolist())
    # 1. All sets of words, and covers of the tokens within words
    if (1 << n) - 1 <= budget // 2 and within * _MIN_COVERS <= budget // 2:
        n_inner = min(n, max(1, budget // (2 * _MIN_COVERS * within)))
        return _all_sets(sizes), lambda: _cover(rng, sizes, n_inner)[1]
    # 2. Covers of the words; about half of the passes cover tokens within words
    n_inner = min(n, max(1, _n_sets(n) // within)) if within else 0
    if (_n_sets(n) + n_inner * within) * _MIN_COVERS <= budget:
        return [], lambda: chain(*_cover(rng, sizes, n_inner))
    # 3. Orders, with one pass for each token
    return [], lambda: _order(rng, sizes)


def _whole_words(chosen: BoolArray, weight: FloatArray, sizes: IntArray) -> Pass:
    """Return the pass that hides all tokens of a set of words, and asks for these tokens.

    Each of a word's k tokens becomes visible first in 1/k of all orders of these tokens. The weight
    of the token is thus 1/k of the word's weight. The arguments are the mask of the words, the
    weights of the words, and the words' numbers of tokens, each with the shape (n_words,).
    """
    word = np.repeat(np.arange(len(sizes)), sizes)  # (n,): word of each token
    hidden = chosen[word]
    tokens = np.flatnonzero(hidden)
    return hidden, tokens, weight[word[tokens]] / sizes[word[tokens]]


def _all_sets(sizes: IntArray) -> list[Pass]:
    sets = subsets(len(sizes))
    weights = [np.full(len(sizes), weight) for weight in order_weights(sets)]
    return [_whole_words(*pair, sizes) for pair in zip(sets, weights, strict=True)]


def _members(sizes: IntArray) -> list[IntArray]:
    return np.split(np.arange(sizes.sum()), np.cumsum(sizes)[:-1])


def _partly(whole: Pass, members: IntArray, part: BoolArray) -> tuple[BoolArray, IntArray]:
    """Change a pass so that it hides only a part of a word.

    Args:
        whole: pass that hides all tokens of the word.
        members: indices of the word's tokens, (k,).
        part: mask of the tokens that remain hidden, (k,).

    Returns:
        Mask of all hidden tokens, (n,), and indices of the word's hidden tokens.
    """
    hidden = whole[0].copy()
    hidden[members] = part
    return hidden, members[part]


def _order(rng: np.random.Generator, sizes: IntArray) -> Iterator[Pass]:
    """Yield the passes of one random order of the words, and of the tokens within each word."""
    word = np.repeat(np.arange(len(sizes)), sizes)
    # (n,): rank of each token's word in the order in which words become visible
    turn = rng.permutation(len(sizes))[word]
    hidden = np.ones(len(word), np.bool_)
    for token in np.lexsort((rng.random(len(word)), turn)):  # by turn, then at random
        yield hidden.copy(), np.array([token]), np.ones(1)
        hidden[token] = False


def _cover(
    rng: np.random.Generator,
    sizes: IntArray,
    n_inner: int,
    sets: Iterable[tuple[BoolArray, FloatArray]] | None = None,
) -> tuple[list[Pass], list[Pass]]:
    """Draw a cover of the words, and `n_inner` covers of the tokens of each multi-token word.

    The cover of the words contains several sets with a given word. For `n_inner` of these sets, a
    cover of the word's tokens is drawn. The sizes of these sets are evenly spaced from a random
    start.

    Args:
        rng: source of the orders.
        sizes: number of tokens of each word, (n_words,).
        n_inner: number of covers for each multi-token word.
        sets: cover of the words as sets and weights, see `_sets`; by default, a random cover.

    Returns:
        Passes that hide whole words, and passes that hide a part of a word.
    """
    n = len(sizes)
    members = _members(sizes)
    # Pairs of a word, and the size (1 to n) of a set in which to cover the tokens of the word
    spaced = (rng.random((n, 1)) + np.arange(n_inner)) * n / max(1, n_inner)  # (n_words, n_inner)
    due = {(w, 1 + int(s)) for w in np.flatnonzero(sizes > 1).tolist() for s in spaced[w]}
    outer: list[Pass] = []
    inner: list[Pass] = []
    for words, weight in _sets(rng, n) if sets is None else sets:
        outer.append(_whole_words(words, weight, sizes))
        size = int(words.sum())
        for w in np.flatnonzero(words).tolist():
            if (w, size) not in due:
                continue
            due.remove((w, size))  # once only: a word can be in two sets of the same size
            for tokens, share in _sets(rng, len(members[w])):
                if not tokens.all():
                    hidden, token_numbers = _partly(outer[-1], members[w], tokens)
                    inner.append((hidden, token_numbers, 1 / n_inner * share[tokens]))
    return outer, inner


def _sets(rng: np.random.Generator, n: int) -> Iterator[tuple[BoolArray, FloatArray]]:
    """Draw a cover of n elements (words, or tokens of a word): sets of each size from 1 to n.

    Yields the mask of each set, (n,), and the weights of its elements, (n,), 0 outside the set. For
    each size, an element has the total weight 1/n. If several sets of this size contain the
    element, its weight is divided equally among these sets.
    """
    for size in range(1, n + 1):
        order, starts = rng.permutation(n), range(0, n, size)
        sets = np.zeros((len(starts), n), np.bool_)
        for i, start in enumerate(starts):
            # The last set continues with the first elements of the order
            sets[i, order[(start + np.arange(size)) % n]] = True
        yield from zip(sets, sets / (n * sets.sum(axis=0)), strict=True)


def _n_sets(n: int) -> int:
    """Return the number of sets in a cover of n elements."""
    return sum(-(-n // size) for size in range(1, n + 1))


def _generator(seed: int, sizes: IntArray) -> np.random.Generator:
    return np.random.default_rng([seed, *sizes.tolist()])


def _plan(pattern: Pattern, samples: list[list[Pass]], common: Sequence[Pass] = ()) -> Plan:
    """Return a plan whose score is the sum over the common passes, plus the mean of the samples."""
    positions = np.flatnonzero(np.array(pattern) >= 0)  # (n,): indices of the words' tokens
    passes, tokens, weights = zip(*[*common, *chain.from_iterable(samples)], strict=True)
    # Passes that hide the same tokens share a row of `Plan.hidden`
    rows: dict[bytes, int] = {}
    row = [rows.setdefault(hidden.tobytes(), len(rows)) for hidden in passes]
    hidden = np.frombuffer(b"".join(rows), np.bool_).reshape(len(rows), -1)
    # (n_passes,)
    sample = np.repeat([EVERY_SAMPLE, *range(len(samples))], [len(common), *map(len, samples)])
    # Tokens of the text that belong to no word are always visible
    hidden_in_text = np.zeros((len(hidden), len(pattern)), np.bool_)
    hidden_in_text[:, positions] = hidden
    lengths = [len(numbers) for numbers in tokens]
    weight = np.concatenate(weights)
    sampled = np.repeat(sample != EVERY_SAMPLE, lengths)
    return Plan(
        hidden=hidden_in_text,
        row=np.repeat(row, lengths),
        token=positions[np.concatenate(tokens)],
        weight=np.where(sampled, weight / max(1, len(samples)), weight),
        sample_of=np.repeat(sample, lengths),
    )


HiddenWith: TypeAlias = "Callable[[IntArray, IntArray], BoolArray]"
"""Function that returns the mask of the tokens to hide for each question, (n, n_tokens). Its
arguments are the tokens in question, (n, 1), and the word of each token, (n_tokens,)."""

MakePlan: TypeAlias = "Callable[[Pattern, int, int], Plan]"
"""Function that makes a plan from a pattern, a seed, and a budget of passes."""


def _hide_token(token: IntArray, word_of: IntArray) -> BoolArray:
    return np.equal(np.arange(len(word_of)), token)


def _hide_rest_of_word(token: IntArray, word_of: IntArray) -> BoolArray:
    """Hide the token and all later tokens of its word."""
    return _hide_word(token, word_of) & _hide_rest_of_sentence(token, word_of)


def _hide_word(token: IntArray, word_of: IntArray) -> BoolArray:
    """Hide all tokens of the token's word."""
    return np.equal(word_of, word_of[token])


def _hide_rest_of_sentence(token: IntArray, word_of: IntArray) -> BoolArray:
    """Hide the token and all later tokens, also special tokens, as in Kauf & Ivanova's code."""
    return np.greater_equal(np.arange(len(word_of)), token)


@dataclass(frozen=True)
class MaskedRule:
    """Scoring rule of masked models.

    Attributes:
        name: name of the rule in a specification, after `@`.
        plan: function that makes the plan of a sentence.
        restricted: whether word boundaries are enforced. If so, there are two classes of tokens:
            tokens at word boundaries and tokens within words. The probability of a token is
            normalised within its class; see `boundaries`.
        end_scored: whether the end mark is scored; if not, it is always visible.
        sampled: template that describes estimated scores, with `{seed}` and `{pass_budget}`; empty
            for rules that never sample. Only rules that sample have drafts, which are rough
            estimates; see `draft_plan`.
        mixture: whether the score is the log of a mean probability over orders, see `Mixture`.
        context: function that selects the tokens to hide in the extra pass of
            `estimates.estimate`.
    """

    name: str
    plan: MakePlan
    restricted: bool = False
    end_scored: bool = True
    sampled: str = ""
    mixture: bool = False
    context: HiddenWith = _hide_word


def pll_plan(hidden_with: HiddenWith, pattern: Pattern) -> Plan:
    """Plan a pseudo-log-likelihood, with one question for each token that is not special."""
    word_of = np.array(pattern)
    token = np.flatnonzero(word_of != SPECIAL)  # (n_questions,)
    # (n_questions, n_tokens); equal contexts share a pass
    hidden, row = np.unique(hidden_with(token[:, None], word_of), axis=0, return_inverse=True)
    return Plan(hidden, row.reshape(-1), token, np.ones(len(token)))


def _chain(name: str, *, restricted: bool = True, mixture: bool = False) -> MaskedRule:

    def mixture_plan(pattern: Pattern, seed: int, budget: int) -> Plan:
        return as_mixture(chain_plan(pattern, seed, budget, in_orders=True))

    how = "the log of a sampled mean, too low on average" if mixture else "sampled"
    sampled = f"exact up to {{pass_budget}} passes a sentence, then {how}, seed {{seed}}"
    plan = mixture_plan if mixture else chain_plan
    return MaskedRule(name, plan, restricted, end_scored=False, sampled=sampled, mixture=mixture)


def _pll(name: str, hidden_with: HiddenWith, context: HiddenWith = _hide_word) -> MaskedRule:
    return MaskedRule(
        name, lambda pattern, _seed, _budget: pll_plan(hidden_with, pattern), context=context
    )


RULES: dict[str, MaskedRule] = {
    rule.name: rule
    for rule in (
        _chain("chain"),
        MaskedRule(
            "chain-sampled",
            lambda pattern, seed, _budget: orders_plan(pattern, seed),
            restricted=True,
            end_scored=False,
            sampled=f"{N_ORDERS} random orders, seed {{seed}}",
        ),
        _chain("chain-mixture", mixture=True),
        _chain("chain-unrestricted", restricted=False),
        _pll("pll-original", _hide_token),
        _pll("pll-word-l2r", _hide_rest_of_word),
        _pll("pll-whole-word", _hide_word),
        _pll("pll-sentence-l2r", _hide_rest_of_sentence, context=_hide_rest_of_sentence),
    )
}
"""Rules by name; the first is the default."""
