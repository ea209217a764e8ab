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
DRAWN = [
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
"""All contexts in which some order of uncovering words, and a word's tokens, asks about `##uven`,
with the share of the orders that lead there, counted by hand."""


def drawn(hidden: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[str]:
    return ["_" if is_hidden else t for t, is_hidden in zip(TOKENS, hidden.tolist(), strict=True)]


@pytest.mark.parametrize("rule", [rule for rule in rules.RULES if rule.startswith("pll")])
def test_pll_rules_hide_what_the_table_shows(rule: str) -> None:
    plan = rules.RULES[rule].plan(PATTERN, 0, 2048)
    row = plan.row[plan.token == UVEN]
    assert [[rule, *drawn(plan.hidden[row[0]])]] == [line for line in DRAWN if line[0] == rule]
    assert plan.token.tolist() == [1, 2, 3, 4, 5, 6]
    assert (plan.weight == 1).all()


def test_chain_asks_in_the_contexts_counted_by_hand() -> None:
    plan = rules.chain_plan(PATTERN)
    asked = np.flatnonzero(plan.token == UVEN)
    ours = {tuple(drawn(plan.hidden[plan.row[q]])): plan.weight[q] for q in asked}
    lines = [line.split() for line in CONTEXTS.splitlines()]
    table = {tuple(line[:-1]): Fraction(line[-1]) for line in lines}
    assert len(table) == 16
    assert sum(table.values()) == 1
    assert ours == {cells: pytest.approx(float(weight)) for cells, weight in table.items()}


def _left_to_right(pattern: Pattern, _seed: int, _pass_budget: int) -> Plan:
    """One order of the chain: each token given those before it, the later ones hidden."""
    tokens = np.flatnonzero(np.array(pattern) >= 0)
    hidden = np.zeros((len(tokens), len(pattern)), np.bool_)
    hidden[:, tokens] = np.triu(np.ones((len(tokens),) * 2, np.bool_))
    return Plan(hidden, np.arange(len(tokens)), tokens, np.ones(len(tokens)))


def test_a_rule_of_the_chain_kind_is_one_entry(monkeypatch: pytest.MonkeyPatch, load: Load) -> None:
    """Witness: scoring written out, one forward pass for each set of hidden places."""
    rule = rules.MaskedRule("chain-l2r", _left_to_right, restricted=True, end_scored=False)
    monkeypatch.setitem(rules.RULES, rule.name, rule)
    checkpoint = load("bert")
    model = MaskedModel(checkpoint, rule="chain-l2r")
    sentence = Sentence.parse("The old teacher reads!")
    literal = Literal(checkpoint, sentence, restricted=True)
    places = [place for word in literal.words for place in word]
    expected = sum(literal.log_p(t, frozenset(places[i:])) for i, t in enumerate(places))
    assert model.log_probs([sentence])[0] == pytest.approx(expected, abs=1e-4)
    assert (model.convention.rule, model.convention.sampling) == ("chain-l2r", "")
    candidates = ("dog", "quickly", "zyzzyva")
    fresh = model.log_probs([sentence.replace(1, word) for word in candidates])
    assert (model.replacements(sentence, 1, candidates).upper_bound >= fresh - 1e-4).all()
    assert model.draft() is None


PATTERNS = {
    "words": (SPECIAL, 0, 1, 2, 3, 4, END_MARK, SPECIAL),
    "tokens": (SPECIAL, 0, 1, 1, 2, 3, 3, 3, 4, END_MARK, SPECIAL),
    "one long word": (SPECIAL, 0, 0, 0, 0, 0, END_MARK, SPECIAL),
}


@lru_cache(maxsize=10_000)
def answer(rng_seed: int, token: int, hidden: bytes) -> float:
    """A made-up log p(token | what is visible): tokens differ, and so do contexts."""
    n_hidden = sum(byte.bit_count() for byte in hidden)
    rng = np.random.default_rng([rng_seed, token, *hidden])
    return float(rng.normal(-3 * token - n_hidden**1.5 / 3))


def answers(plan: Plan, rng_seed: int = 5) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    hidden = [row.tobytes() for row in np.packbits(plan.hidden, axis=1)]
    questions = zip(plan.row.tolist(), plan.token.tolist(), strict=True)
    return np.array([answer(rng_seed, token, hidden[row]) for row, token in questions])


@pytest.mark.parametrize("name", PATTERNS)
def test_every_token_of_a_word_has_weight_one_and_no_other(name: str) -> None:
    pattern = np.array(PATTERNS[name])
    for plan in (
        rules.chain_plan(PATTERNS[name]),
        rules.orders_plan(PATTERNS[name], 0),
        rules.budget_plan(PATTERNS[name], 0, 25),
        *(rules.draft_plan(PATTERNS[name], 0, covers) for covers in (0, 1, 3)),
    ):
        constant = plan.by_token(np.ones(len(plan.row)))
        expected = (pattern >= 0).astype(float)
        if plan.sample_of is None or name == "words":
            np.testing.assert_allclose(constant, expected, atol=1e-12)
        assert constant.sum() == pytest.approx(expected.sum())
        assert (plan.weight > 0).all()
        assert plan.hidden[plan.row, plan.token].all()
        assert not plan.hidden[:, pattern < 0].any()


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("budget", [0, 18, 28, 60])
def test_samples_are_unbiased_and_their_errors_honest(name: str, budget: int) -> None:
    pattern = PATTERNS[name]
    exact = rules.chain_plan(pattern)
    truth = exact.score(answers(exact))
    scores, errors = [], []
    for seed in range(40):
        plan = (
            rules.budget_plan(pattern, seed, budget)
            if budget
            else rules.orders_plan(pattern, seed, 20)
        )
        scores.append(plan.score(answers(plan)))
        errors.append(plan.standard_error(answers(plan)))
    scatter = np.std(scores)
    assert abs(np.mean(scores) - truth) < 4 * scatter / np.sqrt(len(scores)) + 1e-9
    if scatter > 1e-9:
        assert 0.6 * scatter < np.sqrt(np.mean(np.square(errors))) < 1.6 * scatter


def test_the_published_estimator_takes_100_orders() -> None:
    plan = rules.orders_plan(PATTERNS["tokens"], 0)
    assert plan.sample_of is not None
    assert plan.sample_of.max() + 1 == rules.N_ORDERS == 100
    assert len(plan.row) == rules.N_ORDERS * 8
