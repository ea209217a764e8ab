"""Mixed models of ratings: people and items drawn at random, as reviewers ask for.

links         how likely each of six ratings is, given a hidden value
laplace       the likelihood of crossed random effects, with its gradient
fitting       thresholds, slopes and variances that fit best, and their standard errors
models        ratings on the ratios of one or several language models
comparisons   which language model fits better, and what one adds to another
"""

from contstim.experiments.analysis.mixed.comparisons import (
    FitAddition,
    FitComparison,
    FitSummary,
    MixedAnalysis,
    compare_fits,
    compare_mixed,
)
from contstim.experiments.analysis.mixed.models import (
    TESTING,
    MixedCoefficient,
    MixedFit,
    MixedSettings,
    MixedThreshold,
    MixedVariance,
    TrialEffect,
    fit_mixed,
)

__all__ = [
    "TESTING",
    "FitAddition",
    "FitComparison",
    "FitSummary",
    "MixedAnalysis",
    "MixedCoefficient",
    "MixedFit",
    "MixedSettings",
    "MixedThreshold",
    "MixedVariance",
    "TrialEffect",
    "compare_fits",
    "compare_mixed",
    "fit_mixed",
]
