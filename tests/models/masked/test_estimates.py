"""Estimates, bounds and drafts for candidate words of masked models."""

from typing import Any

import numpy as np
import pytest
import torch
import transformers
from scipy.stats import spearmanr
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from contstim.models.checkpoints import Checkpoint
from contstim.models.costs import Tally, counting
from contstim.models.masked.adapter import MaskedModel
from contstim.models.masked.plan import n_passes
from contstim.models.masked.rules import RULES, draft_plan
from contstim.models.words import END_MARK, SPECIAL, kind_of_place
from contstim.testing.contract import LanguageModelContract
from contstim.words.sentence import Sentence
from tests.models.masked.conftest import Masked, cases_by_kind
from tests.models.masked.test_rules import PATTERNS
from tests.models.tiny import small_bert

SENTENCE = Sentence.parse("The old teacher sleeps")
CHAIN_VARIANTS = ("chain-sampled", "chain-unrestricted")
"""Rules with contexts of `chain`."""
WORDS = ("dog", "house", "the", "river", "zyzzyva", "well-known", "a", "The", "books", "girl")


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        *cases_by_kind("pll-word-l2r"),
        *(("bert", rule) for rule in RULES if rule not in CHAIN_VARIANTS),
        *(pytest.param("bert", rule, marks=pytest.mark.slow) for rule in CHAIN_VARIANTS),
    ],
)
def test_bounds_hold_at_every_position(make_masked: Masked, kind: str, rule: str) -> None:
    model = make_masked(kind, rule=rule, pass_budget=200)
    sentence = Sentence.parse("The teacher sleeps")
    for position in range(len(sentence)):
        replacements = model.replacements(sentence, position, WORDS[::2])
        exact = model.replacement_log_probs(sentence, position, WORDS[::2])
        assert (replacements.upper_bound >= exact - 1e-4).all()
        assert np.isfinite(replacements.estimate).all()


def test_estimates_equal_word_terms_up_to_a_constant(make_masked: Masked) -> None:
    """Single-token words differ in their own terms and in their effect on other words."""
    model = make_masked("bert")
    words = [w for w in WORDS if model.tokens_per_word([w], initial=False)[0] == 1]
    assert len(words) >= 2
    replacements = model.replacements(SENTENCE, 2, words)
    terms = [
        sum(t.log_prob for t in model.token_log_probs([SENTENCE.replace(2, w)])[0] if t.word == 2)
        for w in words
    ]
    np.testing.assert_allclose(np.diff(replacements.estimate), np.diff(terms), rtol=0, atol=1e-4)
    np.testing.assert_allclose(replacements.estimate, replacements.upper_bound, rtol=0, atol=1e-6)


def test_one_word_sentence_has_exact_scores(make_masked: Masked) -> None:
    model = make_masked("bert")
    sentence = Sentence.parse("Girl!")
    replacements = model.replacements(sentence, 0, WORDS)
    exact = model.replacement_log_probs(sentence, 0, WORDS)
    single = ~np.isnan(replacements.exact)
    assert single.any()
    np.testing.assert_allclose(replacements.exact[single], exact[single], rtol=0, atol=1e-4)


def test_bound_of_a_long_word_uses_first_tokens_only(make_masked: Masked) -> None:
    """In a word of k hidden tokens, each token is the first in one of k orders."""
    model = make_masked("bert")
    replacements = model.replacements(Sentence.parse("Girl!"), 0, ("Zyzzyva",))
    n_tokens = len(model._in_place(("Zyzzyva",), kind_of_place(inner=False, end="!")).tokens[0])
    assert n_tokens > 1
    np.testing.assert_allclose(
        replacements.upper_bound * n_tokens, replacements.estimate, rtol=1e-5
    )
    assert np.isnan(replacements.exact).all()


@pytest.fixture(scope="module")
def joining_checkpoint() -> Checkpoint:
    """A SentencePiece-like tokenizer with a piece that joins a word and the full stop."""
    pieces = ["<unk>", "[CLS]", "[SEP]", "[MASK]", "<pad>", "▁the", "▁dog", "▁dog.", "▁cat", "▁saw"]
    scores = [0.0] * 5 + [-1.0, -2.0, -2.5, -2.0, -2.0]
    other_pieces = [(".", -3.0), ("▁", -4.0), *((c, -6.0) for c in "abcdefghijklmnopqrstuvwxyz")]
    backend = Tokenizer(
        models.Unigram([*zip(pieces, scores, strict=True), *other_pieces], unk_id=0)
    )
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    names = zip(("unk", "cls", "sep", "mask", "pad"), pieces, strict=False)
    fast: Any = transformers.PreTrainedTokenizerFast
    tokenizer = fast(tokenizer_object=backend, **{f"{name}_token": piece for name, piece in names})
    torch.manual_seed(1)
    return Checkpoint(small_bert(len(tokenizer)), tokenizer, "x", "cpu", "masked")


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.startswith("pll")])
@pytest.mark.parametrize("text", ["the dog saw the dog", "the dog saw the cat"])
def test_bounds_hold_for_words_joined_to_end_marks(
    joining_checkpoint: Checkpoint, rule: str, text: str
) -> None:
    """Witness: scores of the rewritten sentences."""
    model = MaskedModel(joining_checkpoint, rule=rule)
    sentence, words = Sentence.parse(text), ("cat", "the", "dog")
    expected = model.log_probs([sentence.replace(4, word) for word in words])
    replacements = model.replacements(sentence, 4, words)
    is_exact = ~np.isnan(replacements.exact)
    np.testing.assert_allclose(replacements.exact[is_exact], expected[is_exact], atol=1e-4)
    assert (replacements.upper_bound >= expected - 1e-4).all()


READING = Sentence.parse("The old teacher reads a book")
NOUNS = tuple("dog house small garden river station judge they".split())


class TestDraftContract(LanguageModelContract):
    @pytest.fixture(params=[0, pytest.param(1, marks=pytest.mark.slow)], scope="class")
    @classmethod
    def model(cls, make_masked: Masked, request: pytest.FixtureRequest) -> MaskedModel:
        draft = make_masked("bert").draft(request.param)
        assert draft is not None
        return draft


def test_sentences_of_equal_length_share_sets_of_hidden_words() -> None:
    """Property: sets of whole words are the same for every number of tokens."""

    def hidden_sets(pattern: tuple[int, ...]) -> set[tuple[int, ...]]:
        plan, words = draft_plan(pattern, 0, 1), np.array(pattern)
        hidden = [set(words[row].tolist()) for row in plan.hidden]
        visible = [set(words[~row].tolist()) for row in plan.hidden]
        return {
            tuple(sorted(hidden_words))
            for hidden_words, visible_words in zip(hidden, visible, strict=True)
            if not hidden_words & visible_words
        }

    assert hidden_sets(PATTERNS["words"]) == hidden_sets(PATTERNS["tokens"])


def test_cover_of_eight_words_takes_24_passes() -> None:
    pattern = (SPECIAL, *range(8), END_MARK, SPECIAL)
    assert len(draft_plan(pattern, 0, 1).hidden) <= 24
    assert len(draft_plan(pattern, 0, 0).hidden) == 8
    assert n_passes(pattern) == 255


@pytest.mark.parametrize("kind", ["bert", pytest.param("roberta", marks=pytest.mark.slow)])
def test_drafts_rank_words_like_scores_in_fewer_passes(make_masked: Masked, kind: str) -> None:
    """Witness: exact scores; more covers give a better agreement."""
    model = make_masked(kind)
    with counting(Tally()) as full_tally:
        exact = model.replacement_log_probs(READING, 5, NOUNS)
    agreement = {}
    for effort in (0, 1, 3):
        draft = model.draft(effort)
        assert draft is not None
        with counting(Tally()) as draft_tally:
            draft_scores = draft.replacement_log_probs(READING, 5, NOUNS)
        agreement[effort] = float(spearmanr(draft_scores, exact).statistic)
        assert draft_tally.total.rows < full_tally.total.rows / 2
    assert agreement[3] > 0.9
    assert agreement[3] >= agreement[0]


def test_draft_without_covers_scores_each_word_given_all_others(make_masked: Masked) -> None:
    """Witness: the whole-word pseudo-log-likelihood without the end mark, unrestricted."""
    draft = make_masked("bert", rule="chain-unrestricted").draft(0)
    assert draft is not None
    terms = make_masked("bert", rule="pll-whole-word").token_log_probs([READING])[0]
    expected = sum(term.log_prob for term in terms if term.word >= 0)
    assert draft.log_probs([READING])[0] == pytest.approx(expected, abs=1e-4)
