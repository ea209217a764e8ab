from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from contstim.arrays import BoolArray, FloatArray
from contstim.errors import ModelError, SentenceError, VerificationError, VocabularyError
from contstim.models.base import Convention, LanguageModel, Replacements
from contstim.models.ngram.adapter import KenlmModel
from contstim.optimization.synthesis import synthesize, synthesize_triplet
from contstim.sentence import Sentence
from contstim.vocabulary import Vocabulary


class LetterModel(LanguageModel):
    """Scores by letters; `lie` is added to what it says of replacements, `zero` to every score."""

    def __init__(self, weight: float, lie: float = 0.0, zero: float = 0.0) -> None:
        self.name = f"letters {weight}"
        self.weight, self.lie, self.zero = weight, lie, zero

    @property
    def convention(self) -> Convention:
        return Convention("letters", "", False, f"letters-{self.weight}-{self.lie}-{self.zero}")

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        return np.array(
            [
                self.zero
                - abs(self.weight) * s.bare.count("e") * (1 if self.weight > 0 else -1)
                - len(s.bare) * 0.1
                - 50
                for s in sentences
            ]
        )

    def replacements(self, sentence: Sentence, position: int, words: Sequence[str]) -> Replacements:
        return Replacements.known(self.replacement_log_probs(sentence, position, words) + self.lie)

    def replacement_log_probs(
        self, sentence: Sentence, position: int, words: Sequence[str]
    ) -> FloatArray:
        return self.log_probs([sentence.replace(position, word) for word in words])

    def knows(self, words: Sequence[str]) -> BoolArray:
        return np.ones(len(words), bool)

    def vocabulary(self, min_count: int) -> None:
        del min_count


@pytest.fixture
def words(english: list[Sentence]) -> Vocabulary:
    return Vocabulary.from_sentences(english, min_count=2)


@pytest.fixture
def naturals(unseen: list[Sentence], words: Vocabulary) -> list[Sentence]:
    return [s for s in unseen if not words.missing(s)]


@pytest.fixture
def natural(naturals: list[Sentence]) -> Sentence:
    return naturals[0]


def test_the_constraint_holds_exactly_and_the_loss_falls(
    bigram: KenlmModel, trigram: KenlmModel, words: Vocabulary, naturals: list[Sentence]
) -> None:
    """Witness: both sentences scored afresh by KenLM."""
    drops = []
    for natural in naturals[:10]:
        found = synthesize(trigram, bigram, natural, words, seed=1)
        accepted, rejected = (m.log_probs([natural, found.synthetic]) for m in (trigram, bigram))
        assert accepted[1] >= accepted[0]
        assert rejected[1] < rejected[0] or found.synthetic == natural
        assert found.natural_log_probs == (accepted[0], rejected[0])
        assert found.log_probs == (accepted[1], rejected[1])
        drops.append(rejected[0] - rejected[1])
    assert sum(drop > 1 for drop in drops) >= 5


def test_a_triplets_numbers_follow_equation_4(
    bigram: KenlmModel, trigram: KenlmModel, words: Vocabulary, natural: Sentence
) -> None:
    """Witness: Eq. 4 from scores computed afresh; model_1 rejects synthetic_1."""
    triplet, _, _ = synthesize_triplet(bigram, trigram, natural, words)
    texts = (triplet.natural, triplet.synthetic_1, triplet.synthetic_2)
    n, s1, s2 = np.stack([m.log_probs([*map(Sentence.parse, texts)]) for m in (bigram, trigram)]).T
    assert triplet.controversiality == pytest.approx(n[0] - s1[0] + n[1] - s2[1])
    assert s1[0] < n[0]
    assert s1[1] >= n[1]
    assert s2[1] < n[1]
    assert s2[0] >= n[0]
    assert (triplet.log_prob_synthetic_1_model_2, triplet.log_prob_synthetic_2_model_1) == (
        s1[1],
        s2[0],
    )


def test_unusable_input_is_refused(
    bigram: KenlmModel, trigram: KenlmModel, trained: Path, words: Vocabulary, natural: Sentence
) -> None:
    with pytest.raises(SentenceError, match="one word"):
        synthesize(trigram, bigram, Sentence.parse("Hello"), words)
    with pytest.raises(VocabularyError, match="xylograph"):
        synthesize(trigram, bigram, natural.replace(1, "xylograph"), words)
    again = KenlmModel(trained / "2gram.arpa", name="another name")
    with pytest.raises(ModelError, match="the same model"):
        synthesize(again, bigram, natural, words)
    with pytest.raises(ModelError, match="probability zero"):
        synthesize(LetterModel(1, zero=-np.inf), bigram, natural, words)


def test_a_model_whose_replacements_lie_is_caught(
    bigram: KenlmModel, words: Vocabulary, natural: Sentence
) -> None:
    """The check at the end scores the result from scratch."""
    with pytest.raises(VerificationError, match="failed its check"):
        synthesize(LetterModel(1, lie=3.0), bigram, natural, words)
