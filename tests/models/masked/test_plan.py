"""The mixture over orders is a distribution over sentences, exact or sampled without bias."""

from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import spearmanr

from contstim.errors import ModelError
from contstim.models.checkpoints import Checkpoint
from contstim.models.masked.adapter import MaskedModel
from contstim.models.masked.plan import Pattern, Plan, as_mixture, n_passes
from contstim.models.masked.rules import RULES, chain_plan, orders_plan
from contstim.models.words import END_MARK, SPECIAL
from contstim.testing.contract import tolerance
from contstim.words.sentence import Sentence
from tests.examples import examples
from tests.models.masked.conftest import Masked
from tests.models.masked.literal import Literal
from tests.models.masked.test_rules import PATTERNS, make_up_answers
from tests.models.tiny import Load, small_bert

SENTENCE = Sentence.parse("The old teacher reads")


def list_questions(plan: Plan) -> list[tuple[frozenset[int], int]]:
    """Return the hidden tokens and the scored token of each question."""
    hidden = [frozenset(np.flatnonzero(row).tolist()) for row in plan.hidden]
    return [(hidden[r], t) for r, t in zip(plan.row.tolist(), plan.token.tolist(), strict=True)]


def values_by_question(
    plan: Plan, values: np.ndarray[Any, Any]
) -> dict[tuple[frozenset[int], int], float]:
    return dict(zip(list_questions(plan), values.tolist(), strict=True))


def score_all_orders(pattern: Pattern, plan: Plan, values: np.ndarray[Any, Any]) -> list[float]:
    """Return the log-probability of each order of words and of the tokens in every word."""
    value_of = values_by_question(plan, values)
    words = [
        [position for position, word in enumerate(pattern) if word == number]
        for number in range(max(pattern) + 1)
    ]
    totals = []
    for order in permutations(words):
        for tokens in product(*map(permutations, order)):
            token_order = [token for word in tokens for token in word]
            totals.append(
                sum(
                    value_of[frozenset(token_order[i:]), token_order[i]]
                    for i in range(len(token_order))
                )
            )
    return totals


@settings(max_examples=examples(12))
@given(st.lists(st.integers(1, 3), min_size=1, max_size=5), st.integers(0, 999))
def test_score_is_the_log_mean_probability_over_all_orders(sizes: list[int], seed: int) -> None:
    """Witness: every order separately, to 1e-10."""
    sizes = sizes if sum(sizes) < 8 else sizes[:2]
    pattern = (SPECIAL, *np.repeat(np.arange(len(sizes)), sizes).tolist(), END_MARK, SPECIAL)
    plan = as_mixture(chain_plan(pattern))
    values = -np.abs(make_up_answers(plan, seed))
    totals = score_all_orders(pattern, plan, values)
    assert plan.score(values) == pytest.approx(logsumexp(totals) - np.log(len(totals)), abs=1e-10)
    assert plan.weight @ values == pytest.approx(np.mean(totals), abs=1e-10)
    assert plan.score(values) >= chain_plan(pattern).score(values) - 1e-10
    assert plan.by_token(values).sum() == pytest.approx(plan.score(values), abs=1e-10)
    assert len(np.unique(plan.hidden, axis=0)) == len(plan.hidden) == n_passes(pattern)


@pytest.mark.parametrize(
    "kind", ["bert", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("roberta", "xlm"))]
)
def test_network_scores_are_mixtures_over_orders(load: Load, kind: str) -> None:
    """Witness: plain forward passes, one for each set of hidden positions."""
    checkpoint = load(kind)
    model = MaskedModel(checkpoint, rule="chain-mixture", pass_budget=10**6)
    sentences = [Sentence.parse(text) for text in ("She sleeps", "The dog is?")]
    literal = [Literal(checkpoint, s, restricted=True).mixture() for s in sentences]
    ours = model.log_probs(sentences)
    np.testing.assert_allclose(ours, literal, rtol=0, atol=tolerance(ours))
    assert (model.standard_errors(sentences) == 0).all()
    assert model.exact(sentences).all()
    chain = MaskedModel(checkpoint, pass_budget=10**6).log_probs(sentences)
    bounds = model.lower_bounds(sentences)
    assert bounds is not None
    np.testing.assert_allclose(bounds, chain, rtol=0, atol=1e-9)
    assert (ours > chain).all()


def test_probabilities_of_a_pattern_sum_to_one() -> None:
    """Witness: enumeration; the chain, a geometric mean, has a smaller sum."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "##d", "##e"]
    tokenizer: Any = transformers.BertTokenizer(vocab={piece: i for i, piece in enumerate(pieces)})
    torch.manual_seed(3)
    network = small_bert(len(pieces), max_position_embeddings=16, initializer_range=1.0)
    checkpoint = Checkpoint(network, tokenizer, "x", "cpu", "masked")
    single = ["a", "b", "c"]
    double = [first + second for first in single for second in "de"]
    # The end mark is unknown, visible, and not scored
    sentences = [Sentence(words) for words in product(single, double, single)]
    sums = {
        rule: np.exp(MaskedModel(checkpoint, rule=rule).log_probs(sentences)).sum()
        for rule in ("chain-mixture", "chain")
    }
    assert len(sentences) == 54
    assert sums["chain-mixture"] == pytest.approx(1, abs=1e-5)
    assert sums["chain"] < 0.95


def test_mixture_equals_chain_for_consistent_answers() -> None:
    """Witness: the joint distribution of three words, whose conditionals are the answers."""
    joint = np.random.default_rng(0).dirichlet(np.ones(4**3)).reshape(4, 4, 4)
    sentence, plan = (2, 0, 3), chain_plan((0, 1, 2))

    def marginal(visible: np.ndarray[Any, Any]) -> float:
        index = tuple(sentence[i] if visible[i] else slice(None) for i in range(3))
        return float(np.log(np.sum(joint[index])))

    values = []
    for row, token in zip(plan.row, plan.token, strict=True):
        visible = ~plan.hidden[row]
        values.append(marginal(visible | (np.arange(3) == token)) - marginal(visible))
    log_probs = np.array(values)
    assert as_mixture(plan).score(log_probs) == pytest.approx(
        float(np.log(joint[sentence])), abs=1e-12
    )
    assert plan.score(log_probs) == pytest.approx(float(np.log(joint[sentence])), abs=1e-12)
    np.testing.assert_allclose(
        as_mixture(plan).by_token(log_probs), plan.by_token(log_probs), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("name", PATTERNS)
def test_mixture_samples_and_standard_errors_are_unbiased(name: str) -> None:
    """Witness: all orders. The log has a negative bias of about half the squared error."""
    pattern = PATTERNS[name]
    exact = as_mixture(chain_plan(pattern))
    true_score = exact.score(make_up_answers(exact) / 2)
    value_of = values_by_question(exact, make_up_answers(exact) / 2)
    scores, errors = [], []
    for seed in range(40):
        plan = as_mixture(orders_plan(pattern, seed, 40))
        values = np.array([value_of[question] for question in list_questions(plan)])
        scores.append(plan.score(values))
        errors.append(plan.standard_error(values))
        assert plan.score(values) >= plan.weight @ values
    ratio = np.exp(np.array(scores) - true_score)
    assert abs(ratio.mean() - 1) < 4 * ratio.std() / np.sqrt(len(ratio))
    sd = np.std(scores)
    assert 0.6 * sd < np.sqrt(np.mean(np.square(errors))) < 1.6 * sd
    bias = np.mean(scores) - true_score
    assert bias == pytest.approx(-(sd**2) / 2, abs=4 * sd / np.sqrt(len(scores)))


@pytest.mark.parametrize("rule", ["chain", "chain-mixture"])
@pytest.mark.parametrize("n_words", [12, 20, 40, 200])
def test_pass_budget_is_not_exceeded(rule: str, n_words: int) -> None:
    pattern = (SPECIAL, *np.repeat(np.arange(n_words), 1 + np.arange(n_words) % 3 // 2), SPECIAL)
    plan = RULES[rule].plan(tuple(int(w) for w in pattern), 0, 2048)
    assert 1800 < len(plan.hidden) <= 2048
    assert plan.standard_error(np.random.default_rng(0).normal(size=len(plan.row))) > 0
    with pytest.raises(ModelError, match="pass_budget"):
        RULES[rule].plan(tuple(range(20)), 0, 20)


@pytest.mark.parametrize("budget", [60, 2048])
def test_bounds_hold_and_estimates_are_near_the_scores(make_masked: Masked, budget: int) -> None:
    """Witness: scores of the rewritten sentences, with all orders and with samples of orders."""
    model = make_masked("bert", rule="chain-mixture", pass_budget=budget)
    words = ("dog", "house", "the", "river", "zyzzyva", "well-known", "books", "girl")
    expected = model.log_probs([SENTENCE.replace(1, word) for word in words])
    replacements = model.replacements(SENTENCE, 1, words)
    assert (replacements.upper_bound >= expected - 1e-4).all()
    if budget == 2048:
        assert spearmanr(replacements.estimate, expected).statistic > 0.7
        chain = make_masked("bert").replacements(SENTENCE, 1, words)
        np.testing.assert_allclose(replacements.estimate, chain.estimate, rtol=0, atol=1e-4)


def test_other_rules_have_no_lower_bounds(make_masked: Masked) -> None:
    assert make_masked("bert").lower_bounds([SENTENCE]) is None
