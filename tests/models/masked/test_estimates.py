"""Estimates and bounds for candidate words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from contstim.models.checkpoints import Checkpoint
from contstim.models.masked.adapter import MaskedModel
from contstim.models.masked.rules import RULES
from contstim.models.words import kind_of_place
from contstim.words.sentence import Sentence
from tests.models.masked.conftest import Masked, of_kinds
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
        known = model.replacements(sentence, position, WORDS)
        exact = model.replacement_log_probs(sentence, position, WORDS)
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
def test_nothing_false_is_claimed_of_words_that_join_the_end_mark(
    gluing: Checkpoint, rule: str, text: str
) -> None:
    """Witness: the sentences scored afresh."""
    model = MaskedModel(gluing, rule=rule)
    sentence, words = Sentence.parse(text), ("cat", "the", "dog")
    fresh = model.log_probs([sentence.replace(4, word) for word in words])
    known = model.replacements(sentence, 4, words)
    exact = ~np.isnan(known.exact)
    np.testing.assert_allclose(known.exact[exact], fresh[exact], atol=1e-4)
    assert (known.upper_bound >= fresh - 1e-4).all()
