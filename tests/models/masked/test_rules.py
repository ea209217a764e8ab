"""What each rule hides, as the documentation draws it."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from contstim.models.checkpoints import Checkpoint
from contstim.models.masked import plan as plan_module
from contstim.models.masked.adapter import MaskedModel
from contstim.models.masked.plan import Pattern, Plan, all_hidden, exact_plan
from contstim.models.masked.rules import RULES, MaskedRule
from contstim.models.words import END_MARK, SPECIAL
from contstim.sentence import Sentence
from tests.models.masked.literal import Literal

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


def plan_of(rule: str) -> Plan:
    return RULES[rule].plan(PATTERN, 0, 2048)


def drawn(hidden: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[str]:
    return ["_" if is_hidden else t for t, is_hidden in zip(TOKENS, hidden.tolist(), strict=True)]


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.startswith("pll")])
def test_pll_rules_hide_what_the_table_shows(rule: str) -> None:
    plan = plan_of(rule)
    row = plan.row[plan.token == UVEN]
    assert [[rule, *drawn(plan.hidden[row[0]])]] == [line for line in DRAWN if line[0] == rule]
    assert plan.token.tolist() == [1, 2, 3, 4, 5, 6]
    assert (plan.weight == 1).all()


def test_chain_asks_in_the_contexts_counted_by_hand() -> None:
    plan = exact_plan(PATTERN)
    asked = np.flatnonzero(plan.token == UVEN)
    ours = {tuple(drawn(plan.hidden[plan.row[q]])): plan.weight[q] for q in asked}
    lines = [line.split() for line in CONTEXTS.splitlines()]
    table = {tuple(line[:-1]): Fraction(line[-1]) for line in lines}
    assert len(table) == 16
    assert sum(table.values()) == 1
    assert ours == {cells: pytest.approx(float(weight)) for cells, weight in table.items()}


def test_equal_contexts_are_one_pass() -> None:
    assert len(plan_of("pll-whole-word").hidden) == 4
    assert len(plan_of("pll-original").hidden) == 6


def test_the_example_on_top_of_the_plan_is_the_plan() -> None:
    """Witness: the docstring, whose shares are counted by hand."""
    text = plan_module.__doc__ or ""
    words = ("[CLS]", "The", "dog", "sleeps", ".", "[SEP]")
    plan = exact_plan((SPECIAL, 0, 1, 2, END_MARK, SPECIAL))
    rows = re.findall(r"^    (\d) +(\S+) +(\S+) +(\S+) {4,}(.*)$", text, re.MULTILINE)
    assert len(rows) == len(plan.hidden) == 7
    for number, *cells, terms in rows:
        asked = np.flatnonzero(plan.row == int(number))
        hidden = plan.hidden[int(number)].tolist()
        assert cells == ["_" if hidden[i] else words[i] for i in (1, 2, 3)]
        ours = [
            f"{Fraction(plan.weight[q]).limit_denominator(9)} log p({words[plan.token[q]]})"
            for q in asked
        ]
        assert terms == " + ".join(ours)
    for name, values in (("row", plan.row), ("token", plan.token)):
        (digits,) = re.findall(rf"{name} = ([\d ]+\d)", text)
        assert [int(digit) for digit in digits.split()] == values.tolist()


def _left_to_right(pattern: Pattern, _seed: int, _pass_budget: int) -> Plan:
    """One order of the chain: each token given those before it, the later ones hidden."""
    tokens = np.flatnonzero(np.array(pattern) >= 0)
    hidden = all_hidden(len(pattern), tokens, np.triu(np.ones((len(tokens),) * 2, np.bool_)))
    return Plan(hidden, np.arange(len(tokens)), tokens, np.ones(len(tokens)))


def test_a_rule_of_the_chain_kind_is_one_entry(
    monkeypatch: pytest.MonkeyPatch, masked_checkpoint: Callable[[str], Checkpoint]
) -> None:
    """Witness: scoring written out, one forward pass for each set of hidden places."""
    rule = MaskedRule("chain-l2r", _left_to_right, restricted=True, end_scored=False)
    monkeypatch.setitem(RULES, rule.name, rule)
    checkpoint = masked_checkpoint("bert")
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
