"""Plan of a score: which tokens to hide, which questions to ask, and how to combine the answers.

A plan is a list of passes through the network and a list of questions. A pass hides some tokens of
the sentence. A question asks for the log-probability of one token that a pass hides. The score is
the weighted sum of the answers, except for mixtures (below). In the example `The dog sleeps.`, each
word is one token:

             [CLS]  The  dog  sleeps    .     [SEP]
    token      0     1    2     3       4       5
    word    SPECIAL  0    1     2    END_MARK SPECIAL

Chain rules. Imagine a sentence whose words are all masked. Its words are uncovered, that is, made
visible, one by one, in every possible order. Rule `chain` has a pass for each set of hidden words.
The end mark is always visible. When a random order uncovers a word, a certain set of words is still
hidden, this word included. The weight of the word in a pass is the probability of the pass's set.
The weights of each word add up to 1:

    pass  The  dog  sleeps    terms of the score (hidden words are _)
    0      _   dog  sleeps    1/3 log p(The)
    1     The   _   sleeps    1/3 log p(dog)
    2      _    _   sleeps    1/6 log p(The) + 1/6 log p(dog)
    3     The  dog    _       1/3 log p(sleeps)
    4      _   dog    _       1/6 log p(The) + 1/6 log p(sleeps)
    5     The   _     _       1/6 log p(dog) + 1/6 log p(sleeps)
    6      _    _     _       1/3 log p(The) + 1/3 log p(dog) + 1/3 log p(sleeps)

Each term is a question of the plan. `row` is the index of the question's pass, `token` is the index
of its token, and `weight` is its factor. In this example:

    row    0 1 2 2 3 4 4 5 5 6 6 6
    token  1 2 1 2 3 1 3 2 3 1 2 3

Pseudo-log-likelihoods ask for every token once, end mark included, with weight 1. The rules differ
in the tokens that they hide together with the token in question. In `The dog bark ##s .`, the last
word has two tokens, 3 and 4. The special tokens are 0 and 6. Each cell lists the hidden tokens:

    token asked for     1    2    3        4     5
                       The  dog  bark     ##s    .     passes
    pll-original        1    2    3        4     5        5
    pll-word-l2r        1    2    3 4      4     5        5
    pll-whole-word      1    2    3 4     3 4    5        4, because two questions share one pass
    pll-sentence-l2r   1-6  2-6   3-6     4-6   5 6       5

Words of several tokens. `chain` uncovers the tokens of a word directly after one another, in all
orders. For example, the word `bark ##s` has weight 1/6 in the set of `The` and `bark ##s`. Its two
tokens can be uncovered in two orders, so every question about them has weight 1/2 * 1/6. One pass
hides the whole set and asks for both tokens, because each is the first token in one of the orders.
In each of two more passes, one of the two tokens is visible, and the question asks for the other.

Mixture over orders (`chain-mixture`). In each order, the product of the words' probabilities is one
possible probability of the sentence. Consider all sentences with the same end mark and the same
pattern: equal numbers of tokens in the first word, in the second word, and so on. The probabilities
of these sentences add up to 1. So do the mean probabilities of these sentences over all n! orders
of n words. The mixture is the log of a sentence's mean probability over the orders. `chain` is the
mean of the logs. By Jensen's inequality, `chain` is a lower bound of the mixture. Papers on masked
diffusion models usually report this lower bound, the evidence lower bound.

The mixture asks the same questions as `chain`. The passes of a plan are the nodes of a graph, and
its questions are the edges. A question about a hidden word leads from its pass to a second pass.
The second pass shows this word and all words that the first pass shows:

    _ _ _         to   The _ _          _ dog _         _ _ sleeps
    The _ _       to   The dog _        The _ sleeps
    _ dog _       to   The dog _        _ dog sleeps
    _ _ sleeps    to   The _ sleeps     _ dog sleeps
    The dog _ , The _ sleeps and _ dog sleeps   to   the whole sentence, which needs no pass

A random order is a random walk through the passes. While m words are hidden, each of them is
uncovered next with probability 1/m. V is a set of |V| visible words. A walk visits V if exactly
these words are visible at some moment. For a walk that visits V, multiply the probabilities of the
words that it uncovers before this moment. The product is the value of this walk for V. A walk that
does not visit V has the value 0 for V. H(V) is the mean of the values of all walks for V:

    H(no word) = 1,
    H(V) = sum over w in V of  1/(n - |V| + 1)  p(w | V without w)  H(V without w).

The mixture is log H(all words). A walk visits V with probability 1 / comb(n, |V|). So
F(V) = H(V) comb(n, |V|) is the mean value of the walks that visit V. The equation above, times
comb(n, |V|), is

    F(V) = 1/|V|  sum over w in V of  p(w | V without w)  F(V without w).

When a walk begins a word of several tokens, it uncovers all of them, in random order, before any
other word.

Samples. If there are too many sets of words, `chain` asks about a sample of these sets; see
`rules`. For a mixture, the sample consists of random orders, and each order is a separate walk. The
sentence's mean probability in these orders is an unbiased estimate of the mean over all orders. The
log of this estimate is too low on average, by about half the squared standard error of the score.
The expected log is thus a lower bound of the mixture (Burda, Grosse & Salakhutdinov 2016, theorem
1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from math import comb
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from contstim.files.arrays import BoolArray, FloatArray, IntArray


Pattern: TypeAlias = tuple[int, ...]
"""For each token, the position of its word; or `END_MARK` or `SPECIAL`, see `words.Encoding`."""

EVERY_SAMPLE = -1
"""Value of `Plan.sample_of` for a question that is part of every sample."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Passes and questions of a scoring rule, for all sentences with the same pattern.

    The score is the weighted sum of log p(token | visible tokens), unless there is a mixture; see
    the top of this file.

    Attributes:
        hidden: mask of the tokens that each pass hides, (n_passes, n_tokens).
        row: pass of each question, a row of `hidden`, (n_questions,).
        token: token in question, a column of `hidden`, (n_questions,).
        weight: weight of each answer in the score, (n_questions,), positive.
        sample_of: number of each question's sample, or `EVERY_SAMPLE`, (n_questions,). Only a score
            that is a mean of independent samples has such numbers. The value is None for exact
            scores and for drafts, which are rough estimates from few passes.
        mixture: the walks through the passes, if the score is the log of the mean probability over
            orders. None if the score is the weighted sum.
    """

    hidden: BoolArray
    row: IntArray
    token: IntArray
    weight: FloatArray
    sample_of: IntArray | None = None
    mixture: Mixture | None = None

    def score(self, log_probs: FloatArray) -> float:
        """Compute the score, nats, from the answers, (n_questions,)."""
        if self.mixture is not None:
            return self.mixture.score(log_probs)
        return float(self.weight @ log_probs)

    def by_token(self, log_probs: FloatArray) -> FloatArray:
        """Compute the contribution of each token to the score, (n_tokens,), nats."""
        parts = log_probs if self.mixture is None else self.mixture.gains(log_probs)
        return _sums(self.token, self.weight * parts, self.hidden.shape[1])

    def standard_error(self, log_probs: FloatArray) -> float:
        """Compute the standard error of the score, nats; 0 if the plan has no samples."""
        if self.mixture is not None:
            return self.mixture.standard_error(log_probs)
        if self.sample_of is None:
            return 0.0
        sampled = self.sample_of != EVERY_SAMPLE
        n_samples = int(self.sample_of.max()) + 1
        # The score is the mean of n samples. The weights contain the factor 1/n, so each part below
        # is the score of a sample divided by n. The standard error of the mean is
        # std(scores) / sqrt(n), which is equal to std(parts) * sqrt(n)
        values = (self.weight * log_probs)[sampled]
        parts = _sums(self.sample_of[sampled], values, n_samples)  # (n_samples,)
        return float(parts.std(ddof=1) * np.sqrt(len(parts)))


def _sums(group: IntArray, values: FloatArray, n_groups: int) -> FloatArray:
    return np.bincount(group, values, n_groups).astype(np.float64, copy=False)


def tokens_per_word(pattern: Pattern) -> IntArray:
    """Return each word's number of tokens, (n_words,)."""
    words = np.array(pattern)
    return np.bincount(words[words >= 0])


def n_passes(pattern: Pattern) -> int:
    """Return the number of passes that the exact mean over all orders of n words takes.

    This is 2^n - 1, plus 2^(n-1) (2^k - 2) for each word of k tokens. There are 2^n - 1 non-empty
    sets of words, with one pass each. A word is in 2^(n-1) of these sets. For each of the sets with
    this word, further passes hide some of the word's k tokens, but not all. There are 2^k - 2 such
    passes.
    """
    sizes: list[int] = tokens_per_word(pattern).tolist()
    n = len(sizes)
    return (1 << n) - 1 + sum((1 << n - 1) * ((1 << k) - 2) for k in sizes)


def subsets(n: int) -> BoolArray:
    """Return masks of the non-empty subsets of n elements, (2^n - 1, n), the whole set last.

    For 3 elements: 100, 010, 110, 001, … (row i - 1 is i in binary, lowest digit first).
    """
    return (np.arange(1, 2**n)[:, None] >> np.arange(n) & 1).astype(np.bool_)


def order_weights(hidden: BoolArray) -> FloatArray:
    """Return (n-s)! (s-1)! / n! for each set that hides s of n elements, (n_sets,)."""
    n = hidden.shape[1]
    # (n-s)! (s-1)! / n! = 1 / (s * comb(n, s))
    table = np.array([0.0] + [1 / (s * comb(n, s)) for s in range(1, n + 1)])
    weights: FloatArray = table[hidden.sum(axis=1)]
    return weights


def as_mixture(plan: Plan) -> Plan:
    """Return the same plan, but with the log of the mean probability over orders as the score.

    Args:
        plan: exact plan, or plan for a mean over samples; no question may belong to several
            samples. The weight of a question must be the probability that a random order asks this
            question.
    """
    return replace(plan, mixture=Mixture.of(plan))


@dataclass(frozen=True, eq=False)
class Mixture:
    """Random walks (orders) through the passes of a plan; see the top of this file.

    The nodes of a sample are the sample's passes and the whole sentence. All walks of the sample
    end at the whole sentence. Nodes are sorted by their number of hidden tokens, from all tokens to
    none.

    Attributes:
        source: node of each question's pass, (n_questions,).
        target: node to which each question leads, (n_questions,). This node shows the token in
            question.
        log_step: log probability that a walk at the source asks this question, (n_questions,).
        log_reached: log probability that a walk visits the node, (n_nodes,). Only walks of the
            node's sample count.
        n_samples: number of samples; 1 if the plan covers all orders.
        order: indices of questions, sorted by target, (n_questions,).
        layers: (nodes, questions, starts) for each number of hidden tokens, from one less than the
            largest number down to 0. `nodes` is the slice of nodes with this number of hidden
            tokens. `questions` is the slice of `order` that contains the questions leading to these
            nodes. Within this slice, the questions leading to the same node are adjacent. `starts`
            is the index of the first of them for each node, counted from the slice's beginning.
    """

    source: IntArray
    target: IntArray
    log_step: FloatArray
    log_reached: FloatArray
    n_samples: int
    order: IntArray
    layers: tuple[tuple[slice, slice, IntArray], ...]

    @classmethod
    def of(cls, plan: Plan) -> Mixture:
        """Create the walks from the hidden tokens and the weights of a plan."""
        n_questions = len(plan.row)
        sample = np.zeros(n_questions, np.int64) if plan.sample_of is None else plan.sample_of
        hidden_before = plan.hidden[plan.row]  # (n_questions, n_tokens)
        hidden_after = hidden_before.copy()
        hidden_after[np.arange(n_questions), plan.token] = False
        # Nodes are sorted by number of hidden tokens (most first), sample, and set of hidden tokens
        hidden = np.concatenate([hidden_before, hidden_after])
        n_hidden, sets = hidden.sum(axis=1), np.packbits(hidden, axis=1)
        keys = np.column_stack([-n_hidden, np.tile(sample, 2), sets])
        nodes, node = np.unique(keys, axis=0, return_inverse=True)
        source, target = np.split(node.reshape(-1), 2)
        # A walk at a pass asks one of the pass's questions. The probability of a question is
        # proportional to its weight
        log_step = np.log(plan.weight) - np.log(np.bincount(source, plan.weight))[source]
        order = np.argsort(target, kind="stable")
        starts = np.searchsorted(target[order], np.arange(len(nodes) + 1))
        bounds = np.flatnonzero(np.diff(nodes[:, 0], prepend=-np.inf, append=np.inf))
        layers = tuple(
            (slice(i, j), slice(starts[i], starts[j]), starts[i:j] - starts[i])
            for i, j in pairwise(bounds[1:].tolist())
        )
        walks = cls(source, target, log_step, np.zeros(0), int(sample.max()) + 1, order, layers)
        return replace(walks, log_reached=walks.log_h(np.zeros(n_questions)))

    def log_h(self, log_probs: FloatArray) -> FloatArray:
        """Compute log H of every node within its sample, (n_nodes,), from the answers, nats."""
        steps = (self.log_step + log_probs)[self.order]
        source = self.source[self.order]
        log_h = np.zeros(self.target[self.order[-1]] + 1)  # log 1 if all tokens are hidden
        for nodes, questions, starts in self.layers:
            arriving = log_h[source[questions]] + steps[questions]
            log_h[nodes] = np.logaddexp.reduceat(arriving, starts)
        return log_h

    def score(self, log_probs: FloatArray) -> float:
        """Compute the log of the mean probability, nats, from the answers, (n_questions,)."""
        of_samples = self.log_h(log_probs)[-self.n_samples :]
        # Rounding errors may make a log-probability slightly larger than 0
        return min(0.0, float(np.logaddexp.reduce(of_samples) - np.log(self.n_samples)))

    def standard_error(self, log_probs: FloatArray) -> float:
        """Compute the standard error of the score by the delta method; 0 for a single sample."""
        if self.n_samples == 1:
            return 0.0
        of_samples = self.log_h(log_probs)[-self.n_samples :]
        probs = np.exp(of_samples - of_samples.max())  # scaled, so that the largest is 1
        return float(probs.std(ddof=1) / (probs.mean() * np.sqrt(self.n_samples)))

    def gains(self, log_probs: FloatArray) -> FloatArray:
        """Compute the gain of each question, (n_questions,), nats.

        If a question asks for the word w given the visible words V, its gain is
        log F(V with w) - log F(V). The gains of the questions of any walk add up to the score. So
        the words' mean gains over all walks also add up to the score. In cooperative game theory,
        the mean gain of a word is its Shapley value, for the value function log F.

        Suppose that the answers are conditional probabilities of a single distribution. Then the
        gain is log p(w | V), and the mean gain is the word's part of the score under `chain`.
        Otherwise, a gain may be positive.
        """
        log_f = self.log_h(log_probs) - self.log_reached
        log_f[-self.n_samples :] = self.score(log_probs)
        return log_f[self.target] - log_f[self.source]
