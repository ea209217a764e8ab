"""A design of three models with random scores, for tests of participants who follow them."""

import numpy as np

from contstim.experiments.design.building import build_design
from contstim.experiments.design.population import TrialPreferences
from contstim.files.arrays import FloatArray, IntArray
from contstim.items.scores import ScoreTable
from tests.experiments.stimuli import natural, some_pairs, some_triplets

MODELS = ("ngram", "rnn", "bert")
DESIGN = build_design(
    some_pairs(4, MODELS),
    some_triplets(4, MODELS),
    natural(99),
    groups=4,
    random_per_group=9,
    catch_per_group=2,
    twins=True,
)


def evaluate_all(differences: FloatArray, groups: IntArray) -> TrialPreferences:
    """Build trials of one stratum that evaluate every model, with preferences in nats."""
    n, n_models = differences.shape
    is_evaluated, strata = np.ones((n, n_models), np.bool_), np.zeros(n, np.int64)
    return TrialPreferences((*"abcdef"[:n_models],), differences, is_evaluated, groups, strata)


def scores(seed: int = 0) -> ScoreTable:
    sentences = dict.fromkeys(s for t in DESIGN.trials for s in (t.sentence_1, t.sentence_2))
    values = np.random.default_rng(seed).normal(-40, 8, (len(sentences), len(MODELS)))
    return ScoreTable(tuple(sentences), MODELS, values)
