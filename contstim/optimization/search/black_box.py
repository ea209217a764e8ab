"""Expected scores of sentences under a model that tells nothing but scores of whole sentences.

A Bayesian linear regression on all scores of the search so far (Bishop 2006, section 3.3). What is
expected of a sentence is a sum: its score under a draft and its number of tokens, each times a
weight, a weight for each of its words, and one for every two neighbours. An example. A server gives

    The dog barks.     -20 nats
    The idea barks.    -29

Most of the 9 nats are put down to `idea`, less to `The idea` and `idea barks`, and if `idea` is two
tokens and `dog` is one, a part to the tokens. So less is now expected of every sentence with
`idea`, and of those with words of two tokens. Of words that were not tried yet more is left open:
their spread is larger, which is a reason to try them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.files.arrays import FloatArray, IntArray
    from contstim.models.base import LanguageModel
    from contstim.optimization.search.constraints import Position
    from contstim.optimization.search.evaluator import Evaluator
    from contstim.words.sentence import Sentence

    Term: TypeAlias = str | tuple[str, str]  # a word, or two neighbours

# Weights are independent and normal before anything is known; all in nats. The spreads of terms are
# about those of highest likelihood in searches under a small GPT-2 of 8,000 tokens. The noise of
# highest likelihood is 0.7 nats; with 2.0 searches try more words and find better ones.
_OFFSET, _DRAFT, _TOKENS = range(3)  # the weights of every sentence; those of terms follow
_MEANS = (0.0, 1.0, -4.0)
_SPREADS = (100.0, 0.5, 4.0)
_WORD_SPREAD, _PAIR_SPREAD = 2.5, 1.0  # of the weights of terms, whose means are 0
_NOISE = 2.0  # spread of scores around their sums
_SPREAD_PRIOR = 10.0  # how many scores these spreads weigh as much as
_MAX_WEIGHTS = 2000  # terms that come later have no weight and count as noise


class SentenceRegression:
    """Expected scores of sentences, learned from those that are known.

    Attributes:
        lowest_drafted: the lowest score of a known sentence under the draft, nats; inf at first.
    """

    def __init__(self) -> None:
        self.lowest_drafted = np.inf
        self._place: dict[Term, int] = {}  # of a term among the weights
        self._mean = np.array(_MEANS)
        self._covariance = np.diag(np.square(_SPREADS))
        self._known: set[Sentence] = set()
        self._squares = self._n = _SPREAD_PRIOR

    def learn(self, sentence: Sentence, drafted: float, n_tokens: float, score: float) -> None:
        """Add a sentence, once.

        Args:
            sentence: the words.
            drafted: its score under the draft, nats; 0 where there is none.
            n_tokens: that it is read as; 0 where that is not known.
            score: its log-probability, nats; minus infinity tells nothing.
        """
        if sentence in self._known or not np.isfinite(score):
            return
        self._known.add(sentence)
        self.lowest_drafted = min(self.lowest_drafted, drafted)
        terms: list[Term] = [*sentence.words, *pairwise(sentence.words)]
        self._add([term for term in terms if term not in self._place])
        places = [_OFFSET, _DRAFT, _TOKENS, *(self._place[t] for t in terms if t in self._place)]
        values = np.ones(len(places))
        values[_DRAFT], values[_TOKENS] = drafted, n_tokens
        # The weights given one more score: a step of recursive least squares
        shared = self._covariance[:, places] @ values  # of each weight with the score
        variance = values @ shared[places] + _NOISE**2
        variance += sum(_prior(t) ** 2 for t in terms if t not in self._place)
        error = score - values @ self._mean[places]
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
        """Means and standard deviations of the sentence's score with each word, (n_words,), nats.

        Args:
            sentence: the words around it.
            index: 0-based, of the word that is replaced.
            words: the candidates.
            drafted: scores of the sentences under the draft, (n_words,), nats.
            n_tokens: that they are read as, (n_words,).
        """
        before, after = sentence.words[:index], sentence.words[index + 1 :]
        # Terms of all these sentences, and of each of them
        common: list[Term] = [*before, *after, *pairwise(before), *pairwise(after)]
        own: list[list[Term]] = [list(words)]
        own += [[(before[-1], word) for word in words]] if before else []
        own += [[(word, after[0]) for word in words]] if after else []

        places = [_OFFSET, *(self._place[term] for term in common if term in self._place)]
        mean = np.full(len(words), self._mean[places].sum())
        shared = self._covariance[:, places].sum(axis=1)  # of each weight with the common terms
        variance = np.full(len(words), shared[places].sum() + _NOISE**2)
        variance += sum(_prior(term) ** 2 for term in common if term not in self._place)
        # What the draft's score, the tokens and each own term add: places of weights, and values
        # by which they are multiplied, (n_own, n_words); a term without a weight counts as spread
        places_own = [np.full(len(words), _DRAFT), np.full(len(words), _TOKENS)]
        values = [drafted, n_tokens]
        for terms in own:
            of_terms = np.array([self._place.get(term, -1) for term in terms])
            variance[of_terms < 0] += _prior(terms[0]) ** 2
            places_own.append(np.maximum(of_terms, 0))
            values.append((of_terms >= 0).astype(np.float64))
        at, by = np.array(places_own), np.array(values)
        mean += (by * self._mean[at]).sum(axis=0)
        variance += 2 * (by * shared[at]).sum(axis=0)
        variance += np.einsum("iw,ijw,jw->w", by, self._covariance[at[:, None], at[None]], by)
        # All spreads are as much larger or smaller as errors so far were
        spread: FloatArray = np.sqrt(variance * (self._squares / self._n))
        return mean, spread

    def _add(self, terms: Sequence[Term]) -> None:
        """Give terms a weight each, as long as there is room."""
        old = len(self._mean)
        terms = list(dict.fromkeys(terms))[: _MAX_WEIGHTS - old]
        self._place |= {term: old + n for n, term in enumerate(terms)}
        self._mean = np.append(self._mean, np.zeros(len(terms)))
        covariance = np.diag([0.0] * old + [_prior(term) ** 2 for term in terms])
        covariance[:old, :old] = self._covariance
        self._covariance = covariance


def _prior(term: Term) -> float:
    """The standard deviation of its weight at first, nats."""
    return _WORD_SPREAD if isinstance(term, str) else _PAIR_SPREAD


class BlackBoxEstimates:
    """Expected scores of the words at a position under a black box.

    Args:
        number: of the model.
        position: the sentence as it stands, and the words.
        evaluator: asks the model's draft, and has its exact scores.
        regression: what the search has learned of the model.

    Attributes:
        refined: whether the draft's own scores of all words are there, or there is no draft.
        drafted: the draft's own scores, (n_words,), nats, or its estimates in their place.
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
            # Estimates count as differences from the word that stands there, if it has one
            with evaluator.counted(number):
                current = draft.log_probs([position.sentence])[0]
            if np.isfinite(current):
                self.drafted += current - self.drafted[position.column]
        self._n_tokens = _n_tokens(evaluator.models[number], position)
        known = evaluator.known_log_prob(number, position.sentence)
        self.learn(np.array([position.column]), np.array([known]))

    def learn(self, columns: IntArray, log_probs: FloatArray) -> None:
        """Add exact log-probabilities of some words' sentences, (n_columns,), nats or nan."""
        drafted = self._finite_drafted()
        for column, log_prob in zip(columns.tolist(), log_probs.tolist(), strict=True):
            if not np.isfinite(drafted[column]):
                continue  # nothing can be learned beside a draft that has read no sentence yet
            sentence = self._position.replace(self._position.words[column])
            self._regression.learn(sentence, drafted[column], self._n_tokens[column], log_prob)

    def predict(self) -> tuple[FloatArray, FloatArray]:
        """Means and standard deviations of all words' sentences, (n_words,), nats."""
        position = self._position
        drafted = self._finite_drafted()
        return self._regression.predict(
            position.sentence,
            position.index,
            position.words,
            np.where(np.isfinite(drafted), drafted, 0.0),  # all alike where none is known
            self._n_tokens,
        )

    def _finite_drafted(self) -> FloatArray:
        """Scores under the draft; of sentences impossible there, the lowest of the search.

        Infinity while that is not known.
        """
        drafted = np.where(np.isfinite(self.drafted), self.drafted, np.inf)
        lowest = min(self._regression.lowest_drafted, drafted.min())
        return np.where(np.isfinite(drafted), drafted, lowest)


def _n_tokens(model: LanguageModel, position: Position) -> FloatArray:
    """As how many tokens the sentence with each word is read, (n_words,); 0 where it has none."""
    words = position.sentence.words
    replaced = model.tokens_per_word(position.words, initial=position.index == 0)
    first = model.tokens_per_word(words[:1], initial=True)
    later = model.tokens_per_word(words[1:], initial=False)
    if replaced is None or first is None or later is None:
        return np.zeros(len(position.words))
    around = first.sum() + later.sum() - replaced[position.column]
    return np.asarray(replaced + around, np.float64)
