"""Estimates, bounds and drafts of candidate words of masked models."""

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
from tests.models.masked.conftest import Masked, of_kinds
from tests.models.masked.test_rules import PATTERNS
from tests.models.tiny import small_bert

SENTENCE = Sentence.parse("The old teacher sleeps")
OF_CHAIN = ("chain-sampled", "chain-unrestricted")
"""The contexts of `chain`, or some of them."""
WORDS = ("dog", "house", "the", "river", "zyzzyva", "well-known", "a", "The", "books", "girl")


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        *of_kinds("pll-word-l2r"),
        *(("bert", rule) for rule in RULES if rule not in OF_CHAIN),
        *(pytest.param("bert", rule, marks=pytest.mark.slow) for rule in OF_CHAIN),
    ],
)
def test_bounds_are_true_at_every_position(masked: Masked, kind: str, rule: str) -> None:
    model = masked(kind, rule=rule, pass_budget=200)
    sentence = Sentence.parse("The teacher sleeps")
    for position in range(len(sentence)):
        known = model.replacements(sentence, position, WORDS[::2])
        exact = model.replacement_log_probs(sentence, position, WORDS[::2])
        assert (known.upper_bound >= exact - 1e-4).all()
        assert np.isfinite(known.estimate).all()


def test_shared_terms_are_the_chain_s_terms_in_contexts_without_the_word(masked: Masked) -> None:
    """Two words of one token differ in what other words make of them, and in their own terms."""
    model = masked("bert")
    words = [w for w in WORDS if model.tokens_per_word([w], initial=False)[0] == 1]
    assert len(words) >= 2
    known = model.replacements(SENTENCE, 2, words)
    terms = [
        sum(t.log_prob for t in model.token_log_probs([SENTENCE.replace(2, w)])[0] if t.word == 2)
        for w in words
    ]
    np.testing.assert_allclose(np.diff(known.estimate), np.diff(terms), rtol=0, atol=1e-4)
    np.testing.assert_allclose(known.estimate, known.upper_bound, rtol=0, atol=1e-6)


def test_a_sentence_of_one_word_is_known_exactly(masked: Masked) -> None:
    model = masked("bert")
    sentence = Sentence.parse("Girl!")
    known = model.replacements(sentence, 0, WORDS)
    exact = model.replacement_log_probs(sentence, 0, WORDS)
    single = ~np.isnan(known.exact)
    assert single.any()
    np.testing.assert_allclose(known.exact[single], exact[single], rtol=0, atol=1e-4)


def test_a_word_of_several_tokens_is_bounded_by_its_first_tokens_alone(masked: Masked) -> None:
    """Of a word of k tokens, all hidden, each is the first in one of k orders."""
    model = masked("bert")
    known = model.replacements(Sentence.parse("Girl!"), 0, ("Zyzzyva",))
    n_tokens = len(model._in_place(("Zyzzyva",), kind_of_place(inner=False, end="!")).tokens[0])
    assert n_tokens > 1
    np.testing.assert_allclose(known.upper_bound * n_tokens, known.estimate, rtol=1e-5)
    assert np.isnan(known.exact).all()


@pytest.fixture(scope="module")
def gluing() -> Checkpoint:
    """A SentencePiece-like tokenizer with a piece that joins a word and the full stop."""
    pieces = ["<unk>", "[CLS]", "[SEP]", "[MASK]", "<pad>", "▁the", "▁dog", "▁dog.", "▁cat", "▁saw"]
    scores = [0.0] * 5 + [-1.0, -2.0, -2.5, -2.0, -2.0]
    others = [(".", -3.0), ("▁", -4.0), *((c, -6.0) for c in "abcdefghijklmnopqrstuvwxyz")]
    backend = Tokenizer(models.Unigram([*zip(pieces, scores, strict=True), *others], unk_id=0))
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
def test_bounds_hold_for_words_joining_end_marks(gluing: Checkpoint, rule: str, text: str) -> None:
    """Witness: the sentences scored afresh."""
    model = MaskedModel(gluing, rule=rule)
    sentence, words = Sentence.parse(text), ("cat", "the", "dog")
    fresh = model.log_probs([sentence.replace(4, word) for word in words])
    known = model.replacements(sentence, 4, words)
    exact = ~np.isnan(known.exact)
    np.testing.assert_allclose(known.exact[exact], fresh[exact], atol=1e-4)
    assert (known.upper_bound >= fresh - 1e-4).all()


READING = Sentence.parse("The old teacher reads a book")
NOUNS = tuple("dog house small garden river station judge they".split())


class TestDraftContract(LanguageModelContract):
    @pytest.fixture(params=[0, pytest.param(1, marks=pytest.mark.slow)], scope="class")
    @classmethod
    def model(cls, masked: Masked, request: pytest.FixtureRequest) -> MaskedModel:
        draft = masked("bert").draft(request.param)
        assert draft is not None
        return draft


def test_sentences_with_as_many_words_share_their_sets_of_hidden_words() -> None:
    """Property, whatever the number of tokens: sets of whole words are the same."""

    def sets(pattern: tuple[int, ...]) -> set[tuple[int, ...]]:
        plan, words = draft_plan(pattern, 0, 1), np.array(pattern)
        hidden = [set(words[row].tolist()) for row in plan.hidden]
        shown = [set(words[~row].tolist()) for row in plan.hidden]
        return {tuple(sorted(h)) for h, s in zip(hidden, shown, strict=True) if not h & s}

    assert sets(PATTERNS["words"]) == sets(PATTERNS["tokens"])


def test_one_cover_of_eight_words_takes_24_passes() -> None:
    pattern = (SPECIAL, *range(8), END_MARK, SPECIAL)
    assert len(draft_plan(pattern, 0, 1).hidden) <= 24
    assert len(draft_plan(pattern, 0, 0).hidden) == 8
    assert n_passes(pattern) == 255


@pytest.mark.parametrize("kind", ["bert", pytest.param("roberta", marks=pytest.mark.slow)])
def test_drafts_rank_words_nearly_as_scores_in_fewer_passes(masked: Masked, kind: str) -> None:
    """Witness: exact scores; more covers agree better."""
    model = masked(kind)
    with counting(Tally()) as full:
        exact = model.replacement_log_probs(READING, 5, NOUNS)
    agreement = {}
    for effort in (0, 1, 3):
        draft = model.draft(effort)
        assert draft is not None
        with counting(Tally()) as little:
            rough = draft.replacement_log_probs(READING, 5, NOUNS)
        agreement[effort] = float(spearmanr(rough, exact).statistic)
        assert little.total.rows < full.total.rows / 2
    assert agreement[3] > 0.9
    assert agreement[3] >= agreement[0]


def test_a_draft_without_covers_scores_each_word_given_all_others(masked: Masked) -> None:
    """Witness: the whole-word pseudo-log-likelihood without its end mark, unrestricted."""
    draft = masked("bert", rule="chain-unrestricted").draft(0)
    assert draft is not None
    whole = masked("bert", rule="pll-whole-word").token_log_probs([READING])[0]
    expected = sum(term.log_prob for term in whole if term.word >= 0)
    assert draft.log_probs([READING])[0] == pytest.approx(expected, abs=1e-4)
