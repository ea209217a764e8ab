from __future__ import annotations

from pathlib import Path

import pytest

from contstim.errors import VocabularyError
from contstim.models.ngram.adapter import KenlmModel
from contstim.models.ngram.training import train_ngram
from contstim.models.vocabularies import default_vocabulary, shared_vocabulary
from contstim.sentence import Sentence
from contstim.vocabulary import Vocabulary


@pytest.fixture
def other(tmp_path: Path) -> KenlmModel:
    """A model that has seen only a few words, each ten times."""
    text = [Sentence.parse(t) for t in ("The dog sees the woman", "She sees a small dog")] * 10
    with pytest.warns(UserWarning, match="too small"):
        train_ngram(text, 2, tmp_path / "other.arpa")
    return KenlmModel(tmp_path / "other.arpa", name="other")


def test_words_that_one_model_does_not_know_are_dropped_and_named(
    bigram: KenlmModel, other: KenlmModel
) -> None:
    words = Vocabulary(("The", "Every"), ("dog", "zyzzyva", "woman", "house"))
    kept, dropped = shared_vocabulary([bigram, other], words)
    assert (kept.initial, kept.inner) == (("The",), ("dog", "woman"))
    assert dropped == ("Every", "zyzzyva", "house")


def test_a_vocabulary_left_without_a_first_word_is_refused(other: KenlmModel) -> None:
    with pytest.raises(VocabularyError, match="start a sentence"):
        shared_vocabulary([other], Vocabulary(("Every",), ("dog",)))


def test_by_default_words_frequent_in_every_models_text(
    bigram: KenlmModel, other: KenlmModel
) -> None:
    """Witness: set intersection of the models' own vocabularies."""
    found = default_vocabulary([bigram, other])
    ours, theirs = bigram.vocabulary(5), other.vocabulary(5)
    assert set(found.inner) == set(ours.inner) & set(theirs.inner)
    assert set(found.initial) == set(ours.initial) & set(theirs.initial)


def test_without_word_level_models_the_embedded_lexicon() -> None:
    found = default_vocabulary([])
    assert len(found.words) > 1_200
    assert {"The", "Dogs"} <= set(found.initial)
    assert "the" in found.repeatable
