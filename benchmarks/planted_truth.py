"""Is the truth called significantly below the noise ceiling? Three designs with a planted model.

    python benchmarks/planted_truth.py [--quick] [--studies 200] [--seed 0]

Artificial participants follow the first model, with noise that gives the noise ceiling of the 2023
study on random pairs; items have no effect beyond what it says. So this model is the truth, and
none can do better. In catch trials people prefer the unshuffled sentence whatever the models say.
Log-probability ratios correlate between models; controversial trials are pairs on which two models
disagree. For each scope and measure: how often the planted model is called significantly below and
above its lower noise ceiling, by the tests and the family that `analyze` takes, and the mean of
both. The last row counts catch trials in the overall cosine, as the 2023 study did.
"""

from __future__ import annotations

import argparse
from itertools import combinations
from time import perf_counter

import numpy as np

from contstim.experiments.analysis.effects import Sampling, compare, suited_units
from contstim.experiments.analysis.families import CEILING, every_contrast
from contstim.experiments.analysis.measures import COSINE, MEASURES, Measure
from contstim.experiments.analysis.ratings import Ratings, Scope, gather, roles
from contstim.experiments.design.artificial import artificial_participants, simulate_responses
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import CONTROVERSIAL, Condition, Kind, Trial
from contstim.words.sentence import Sentence

# Name, models, groups, people of each, trials of each kind and pair of models, random trials, catch
# trials; every group has items of its own.
DESIGNS = (
    ("published: 10 groups of 10, 9 models", 9, 10, 10, 1, 9, 12),
    ("five groups of 8, 3 models", 3, 5, 8, 3, 9, 3),
    ("one group of 20, 3 models", 3, 1, 20, 6, 12, 6),
)
N, S1, S2 = Kind.NATURAL, Kind.SYNTHETIC_1, Kind.SYNTHETIC_2
KINDS = (
    (Condition.NATURAL_CONTROVERSIAL, N, N),
    (Condition.NATURAL_SYNTHETIC, N, S1),
    (Condition.NATURAL_SYNTHETIC, N, S2),
    (Condition.SYNTHETIC_SYNTHETIC, S1, S2),
)
SCOPES: tuple[Scope, ...] = tuple(
    scope for scope in Scope if scope is not Scope.MINIMAL
)  # of these kinds
SHARED = 0.7  # of a model's ratio, what other models say too
SPREAD = 10.0  # of ratios, nats
CATCH = (-10.0, 20.0)  # mean and spread of ratios where words are shuffled, nats


def design(models: str, groups: int, each: int, random: int, catch: int) -> list[Trial]:
    """The trials of all groups."""
    kinds = [(*kind, *pair) for pair in combinations(models, 2) for kind in KINDS] * each
    kinds += [(Condition.RANDOM_NATURAL, N, N, "", "")] * random
    kinds += [(Condition.CATCH, N, Kind.SHUFFLED, "", "")] * catch
    return [
        Trial(
            f"{group}-{place}",
            group,
            condition,
            first,
            second,
            Sentence.parse(f"First {group} {place}."),
            Sentence.parse(f"Second {group} {place}."),
            kind_1,
            kind_2,
            "",
        )
        for group in range(1, groups + 1)
        for place, (condition, kind_1, kind_2, first, second) in enumerate(kinds)
    ]


def ratios(trial: Trial, models: str, chance: np.random.Generator) -> np.ndarray:
    """What each model says of a trial, log p(sentence_2) - log p(sentence_1), nats."""
    while True:
        own = np.sqrt(1 - SHARED**2) * chance.normal(size=len(models))
        drawn: np.ndarray = SPREAD * (SHARED * chance.normal() + own)
        if trial.condition is Condition.CATCH:
            drawn = CATCH[0] + CATCH[1] * drawn / SPREAD
        if trial.condition is Condition.NATURAL_SYNTHETIC:
            accepts, rejects = (models.index(model) for model in roles(trial))
            drawn[accepts] = abs(drawn[accepts]) / SPREAD  # hardly likelier than the natural
            drawn[rejects] = -2 * abs(drawn[rejects])
        elif trial.condition in CONTROVERSIAL:
            first, second = models.index(trial.model_1), models.index(trial.model_2)
            if not drawn[first] > 0 > drawn[second]:
                continue
        return drawn


def study(
    trials: list[Trial], models: str, people: int, seed: int, chance: np.random.Generator
) -> Ratings:
    """New items and new people, who follow the first model."""
    drawn = np.array([ratios(trial, models, chance) for trial in trials])
    log_probs = np.zeros((2 * len(trials), len(models)))
    log_probs[1::2] = drawn
    sentences = [text for trial in trials for text in (trial.sentence_1, trial.sentence_2)]
    scores = ScoreTable(tuple(sentences), tuple(models), log_probs)
    followers = artificial_participants(trials, scores, models[0], seed=seed)
    return gather(trials, simulate_responses(followers, people), scores)


def simulate(number: int, studies: int, seed: int) -> None:
    """Print what is said of the planted model in one design."""
    name, n_models, groups, people, each, random, catch = DESIGNS[number]
    started, models = perf_counter(), "abcdefghi"[:n_models]
    trials, family = design(models, groups, each, random, catch), every_contrast(models)
    rows = [(scope, measure, False) for scope in SCOPES for measure in MEASURES]
    rows += [(Scope.OVERALL, COSINE, True)]
    found: dict[tuple[Scope, Measure, bool], list[tuple[bool, bool, float, float]]] = {}
    units = None
    for number_of_study in range(studies):
        chance = np.random.default_rng([seed, number, number_of_study])
        ratings = study(trials, models, groups * people, int(chance.integers(2**31)), chance)
        units = units or suited_units(ratings, family, Sampling())
        for scope, measure, with_catch in rows:
            sampling = Sampling(units, catch_trials=with_catch)
            result = compare(ratings, scope, measure, family, sampling)
            (test,) = (c for c in result.comparisons if (c.first, c.second) == ("a", CEILING))
            called = (
                test.significant and test.difference < 0,
                test.significant and test.difference > 0,
            )
            found.setdefault((scope, measure, with_catch), []).append(
                (*called, test.value_first, test.value_second)
            )
    print(f"{name}: {studies} studies, tests of {units}, {perf_counter() - started:.0f} s")
    for (scope, measure, with_catch), told in found.items():
        below, above, value, ceiling = np.mean(told, axis=0)
        print(
            f"  {scope + ', catch trials' * with_catch:24} {measure.name:19} below {below:.3f}  "
            f"above {above:.3f}  planted {value:.3f}  lower ceiling {ceiling:.3f}",
            flush=True,
        )
    ever = np.array([[row[0] for row in told] for key, told in found.items() if not key[2]])
    print(f"  below in any of {len(ever)} results: {ever.any(axis=0).mean():.3f} of studies")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="3 studies")
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="one design, by its place from 0")
    options = parser.parse_args()
    for number in range(len(DESIGNS)) if options.only is None else [options.only]:
        simulate(number, 3 if options.quick else options.studies, options.seed)


if __name__ == "__main__":
    main()
