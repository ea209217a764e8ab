"""Rules of masked models, and samples of their orders."""

from fractions import Fraction
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from contstim.models.masked import rules
from contstim.models.masked.adapter import MaskedModel
from contstim.models.masked.plan import Pattern, Plan
from contstim.models.words import END_MARK, SPECIAL
from contstim.words.sentence import Sentence
from tests.models.masked.literal import Literal
from tests.models.tiny import Load

TOKENS = ["[CLS]", "The", "so", "##uven", "##ir", "broke", ".", "[SEP]"]
PATTERN = (SPECIAL, 0, 1, 1, 1, 2, END_MARK, SPECIAL)
UVEN = TOKENS.index("##uven")
DOCUMENTED_CONTEXTS = [
    [cell.strip(" `") for cell in line.strip("| \n").split("|")]
    for line in (Path(__file__).parents[3] / "docs/scoring.md").read_text("utf-8").splitlines()
    if line.startswith("|") and "[CLS] |" in line
]

CONTEXTS = """\
[CLS] The _ _ _ broke . [SEP] 1/9
[CLS] The so _ _ broke . [SEP] 1/18
[CLS] The _ _ ##ir broke . [SEP] 1/18
[CLS] The so _ ##ir broke . [SEP] 1/9
[CLS] _ _ _ _ broke . [SEP] 1/18
[CLS] _ so _ _ broke . [SEP] 1/36
[CLS] _ _ _ ##ir broke . [SEP] 1/36
[CLS] _ so _ ##ir broke . [SEP] 1/18
[CLS] The _ _ _ _ . [SEP] 1/18
[CLS] The so _ _ _ . [SEP] 1/36
[CLS] The _ _ ##ir _ . [SEP] 1/36
[CLS] The so _ ##ir _ . [SEP] 1/18
[CLS] _ _ _ _ _ . [SEP] 1/9
[CLS] _ so _ _ _ . [SEP] 1/18
[CLS] _ _ _ ##ir _ . [SEP] 1/18
[CLS] _ so _ ##ir _ . [SEP] 1/9
"""
"""Contexts of `##uven` over all orders of uncovering words and the tokens in a word.

The shares of orders with each context are counted by hand.
"""


def format_context(hidden: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[str]:
    return ["_" if is_hidden else t for t, is_hidden in zip(TOKENS, hidden.tolist(), strict=True)]


@pytest.mark.parametrize("rule", [rule for rule in rules.RULES if rule.startswith("pll")])
def test_pll_rules_hide_the_documented_tokens(rule: str) -> None:
    plan = rules.RULES[rule].plan(PATTERN, 0, 2048)
    row = plan.row[plan.token == UVEN]
    assert [[rule, *format_context(plan.hidden[row[0]])]] == [
        line for line in DOCUMENTED_CONTEXTS if line[0] == rule
    ]
    assert plan.token.tolist() == [1, 2, 3, 4, 5, 6]
    assert (plan.weight == 1).all()


def test_chain_contexts_equal_those_counted_by_hand() -> None:
    plan = rules.chain_plan(PATTERN)
    questions = np.flatnonzero(plan.token == UVEN)
    ours = {
        tuple(format_context(plan.hidden[plan.row[question]])): plan.weight[question]
        for question in questions
    }
    lines = [line.split() for line in CONTEXTS.splitlines()]
    table = {tuple(line[:-1]): Fraction(line[-1]) for line in lines}
    assert len(table) == 16
    assert sum(table.values()) == 1
    assert ours == {cells: pytest.approx(float(weight)) for cells, weight in table.items()}


def _left_to_right_plan(pattern: Pattern, _seed: int, _pass_budget: int) -> Plan:
    """Return one order of the chain: each token given earlier tokens, with later ones hidden."""
    tokens = np.flatnonzero(np.array(pattern) >= 0)
    hidden = np.zeros((len(tokens), len(pattern)), np.bool_)
    hidden[:, tokens] = np.triu(np.ones((len(tokens),) * 2, np.bool_))
    return Plan(hidden, np.arange(len(tokens)), tokens, np.ones(len(tokens)))


def test_new_chain_rule_needs_one_entry(monkeypatch: pytest.MonkeyPatch, load: Load) -> None:
    """Witness: literal scoring, with one forward pass for each set of hidden positions."""
    rule = rules.MaskedRule("chain-l2r", _left_to_right_plan, restricted=True, end_scored=False)
    monkeypatch.setitem(rules.RULES, rule.name, rule)
    checkpoint = load("bert")
    model = MaskedModel(checkpoint, rule="chain-l2r")
    sentence = Sentence.parse("The old teacher reads!")
    literal = Literal(checkpoint, sentence, restricted=True)
    positions = [position for word in literal.words for position in word]
    expected = sum(literal.log_p(t, frozenset(positions[i:])) for i, t in enumerate(positions))
    assert model.log_probs([sentence])[0] == pytest.approx(expected, abs=1e-4)
    assert (model.convention.rule, model.convention.sampling) == ("chain-l2r", "")
    candidates = ("dog", "quickly", "zyzzyva")
    expected_replacements = model.log_probs([sentence.replace(1, word) for word in candidates])
    assert (
        model.replacements(sentence, 1, candidates).upper_bound >= expected_replacements - 1e-4
    ).all()
    assert model.draft() is None


PATTERNS = {
    "words": (SPECIAL, 0, 1, 2, 3, 4, END_MARK, SPECIAL),
    "tokens": (SPECIAL, 0, 1, 1, 2, 3, 3, 3, 4, END_MARK, SPECIAL),
    "one long word": (SPECIAL, 0, 0, 0, 0, 0, END_MARK, SPECIAL),
}


@lru_cache(maxsize=10_000)
def make_up_log_prob(rng_seed: int, token: int, hidden: bytes) -> float:
    """Return a made-up log-probability that depends on the token and its visible context."""
    n_hidden = sum(byte.bit_count() for byte in hidden)
    rng = np.random.default_rng([rng_seed, token, *hidden])
    return float(rng.normal(-3 * token - n_hidden**1.5 / 3))


def make_up_answers(plan: Plan, rng_seed: int = 5) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    hidden = [row.tobytes() for row in np.packbits(plan.hidden, axis=1)]
    questions = zip(plan.row.tolist(), plan.token.tolist(), strict=True)
    return np.array([make_up_log_prob(rng_seed, token, hidden[row]) for row, token in questions])


@pytest.mark.parametrize("name", PATTERNS)
def test_only_word_tokens_have_weight_one(name: str) -> None:
    pattern = np.array(PATTERNS[name])
    for plan in (
        rules.chain_plan(PATTERNS[name]),
        rules.orders_plan(PATTERNS[name], 0),
        rules.budget_plan(PATTERNS[name], 0, 25),
        *(rules.draft_plan(PATTERNS[name], 0, covers) for covers in (0, 1, 3)),
    ):
        weights = plan.by_token(np.ones(len(plan.row)))
        expected = (pattern >= 0).astype(float)
        if plan.sample_of is None or name == "words":
            np.testing.assert_allclose(weights, expected, atol=1e-12)
        assert weights.sum() == pytest.approx(expected.sum())
        assert (plan.weight > 0).all()
        assert plan.hidden[plan.row, plan.token].all()
        assert not plan.hidden[:, pattern < 0].any()


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("budget", [0, 18, 28, 60])
def test_samples_and_standard_errors_are_unbiased(name: str, budget: int) -> None:
    pattern = PATTERNS[name]
    exact = rules.chain_plan(pattern)
    true_score = exact.score(make_up_answers(exact))
    scores, errors = [], []
    for seed in range(40):
        plan = (
            rules.budget_plan(pattern, seed, budget)
            if budget
            else rules.orders_plan(pattern, seed, 20)
        )
        scores.append(plan.score(make_up_answers(plan)))
        errors.append(plan.standard_error(make_up_answers(plan)))
    sd = np.std(scores)
    assert abs(np.mean(scores) - true_score) < 4 * sd / np.sqrt(len(scores)) + 1e-9
    if sd > 1e-9:
        assert 0.6 * sd < np.sqrt(np.mean(np.square(errors))) < 1.6 * sd


def test_published_estimator_uses_100_orders() -> None:
    plan = rules.orders_plan(PATTERNS["tokens"], 0)
    assert plan.sample_of is not None
    assert plan.sample_of.max() + 1 == rules.N_ORDERS == 100
    assert len(plan.row) == rules.N_ORDERS * 8
