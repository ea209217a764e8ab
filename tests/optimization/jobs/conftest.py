"""A small study of n-gram models, and fake searches."""

from __future__ import annotations

from pathlib import Path

import pytest

from contstim.optimization.jobs.question import SearchQuestion
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.optimization.jobs.studies import FakeSearches, Study


@pytest.fixture(scope="session")
def words(english: list[Sentence]) -> Vocabulary:
    return Vocabulary.from_sentences(english, min_count=5)


@pytest.fixture(scope="session")
def naturals(words: Vocabulary, unseen: list[Sentence]) -> tuple[Sentence, ...]:
    """Natural sentences, except *There is …*, for which searches often find no triplet."""
    return tuple(s for s in unseen if not words.missing_words(s) and s.words[0] != "There")


@pytest.fixture(scope="session")
def study(trained: Path, naturals: tuple[Sentence, ...], words: Vocabulary) -> Study:
    """A study of three models, with two triplets per pair.

    Its short searches take a tenth of the usual time; the same results are stored.
    The 1-gram model differs enough from the others for such searches to find triplets.
    """
    models = tuple(f"kenlm:{trained}/{n}gram.arpa" for n in (1, 2, 4))
    question = SearchQuestion(per_pair=2, seed=5, recipe="golan2023", restarts=1)
    return Study(models, naturals, words, question)


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> FakeSearches:
    return FakeSearches(monkeypatch)
