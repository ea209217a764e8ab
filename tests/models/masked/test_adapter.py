"""Masked models under the contract and against literal scoring; outputs at some positions."""

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
from tests.models.masked.conftest import KINDS, Masked, cases_by_kind
from tests.models.masked.literal import Literal
from tests.models.tiny import Load

PLL = [rule for rule in RULES if rule.startswith("pll")]
SHORT = ["She sleeps", "The old teacher reads!", "A well-known girl didn't read"]
METRICS = {"pll-original": "original", "pll-word-l2r": "within_word_l2r"}


@pytest.mark.parametrize("kind", cases_by_kind(), scope="module")
class TestContractOfKinds(LanguageModelContract):
    """Each kind under the rule with the fewest passes."""

    @pytest.fixture(scope="module")
    @classmethod
    def model(cls, make_masked: Masked, kind: str) -> MaskedModel:
        return make_masked(kind, rule="pll-original")


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
    """Rules with few orders, which are exact for the shortest sentences.

    By default the chain and its mixture are tested; other rules are plans of the same passes.
    """

    @pytest.fixture(scope="class")
    @classmethod
    def model(cls, make_masked: Masked, rule: str) -> Iterator[MaskedModel]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rules, "orders_plan", partial(orders_plan, n_orders=2))
            yield make_masked("bert", rule=rule, pass_budget=50)


@pytest.mark.parametrize(
    ("kind", "rule"), [*cases_by_kind("chain"), ("roberta", "chain-unrestricted")]
)
def test_chain_is_the_mean_over_word_and_token_orders(load: Load, kind: str, rule: str) -> None:
    checkpoint = load(kind)
    model = MaskedModel(checkpoint, rule=rule, pass_budget=10**6)
    longest = "The dog is?" if rule == "chain" else "The old teacher reads!"
    sentences = [Sentence.parse(text) for text in ("She sleeps", longest)]
    literal = [Literal(checkpoint, s, restricted=rule == "chain").chain() for s in sentences]
    ours = model.log_probs(sentences)
    np.testing.assert_allclose(ours, literal, rtol=0, atol=tolerance(ours))
    assert (model.standard_errors(sentences) == 0).all()


@pytest.mark.parametrize(
    ("kind", "rule"), [*cases_by_kind("pll-word-l2r"), *(("roberta", rule) for rule in PLL[1:])]
)
def test_pll_rules_follow_kauf_and_ivanova(load: Load, kind: str, rule: str) -> None:
    checkpoint = load(kind)
    sentences = [Sentence.parse(text) for text in SHORT]
    literal = [Literal(checkpoint, s, restricted=False).pll(rule) for s in sentences]
    ours = MaskedModel(checkpoint, rule=rule).log_probs(sentences)
    np.testing.assert_allclose(ours, literal, rtol=0, atol=tolerance(ours))


@pytest.mark.parametrize("rule", RULES)
def test_token_terms_add_up_to_the_score(make_masked: Masked, rule: str) -> None:
    model = make_masked("roberta", rule=rule, pass_budget=40)
    terms = model.token_log_probs(SENTENCES[:3])
    totals = [sum(term.log_prob for term in sentence) for sentence in terms]
    np.testing.assert_allclose(totals, model.log_probs(SENTENCES[:3]), rtol=1e-12)
    assert [len(sentence) for sentence in terms] == model.token_counts(SENTENCES[:3]).tolist()
    words = {term.word for term in terms[0]}
    assert words - {END_MARK} == set(range(len(SENTENCES[0])))
    assert (END_MARK in words) == model.convention.end_scored == rule.startswith("pll")


def test_sentences_and_candidates_beyond_the_window_are_refused(make_masked: Masked) -> None:
    for kind in KINDS:
        model = make_masked(kind, rule="pll-original")
        sentence = Sentence.parse("a " * 60)
        assert np.isfinite(model.replacement_log_probs(sentence, 3, ("b",))).all()
        with pytest.raises(ModelError, match="reads at most 64"):
            model.log_probs([Sentence.parse("a " * 63)])
        with pytest.raises(ModelError, match="reads at most 64"):
            model.replacement_log_probs(sentence, 3, ("b", "xq" * 15))


def test_replacements_have_the_scores_of_rewritten_sentences(make_masked: Masked) -> None:
    """Witness: the sentences with each word, tokenized as texts; equal to the last digit."""
    words = ("cat", "Gardeners", "unbelievably", "don't", "xq")
    # The passes of the chain double with every token of a word
    for kind, rule, text in (
        *((kind, "pll-original", "The old dog sleeps here.") for kind in KINDS),
        ("roberta", "pll-whole-word", "The old dog sleeps here."),
        ("bert", "chain", "The cat is."),
    ):
        model, sentence = make_masked(kind, rule=rule), Sentence.parse(text)
        candidates = ("cat", "don't", "xq") if rule == "chain" else words
        for position in {0, len(sentence) // 2, len(sentence) - 1}:
            rewritten = [sentence.replace(position, word) for word in candidates]
            scores = model.replacement_log_probs(sentence, position, candidates)
            np.testing.assert_array_equal(scores, model.log_probs(rewritten))


def test_tokenizer_without_mask_token_is_refused(load: Load) -> None:
    with pytest.raises(ModelError, match="no mask token"):
        MaskedModel(load("gpt2"))


def test_fingerprints_depend_on_rules_seeds_and_models(make_masked: Masked) -> None:
    models = [make_masked("bert", rule=rule) for rule in RULES]
    models += [
        make_masked("bert", seed=1),
        make_masked("bert", pass_budget=100),
        make_masked("electra"),
    ]
    assert len({model.convention.fingerprint for model in models}) == len(models)
    assert models[0].convention.context == "[CLS]"


def test_train_mode_does_not_change_scores(make_masked: Masked) -> None:
    model = make_masked("bert", rule="pll-original")
    expected = model.log_probs(SENTENCES)
    model.checkpoint.model.train()
    assert (model.log_probs(SENTENCES) == expected).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["bert", "electra"])
@pytest.mark.parametrize("rule", METRICS)
def test_pll_rules_agree_with_minicons(
    load: Load, monkeypatch: pytest.MonkeyPatch, kind: str, rule: str
) -> None:
    scorer = pytest.importorskip("minicons.scorer")
    checkpoint = load(kind)
    # transformers 5 removed this method, which minicons 0.3.39 still calls
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
POSITIONS = torch.tensor([1, 8, 0, 11, 3, 5, 6])


@pytest.mark.parametrize("kind", cases_by_kind())
def test_logits_at_some_positions_equal_the_full_output(load: Load, kind: str) -> None:
    checkpoint = load(kind)
    network = MaskedNetwork(checkpoint)
    assert network._narrow is not None
    logits = network.logits(IDS, ATTENTION, POSITIONS)
    with torch.inference_mode():
        full_logits = checkpoint.model(input_ids=IDS, attention_mask=ATTENTION).logits
    torch.testing.assert_close(logits, full_logits.flatten(0, 1)[POSITIONS], rtol=1e-5, atol=1e-4)
    assert not any(module._forward_hooks for module in checkpoint.model.modules())


def test_head_that_mixes_positions_gets_all_positions(load: Load) -> None:
    """This head subtracts from each position the mean of all positions."""
    checkpoint = load("bert")
    model: Any = transformers.BertForMaskedLM(checkpoint.model.config)
    model.eval()
    model.cls.register_forward_hook(lambda *args: args[-1] - args[-1].mean(dim=1, keepdim=True))
    network = MaskedNetwork(Checkpoint(model, checkpoint.tokenizer, "mixing", "cpu", "masked"))
    assert network._narrow is None
    with torch.inference_mode():
        full_logits = model(input_ids=IDS, attention_mask=ATTENTION).logits
    logits = network.logits(IDS, ATTENTION, POSITIONS)
    torch.testing.assert_close(logits, full_logits.flatten(0, 1)[POSITIONS])
