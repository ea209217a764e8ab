"""What is learned of models that tell nothing but scores, and searches between such models."""

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
from tests.optimization.search.toys import ExactRanking, TableModel, search_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.files.arrays import FloatArray, IntArray

WORDS = tuple("a b c d e".split())


def covariance(rows: Sequence[Sentence], columns: Sequence[Sentence], x: FloatArray) -> FloatArray:
    """Of scores, written down sentence by sentence: shared words and pairs, draft and tokens."""
    shared = [
        [
            2.5**2 * sum(a == b for a in row.words for b in column.words)
            + 1.0**2 * sum(a == b for a in pairwise(row.words) for b in pairwise(column.words))
            for column in columns
        ]
        for row in rows
    ]
    drafted, n_tokens = x
    linear = 0.5**2 * np.outer(drafted[: len(rows)], drafted[-len(columns) :])
    linear += 4.0**2 * np.outer(n_tokens[: len(rows)], n_tokens[-len(columns) :])
    return np.array(shared) + linear + 100.0**2


def test_expectations_are_those_of_a_gaussian_process() -> None:
    """Witness: its mean and covariance in closed form (Rasmussen & Williams 2006, Eq. 2.25)."""
    rng = np.random.default_rng(0)
    rows = sorted({tuple(rng.choice(WORDS, 4).tolist()) for _ in range(12)})
    known = [Sentence(row) for row in rows]
    base = Sentence(("a", "b", "c", "d"))
    asked = [base.replace(1, word) for word in (*WORDS, "never")]
    drafted = rng.normal(size=len(known) + len(asked)) - 20
    n_tokens = rng.integers(4, 9, size=len(known) + len(asked)).astype(np.float64)
    scores = rng.normal(size=len(known)) * 9 - 30

    learned = SentenceRegression()
    for sentence, *numbers in zip(known, drafted, n_tokens, scores, strict=False):
        for _ in range(2):  # the second time it is known already
            learned.learn(sentence, *numbers)
    learned.learn(Sentence(("e", "never", "a")), -20.0, 3.0, -np.inf)
    n = len(known)
    mean, spread = learned.predict(base, 1, (*WORDS, "never"), drafted[n:], n_tokens[n:])

    x = np.stack([drafted, n_tokens])
    among = covariance(known, known, x[:, :n]) + 2.0**2 * np.eye(n)
    between = covariance(known, asked, x)
    error = scores - (drafted[:n] - 4 * n_tokens[:n])
    expected = drafted[n:] - 4 * n_tokens[n:] + between.T @ np.linalg.solve(among, error)
    np.testing.assert_allclose(mean, expected, rtol=1e-6)
    variance = np.diag(covariance(asked, asked, x[:, n:])) + 2.0**2
    variance = variance - np.diag(between.T @ np.linalg.solve(among, between))
    # Squares of errors, each as it was before its score was known, add up to this
    scale = (10 + error @ np.linalg.solve(among, error)) / (10 + n)
    np.testing.assert_allclose(spread, np.sqrt(variance * scale), rtol=1e-5)


class BlackBox(TableModel):
    """A table that is not to be looked at; a word is as many tokens as its number is low."""

    is_black_box = True

    def replacements(self, sentence: Sentence, position: int, words: Sequence[str]) -> Replacements:
        sentence.check_position(position)
        return Replacements.unknown(len(words))

    def tokens_per_word(self, words: Sequence[str], *, initial: bool) -> IntArray:
        del initial
        return np.array([1 - self.number(word) // 3 for word in words], np.int64)


class Unhelpful(BlackBox):
    """Its draft finds every word of the second half of the alphabet impossible."""

    def draft(self, effort: int = 1) -> TableModel:
        del effort
        return HalfDeaf(self.seed + 100, "exact")


class HalfDeaf(TableModel):
    """Knows half of the alphabet."""

    cheap_replacements = True

    def score(self, sentence: Sentence, stop: int | None = None) -> float:
        known = all(word.lower() < "n" for word in sentence.words)
        return super().score(sentence, stop) if known else -np.inf


@pytest.mark.parametrize("kind", [BlackBox, Unhelpful])
def test_a_search_between_black_boxes_comes_close_to_ranking_all_words(
    kind: type[BlackBox],
) -> None:
    """Witness: the best of all words at each position, each sentence scored in a plain loop.

    A search that learns nothing of words asks half of all sentences without a draft, and finds a
    fifth of the drop with one that misleads.
    """
    drops, asked = np.zeros(2), np.zeros(2)
    for seed in range(5):
        for way, proposer in enumerate((ExactRanking(), ScreeningProposer())):
            models = [kind(n, "estimate") for n in (2 * seed, 2 * seed + 1)]
            search = search_for(models[0], models[1])
            result = search.climb(proposer, seed)
            exact = [TableModel(m.seed, "exact").log_probs([result.sentence])[0] for m in models]
            np.testing.assert_allclose(result.log_probs, exact)
            assert exact[0] >= search.objective.limits[0]
            drops[way] += result.start.log_probs[1] - result.log_probs[1]
            asked[way] += sum(len(set(model.scored_sentences)) for model in models)
    assert drops[1] > 0.8 * drops[0] > 0
    assert asked[1] < 0.15 * asked[0]


class WithoutA(TableModel):
    """A draft that finds every sentence with the word `A` impossible."""

    cheap_replacements = True

    def score(self, sentence: Sentence, stop: int | None = None) -> float:
        return super().score(sentence, stop) - 40 if "A" not in sentence.words else -np.inf


class DraftedWithoutA(BlackBox):
    def draft(self, effort: int = 1) -> TableModel:
        del effort
        return WithoutA(self.seed, "exact")


def test_a_draft_that_cannot_read_the_natural_sentence_tells_nothing_of_it() -> None:
    """Witness: what is expected where the unreadable word stands, if nothing was asked before.

    Elsewhere all sentences are impossible under the draft, and no score of it is known.
    """
    model = DraftedWithoutA(0, "estimate")
    expected = []
    for visits in ([0], [2, 1, 0]):
        search = search_for(model, TableModel(1, "exact"))
        state = SearchState(2, np.random.default_rng(0))
        for index in visits:
            estimates = PositionEstimates(search.at(index), search.objective, state)
        expected.append((estimates.mean[0], estimates.spread[0]))
    np.testing.assert_allclose(expected[1], expected[0])
