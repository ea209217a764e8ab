"""Expected scores of sentences under a model that only returns scores of whole sentences.

Such a model is a black box. A draft is a cheaper model with similar scores. The expected scores
come from a Bayesian linear regression on all scores of the search so far (Bishop 2006, section
3.3):

    score = a + b · score under a draft + c · number of tokens
            + a weight for each word + a weight for each pair of neighbours

For example, a server returns

    The dog barks.     -20 nats
    The idea barks.    -29

The regression attributes most of the difference of 9 nats to `idea`, and less to the pairs
`The idea` and `idea barks`. If `idea` has two tokens and `dog` has one, the regression attributes a
part of the difference to the number of tokens. Expected scores of sentences with untried words have
a larger standard deviation. Such a sentence may be much better than expected, which is a reason to
try its word.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.files.arrays import FloatArray, IntArray
    from contstim.models.base import Scorer
    from contstim.optimization.search.constraints import Position
    from contstim.optimization.search.evaluator import Evaluator
    from contstim.words.sentence import Sentence

    Term: TypeAlias = str | tuple[str, str]  # a word, or two neighbours

# Priors of the weights are independent and normal, in nats. A term is a word or a pair of
# neighbours. The standard deviations for terms are near the maximum-likelihood values in searches
# under a small GPT-2 with a vocabulary of 8,000 tokens. The maximum-likelihood value of the noise
# is 0.7 nats. With 2.0 nats, searches try more words and find better words
_OFFSET, _DRAFT, _TOKENS = range(3)  # indices of the weights a, b and c; weights of terms follow
_MEANS = (0.0, 1.0, -4.0)  # prior means of a, b and c
_SPREADS = (100.0, 0.5, 4.0)  # prior standard deviations of a, b and c
_WORD_SPREAD, _PAIR_SPREAD = 2.5, 1.0  # standard deviations of the weights of terms; means are 0
_NOISE = 2.0  # standard deviation of the residuals
_SPREAD_PRIOR = 10.0  # the prior standard deviations weigh as much as this number of scores
_MAX_WEIGHTS = 2000  # maximum number of weights; further terms have no weight and count as noise


class SentenceRegression:
    """Expected scores of sentences, learned from known scores.

    Attributes:
        lowest_drafted: lowest score of a known sentence under the draft, nats; initially inf.
    """

    def __init__(self) -> None:
        self.lowest_drafted = np.inf
        self._index: dict[Term, int] = {}  # term -> index of its weight
        self._mean = np.array(_MEANS)
        self._covariance = np.diag(np.square(_SPREADS))
        self._known: set[Sentence] = set()
        # The sum of (error² / variance), and the number of scores. Both start as if _SPREAD_PRIOR
        # scores were known, each with error² = variance
        self._squares = self._n = _SPREAD_PRIOR

    def learn(self, sentence: Sentence, drafted: float, n_tokens: float, score: float) -> None:
        """Update the weights with the score of a sentence.

        `drafted` is the score under the draft, nats; 0 without a draft. `n_tokens` is the number of
        tokens; 0 if unknown. Known sentences are ignored, and so are scores that are infinite or
        nan.
        """
        if sentence in self._known or not np.isfinite(score):
            return
        self._known.add(sentence)
        self.lowest_drafted = min(self.lowest_drafted, drafted)
        terms: list[Term] = [*sentence.words, *pairwise(sentence.words)]
        self._add_weights([term for term in terms if term not in self._index])
        indices = [_OFFSET, _DRAFT, _TOKENS, *(self._index[t] for t in terms if t in self._index)]
        values = np.ones(len(indices))
        values[_DRAFT], values[_TOKENS] = drafted, n_tokens
        # One step of recursive least squares
        shared = self._covariance[:, indices] @ values  # covariances of the weights and the score
        variance = values @ shared[indices] + _NOISE**2
        variance += sum(_prior_sd(t) ** 2 for t in terms if t not in self._index)
        error = score - values @ self._mean[indices]
        self._mean += shared * (error / variance)
        self._covariance -= np.outer(shared, shared / variance)
        self._squares += error**2 / variance
        self._n += 1

    def predict(
        self,
        sentence: Sentence,
        index: int,
        words: Sequence[str],
        drafted: FloatArray,
        n_tokens: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Predict the score of the sentence with each of the words at position `index`.

        `drafted` are the scores of these new sentences under the draft, (n_words,), nats.
        `n_tokens` are the new sentences' numbers of tokens, (n_words,).

        Returns:
            Means and standard deviations of the scores, (n_words,) each, nats.
        """
        prefix, suffix = sentence.words[:index], sentence.words[index + 1 :]
        # `common` are the terms that all sentences contain. `specific` are the terms that depend on
        # the new word
        common: list[Term] = [*prefix, *suffix, *pairwise(prefix), *pairwise(suffix)]
        specific: list[list[Term]] = [list(words)]
        specific += [[(prefix[-1], word) for word in words]] if prefix else []
        specific += [[(word, suffix[0]) for word in words]] if suffix else []

        indices = [_OFFSET, *(self._index[term] for term in common if term in self._index)]
        mean = np.full(len(words), self._mean[indices].sum())
        shared = self._covariance[:, indices].sum(axis=1)  # covariances with the common terms
        variance = np.full(len(words), shared[indices].sum() + _NOISE**2)
        variance += sum(_prior_sd(term) ** 2 for term in common if term not in self._index)
        # Indices of weights, and the factors of these weights. Both arrays have a column for each
        # word. Their rows are the draft, the number of tokens, the word, its pair with the word on
        # the left (if any), and its pair with the word on the right (if any). Terms without a
        # weight only add variance
        weight_indices = [np.full(len(words), _DRAFT), np.full(len(words), _TOKENS)]
        factors = [drafted, n_tokens]
        for terms in specific:
            term_indices = np.array([self._index.get(term, -1) for term in terms])
            variance[term_indices < 0] += _prior_sd(terms[0]) ** 2
            weight_indices.append(np.maximum(term_indices, 0))
            factors.append((term_indices >= 0).astype(np.float64))
        rows, x = np.array(weight_indices), np.array(factors)
        mean += (x * self._mean[rows]).sum(axis=0)
        variance += 2 * (x * shared[rows]).sum(axis=0)
        variance += np.einsum("iw,ijw,jw->w", x, self._covariance[rows[:, None], rows[None]], x)
        # The standard deviations are larger if errors so far were larger
        spread: FloatArray = np.sqrt(variance * (self._squares / self._n))
        return mean, spread

    def _add_weights(self, terms: Sequence[Term]) -> None:
        n_old = len(self._mean)
        terms = list(dict.fromkeys(terms))[: _MAX_WEIGHTS - n_old]
        self._index |= {term: n_old + n for n, term in enumerate(terms)}
        self._mean = np.append(self._mean, np.zeros(len(terms)))
        covariance = np.diag([0.0] * n_old + [_prior_sd(term) ** 2 for term in terms])
        covariance[:n_old, :n_old] = self._covariance
        self._covariance = covariance


def _prior_sd(term: Term) -> float:
    return _WORD_SPREAD if isinstance(term, str) else _PAIR_SPREAD


class BlackBoxEstimates:
    """Expected scores under a black box, for the sentences with each candidate word at a position.

    Attributes:
        refined: True if `drafted` contains exact scores of the draft for all words, or if there is
            no draft.
        drafted: scores of the new sentences under the draft, exact or estimated, (n_words,), nats.
    """

    def __init__(
        self,
        number: int,
        position: Position,
        evaluator: Evaluator,
        regression: SentenceRegression,
    ) -> None:
        self._position, self._regression = position, regression
        draft = evaluator.models[number].draft()
        self.refined = draft is None or draft.cheap_replacements
        self.drafted = evaluator.screen(number, position).estimate.copy()
        if draft is not None:
            # The screening estimates have an unknown offset, the same for all words. Add a constant
            # so that the estimate of the current sentence equals the draft's exact score
            with evaluator.count_cost(number):
                current = draft.scores([position.sentence])[0]
            if np.isfinite(current):
                self.drafted += current - self.drafted[position.column]
        self._n_tokens = _n_tokens(evaluator.models[number], position)
        log_prob = evaluator.known_log_prob(number, position.sentence)
        self.learn(np.array([position.column]), np.array([log_prob]))

    def learn(self, columns: IntArray, log_probs: FloatArray) -> None:
        """Learn from exact log-probabilities of sentences, (n_columns,), nats or nan.

        `columns` are the indices of these sentences' new words among the candidate words.
        """
        drafted = self._finite_drafted()
        for column, log_prob in zip(columns.tolist(), log_probs.tolist(), strict=True):
            if not np.isfinite(drafted[column]):
                continue  # without a finite score under the draft, the regression has no input
            sentence = self._position.replace(self._position.words[column])
            self._regression.learn(sentence, drafted[column], self._n_tokens[column], log_prob)

    def predict(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of the score with each word, (n_words,) each, nats."""
        position = self._position
        drafted = self._finite_drafted()
        return self._regression.predict(
            position.sentence,
            position.index,
            position.words,
            np.where(np.isfinite(drafted), drafted, 0.0),  # all are 0 if none is finite
            self._n_tokens,
        )

    def _finite_drafted(self) -> FloatArray:
        """Return scores under the draft, (n_words,), nats.

        Scores that are not finite are replaced by the lowest finite score of the search. If no
        finite score is known, they are replaced by infinity.
        """
        drafted = np.where(np.isfinite(self.drafted), self.drafted, np.inf)
        lowest = min(self._regression.lowest_drafted, drafted.min())
        return np.where(np.isfinite(drafted), drafted, lowest)


def _n_tokens(model: Scorer, position: Position) -> FloatArray:
    """Return the number of tokens of the sentence with each candidate word, (n_words,).

    All numbers are 0 if the model does not report numbers of tokens.
    """
    words = position.sentence.words
    candidates = model.tokens_per_word(position.words, initial=position.index == 0)
    first = model.tokens_per_word(words[:1], initial=True)
    later = model.tokens_per_word(words[1:], initial=False)
    if candidates is None or first is None or later is None:
        return np.zeros(len(position.words))
    around = first.sum() + later.sum() - candidates[position.column]
    return np.asarray(candidates + around, np.float64)
