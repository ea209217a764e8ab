"""Do models prefer the sentence that their tokenizer cuts into fewer tokens?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis.controls.judged import judged
from contstim.experiments.analysis.families import false_discovery
from contstim.stimuli import CONTROVERSIAL
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from contstim.experiments.analysis.controls.features import Features
    from contstim.experiments.analysis.ratings import Ratings
    from contstim.models.base import Scorer
    from contstim.sentence import Sentence
    from contstim.stimuli import Condition


@dataclass(frozen=True)
class TokenCountTest:
    """Test of whether a model prefers the sentence that its tokenizer cuts into fewer tokens.

    Attributes:
        model: the model.
        errors_only: whether only trials count in which most people prefer the other sentence.
        equal: trials with as many tokens in both sentences; they do not count.
        pairs: trials with different numbers of tokens, on which the model prefers a sentence.
        fewer: of these, those in which it prefers the sentence with fewer tokens.
        share: fewer / pairs; nan without pairs.
        low: lower end of the share's exact 95 % interval (Clopper & Pearson).
        high: its upper end.
        p_value: two-sided binomial test against one half; nan without pairs.
        adjusted: the same by Benjamini and Hochberg, over the family.
        family: the tests that `adjusted` is adjusted for: models with the same `errors_only`.
    """

    model: str
    errors_only: bool
    equal: int
    pairs: int
    fewer: int
    share: float
    low: float
    high: float
    p_value: float
    adjusted: float
    family: str


def token_count_control(
    ratings: Ratings, counts: Features, conditions: Collection[Condition] = CONTROVERSIAL
) -> tuple[TokenCountTest, ...]:
    """Test for each model whether its preferences follow the number of tokens.

    A sub-word model may find a sentence unlikely because its words are cut into many tokens. Over
    the trials that target a model, and over those in which people prefer the other sentence, count
    how often the sentence it prefers has fewer tokens. A binomial test per model, as in Table S2 of
    the 2023 study, which tests each transformer on pairs of two synthetic sentences whose other
    model is a transformer too; ours are by default all controversial trials.

    Args:
        ratings: who chose what, and the models' log-probabilities.
        counts: model → sentence → number of tokens; models without counts are not tested, and
            word-level models have nothing to test where sentences are equally long.
        conditions: which trials.

    Returns:
        For each model of counts a test over all trials, then for each a test over its errors.

    Raises:
        InputError: counts of a model without log-probabilities, or no count of a sentence.
    """
    tests = []
    for errors_only in (False, True):
        family = [
            _token_count_test(ratings, counts, model, errors_only, conditions) for model in counts
        ]
        # The errors are a part of all trials, not further tests: each has a family of its own.
        adjusted = false_discovery(np.array([test.p_value for test in family])).tolist()
        tested = counted(int(np.isfinite(adjusted).sum()), "model")
        where = "trials on which people prefer the other sentence" if errors_only else "all trials"
        tests += [
            replace(test, adjusted=p, family=f"{tested} on {where}")
            for test, p in zip(family, adjusted, strict=True)
        ]
    return tuple(tests)


def _token_count_test(
    ratings: Ratings,
    counts: Features,
    model: str,
    errors_only: bool,
    conditions: Collection[Condition],
) -> TokenCountTest:
    from scipy.stats import binomtest

    decisions = judged(ratings, model, conditions, counts, model)
    trials = [trial for trial in decisions if not errors_only or trial.people * trial.model < 0]
    # Signs: `difference` is positive where sentence_2 has more tokens, `model` where it prefers it,
    # so that a negative product means that the model prefers the sentence with fewer.
    differ = [trial for trial in trials if trial.difference and trial.model]
    fewer = sum(trial.difference * trial.model < 0 for trial in differ)
    equal = sum(trial.difference == 0 for trial in trials)
    if not differ:
        nan = float("nan")
        return TokenCountTest(model, errors_only, equal, 0, 0, nan, nan, nan, nan, nan, "")
    test = binomtest(fewer, len(differ))
    low, high = map(float, test.proportion_ci(method="exact"))
    share, p_value = fewer / len(differ), float(test.pvalue)
    return TokenCountTest(
        model, errors_only, equal, len(differ), fewer, share, low, high, p_value, float("nan"), ""
    )


def count_tokens(
    models: Sequence[Scorer], sentences: Sequence[Sentence]
) -> dict[str, dict[str, float]]:
    """Number of tokens that each model's rule scores in each sentence; see `token_counts`."""
    texts = [sentence.text for sentence in sentences]
    return {
        model.name: dict(
            zip(texts, model.token_counts(sentences).astype(float).tolist(), strict=True)
        )
        for model in models
    }
