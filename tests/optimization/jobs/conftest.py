"""A small study on the n-gram models of the embedded English, and studies of made-up searches."""

from __future__ import annotations

from pathlib import Path

import pytest

from contstim.optimization.jobs.question import SearchQuestion
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.optimization.jobs.studies import MadeUpSearches, Study


@pytest.fixture(scope="session")
def words(english: list[Sentence]) -> Vocabulary:
    return Vocabulary.from_sentences(english, min_count=5)


@pytest.fixture(scope="session")
def naturals(words: Vocabulary, unseen: list[Sentence]) -> tuple[Sentence, ...]:
    """Sentences from which searches find something: not from a frame with few words that fit."""
    return tuple(s for s in unseen if not words.missing_words(s) and s.words[0] != "There")


@pytest.fixture(scope="session")
def study(trained: Path, naturals: tuple[Sentence, ...], words: Vocabulary) -> Study:
    """Three models and two triplets a pair.

    Its searches are the shorter ones, a tenth of the others: which are made and kept is the same.
    A 1-gram differs enough from the others for such searches to find something.
    """
    models = tuple(f"kenlm:{trained}/{n}gram.arpa" for n in (1, 2, 4))
    question = SearchQuestion(per_pair=2, seed=5, recipe="golan2023", restarts=1)
    return Study(models, naturals, words, question)


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> MadeUpSearches:
    return MadeUpSearches(monkeypatch)
