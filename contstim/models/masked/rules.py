"""The scoring rules of masked models; a new rule is an entry of `RULES`.

The chain rules uncover a sentence of masks word by word, over many orders: see `plan` and
`sampling`; `chain-mixture` averages probabilities instead of their logs, see `mixture`. The end
mark is always visible and never scored.

The pseudo-log-likelihood rules ask for one token at a time. Salazar, Liang, Nguyen & Kirchhoff
(2020) hide it alone (`pll-original`). Kauf & Ivanova (2023, *A better way to do masked language
model scoring*, equations 1 to 4) hide more, because the later tokens of a word give its earlier
ones away. Every token counts, the end mark included; special tokens never count. `plan` shows what
each rule hides in one sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from contstim.models.masked.mixture import mixture_plan
from contstim.models.masked.plan import Plan, exact_plan, n_passes
from contstim.models.masked.sampling import N_ORDERS, budget_plan, orders_plan
from contstim.models.words import SPECIAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from contstim.arrays import BoolArray, IntArray
    from contstim.models.masked.plan import Pattern

HiddenWith: TypeAlias = "Callable[[IntArray, IntArray], BoolArray]"
"""A function of tokens in question, (n, 1), and of the word of each token of the text, (n_tokens,):
which tokens are hidden while each is asked for, (n, n_tokens)."""

MakePlan: TypeAlias = "Callable[[Pattern, int, int], Plan]"
"""A function that makes a plan from a pattern, a seed, and a budget of passes."""


def _token(token: IntArray, word_of: IntArray) -> BoolArray:
    """The token alone."""
    return np.equal(np.arange(len(word_of)), token)


def _rest_of_word(token: IntArray, word_of: IntArray) -> BoolArray:
    """The token and the later tokens of its word."""
    later = np.greater_equal(np.arange(len(word_of)), token)
    return np.equal(word_of, word_of[token]) & later


def _word(token: IntArray, word_of: IntArray) -> BoolArray:
    """All tokens of its word."""
    return np.equal(word_of, word_of[token])


def _rest_of_sentence(token: IntArray, word_of: IntArray) -> BoolArray:
    """The token and all to its right; the closing special token too, as in the authors' code."""
    return np.greater_equal(np.arange(len(word_of)), token)


@dataclass(frozen=True)
class MaskedRule:
    """Rule by which a masked model scores a sentence.

    Attributes:
        name: the rule's name in a specification, after `@`.
        plan: makes the plan of a sentence: what to hide and to ask, and with which weights.
        restricted: whether probabilities are normalised among the tokens that keep words apart.
        end_scored: whether the end mark is scored; if not, it is always visible.
        sampled: how scores are estimated that are not exact, a text with `{seed}` and
            `{pass_budget}`; empty for rules that never sample. Rules that sample have cheap drafts.
        mixture: whether the score is the log of a mean probability over orders, see `mixture`.
        context: what the single pass hides by which candidate words are first compared.
    """

    name: str
    plan: MakePlan
    restricted: bool = False
    end_scored: bool = True
    sampled: str = ""
    mixture: bool = False
    context: HiddenWith = _word


def pll_plan(hidden_with: HiddenWith, pattern: Pattern) -> Plan:
    """The plan of a pseudo-log-likelihood: one question for each token of the text."""
    word_of = np.array(pattern)
    token = np.flatnonzero(word_of != SPECIAL)  # (n_questions,)
    # (n_questions, n_tokens); contexts that hide the same tokens are one pass
    contexts = hidden_with(token[:, None], word_of)
    hidden, row = np.unique(contexts, axis=0, return_inverse=True)
    return Plan(hidden, row.reshape(-1), token, np.ones(len(token)))


def _chain_plan(pattern: Pattern, seed: int, pass_budget: int) -> Plan:
    """All orders where the budget allows it, else a sample of them."""
    # 2,048 passes are 11 words of one token each
    if n_passes(pattern) <= pass_budget:
        return exact_plan(pattern)
    return budget_plan(pattern, seed, pass_budget)


def _chain(name: str, *, restricted: bool) -> MaskedRule:
    return MaskedRule(
        name,
        _chain_plan,
        restricted=restricted,
        end_scored=False,
        sampled="exact up to {pass_budget} passes a sentence, then sampled, seed {seed}",
    )


def _pll(name: str, hidden_with: HiddenWith, context: HiddenWith = _word) -> MaskedRule:
    return MaskedRule(
        name, lambda pattern, _seed, _budget: pll_plan(hidden_with, pattern), context=context
    )


RULES: dict[str, MaskedRule] = {
    rule.name: rule
    for rule in (
        _chain("chain", restricted=True),
        MaskedRule(
            "chain-sampled",
            lambda pattern, seed, _budget: orders_plan(pattern, seed),
            restricted=True,
            end_scored=False,
            sampled=f"{N_ORDERS} random orders, seed {{seed}}",
        ),
        MaskedRule(
            "chain-mixture",
            mixture_plan,
            restricted=True,
            end_scored=False,
            sampled="exact up to {pass_budget} passes a sentence, then the log of a sampled mean, "
            "too low on average, seed {seed}",
            mixture=True,
        ),
        _chain("chain-unrestricted", restricted=False),
        _pll("pll-original", _token),
        _pll("pll-word-l2r", _rest_of_word),
        _pll("pll-whole-word", _word),
        _pll("pll-sentence-l2r", _rest_of_sentence, context=_rest_of_sentence),
    )
}
"""By name, the default first."""
