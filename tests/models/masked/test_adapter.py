"""Masked models under the contract, against word-by-word scoring; the head at some places only."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from contstim.errors import ModelError
from contstim.models.checkpoints import Checkpoint
from contstim.models.masked import rules
from contstim.models.masked.adapter import MaskedModel
from contstim.models.masked.network import MaskedNetwork
from contstim.models.masked.rules import RULES, orders_plan
from contstim.models.words import END_MARK
from contstim.testing.contract import SENTENCES, LanguageModelContract, tolerance
from contstim.words.sentence import Sentence
from tests.models.masked.conftest import KINDS, Masked, of_kinds
from tests.models.masked.literal import Literal
from tests.models.tiny import Load

PLL = [rule for rule in RULES if rule.startswith("pll")]
SHORT = ["She sleeps", "The old teacher reads!", "A well-known girl didn't read"]
METRICS = {"pll-original": "original", "pll-word-l2r": "within_word_l2r"}


@pytest.mark.parametrize("kind", of_kinds(), scope="module")
class TestContractOfKinds(LanguageModelContract):
    """Under the cheapest rule."""

    @pytest.fixture(scope="module")
    @classmethod
    def model(cls, masked: Masked, kind: str) -> MaskedModel:
        return masked(kind, rule="pll-original")


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(rule, marks=[] if rule in {"chain", "chain-mixture"} else [pytest.mark.slow])
        for rule in RULES
        if rule != "pll-original"
    ],
    scope="class",
)
class TestContractOfRules(LanguageModelContract):
    """With few orders; the shortest sentences are exact.

    By default the chain and its mixture; other rules are plans of the same passes.
    """

    @pytest.fixture(scope="class")
    @classmethod
    def model(cls, masked: Masked, rule: str) -> Iterator[MaskedModel]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rules, "orders_plan", partial(orders_plan, n_orders=2))
            yield masked("bert", rule=rule, pass_budget=50)


@pytest.mark.parametrize(("kind", "rule"), [*of_kinds("chain"), ("roberta", "chain-unrestricted")])
def test_chain_is_the_mean_of_word_and_token_orders(load: Load, kind: str, rule: str) -> None:
    checkpoint = load(kind)
    model = MaskedModel(checkpoint, rule=rule, pass_budget=10**6)
    longest = "The dog is?" if rule == "chain" else "The old teacher reads!"
    sentences = [Sentence.parse(text) for text in ("She sleeps", longest)]
    literal = [Literal(checkpoint, s, restricted=rule == "chain").chain() for s in sentences]
    ours = model.log_probs(sentences)
    np.testing.assert_allclose(ours, literal, rtol=0, atol=tolerance(ours))
    assert (model.standard_errors(sentences) == 0).all()


@pytest.mark.parametrize(
    ("kind", "rule"), [*of_kinds("pll-word-l2r"), *(("roberta", rule) for rule in PLL[1:])]
)
def test_pll_rules_are_the_equations_of_kauf_and_ivanova(load: Load, kind: str, rule: str) -> None:
    checkpoint = load(kind)
    sentences = [Sentence.parse(text) for text in SHORT]
    literal = [Literal(checkpoint, s, restricted=False).pll(rule) for s in sentences]
    ours = MaskedModel(checkpoint, rule=rule).log_probs(sentences)
    np.testing.assert_allclose(ours, literal, rtol=0, atol=tolerance(ours))


@pytest.mark.parametrize("rule", RULES)
def test_parts_of_tokens_add_up_to_the_score(masked: Masked, rule: str) -> None:
    model = masked("roberta", rule=rule, pass_budget=40)
    terms = model.token_log_probs(SENTENCES[:3])
    totals = [sum(term.log_prob for term in sentence) for sentence in terms]
    np.testing.assert_allclose(totals, model.log_probs(SENTENCES[:3]), rtol=1e-12)
    assert [len(sentence) for sentence in terms] == model.token_counts(SENTENCES[:3]).tolist()
    words = {term.word for term in terms[0]}
    assert words - {END_MARK} == set(range(len(SENTENCES[0])))
    assert (END_MARK in words) == model.convention.end_scored == rule.startswith("pll")


def test_a_sentence_beyond_the_window_and_a_word_that_makes_one_are_refused(masked: Masked) -> None:
    for kind in KINDS:
        model = masked(kind, rule="pll-original")
        sentence = Sentence.parse("a " * 60)
        assert np.isfinite(model.replacement_log_probs(sentence, 3, ("b",))).all()
        with pytest.raises(ModelError, match="reads at most 64"):
            model.log_probs([Sentence.parse("a " * 63)])
        with pytest.raises(ModelError, match="reads at most 64"):
            model.replacement_log_probs(sentence, 3, ("b", "xq" * 15))


def test_words_in_place_have_the_scores_of_the_sentences_read_anew(masked: Masked) -> None:
    """Witness: the sentences with each word, tokenised as texts; the same to the last digit."""
    words = ("cat", "Gardeners", "unbelievably", "don't", "xq")
    # The chain's passes double with every token of a word
    for kind, rule, text in (
        *((kind, "pll-original", "The old dog sleeps here.") for kind in KINDS),
        ("roberta", "pll-whole-word", "The old dog sleeps here."),
        ("bert", "chain", "The cat is."),
    ):
        model, sentence = masked(kind, rule=rule), Sentence.parse(text)
        some = ("cat", "don't", "xq") if rule == "chain" else words
        for position in {0, len(sentence) // 2, len(sentence) - 1}:
            rewritten = [sentence.replace(position, word) for word in some]
            scores = model.replacement_log_probs(sentence, position, some)
            np.testing.assert_array_equal(scores, model.log_probs(rewritten))


def test_a_tokenizer_without_masks_is_refused(load: Load) -> None:
    with pytest.raises(ModelError, match="no mask token"):
        MaskedModel(load("gpt2"))


def test_conventions_tell_rules_seeds_and_models_apart(masked: Masked) -> None:
    models = [masked("bert", rule=rule) for rule in RULES]
    models += [masked("bert", seed=1), masked("bert", pass_budget=100), masked("electra")]
    assert len({model.convention.fingerprint for model in models}) == len(models)
    assert models[0].convention.context == "[CLS]"


def test_train_mode_does_not_matter(masked: Masked) -> None:
    model = masked("bert", rule="pll-original")
    before = model.log_probs(SENTENCES)
    model.checkpoint.model.train()
    assert (model.log_probs(SENTENCES) == before).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["bert", "electra"])
@pytest.mark.parametrize("rule", METRICS)
def test_pll_rules_agree(load: Load, monkeypatch: pytest.MonkeyPatch, kind: str, rule: str) -> None:
    scorer = pytest.importorskip("minicons.scorer")
    checkpoint = load(kind)
    # transformers 5 took this method away, which minicons 0.3.39 still calls
    monkeypatch.setattr(
        checkpoint.tokenizer, "batch_encode_plus", checkpoint.tokenizer.__call__, raising=False
    )
    theirs = scorer.MaskedLMScorer(checkpoint.model, "cpu", tokenizer=checkpoint.tokenizer)
    expected = theirs.sequence_score(
        [sentence.text for sentence in SENTENCES],
        reduction=lambda x: x.sum(0).item(),
        PLL_metric=METRICS[rule],
    )
    ours = MaskedModel(checkpoint, rule=rule).log_probs(SENTENCES)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-3)


IDS = torch.tensor([[7, 4, 9, 12, 8], [5, 6, 9, 4, 0], [10, 11, 0, 0, 0]])
ATTENTION = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 1, 0], [1, 1, 0, 0, 0]])
PLACES = torch.tensor([1, 8, 0, 11, 3, 5, 6])


@pytest.mark.parametrize("kind", of_kinds())
def test_some_places_are_as_in_the_whole_output(load: Load, kind: str) -> None:
    checkpoint = load(kind)
    network = MaskedNetwork(checkpoint)
    assert network._narrow is not None
    found = network.logits(IDS, ATTENTION, PLACES)
    with torch.inference_mode():
        whole = checkpoint.model(input_ids=IDS, attention_mask=ATTENTION).logits
    torch.testing.assert_close(found, whole.flatten(0, 1)[PLACES], rtol=1e-5, atol=1e-4)
    assert not any(module._forward_hooks for module in checkpoint.model.modules())


def test_a_head_that_mixes_places_gets_all_of_them(load: Load) -> None:
    """This one subtracts from each place the mean of all places."""
    checkpoint = load("bert")
    model: Any = transformers.BertForMaskedLM(checkpoint.model.config)
    model.eval()
    model.cls.register_forward_hook(lambda *args: args[-1] - args[-1].mean(dim=1, keepdim=True))
    network = MaskedNetwork(Checkpoint(model, checkpoint.tokenizer, "mixing", "cpu", "masked"))
    assert network._narrow is None
    with torch.inference_mode():
        whole = model(input_ids=IDS, attention_mask=ATTENTION).logits
    found = network.logits(IDS, ATTENTION, PLACES)
    torch.testing.assert_close(found, whole.flatten(0, 1)[PLACES])
