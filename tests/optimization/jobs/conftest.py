"""A small study on the n-gram models of the embedded English."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from contstim.optimization.jobs.plan import SynthesisPlan
from contstim.optimization.search.restarts import SINGLE
from contstim.sentence import Sentence
from contstim.vocabulary import Vocabulary


@pytest.fixture(scope="session")
def words(english: list[Sentence]) -> Vocabulary:
    return Vocabulary.from_sentences(english, min_count=5)


@pytest.fixture(scope="session")
def naturals(words: Vocabulary, unseen: list[Sentence]) -> tuple[Sentence, ...]:
    """Sentences from which searches find something: not from a frame with few words that fit."""
    return tuple(s for s in unseen if not words.missing(s) and s.words[0] != "There")


@pytest.fixture(scope="session")
def study(trained: Path, naturals: tuple[Sentence, ...], words: Vocabulary) -> SynthesisPlan:
    """Three models and four triplets a pair.

    Its searches are the shorter ones, a tenth of the others: which are made and kept is the same.
    A 1-gram differs enough from the others for such searches to find something.
    """
    models = tuple(f"kenlm:{trained}/{n}gram.arpa" for n in (1, 2, 4))
    return SynthesisPlan(
        models, naturals, words, per_pair=4, seed=5, recipe="golan2023", restarts=SINGLE
    )


@pytest.fixture(scope="session")
def changed(study: SynthesisPlan) -> Callable[..., SynthesisPlan]:
    """The study with other values."""
    return lambda **values: replace(study, **values)
