"""The scoring rules of masked models; a new rule is an entry of `RULES`.

The chain rules uncover a fully masked sentence word by word, over many orders: see `plan`.
`chain-mixture` averages probabilities instead of their logs. The end mark is always visible and
never scored.

The pseudo-log-likelihood rules ask for one token at a time. Salazar, Liang, Nguyen & Kirchhoff
(2020) hide only this token (`pll-original`). Kauf & Ivanova (2023, *A better way to do masked
language model scoring*, equations 1 to 4) hide more, because later tokens of a word reveal its
earlier ones. These rules score every token, including the end mark, but no special tokens. `plan`
shows the tokens that each rule hides in one sentence.

If the mean over all orders takes too many passes, `chain` averages independent, unbiased samples.
Every sample depends only on the seed and the number of tokens in each word. Sentences with equal
numbers are thus compared on the same orders.

In the exact mean over orders, each of the n words is scored in n cells (w, s) of weight 1/n: word w
is scored while s words are hidden, w itself and s - 1 random others. Log-probabilities differ far
more between words than between the contexts of one word. A good sample therefore scores every word
equally often:

* an *order* scores each word once, with a random number of hidden words (Golan et al., 2023);
* a *cover* fills every cell: for each size s, the words in random order are split into sets of s
  that together contain each word. One pass hides a set and scores all its words.

With three words 0, 1, 2, a cover may consist of six passes. The weights of every word add up to 1,
1/3 for each size:

    size  order    sets hidden      weight of each word in its set
    1     2 0 1    2 | 0 | 1        1/3
    2     1 2 0    1 2 | 0 1        1/3 for words 2 and 0; 1/6 for word 1, which is in both sets
    3     0 2 1    0 2 1            1/3

Three words do not fill two sets of two. The last set of a size is therefore filled up from the
beginning of the order; for size 2, with word 1.
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

_MIN_COVERS = 8  # covers that must fit the budget; fewer give an unreliable standard error
_MAX_SAMPLES = 128  # maximum for a mean; further samples mostly repeat the same passes
_MAX_ORDERS = 1024  # maximum for a mixture, for the same reason


Pass: TypeAlias = "tuple[BoolArray, IntArray, FloatArray]"
"""A pass and its questions: mask of the tokens that it hides, (n,); indices of the tokens that it
is asked about, (q,); and the weights of their log-probabilities in the score, (q,). Masks and
indices refer to the n tokens of words, without the end mark and special tokens."""


def chain_plan(
    pattern: Pattern, seed: int = 0, budget: int | None = None, *, in_orders: bool = False
) -> Plan:
    """Plan the exact mean over all orders of the words, and of the tokens within each word.

    If the exact mean takes more passes than the budget, plan an estimate; see `budget_plan`.

    Golan et al. (2023) start from a fully masked sentence, uncover its words in random order, add
    up their log-probabilities, and average 100 such orders. The same sets of hidden words occur in
    many orders, and one pass with the set M hidden gives log p(w | words outside M) for every word
    w of M. In a random order of n words, w follows exactly the words outside M with probability
    (n-|M|)! (|M|-1)! / n!, so the mean over all n! orders is

        sum over M, w in M of  (n-|M|)! (|M|-1)! / n!  log p(w | words outside M).

    A word of k tokens is a separate chain: within each M, the same formula averages the orders of
    its tokens. The pass that hides all tokens of the word is also the pass of M.

    With n = 3 words the weights are 2! 0! / 3! = 1/3 for sets of one word, 1! 1! / 3! = 1/6 for
    two and 0! 2! / 3! = 1/3 for all three; `plan` lists the passes. A word is in one set of size
    one, two of size two, and one of size three: its weights add up to 1/3 + 2/6 + 1/3 = 1.
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

    Each order of the words comes with one random order of the tokens within each word. The
    published code averages over all orders of the tokens within a word instead.
    """
    sizes = tokens_per_word(pattern)
    rng = _generator(seed, sizes)
    return _plan(pattern, [list(_order(rng, sizes)) for _ in range(n_orders)])


def budget_plan(pattern: Pattern, seed: int, budget: int, *, in_orders: bool = False) -> Plan:
    """Plan an estimate of the mean over all orders, from at most `budget` distinct passes.

    If half of the budget suffices for the passes of all sets of words, and the other half for 8
    covers of the tokens within words, the plan contains all these sets and samples only the orders
    of tokens within words. Otherwise it contains as many covers of the words as the budget allows,
    or orders if the budget does not allow 8 covers.

    Args:
        pattern: pattern of the sentence.
        seed: seed of the samples.
        budget: maximum number of passes.
        in_orders: whether to sample orders in any case, as a mixture requires.

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

    The estimate is the mean of `covers` covers of the words. Sentences with the same number of
    words have the same covers, even if their numbers of tokens differ, so that a word and its
    replacement are compared in the same contexts. With 0 covers, each word is scored once, given
    all others, and its tokens are treated as independent.
    """
    sizes = tokens_per_word(pattern)
    if not covers:
        # `_whole_words` divides weights by the number of tokens; here each token has weight 1
        weight = sizes.astype(np.float64)
        alone = [_whole_words(word, weight, sizes) for word in np.eye(len(sizes), dtype=bool)]
        return replace(_plan(pattern, [], alone), sample_of=None)
    rng = np.random.default_rng([seed, len(sizes)])  # for the words
    sets_of_covers = [list(_sets(rng, len(sizes))) for _ in range(covers)]
    inner_rng = _generator(seed, sizes)  # for the tokens within words
    samples = [list(chain(*_cover(inner_rng, sizes, 1, sets))) for sets in sets_of_covers]
    return replace(_plan(pattern, samples), sample_of=None)


def _scheme(
    rng: np.random.Generator, sizes: IntArray, budget: int
) -> tuple[list[Pass], Callable[[], Iterable[Pass]]]:
    """Return the passes that all samples share, and a function that draws the rest of a sample."""
    n = len(sizes)
    # Number of passes that cover the tokens of every word once. Minus 1, because the pass that
    # hides all tokens of a word also belongs to the cover of the words
    within = sum(_n_sets(k) - 1 for k in sizes.tolist())
    # 1. All sets of words, and samples of the orders of tokens within words
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

    Each of a word's k tokens is the first one to be uncovered in 1/k of all orders, so its weight
    is 1/k of the word's weight.

    Args:
        chosen: mask of the words, (n_words,).
        weight: weight of each word, (n_words,).
        sizes: number of tokens of each word, (n_words,).
    """
    word = np.repeat(np.arange(len(sizes)), sizes)  # (n,): word of each token
    hidden = chosen[word]
    tokens = np.flatnonzero(hidden)
    return hidden, tokens, weight[word[tokens]] / sizes[word[tokens]]


def _all_sets(sizes: IntArray) -> list[Pass]:
    """Return a pass for every set of words, with weights of the mean over all orders."""
    sets = subsets(len(sizes))
    weights = [np.full(len(sizes), weight) for weight in order_weights(sets)]
    return [_whole_words(*pair, sizes) for pair in zip(sets, weights, strict=True)]


def _members(sizes: IntArray) -> list[IntArray]:
    """Return the token indices of each word."""
    return np.split(np.arange(sizes.sum()), np.cumsum(sizes)[:-1])


def _partly(whole: Pass, members: IntArray, part: BoolArray) -> tuple[BoolArray, IntArray]:
    """Change a pass so that it hides only a part of one word's tokens.

    Args:
        whole: pass that hides all tokens of the word.
        members: indices of the word's tokens, (k,).
        part: mask of the tokens that stay hidden, (k,).

    Returns:
        Mask of all hidden tokens, (n,), and the indices of the part.
    """
    hidden = whole[0].copy()
    hidden[members] = part
    return hidden, members[part]


def _order(rng: np.random.Generator, sizes: IntArray) -> Iterator[Pass]:
    """Yield the passes of one random order of the words and, within each word, of its tokens."""
    word = np.repeat(np.arange(len(sizes)), sizes)
    turn = rng.permutation(len(sizes))[word]  # (n,): rank at which each token's word is uncovered
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

    Within each of `n_inner` sets that hide the word, one cover of its tokens is drawn. The sizes of
    these sets are evenly spaced from a random start. The pass that hides all tokens of the word is
    the pass of the set, so it is not repeated.

    Args:
        rng: source of the orders.
        sizes: number of tokens of each word, (n_words,).
        n_inner: number of covers of the tokens of each word.
        sets: cover of the words as sets and weights, see `_sets`; drawn by default.

    Returns:
        Passes that hide whole words, and passes that hide a part of a word.
    """
    n = len(sizes)
    members = _members(sizes)
    # Sizes, 1 to n, of the sets in which each word's tokens are covered: n / n_inner apart
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
            due.remove((w, size))  # only once, although a word can be in two sets of a size
            for tokens, share in _sets(rng, len(members[w])):
                if not tokens.all():
                    hidden, token_numbers = _partly(outer[-1], members[w], tokens)
                    inner.append((hidden, token_numbers, 1 / n_inner * share[tokens]))
    return outer, inner


def _sets(rng: np.random.Generator, n: int) -> Iterator[tuple[BoolArray, FloatArray]]:
    """Draw a cover of n elements (words, or tokens of a word): sets of each size from 1 to n.

    Yields the mask of a set, (n,), and the weights of the elements in it, (n,). For each size, the
    weights of an element add up to 1/n, shared equally by the sets of that size that contain it.
    Elements outside a set have weight 0.
    """
    for size in range(1, n + 1):
        order, starts = rng.permutation(n), range(0, n, size)
        sets = np.zeros((len(starts), n), np.bool_)
        for i, start in enumerate(starts):
            # The last set continues with the first elements of the order
            sets[i, order[(start + np.arange(size)) % n]] = True
        yield from zip(sets, sets / (n * sets.sum(axis=0)), strict=True)


def _n_sets(n: int) -> int:
    """Count the sets in a cover: the sum of n / size, rounded up, over all sizes."""
    return sum(-(-n // size) for size in range(1, n + 1))


def _generator(seed: int, sizes: IntArray) -> np.random.Generator:
    return np.random.default_rng([seed, *sizes.tolist()])


def _plan(pattern: Pattern, samples: list[list[Pass]], common: Sequence[Pass] = ()) -> Plan:
    """Plan the sum of the shared passes, plus the mean of the samples."""
    positions = np.flatnonzero(np.array(pattern) >= 0)  # (n,): indices of the words' tokens
    passes, tokens, weights = zip(*[*common, *chain.from_iterable(samples)], strict=True)
    # Passes that hide the same tokens are one row of `Plan.hidden`
    rows: dict[bytes, int] = {}
    row = [rows.setdefault(hidden.tobytes(), len(rows)) for hidden in passes]
    hidden = np.frombuffer(b"".join(rows), np.bool_).reshape(len(rows), -1)
    # (n_passes,)
    sample = np.repeat([EVERY_SAMPLE, *range(len(samples))], [len(common), *map(len, samples)])
    # From tokens of words to all tokens of the text; the others are always visible
    hidden_in_text = np.zeros((len(hidden), len(pattern)), np.bool_)
    hidden_in_text[:, positions] = hidden
    # Repeat the row and the sample of each pass for all its questions
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
    """Hide the token only."""
    return np.equal(np.arange(len(word_of)), token)


def _hide_rest_of_word(token: IntArray, word_of: IntArray) -> BoolArray:
    """Hide the token and all later tokens of the word that contains it."""
    return _hide_word(token, word_of) & _hide_rest_of_sentence(token, word_of)


def _hide_word(token: IntArray, word_of: IntArray) -> BoolArray:
    """Hide all tokens of the word that contains the token."""
    return np.equal(word_of, word_of[token])


def _hide_rest_of_sentence(token: IntArray, word_of: IntArray) -> BoolArray:
    """Hide the token and all later ones, including special tokens, as in the paper's code."""
    return np.greater_equal(np.arange(len(word_of)), token)


@dataclass(frozen=True)
class MaskedRule:
    """A rule by which a masked model scores a sentence.

    Attributes:
        name: name of the rule in a specification, after `@`.
        plan: function that makes the plan of a sentence.
        restricted: whether the probability of a token is normalised within its class of tokens, so
            that word boundaries are enforced; see `boundaries`.
        end_scored: whether the end mark is scored; if not, it is always visible.
        sampled: template that describes estimated scores, with `{seed}` and `{pass_budget}`; empty
            for rules that never sample. Only rules that sample have drafts.
        mixture: whether the score is the log of a mean probability over orders, see `Mixture`.
        context: function that selects the tokens to hide in the extra pass of an estimate, see
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
    """Plan a pseudo-log-likelihood: one question for each token of the text."""
    word_of = np.array(pattern)
    token = np.flatnonzero(word_of != SPECIAL)  # (n_questions,)
    # (n_questions, n_tokens); equal contexts share a pass
    hidden, row = np.unique(hidden_with(token[:, None], word_of), axis=0, return_inverse=True)
    return Plan(hidden, row.reshape(-1), token, np.ones(len(token)))


def _chain(name: str, *, restricted: bool = True, mixture: bool = False) -> MaskedRule:
    """Make a rule that averages over all orders, or over a sample if the budget is too small."""

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
