"""Plan of a score: which tokens to hide, which questions to ask, and how to combine the answers.

A plan is a list of passes through the network and a list of questions. A pass hides some tokens of
the sentence. A question asks for the log-probability of one token that a pass hides. The score is
the weighted sum of the answers, except for mixtures (below). In the example `The dog sleeps.`, each
word is one token:

             [CLS]  The  dog  sleeps    .     [SEP]
    token      0     1    2     3       4       5
    word    SPECIAL  0    1     2    END_MARK SPECIAL

Chain rules. Imagine that the words of a fully masked sentence are uncovered one by one, in every
possible order. Rule `chain` has a pass for each set of hidden words; the end mark is always
visible. The weight of a word in a pass is a share of orders: those that uncover the word while
exactly this set is hidden. The weights of each word add up to 1:

    pass  The  dog  sleeps    terms of the score (hidden words are _)
    0      _   dog  sleeps    1/3 log p(The)
    1     The   _   sleeps    1/3 log p(dog)
    2      _    _   sleeps    1/6 log p(The) + 1/6 log p(dog)
    3     The  dog    _       1/3 log p(sleeps)
    4      _   dog    _       1/6 log p(The) + 1/6 log p(sleeps)
    5     The   _     _       1/6 log p(dog) + 1/6 log p(sleeps)
    6      _    _     _       1/3 log p(The) + 1/3 log p(dog) + 1/3 log p(sleeps)

Each term is a question of the plan: `row` is the number of its pass, `token` the number of its
token, `weight` its factor. Here row = 0 1 2 2 3 4 4 5 5 6 6 6, token = 1 2 1 2 3 1 3 2 3 1 2 3.

Pseudo-log-likelihoods ask for every token once, end mark included, with weight 1. They differ in
the tokens that are hidden together with the token in question. In `The dog bark ##s .`, the last
word has two tokens, 3 and 4; the special tokens are 0 and 6. Each cell lists the hidden tokens:

    token asked for     1    2    3        4     5
                       The  dog  bark     ##s    .     passes
    pll-original        1    2    3        4     5        5
    pll-word-l2r        1    2    3 4      4     5        5
    pll-whole-word      1    2    3 4     3 4    5        4, because two questions share one pass
    pll-sentence-l2r   1-6  2-6   3-6     4-6   5 6       5

Words of several tokens. `chain` uncovers the tokens of a word directly after one another, in all
orders. For example, the word `bark ##s` has weight 1/6 in the set of `The` and `bark ##s`. One pass
hides the whole set and asks for both tokens of this word, each with weight 1/2 * 1/6. In two more
passes, one of the two tokens is visible, and the question asks for the other one, with weight
1/2 * 1/6.

Mixture over orders (`chain-mixture`). In one order, the product of the words' probabilities is a
probability of the sentence. Over all sentences with the same number of tokens in each word, these
probabilities add up to 1. This is also true of mean probabilities over all n! orders. The mixture
is the log of the mean probability of a sentence. By Jensen's inequality, `chain`, the mean of the
logs, is a lower bound of the mixture. It is the evidence lower bound that is usually reported for
masked diffusion models.

The mixture needs only the answers of `chain`. The passes of a plan are the nodes of a graph, and
its questions are the edges. A question about a hidden word leads to the pass that also shows this
word:

    _ _ _         to   The _ _          _ dog _         _ _ sleeps
    The _ _       to   The dog _        The _ sleeps
    _ dog _       to   The dog _        _ dog sleeps
    _ _ sleeps    to   The _ sleeps     _ dog sleeps
    The dog _ , The _ sleeps and _ dog sleeps   to   the whole sentence, which needs no pass

A random order is a random walk: while m words are hidden, each of them is uncovered next with
probability 1/m. Let V be a set of visible words. A walk that passes V has the product of all
probabilities on its way to V; any other walk has 0. H(V) is the mean of these values:

    H(no word) = 1,
    H(V) = sum over w in V of  1/(n - |V| + 1)  p(w | V without w)  H(V without w).

The mixture is log H(all words). F(V) = H(V) comb(n, |V|) is the mean over the walks that pass V, so
that F(V) = 1/|V| sum of p(w | V without w) F(V without w). A walk that begins a word of several
tokens uncovers all of them, in random order, before any other word.

Samples. If there are too many sets of words, `chain` asks about a sample, see `rules`. For a
mixture, the sample consists of random orders, and each order is a separate walk. The mean of their
probabilities is an unbiased estimate. The log of this mean is too low on average, by about half the
squared standard error of the score. It is thus a lower bound in expectation (Burda, Grosse &
Salakhutdinov 2016, theorem 1).
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
"""Position of each token's word, or `END_MARK` or `SPECIAL`; see `words.Encoding`."""

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
        sample_of: number of each question's sample, or `EVERY_SAMPLE`, (n_questions,), if the score
            is the mean of independent samples; None for exact scores and drafts.
        mixture: walks through the passes, if the score is the log of the mean probability over
            orders; None if the score is the weighted sum.
    """

    hidden: BoolArray
    row: IntArray
    token: IntArray
    weight: FloatArray
    sample_of: IntArray | None = None
    mixture: Mixture | None = None

    @property
    def nbytes(self) -> int:
        """Memory of all arrays, in bytes."""
        return sum(getattr(part, "nbytes", 0) for part in vars(self).values())

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
        # The weights contain the factor 1/n of the mean over n samples: part = score of sample / n.
        # So the standard error, std(score) / sqrt(n), is std(part) sqrt(n)
        values = (self.weight * log_probs)[sampled]
        parts = _sums(self.sample_of[sampled], values, n_samples)  # (n_samples,)
        return float(parts.std(ddof=1) * np.sqrt(len(parts)))


def _sums(group: IntArray, values: FloatArray, n_groups: int) -> FloatArray:
    return np.bincount(group, values, n_groups).astype(np.float64, copy=False)


def tokens_per_word(pattern: Pattern) -> IntArray:
    """Return the number of tokens of each word, (n_words,)."""
    words = np.array(pattern)
    return np.bincount(words[words >= 0])


def n_passes(pattern: Pattern) -> int:
    """Return the number of passes of the exact mean over all orders of n words.

    This is 2^n - 1, plus 2^(n-1) (2^k - 2) for each word of k tokens. A word is in 2^(n-1) sets of
    words. Within each, 2^k - 2 sets of the word's tokens are neither empty nor complete.
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
    """Return (n-s)! (s-1)! / n! for sets of s hidden among n elements, (n_sets,)."""
    n = hidden.shape[1]
    # (n-s)! (s-1)! / n! = 1 / (s * comb(n, s))
    table = np.array([0.0] + [1 / (s * comb(n, s)) for s in range(1, n + 1)])
    weights: FloatArray = table[hidden.sum(axis=1)]
    return weights


def as_mixture(plan: Plan) -> Plan:
    """Return a plan with the same passes whose score is the log of the mean probability.

    Args:
        plan: exact plan, or a mean of samples that share no questions. The weight of a question
            must be the probability that a random order asks it.
    """
    return replace(plan, mixture=Mixture.of(plan))


@dataclass(frozen=True, eq=False)
class Mixture:
    """Random walks (orders) through the passes of a plan; see the top of this file.

    The nodes of a sample are its passes and the whole sentence, where all its walks end. Nodes are
    sorted by their number of hidden tokens, from all tokens to none.

    Attributes:
        source: node of each question's pass, (n_questions,).
        target: node that also shows the token in question, (n_questions,).
        log_step: log probability that a walk at the source asks this question, (n_questions,).
        log_reached: log probability that a walk of the node's sample passes it, (n_nodes,).
        n_samples: number of samples; 1 if the plan covers all orders.
        order: indices of questions, sorted by target, (n_questions,).
        layers: an entry for each number of hidden tokens except the largest, in falling order. It
            has the nodes with this number; the slice of `order` with the questions that lead to
            these nodes; and, for each node, the index of its first question in this slice.
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
        # The key of a node: number of hidden tokens (most first), sample, set of hidden tokens
        hidden = np.concatenate([hidden_before, hidden_after])
        n_hidden, sets = hidden.sum(axis=1), np.packbits(hidden, axis=1)
        keys = np.column_stack([-n_hidden, np.tile(sample, 2), sets])
        nodes, node = np.unique(keys, axis=0, return_inverse=True)
        source, target = np.split(node.reshape(-1), 2)
        # A walk at a pass asks one of its questions with probability proportional to the weights
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

    @property
    def nbytes(self) -> int:
        """Memory of all arrays, in bytes."""
        return sum(getattr(part, "nbytes", 0) for part in vars(self).values())

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
        # A single order may round to slightly more than 0 nats
        return min(0.0, float(np.logaddexp.reduce(of_samples) - np.log(self.n_samples)))

    def standard_error(self, log_probs: FloatArray) -> float:
        """Compute the standard error of the score by the delta method; 0 for a single sample."""
        if self.n_samples == 1:
            return 0.0
        of_samples = self.log_h(log_probs)[-self.n_samples :]
        probs = np.exp(of_samples - of_samples.max())  # in units of the largest
        return float(probs.std(ddof=1) / (probs.mean() * np.sqrt(self.n_samples)))

    def gains(self, log_probs: FloatArray) -> FloatArray:
        """Compute the gain of each question, (n_questions,), nats.

        The gain is log F(V with w) - log F(V) for a question about the word w. The gains of any
        walk add up to the score, and so do the mean gains over all walks. The mean gain of a word
        is its Shapley value in the game log F.

        If the answers are conditional probabilities of a single distribution, the gain is
        log p(w | V), and the mean gain is the word's part of the score under `chain`. Otherwise a
        gain may be positive.
        """
        log_f = self.log_h(log_probs) - self.log_reached
        log_f[-self.n_samples :] = self.score(log_probs)
        return log_f[self.target] - log_f[self.source]
