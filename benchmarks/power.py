"""How many trials tell which model is human? Controversial against random pairs.

    python benchmarks/power.py [--quick] [--figure power.png]

Each of the nine models of the 2023 study is planted in turn as the human: participants prefer what
it prefers, with normal noise that gives them the published noise ceilings, kind of trial by kind of
trial. Beside that stands what real people's answers say: trials of experiment 1 are drawn anew, and
it is counted how often the model comes first that does with all of them. The published data are
read from the folder in CONTSTIM_DATA, by default ../shared/data beside the repository.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from time import perf_counter

import numpy as np

from contstim.experiments.analysis.ratings import Ratings, gather
from contstim.experiments.analysis.scopes import Scope, scope_mask
from contstim.experiments.design.building import build_design
from contstim.experiments.design.calibration import Ceilings, calibrate
from contstim.experiments.design.golan2023 import PUBLISHED_CEILING
from contstim.experiments.design.power import Power, simulate_power, thin, thinned
from contstim.experiments.design.simulated import (
    TrialPreferences,
    calibrate_noise,
    preferences_by_scope,
)
from contstim.experiments.reproduce.golan2023_data import read_experiment
from contstim.experiments.reproduce.published.scores import (
    MODELS,
    read_natural_scores,
    read_stimulus_scores,
)
from contstim.experiments.reproduce.published.stimuli import read_natural_pairs, read_triplets

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("CONTSTIM_DATA", ROOT.parent / "shared" / "data")) / "contstimlang"
RATES = (0.8, 0.9, 0.95, 0.99)
SIZES = (3, 6, 9, 12, 18, 24, 36, 72, 90)
GROUPS = 10
RANDOM = str(Scope.RANDOM)
Kinds = dict[
    str, tuple[TrialPreferences, np.ndarray]
]  # trials, and noise (n_trials, n_models), nats


def random_pairs(n: int) -> TrialPreferences:
    scores = read_natural_scores(DATA).log_probs
    finite = scores[np.isfinite(scores).all(axis=1)]
    one, two = np.random.default_rng(0).permutation(len(finite))[: 2 * n].reshape(2, n)
    return TrialPreferences(
        MODELS,
        finite[two] - finite[one],
        np.ones((n, len(MODELS)), dtype=np.bool_),
        np.arange(n) % GROUPS,
        np.zeros(n, dtype=np.int64),
    )


def kinds(n_random: int) -> Kinds:
    pairs, triplets = read_natural_pairs(DATA), read_triplets(DATA, selected=True)
    design = build_design(pairs, triplets, random_per_group=0, catch_per_group=0)
    found = preferences_by_scope(design.trials, read_stimulus_scores(DATA))
    noise = calibrate(found, Ceilings()).of_trials
    random = random_pairs(n_random)
    of_random = [calibrate_noise(column, PUBLISHED_CEILING) for column in random.differences.T]
    return {
        **{
            str(scope): (found.of_scope(scope), noise[found.rows(scope)])
            for scope in found.evaluates
            if scope is not Scope.OVERALL
        },
        RANDOM: (random, np.broadcast_to(of_random, random.differences.shape)),
    }


def real_ratings() -> Ratings:
    trials, responses = read_experiment(DATA, DATA.parent / "contstimlang-fork" / "data")
    return gather(trials, responses, read_stimulus_scores(DATA))


def resampled(ratings: Ratings, scope: Scope, n: int, draws: int) -> tuple[str, float]:
    """The first model with all trials, and how often it is first with n trials drawn anew.

    Trials are drawn with replacement, model pairs (and roles) as evenly as possible, each with the
    answers of its ten people.
    """
    masks = [scope_mask(group.trials, scope, ratings.models) for group in ratings.groups]
    own = np.concatenate([mask[:, mask.any(axis=0)].T for mask in masks])  # (n_trials, n_models)
    sides, strata = [], []
    for group, mask in zip(ratings.groups, masks, strict=True):
        rows = [bool(column.any()) for column in mask.T]
        sides.append(
            np.sign(group.ratios[:, rows]) * (np.sign(group.ratings[:, rows] - 3.5)).mean(axis=0)
        )
        strata += [
            (t.model_1, t.model_2, t.kind_2) for t, x in zip(group.trials, rows, strict=True) if x
        ]
    agreed = np.concatenate(sides, axis=1).T * own
    numbers = np.unique([" ".join(names) for names in strata], return_inverse=True)[1]
    members = np.argsort(numbers, kind="stable").reshape(numbers.max() + 1, -1)  # all equally many
    first = int((agreed.sum(axis=0) / own.sum(axis=0)).argmax())
    rng, wins = np.random.default_rng(0), 0.0
    for _ in range(draws):
        order = np.concatenate(
            [rng.permutation(len(members)) for _ in range(-(-n // len(members)))]
        )
        drawn = members[order[:n], rng.integers(0, members.shape[1], n)]
        if own[drawn].any(axis=0).all():
            means = np.round(agreed[drawn].sum(axis=0) / own[drawn].sum(axis=0), 12)
            wins += (means[first] == means.max()) / (means == means.max()).sum()
    return ratings.models[first], wins / draws


def real_first_places(draws: int) -> None:
    ratings = real_ratings()
    sizes = (12, 18, 24, 36, 72, 90, 180, 360)
    print(f"real answers: how often the first model of all trials is first ({draws} draws)")
    print(f"  {'':33}" + "".join(f"{n:>7}" for n in sizes))
    for scope in Scope:
        rates = [resampled(ratings, scope, n, draws) for n in sizes]
        print(f"  {scope:24} {rates[0][0]:8}" + "".join(f"{rate:7.3f}" for _, rate in rates))


def first_places(found: dict[str, Power]) -> None:
    print("rate at which the planted model comes out first, by trials in all (chance .111)")
    sizes = (12, 18, 24, 36, 72, 90, 180, 360)
    print(f"  {'':22}" + "".join(f"{n:>7}" for n in sizes))
    for name, power in found.items():
        curve = power.first_by_trials.mean(axis=0)
        print(f"  {name:22}" + "".join(f"{curve[n - 1]:7.3f}" for n in sizes))
    print("the same by planted model, with 24 trials")
    print(f"  {'':22}" + "".join(f"{m:>9}" for m in MODELS))
    for name, power in found.items():
        print(f"  {name:22}" + "".join(f"{x:9.3f}" for x in power.first_by_trials[:, 23]))
    print("trials needed, and random trials for each of these")
    for rate in RATES:
        random = found[RANDOM].trials_needed(rate)
        for name, power in found.items():
            needed = power.trials_needed(rate)
            factor = f"{random / needed:.1f}" if random and needed else "unknown"
            print(f"  first in {rate:.0%}: {name:22} {needed or 'more'} trials, factor {factor}")


def significance(trials: Kinds, participants: int, simulations: int) -> None:
    print(
        "share of comparisons of the planted model with another that are significant in its favour "
        f"({GROUPS} groups of {participants}), by trials a group"
    )
    print(f"  {'':22}" + "".join(f"{n:>7}" for n in SIZES))
    for name, (comparisons, noise) in trials.items():
        least = int(np.bincount(comparisons.groups).min())
        rates = [
            simulate_power(
                thin(comparisons, n, seed=1),
                noise[thinned(comparisons, n, seed=1)],
                participants=participants,
                simulations=simulations,
            ).mean_better
            for n in SIZES
            if n <= least
        ]
        print(f"  {name:22}" + "".join(f"{rate:7.3f}" for rate in rates))


def draw(found: dict[str, Power], path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    for name, power in found.items():
        curve = power.first_by_trials.mean(axis=0)[:360]
        axis.plot(np.arange(1, len(curve) + 1), curve, label=name)
    axis.axhline(1 / len(MODELS), color="gray", linewidth=0.8, linestyle=":")
    axis.set(xscale="log", xlabel="trials", ylabel="planted model comes first", ylim=(0, 1.02))
    axis.set_xticks([5, 10, 20, 50, 100, 200, 360], ["5", "10", "20", "50", "100", "200", "360"])
    axis.legend()
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer simulations")
    parser.add_argument("--figure", type=Path, help="draw the curves into this file")
    options = parser.parse_args()
    if not DATA.is_dir():
        print(f"skipped, there is no folder {DATA} (set CONTSTIM_DATA)")
        return
    simulations = 50 if options.quick else 500
    trials = kinds(1000)
    for name, (comparisons, noise) in trials.items():
        own = np.where(comparisons.evaluates, noise, np.nan)
        told = ", ".join(
            f"{m} {x:.1f}" for m, x in zip(MODELS, np.nanmedian(own, axis=0), strict=True)
        )
        print(f"noise (nats) {name}: {told}")
    real_first_places(100 if options.quick else 2000)
    for participants in (10, 1):
        started = perf_counter()
        found = {
            name: simulate_power(c, noise, participants=participants, simulations=simulations)
            for name, (c, noise) in trials.items()
        }
        print(f"\n{participants} participants see each trial ({simulations} experiments a model)")
        first_places(found)
        significance(trials, participants, max(20, simulations // 10))
        print(f"  {perf_counter() - started:.1f} s")
        if options.figure and participants == 10:
            draw(found, options.figure)


if __name__ == "__main__":
    main()
