"""Linguistic controls: what else than probability could preferences follow?

features      what can be said of a sentence without a model: any table, word frequencies
tokens        whether models prefer the sentence with fewer tokens
preferences   whether models prefer frequent words, or any feature, more than people do
judged        trials as a model and people judged them
"""

from contstim.experiments.analysis.controls.features import (
    mean_log_frequencies,
    mean_zipfs,
    read_features,
)
from contstim.experiments.analysis.controls.preferences import (
    FeaturePreference,
    FeatureShare,
    feature_preferences,
    feature_shares,
)
from contstim.experiments.analysis.controls.tokens import (
    TokenCountTest,
    count_tokens,
    token_count_control,
)

__all__ = [
    "FeaturePreference",
    "FeatureShare",
    "TokenCountTest",
    "count_tokens",
    "feature_preferences",
    "feature_shares",
    "mean_log_frequencies",
    "mean_zipfs",
    "read_features",
    "token_count_control",
]
