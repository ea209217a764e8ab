"""The mixture over orders: the log of the mean probability that random orders give a sentence.

Uncovering a sentence of masks word by word, in one order, gives it a probability, and over all
sentences with as many tokens in each word these probabilities add up to 1. So does their mean over
all n! orders, whereas `chain`, the mean of their logs, is the log of a geometric mean, which adds
up to less. By Jensen's inequality `chain` is a lower bound of the mixture: the evidence lower bound
of masked diffusion, which is what is usually computed there.

The mixture needs no contexts but those of `chain`. A plan's passes are the nodes of a graph, and
its questions the arrows: a question about a hidden word leads to the pass that shows this word too.
In the example of `plan`, with `The`, `dog` and `sleeps`:

    _ _ _         to   The _ _          _ dog _         _ _ sleeps
    The _ _       to   The dog _        The _ sleeps
    _ dog _       to   The dog _        _ dog sleeps
    _ _ sleeps    to   The _ sleeps     _ dog sleeps
    The dog _     to   the whole sentence, which needs no pass; likewise the other two

A random order is a random walk: where m words are hidden, each of them comes next with probability
1/m. Let H(V), where the words V are visible, be the mean over walks of the product of all
probabilities on the way to V, counted as 0 for walks that do not come by. H(no word) = 1, and

    H(V) = sum over w in V of  1/(n - |V| + 1)  p(w | V without w)  H(V without w);

the mixture is log H(all words). Among the walks that do come by V, the mean of the products is
F(V) = H(V) comb(n, |V|), so that F(V) = 1/|V| sum of p(w | V without w) F(V without w). A word of
several tokens is uncovered by a walk of its own, over all orders of its tokens.

Where all sets are too many, some orders are drawn at random, each a walk of its own. The mean of
their probabilities is unbiased; its log is too low on average, by half the squared standard error
to first order, and so a lower bound in expectation (Burda, Grosse & Salakhutdinov 2016, theorem 1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from contstim.models.masked.plan import exact_plan, n_passes
from contstim.models.masked.sampling import budget_orders_plan

if TYPE_CHECKING:
    from contstim.arrays import FloatArray, IntArray
    from contstim.models.masked.plan import Pattern, Plan


def mixture_plan(pattern: Pattern, seed: int, pass_budget: int) -> Plan:
    """All orders where the budget allows it, else as many random ones as it allows.

    Raises:
        ModelError: the budget does not allow two orders.
    """
    if n_passes(pattern) <= pass_budget:
        return mixed(exact_plan(pattern))
    return mixed(budget_orders_plan(pattern, seed, pass_budget))


def mixed(plan: Plan) -> Plan:
    """The same contexts, for the log of the mean probability over the plan's orders.

    Args:
        plan: exact, or a mean of samples without common questions; the weight of a question is the
            probability that a random order asks it.
    """
    return replace(plan, mixture=Mixture.of(plan))


@dataclass(frozen=True, eq=False)
class Mixture:
    """The walks of random orders through the passes of a plan.

    Nodes are passes within a sample, and the whole sentence at the end of each sample. They are
    numbered by what is hidden there, from all tokens to none.

    Attributes:
        source: the node of each question's pass, (n_questions,).
        target: the node with the token in question uncovered, (n_questions,).
        log_step: log probability that a walk at the source asks this question, (n_questions,).
        log_reached: log probability that a walk of its sample comes by each node, (n_nodes,).
        n_samples: how many samples there are; 1 where all orders are walked.
        order: the questions sorted by target, (n_questions,).
        layers: for each number of hidden tokens but the largest, in falling order: its nodes, the
            sorted questions that lead there, and where among these each node's begin.
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
        """The walks of a plan, from what its passes hide and the weights of its questions."""
        n_questions = len(plan.row)
        sample = np.zeros(n_questions, np.int64) if plan.sample_of is None else plan.sample_of
        before = plan.hidden[plan.row]  # (n_questions, n_tokens)
        after = before.copy()
        after[np.arange(n_questions), plan.token] = False
        # Nodes are told apart by how many tokens are hidden, most first, by the sample, and by
        # which tokens are hidden
        hidden = np.concatenate([before, after])
        keys = np.column_stack(
            [-hidden.sum(axis=1), np.tile(sample, 2), np.packbits(hidden, axis=1)]
        )
        nodes, node = np.unique(keys, axis=0, return_inverse=True)
        source, target = np.split(node.reshape(-1), 2)
        # Of the walks that come by a pass, each of its questions takes the share of its weight
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
    def n_bytes(self) -> int:
        """Memory that its arrays take, in bytes."""
        arrays = (self.source, self.target, self.log_step, self.log_reached, self.order)
        return sum(array.nbytes for array in arrays)

    def log_h(self, log_probs: FloatArray) -> FloatArray:
        """Log H of every node within its sample, (n_nodes,), nats; see the top of this file.

        Args:
            log_probs: the answers, (n_questions,), nats.
        """
        steps = (self.log_step + log_probs)[self.order]
        source = self.source[self.order]
        log_h = np.zeros(self.target[self.order[-1]] + 1)  # log 1 where all tokens are hidden
        for nodes, questions, starts in self.layers:
            arriving = log_h[source[questions]] + steps[questions]
            log_h[nodes] = np.logaddexp.reduceat(arriving, starts)
        return log_h

    def score(self, log_probs: FloatArray) -> float:
        """Log of the mean probability, nats, from the answers, (n_questions,)."""
        of_samples = self.log_h(log_probs)[-self.n_samples :]
        # an order alone may round to a little more than 0 nats
        return min(0.0, float(np.logaddexp.reduce(of_samples) - np.log(self.n_samples)))

    def standard_error(self, log_probs: FloatArray) -> float:
        """Standard error of the score by the delta method, nats; 0 where all orders are walked."""
        if self.n_samples == 1:
            return 0.0
        of_samples = self.log_h(log_probs)[-self.n_samples :]
        probs = np.exp(of_samples - of_samples.max())  # in units of the largest
        return float(probs.std(ddof=1) / (probs.mean() * np.sqrt(self.n_samples)))

    def gains(self, log_probs: FloatArray) -> FloatArray:
        """Gain of each question in the log of the mean probability so far, (n_questions,), nats.

        Log F(V) rises by the gain when a walk that has uncovered V goes along the arrow. The gains
        of any walk add up to the score, and so do their means over walks: a word's mean gain is its
        Shapley value in the game log F. Where the answers fit together, as conditionals of a single
        distribution do, the gain is log p(word | V), and its mean is the word's part under `chain`.
        Elsewhere a gain may be positive.
        """
        log_f = self.log_h(log_probs) - self.log_reached
        log_f[-self.n_samples :] = self.score(log_probs)
        gains: FloatArray = log_f[self.target] - log_f[self.source]
        return gains
