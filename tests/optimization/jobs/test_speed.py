"""How long a search takes, from one that is cut."""

from __future__ import annotations

import pytest

from contstim.errors import ContstimError
from contstim.models.ngram.adapter import NgramModel
from contstim.models.vocabularies import default_vocabulary
from contstim.optimization.jobs.plan import SynthesisPlan
from contstim.optimization.jobs.speed import search_speed
from contstim.optimization.search.restarts import SINGLE, SearchBudget
from contstim.sentence import Sentence


def plan(naturals: list[Sentence], budget: SearchBudget | None = None) -> SynthesisPlan:
    models = ("kenlm:a.arpa", "kenlm:b.arpa")
    return SynthesisPlan(models, tuple(naturals), None, 1, recipe="golan2023", restarts=budget)


@pytest.fixture
def naturals(bigram: NgramModel, trigram: NgramModel, unseen: list[Sentence]) -> list[Sentence]:
    words = default_vocabulary((bigram, trigram))
    return [sentence for sentence in unseen if not words.missing(sentence)][:3]


def test_finished_searches_count(
    bigram: NgramModel, trigram: NgramModel, naturals: list[Sentence]
) -> None:
    words = default_vocabulary((bigram, trigram))
    speed = search_speed((bigram, trigram), words, naturals, plan(naturals), seconds=600.0)
    assert speed.triplets == len(naturals)
    assert not speed.guessed
    assert speed.seconds == pytest.approx(speed.elapsed / 3, rel=0.5)


def test_search_that_is_cut_at_once_is_a_guess(
    bigram: NgramModel, trigram: NgramModel, naturals: list[Sentence]
) -> None:
    words = default_vocabulary((bigram, trigram))
    once = search_speed((bigram, trigram), words, naturals, plan(naturals, SINGLE), seconds=0.0)
    assert once.guessed
    assert once.visits == 1
    # Two directions of 2.5 visits for each of eight words
    assert once.seconds == pytest.approx(2 * 2.5 * 8 * once.elapsed)
    budget = SearchBudget(searches=4)
    four = search_speed((bigram, trigram), words, naturals, plan(naturals, budget), seconds=0.0)
    assert four.seconds == pytest.approx(4 * 2 * 2.5 * 8 * four.elapsed)


def test_nothing_to_search_from(bigram: NgramModel, trigram: NgramModel) -> None:
    words = default_vocabulary((bigram, trigram))
    unknown = [Sentence(("Zzyzx", "qqq"))]
    with pytest.raises(ContstimError, match="Zzyzx"):
        search_speed((bigram, trigram), words, unknown, plan(unknown), seconds=1.0)
