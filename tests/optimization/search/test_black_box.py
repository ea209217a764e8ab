"""Estimates for models that only return scores, and searches between such models."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from contstim.models.base import Replacements
from contstim.optimization.search.black_box import SentenceRegression
from contstim.optimization.search.proposers import ScreeningProposer
from contstim.optimization.search.screening import PositionEstimates, SearchState
from contstim.words.sentence import Sentence
from tests.optimization.search.toys import ExactRanking, TableModel, make_search

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.files.arrays import FloatArray, IntArray

WORDS = tuple("a b c d e".split())


def score_covariance(
    rows: Sequence[Sentence], columns: Sequence[Sentence], x: FloatArray
) -> FloatArray:
    """Return the covariance of scores, from shared words and pairs of words, drafts and tokens."""
    word_terms = [
        [
            2.5**2 * sum(a == b for a in row.words for b in column.words)
            + 1.0**2 * sum(a == b for a in pairwise(row.words) for b in pairwise(column.words))
            for column in columns
        ]
        for row in rows
    ]
    draft_scores, n_tokens = x
    linear = 0.5**2 * np.outer(draft_scores[: len(rows)], draft_scores[-len(columns) :])
    linear += 4.0**2 * np.outer(n_tokens[: len(rows)], n_tokens[-len(columns) :])
    return np.array(word_terms) + linear + 100.0**2


def test_expectations_are_those_of_a_gaussian_process() -> None:
    """Witness: mean and covariance in closed form (Rasmussen & Williams 2006, Eq. 2.25)."""
    rng = np.random.default_rng(0)
    rows = sorted({tuple(rng.choice(WORDS, 4).tolist()) for _ in range(12)})
    known = [Sentence(row) for row in rows]
    base = Sentence(("a", "b", "c", "d"))
    new_sentences = [base.replace(1, word) for word in (*WORDS, "never")]
    draft_scores = rng.normal(size=len(known) + len(new_sentences)) - 20
    n_tokens = rng.integers(4, 9, size=len(known) + len(new_sentences)).astype(np.float64)
    scores = rng.normal(size=len(known)) * 9 - 30

    regression = SentenceRegression()
    for sentence, *numbers in zip(known, draft_scores, n_tokens, scores, strict=False):
        for _ in range(2):  # a repeated sentence must have no effect
            regression.learn(sentence, *numbers)
    regression.learn(Sentence(("e", "never", "a")), -20.0, 3.0, -np.inf)
    n = len(known)
    mean, sd = regression.predict(base, 1, (*WORDS, "never"), draft_scores[n:], n_tokens[n:])

    x = np.stack([draft_scores, n_tokens])
    known_covariance = score_covariance(known, known, x[:, :n]) + 2.0**2 * np.eye(n)
    cross = score_covariance(known, new_sentences, x)
    error = scores - (draft_scores[:n] - 4 * n_tokens[:n])
    expected = (
        draft_scores[n:] - 4 * n_tokens[n:] + cross.T @ np.linalg.solve(known_covariance, error)
    )
    np.testing.assert_allclose(mean, expected, rtol=1e-6)
    variance = np.diag(score_covariance(new_sentences, new_sentences, x[:, n:])) + 2.0**2
    variance = variance - np.diag(cross.T @ np.linalg.solve(known_covariance, cross))
    # Equals the sum of squared one-step-ahead prediction errors
    scale = (10 + error @ np.linalg.solve(known_covariance, error)) / (10 + n)
    np.testing.assert_allclose(sd, np.sqrt(variance * scale), rtol=1e-5)


class BlackBox(TableModel):
    """A table that only returns scores; words with low numbers have more tokens."""

    is_black_box = True

    def replacements(self, sentence: Sentence, position: int, words: Sequence[str]) -> Replacements:
        sentence.check_position(position)
        return Replacements.unknown(len(words))

    def tokens_per_word(self, words: Sequence[str], *, initial: bool) -> IntArray:
        del initial
        return np.array([1 - self.number(word) // 3 for word in words], np.int64)


class MisleadingDraft(BlackBox):
    """A black box whose draft rejects every word of the second half of the alphabet."""

    def draft(self, effort: int = 1) -> TableModel:
        del effort
        return HalfAlphabet(self.seed + 100, "exact")


class HalfAlphabet(TableModel):
    """Knows only the first half of the alphabet."""

    cheap_replacements = True

    def score(self, sentence: Sentence, stop: int | None = None) -> float:
        is_known = all(word.lower() < "n" for word in sentence.words)
        return super().score(sentence, stop) if is_known else -np.inf


@pytest.mark.parametrize("kind", [BlackBox, MisleadingDraft])
def test_black_box_searches_nearly_match_a_ranking_of_all_words(kind: type[BlackBox]) -> None:
    """Witness: the best of all words at each position, with each sentence scored in a plain loop.

    A search that learns nothing about words scores half of all sentences without a draft. With a
    misleading draft it achieves a fifth of the drop.
    """
    drops, n_scored = np.zeros(2), np.zeros(2)
    for seed in range(5):
        for index, proposer in enumerate((ExactRanking(), ScreeningProposer())):
            models = [kind(n, "estimate") for n in (2 * seed, 2 * seed + 1)]
            search = make_search(models[0], models[1])
            result = search.climb(proposer, seed)
            exact = [TableModel(m.seed, "exact").log_probs([result.sentence])[0] for m in models]
            np.testing.assert_allclose(result.log_probs, exact)
            assert exact[0] >= search.objective.limits[0]
            drops[index] += result.start.log_probs[1] - result.log_probs[1]
            n_scored[index] += sum(len(set(model.scored_sentences)) for model in models)
    assert drops[1] > 0.8 * drops[0] > 0
    assert n_scored[1] < 0.15 * n_scored[0]


class RejectsA(TableModel):
    """A draft for which every sentence with the word `A` is impossible."""

    cheap_replacements = True

    def score(self, sentence: Sentence, stop: int | None = None) -> float:
        return super().score(sentence, stop) - 40 if "A" not in sentence.words else -np.inf


class DraftRejectsA(BlackBox):
    def draft(self, effort: int = 1) -> TableModel:
        del effort
        return RejectsA(self.seed, "exact")


def test_drafts_that_reject_the_natural_sentence_are_ignored() -> None:
    """Witness: the estimates at the rejected word if no other position was visited before.

    At other positions all sentences are impossible under the draft, so it gives no score.
    """
    model = DraftRejectsA(0, "estimate")
    expected = []
    for visits in ([0], [2, 1, 0]):
        search = make_search(model, TableModel(1, "exact"))
        state = SearchState(2, np.random.default_rng(0))
        for index in visits:
            estimates = PositionEstimates(search.at(index), search.objective, state)
        expected.append((estimates.mean[0], estimates.spread[0]))
    np.testing.assert_allclose(expected[1], expected[0])
