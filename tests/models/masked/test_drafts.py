"""Drafts of masked models: few passes, every word counted once, the same contexts for all words."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from contstim.models.costs import Tally, counting
from contstim.models.masked.adapter import MaskedModel
from contstim.models.masked.plan import n_passes
from contstim.models.masked.rules import draft_plan
from contstim.models.words import END_MARK, SPECIAL
from contstim.testing.contract import LanguageModelContract
from contstim.words.sentence import Sentence
from tests.models.masked.conftest import Masked

SENTENCE = Sentence.parse("The old teacher reads a book")
WORDS = tuple("dog house small garden river station judge they".split())
PATTERNS = [
    (SPECIAL, 0, 1, 2, 3, 4, END_MARK, SPECIAL),
    (SPECIAL, 0, 1, 1, 2, 3, 3, 3, 4, END_MARK, SPECIAL),
    (SPECIAL, 0, 0, 0, 1, END_MARK, SPECIAL),
]


class TestDraftContract(LanguageModelContract):
    @pytest.fixture(params=[0, pytest.param(1, marks=pytest.mark.slow)], scope="class")
    @classmethod
    def model(cls, masked: Masked, request: pytest.FixtureRequest) -> MaskedModel:
        draft = masked("bert").draft(request.param)
        assert draft is not None
        return draft


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("covers", [0, 1, 3])
def test_every_token_of_a_word_weighs_one(pattern: tuple[int, ...], covers: int) -> None:
    plan = draft_plan(pattern, 0, covers)
    weights = np.bincount(plan.token, plan.weight, len(pattern))
    np.testing.assert_allclose(weights, np.array(pattern) >= 0)
    assert plan.hidden[plan.row, plan.token].all()
    assert not plan.hidden[:, np.array(pattern) < 0].any()


def test_sentences_with_as_many_words_share_their_sets_of_hidden_words() -> None:
    """Property, whatever the number of tokens: sets of whole words are the same."""

    def sets(pattern: tuple[int, ...]) -> set[tuple[int, ...]]:
        plan, words = draft_plan(pattern, 0, 1), np.array(pattern)
        hidden = [set(words[row].tolist()) for row in plan.hidden]
        shown = [set(words[~row].tolist()) for row in plan.hidden]
        return {tuple(sorted(h)) for h, s in zip(hidden, shown, strict=True) if not h & s}

    assert sets(PATTERNS[0]) == sets(PATTERNS[1])


def test_one_cover_of_eight_words_takes_24_passes() -> None:
    pattern = (SPECIAL, *range(8), END_MARK, SPECIAL)
    assert len(draft_plan(pattern, 0, 1).hidden) <= 24
    assert len(draft_plan(pattern, 0, 0).hidden) == 8
    assert n_passes(pattern) == 255


@pytest.mark.parametrize("kind", ["bert", pytest.param("roberta", marks=pytest.mark.slow)])
def test_drafts_rank_words_as_exact_scores_do_at_a_fraction_of_the_passes(
    masked: Masked, kind: str
) -> None:
    """Witness: exact scores; more covers agree better."""
    model = masked(kind)
    with counting(Tally()) as full:
        exact = model.replacement_log_probs(SENTENCE, 5, WORDS)
    agreement = {}
    for effort in (0, 1, 3):
        draft = model.draft(effort)
        assert draft is not None
        with counting(Tally()) as little:
            rough = draft.replacement_log_probs(SENTENCE, 5, WORDS)
        agreement[effort] = float(spearmanr(rough, exact).statistic)
        assert little.total.rows < full.total.rows / 2
    assert agreement[3] > 0.9
    assert agreement[3] >= agreement[0]


def test_a_draft_without_covers_scores_each_word_given_all_others(masked: Masked) -> None:
    """Witness: the whole-word pseudo-log-likelihood without its end mark, unrestricted."""
    draft = masked("bert", rule="chain-unrestricted").draft(0)
    assert draft is not None
    whole = masked("bert", rule="pll-whole-word").token_log_probs([SENTENCE])[0]
    expected = sum(term.log_prob for term in whole if term.word >= 0)
    assert draft.log_probs([SENTENCE])[0] == pytest.approx(expected, abs=1e-4)
