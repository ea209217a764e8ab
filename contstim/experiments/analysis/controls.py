"""Linguistic controls: tests of alternative explanations of preferences.

One test is whether models prefer sentences with fewer tokens. Another test is whether models prefer
frequent words, or any other feature, more or less than people do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.families import with_family
from contstim.experiments.analysis.intervals import UNKNOWN, Estimate
from contstim.experiments.analysis.measures import known_mean
from contstim.files.tables import join_names, number, parsed, read_table
from contstim.items.stimuli import CONTROVERSIAL, Condition
from contstim.wording import quantity
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from contstim.experiments.analysis.ratings import Ratings
    from contstim.experiments.analysis.tables import Row
    from contstim.files.arrays import FloatArray
    from contstim.models.base import Scorer

__all__ = ["count_tokens", "feature_preferences", "read_features", "token_count_control"]

Features: TypeAlias = "Mapping[str, Mapping[str, float]]"
"""Feature (or model) → `Sentence.text` → value."""

# Maximum number of columns, including `sentence`. The maximum limits the number of tests, because
# each feature is tested for each model
MOST_FEATURES = 1_000

_LEVEL = 0.95  # confidence level of intervals


def read_features(path: Path | str) -> dict[str, dict[str, float]]:
    """Read a table with a column `sentence` and a column of numbers for each feature.

    Raises:
        InputError: if the file cannot be read, lacks these columns, has a cell that is not a
            number, or has different values of a feature for one sentence.
    """
    table = read_table(path)
    if "sentence" not in table or len(table) < 2:
        raise InputError(
            f"{path} must have a column `sentence` and a column for each feature; its columns are "
            f"{join_names(table)}."
        )
    if len(table) > MOST_FEATURES:
        raise InputError(
            f"{path} has {len(table):,} columns; each column except `sentence` is a feature, "
            f"and the maximum is {MOST_FEATURES - 1:,}. Remove columns that are not features."
        )
    sentences = parsed(path, "sentence", table["sentence"], Sentence.parse, "sentence")
    texts = [sentence.text for sentence in sentences]
    features: dict[str, dict[str, float]] = {}
    # A sentence may be in several rows with equal values, as in a table of trials
    for name, cells in table.items():
        if name == "sentence":
            continue
        values = features[name] = {}
        for row, value in enumerate(parsed(path, name, cells, number, "number")):
            if values.setdefault(texts[row], value) != value:
                raise InputError(f"{path}, row {row}: {texts[row]!r} has two values of {name}.")
    return features


def count_tokens(
    models: Sequence[Scorer], sentences: Sequence[Sentence]
) -> dict[str, dict[str, float]]:
    """Count the tokens that each model scores in each sentence; see `Scorer.token_counts`."""
    texts = [sentence.text for sentence in sentences]
    return {
        model.name: dict(zip(texts, map(float, model.token_counts(sentences)), strict=True))
        for model in models
    }


def token_count_control(ratings: Ratings, counts: Features) -> list[Row]:
    """Test for each model whether its preferences follow the number of tokens.

    A sub-word model may find a sentence unlikely because the words of the sentence are split into
    many tokens. A binomial test counts how often the sentence that the model prefers has fewer
    tokens (2023, Table S2). The test uses the controversial trials that target the model: trials
    that were selected because the model and another model disagree. A second test uses only the
    model's errors: trials in which people prefer the other sentence. The 2023 study tested only two
    transformers, and used only pairs of synthetic sentences.

    `counts` are model → sentence → number of tokens; models without counts are not tested.

    Returns:
        A row for each model over all its trials, then a row for each model over its errors
        (`errors_only`). `equal` counts trials with equal numbers of tokens, which are not tested.
        `pairs` counts the tested trials. `fewer` counts the tested trials in which the model
        prefers the sentence with fewer tokens. `share` is `fewer` / `pairs`; `low` and `high` are
        the ends of its exact 95 % interval (Clopper & Pearson). The p-value is from a two-sided
        binomial test against one half. If `pairs` is 0, share, interval and p-value are nan.

    Raises:
        InputError: if a model with counts has no log-probabilities, or a sentence has no count.
    """
    tests: list[Row] = []
    # A family is a set of tests whose p-values are adjusted together. Tests on errors are a
    # separate family, because errors are a subset of all trials
    for errors_only in (False, True):
        family = []
        for model in counts:
            side, people, difference = _target_trials(ratings, model, CONTROVERSIAL, counts, model)
            is_tested = people * side < 0 if errors_only else np.ones(len(side), np.bool_)
            test = _token_count_test(side[is_tested], difference[is_tested])
            family.append({"model": model, "errors_only": errors_only, **test})
        trials_text = (
            "trials on which people prefer the other sentence" if errors_only else "all trials"
        )
        tests += _adjust_family(family, [test["p_value"] for test in family], trials_text)
    return tests


def _adjust_family(rows: list[Row], p_values: list[float], trials_text: str) -> list[Row]:
    n_tested = quantity(int(np.isfinite(p_values).sum()), "model")
    return with_family(rows, p_values, f"{n_tested} on {trials_text}")


def _token_count_test(side: FloatArray, difference: FloatArray) -> Row:
    from scipy.stats import binomtest

    # `decided` is negative if the model prefers the sentence with fewer tokens
    decided = (side * difference)[(side != 0) & (difference != 0)]
    fewer, pairs = int((decided < 0).sum()), len(decided)
    results = dict.fromkeys(("share", "low", "high", "p_value"), np.nan)
    if pairs:
        test = binomtest(fewer, pairs)
        low, high = map(float, test.proportion_ci(method="exact"))
        results = {"share": fewer / pairs, "low": low, "high": high, "p_value": float(test.pvalue)}
    return {"equal": int((difference == 0).sum()), "pairs": pairs, "fewer": fewer, **results}


def feature_preferences(ratings: Ratings, features: Features) -> list[Row]:
    """Compare the preferences of models and people for high values of a feature (2023, Fig. S7).

    Only trials of two synthetic sentences are used, as in the published figure. A trial is left out
    if the model has no preference, or if equally many people prefer each sentence.

    Returns:
        A row for each feature and model. `trials` is the number of trials that target the model.
        `model_difference` and `people_difference` are means over trials: the feature's value of the
        preferred sentence minus the value of the rejected sentence. `model_share` and
        `people_share` are the shares of trials in which the sentence with the higher value is
        preferred; trials with equal values do not count. `difference` is `model_difference` minus
        `people_difference`, with a t-test paired by trial. The test is nan for fewer than two
        trials.

    Raises:
        InputError: if a sentence has no value.
    """
    rows: list[Row] = []
    conditions = (Condition.SYNTHETIC_SYNTHETIC,)
    for feature in features:
        family: list[Row] = []
        for model in ratings.models:
            parts = _target_trials(ratings, model, conditions, features, feature)
            family.append({"feature": feature, "model": model, **_feature_preference(*parts)})
        rows += _adjust_family(family, [row["difference"].p_value for row in family], feature)
    return rows


def _feature_preference(side: FloatArray, people: FloatArray, difference: FloatArray) -> Row:
    decided = (side != 0) & (people != 0)
    # Value of the feature in the preferred sentence, minus its value in the rejected sentence
    by_model, by_people = (difference * side)[decided], (difference * people)[decided]
    differences, n = by_model - by_people, len(by_model)
    # If all differences are equal, `std` may be slightly above 0 because of rounding errors
    error = float(differences.std(ddof=1)) / n**0.5 if n > 1 and np.ptp(differences) else 0.0
    estimate = replace(UNKNOWN, value=known_mean(differences))
    if n > 1:
        estimate = Estimate.by_t(estimate.value, error, n - 1, _LEVEL)
    return {
        "trials": n,
        "model_difference": known_mean(by_model),
        "people_difference": known_mean(by_people),
        "model_share": known_mean(by_model[by_model != 0] > 0),
        "people_share": known_mean(by_people[by_people != 0] > 0),
        "difference": estimate,
    }


def _target_trials(
    ratings: Ratings,
    model: str,
    conditions: Collection[Condition],
    features: Features,
    feature: str,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return three arrays, (n_trials,), for the trials that target this model or no model.

    A trial targets no model if its `model_1` is empty.

    The first array has the preferences of the model, and the second array the preferences of most
    people: 1 for sentence_2, -1 for sentence_1, 0 for neither. The third array is the feature of
    sentence_2 minus the feature of sentence_1.
    """
    if model not in ratings.models:
        raise InputError(
            f"There are no log-probabilities of {model!r}, only of {', '.join(ratings.models)}."
        )
    values = features[feature]
    trials = [trial for trial in ratings.trials if trial.condition in conditions]
    texts = {sentence.text for trial in trials for sentence in (trial.sentence_1, trial.sentence_2)}
    if missing := sorted(texts - values.keys()):
        raise InputError(
            f"{quantity(len(missing), 'sentence')} of the trials have no value of {feature}, "
            f"such as {missing[0]!r}. Add a row for each sentence to the table."
        )
    row, parts = ratings.models.index(model), []
    for group in ratings.groups:
        columns, differences = list[int](), list[float]()
        for column, trial in enumerate(group.trials):
            is_targeted = trial.model_1 in ("", model) or trial.model_2 == model
            if trial.condition in conditions and is_targeted:
                columns.append(column)
                differences.append(values[trial.sentence_2.text] - values[trial.sentence_1.text])
        # The sum of choices has the sign of the majority; 0 if both sentences have equally many
        # choices
        votes = np.sign(group.preferences[:, columns]).sum(axis=0)
        parts.append((np.sign(group.ratios[row, columns]), np.sign(votes), np.array(differences)))
    side, people, difference = map(np.concatenate, zip(*parts, strict=True))
    return side, people, difference
