"""Measure the speed of ordinal mixed models, and the type I error of their tests.

    python benchmarks/mixed_models.py [--quick] [--experiments 200] [--only 0]

Speed is measured on experiment 1 of the 2023 study (15,300 ratings without catch trials), if the
published data exist. R's clmm took 38 to 139 s for each model.

Type I error: every simulated experiment has new people and new trials. Two models that predict
people equally well are compared. In other experiments, people follow one model, and the effect of
adding the other is tested. Printed is the share of experiments with p < .05. A further column
repeats the comparison with trials as the only units, as in Vuong's test.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from time import perf_counter

import numpy as np
from inputs import STUDY
from scipy.stats import t as student

from contstim.experiments.analysis.mixed.comparison import compare_fits
from contstim.experiments.analysis.mixed.models import MixedSettings, fit_mixed
from contstim.experiments.analysis.ratings import GroupRatings, Ratings, gather
from contstim.experiments.reproduce.published import read_experiment, read_stimulus_scores
from contstim.items.stimuli import Condition, Kind, Trial
from contstim.words.sentence import Sentence

# Groups, people per group, trials per group, SD of people's slopes divided by the slope
DESIGNS = ((1, 20, 60, 0.28), (1, 12, 100, 0.5), (1, 40, 40, 0.0), (4, 5, 30, 0.28))
# Thresholds, slope, and SDs of trials and people are similar to those of experiment 1
THRESHOLDS = (-1.36, -0.58, 0.0, 0.58, 1.36)
SLOPE, TRIALS, PEOPLE = 0.6, 0.7, 0.1


def simulate_ratings(
    rng: np.random.Generator, design: tuple[int, int, int, float], slopes: tuple[float, float]
) -> Ratings:
    groups, people, n_trials, slope_sd = design
    group_ratings = []
    for number in range(1, groups + 1):
        common, specific = rng.normal(size=n_trials), rng.normal(size=(2, n_trials))
        ratios = (common + specific) / np.sqrt(2)  # models that correlate by one half
        people_slopes = np.array(slopes) * (1 + slope_sd * rng.normal(size=(people, 2)))
        hidden = people_slopes @ ratios + rng.normal(0, TRIALS, n_trials)
        left_side = rng.choice([1.0, 2.0], (people, n_trials))
        towards_2 = rng.normal(0, PEOPLE, (people, 1)) * (2 * left_side - 3)
        hidden = hidden + towards_2 + rng.normal(size=hidden.shape)
        trials = tuple(
            Trial(
                f"t{number}-{k}",
                number,
                Condition.RANDOM_NATURAL,
                "",
                "",
                Sentence.parse(f"First g{number}x{k}."),
                Sentence.parse(f"Second g{number}x{k}."),
                Kind.NATURAL,
                Kind.NATURAL,
                "",
            )
            for k in range(n_trials)
        )
        names = tuple(f"g{number}p{k}" for k in range(people))
        ratings = 1.0 + np.searchsorted(THRESHOLDS, hidden)
        log_probs = np.stack([np.zeros(ratios.shape), ratios], axis=-1)
        group_ratings.append(GroupRatings(number, trials, names, ratings, left_side, log_probs))
    return Ratings(("a", "b"), tuple(group_ratings))


def measure_calibration(experiments: int, designs: Sequence[tuple[int, int, int, float]]) -> None:
    print(f"\nshare of {experiments} experiments with p < .05 if there is no effect")
    print("groups people trials slopes-SD  comparison  (trials as units)  addition")
    for design in designs:
        rng, hits = np.random.default_rng(1), np.zeros(3)
        for _ in range(experiments):
            equal_models = simulate_ratings(rng, design, (SLOPE, SLOPE))
            fits = [fit_mixed(equal_models, [model]) for model in equal_models.models]
            (row,) = compare_fits(fits)
            blocks = zip(*(fit.blocks for fit in fits), strict=True)
            by_trial = np.concatenate([a.of_trials - b.of_trials for a, b in blocks])
            error = np.sqrt(len(by_trial)) * by_trial.std(ddof=1)
            trial_p = 2 * student.sf(abs(row["difference"].value) / error, len(by_trial) - 1)
            added = fit_mixed(simulate_ratings(rng, design, (SLOPE, 0.0)), ["a", "b"])["b"]
            hits += np.array([row["difference"].p_value, trial_p, added["estimate"].p_value]) < 0.05
        comparison, trials, addition = hits / experiments
        sizes = f"{design[0]:6} {design[1]:6} {design[2]:6} {design[3]:9}"
        print(f"{sizes}  {comparison:10.3f}  {trials:17.3f}  {addition:8.3f}", flush=True)


def measure_speed(quick: bool) -> None:
    if not STUDY.is_dir():
        print(f"no published data in {STUDY}: speed is not measured")
        return
    trials, responses = read_experiment(STUDY, STUDY.parent / "contstimlang-fork" / "data")
    ratings = gather(trials, responses, read_stimulus_scores(STUDY))
    print("model    effects of people  log-likelihood  seconds")
    for model in ratings.models[-1:] if quick else ratings.models:
        for settings in (
            MixedSettings(thresholds="flexible", people="intercept"),
            MixedSettings(),
        ):
            start = perf_counter()
            fit = fit_mixed(ratings, [model], settings)
            seconds = perf_counter() - start
            print(f"{model:8} {settings.people:17}  {fit.log_likelihood:14,.2f}  {seconds:7.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--experiments", type=int, default=200)
    parser.add_argument("--only", type=int, help="index of one design, from 0")
    arguments = parser.parse_args()
    designs = DESIGNS if arguments.only is None else DESIGNS[arguments.only : arguments.only + 1]
    if arguments.only is None:
        measure_speed(arguments.quick)
    measure_calibration(2 if arguments.quick else arguments.experiments, designs)


if __name__ == "__main__":
    main()
