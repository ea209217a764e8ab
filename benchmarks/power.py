"""How many trials tell which model is human? Controversial against random pairs.

    python benchmarks/power.py [--quick] [--figure power.png]

Each of the nine models of the 2023 study is planted in turn as the human: participants prefer what
it prefers, with normal noise that gives them the published noise ceiling on random natural pairs.
The published log-probabilities are read from the folder in CONTSTIM_DATA, by default
../shared/data beside the repository.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from time import perf_counter

import numpy as np

from contstim.experiments.design import build_design
from contstim.experiments.golan2023 import PUBLISHED_CEILING
from contstim.experiments.power import Power, simulate_power, thin
from contstim.experiments.simulated import Comparisons, calibrate_noise, compare
from contstim.published.scores import MODELS, read_natural_scores, read_stimulus_scores
from contstim.published.stimuli import read_natural_pairs, read_triplets

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("CONTSTIM_DATA", ROOT.parent / "shared" / "data")) / "contstimlang"
RATES = (0.8, 0.9, 0.95, 0.99)
SIZES = (3, 6, 9, 12, 18, 24, 36, 72, 90)
GROUPS = 10
RANDOM = "random-natural"


def random_pairs(n: int) -> Comparisons:
    scores = read_natural_scores(DATA).log_probs
    finite = scores[np.isfinite(scores).all(axis=1)]
    one, two = np.random.default_rng(0).permutation(len(finite))[: 2 * n].reshape(2, n)
    return Comparisons(
        MODELS,
        finite[two] - finite[one],
        np.ones((n, len(MODELS)), dtype=np.bool_),
        np.arange(n) % GROUPS,
        np.zeros(n, dtype=np.int64),
    )


def conditions(n_random: int) -> dict[str, Comparisons]:
    pairs, triplets = read_natural_pairs(DATA), read_triplets(DATA, selected=True)
    design = build_design(pairs, triplets, random_per_group=0, catch_per_group=0)
    found = compare(design.trials, read_stimulus_scores(DATA))
    return {str(condition): c for condition, c in found.items()} | {RANDOM: random_pairs(n_random)}


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


def significance(
    study: dict[str, Comparisons], noise: np.ndarray, participants: int, simulations: int
) -> None:
    print(
        "share of comparisons of the planted model with another that are significant in its favour "
        f"({GROUPS} groups of {participants}), by trials a group"
    )
    print(f"  {'':22}" + "".join(f"{n:>7}" for n in SIZES))
    for name, comparisons in study.items():
        least = int(np.bincount(comparisons.groups).min())
        rates = [
            simulate_power(
                thin(comparisons, n, seed=1),
                noise,
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
    simulations = 50 if options.quick else 2000
    study = conditions(1000)
    random = study[RANDOM].differences
    noise = np.array([calibrate_noise(column, PUBLISHED_CEILING) for column in random.T])
    print("noise (nats): " + ", ".join(f"{m} {s:.1f}" for m, s in zip(MODELS, noise, strict=True)))
    for participants in (10, 1):
        started = perf_counter()
        found = {
            name: simulate_power(c, noise, participants=participants, simulations=simulations)
            for name, c in study.items()
        }
        print(f"\n{participants} participants see each trial ({simulations} experiments a model)")
        first_places(found)
        significance(study, noise, participants, max(20, simulations // 10))
        print(f"  {perf_counter() - started:.1f} s")
        if options.figure and participants == 10:
            draw(found, options.figure)


if __name__ == "__main__":
    main()
