"""Do models prefer frequent words, or any other feature, more or less than people do?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis.controls.judged import (
    columns_of,
    differences_of,
    judged,
    require_values,
)
from contstim.experiments.analysis.families import false_discovery
from contstim.stimuli import Condition
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Collection

    from contstim.arrays import FloatArray
    from contstim.experiments.analysis.controls.features import Features
    from contstim.experiments.analysis.ratings import Ratings


@dataclass(frozen=True)
class FeaturePreference:
    """Preference of a model, and of people, for sentences with more of a feature.

    Over the trials that target the model, on which it prefers a sentence and most people do too.

    Attributes:
        feature: what is measured of a sentence.
        model: the model.
        trials: how many.
        model_difference: mean of the feature of the preferred less that of the rejected sentence.
        people_difference: the same for the sentence that most people prefer.
        model_share: share of trials in which the model prefers the sentence with more of it.
        people_share: the same for most people. Trials with equal values do not count in shares.
        difference: `model_difference` less `people_difference`, the effect that is tested.
        low: lower end of its 95 % interval by Student's t, over trials; nan below two trials.
        high: its upper end.
        statistic: Student's t of model less people, paired by trial; nan below two trials.
        p_value: two-sided.
        adjusted: the same by Benjamini and Hochberg, over the family.
        family: the tests that `adjusted` is adjusted for.
    """

    feature: str
    model: str
    trials: int
    model_difference: float
    people_difference: float
    model_share: float
    people_share: float
    difference: float
    low: float
    high: float
    statistic: float
    p_value: float
    adjusted: float
    family: str


def feature_preferences(
    ratings: Ratings,
    features: Features,
    conditions: Collection[Condition] = (Condition.SYNTHETIC_SYNTHETIC,),
) -> tuple[FeaturePreference, ...]:
    """Compare models with people in what they prefer (2023, Fig. S7).

    Ties of the model and of people (5:5) are left out.

    Args:
        ratings: who chose what, and the models' log-probabilities.
        features: feature → sentence → value.
        conditions: which trials; the published figure shows synthetic controversial pairs.

    Raises:
        InputError: a sentence without a value.
    """
    rows = []
    for feature in features:
        family = [
            _feature_preference(ratings, features, feature, model, conditions)
            for model in ratings.models
        ]
        adjusted = false_discovery(np.array([row.p_value for row in family])).tolist()
        tested = counted(int(np.isfinite(adjusted).sum()), "model")
        rows += [
            replace(row, adjusted=p, family=f"{tested} on {feature}")
            for row, p in zip(family, adjusted, strict=True)
        ]
    return tuple(rows)


def _feature_preference(
    ratings: Ratings,
    features: Features,
    feature: str,
    model: str,
    conditions: Collection[Condition],
) -> FeaturePreference:
    from scipy.stats import ttest_1samp

    decisions = judged(ratings, model, conditions, features, feature)
    # Signed by the choice: the feature of the preferred less that of the rejected sentence.
    decided = [trial for trial in decisions if trial.model and trial.people]
    by_model = np.array([trial.difference * trial.model for trial in decided])
    by_people = np.array([trial.difference * trial.people for trial in decided])
    # Student's t of the paired differences. Scipy's is nan, with a warning, where they do not vary:
    # no difference anywhere is no evidence; the same one everywhere leaves no room for chance.
    differences = by_model - by_people
    difference = low = high = _mean(differences)
    if len(decided) < 2:
        low = high = statistic = p_value = float("nan")
    elif not differences.any():
        statistic, p_value = 0.0, 1.0
    elif np.ptp(differences) == 0:
        statistic, p_value = float(np.sign(differences[0]) * np.inf), 0.0
    else:
        test = ttest_1samp(differences, 0)
        statistic, p_value = float(test.statistic), float(test.pvalue)
        low, high = map(float, test.confidence_interval(0.95))
    return FeaturePreference(
        feature,
        model,
        len(decided),
        _mean(by_model),
        _mean(by_people),
        _mean(by_model[by_model != 0] > 0),
        _mean(by_people[by_people != 0] > 0),
        difference,
        low,
        high,
        statistic,
        p_value,
        float("nan"),
        "",
    )


@dataclass(frozen=True)
class FeatureShare:
    """Share of trials in which somebody prefers the sentence with more of a feature.

    Attributes:
        feature: what is measured of a sentence.
        judge: a participant or a model.
        is_model: which of the two.
        trials: those with different values in which the judge prefers a sentence.
        share: of these, in which it is the one with more; nan without trials.
    """

    feature: str
    judge: str
    is_model: bool
    trials: int
    share: float


_UNSHUFFLED = tuple(condition for condition in Condition if condition is not Condition.CATCH)


def feature_shares(
    ratings: Ratings, features: Features, conditions: Collection[Condition] = _UNSHUFFLED
) -> tuple[FeatureShare, ...]:
    """For each participant and each model, over all trials of some conditions that they judged.

    By default all but catch trials: what people prefer there follows from the order of words.

    Raises:
        InputError: a sentence without a value, or no such trial.
    """
    shares: list[FeatureShare] = []
    for feature in features:
        require_values(ratings, conditions, features, feature)
        # A participant saw one group's trials; a model is judged on all groups' trials together.
        of_models = []
        for group in ratings.groups:
            columns = columns_of(group.trials, conditions)
            trials = [group.trials[column] for column in columns]
            differences = differences_of(trials, features, feature)
            chosen = np.sign(group.preferences[:, columns])
            shares += [
                _share(feature, name, False, differences * row)
                for name, row in zip(group.participants, chosen, strict=True)
            ]
            of_models.append(differences * np.sign(group.ratios[:, columns]))
        together = np.concatenate(of_models, axis=1)
        shares += [
            _share(feature, model, True, row)
            for model, row in zip(ratings.models, together, strict=True)
        ]
    return tuple(shares)


def _share(feature: str, judge: str, is_model: bool, preferred: FloatArray) -> FeatureShare:
    """From the feature of the preferred less that of the rejected sentence of each trial."""
    decided = preferred[preferred != 0]
    return FeatureShare(feature, judge, is_model, len(decided), _mean(decided > 0))


def _mean(values: np.ndarray[tuple[int], np.dtype[np.float64 | np.bool_]]) -> float:
    return float(values.mean()) if len(values) else float("nan")
