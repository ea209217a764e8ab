"""Estimate the number of trials that identify the best model, for controversial and random pairs.

    python benchmarks/power.py [--quick] [--figure power.png]

Three estimates use the published data of the 2023 study, from the folder in CONTSTIM_DATA:

* Each of the nine models in turn is planted. It predicts people as often as GPT-2 did in experiment
  1, and items vary as much. Its rivals are distant or close, as `contstim power` assumes without a
  pilot.
* People follow all models, each as much as measured in experiment 1.
* Trials of experiment 1 are resampled. The best model is the one that is first with all trials.
  Printed is how often it is first again, and the share of its comparisons that are significant.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np
from inputs import STUDY

from contstim.experiments.analysis.measures import ACCURACY, evaluate
from contstim.experiments.analysis.ratings import Ratings, Scope, gather, scope_mask
from contstim.experiments.design.calibration import MeasuredPeople, calibrate
from contstim.experiments.design.population import (
    DISTANT,
    PUBLISHED_KINDS,
    Population,
    TrialPreferences,
    preferences_by_scope,
)
from contstim.experiments.design.power import Power, simulate_power
from contstim.experiments.design.simulated_tests import significantly_better
from contstim.experiments.reproduce.published import MODELS, read_experiment, read_stimulus_scores

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.published.readers import read_natural_scores

RATES = (0.8, 0.9, 0.95)
SIZES = (3, 6, 9, 12, 18, 24, 36, 72)
TOTALS = (12, 18, 24, 36, 72, 90, 180, 360)
GROUPS = 10
Kinds = dict[str, tuple[TrialPreferences, list[Population]]]


def sample_random_pairs(n: int) -> TrialPreferences:
    scores = read_natural_scores(STUDY).log_probs
    finite = scores[np.isfinite(scores).all(axis=1)]
    first, second = np.random.default_rng(0).permutation(len(finite))[: 2 * n].reshape(2, n)
    evaluates = np.ones((n, len(MODELS)), dtype=np.bool_)
    return TrialPreferences(
        MODELS,
        finite[second] - finite[first],
        evaluates,
        np.arange(n) % GROUPS,
        np.zeros(n, dtype=np.int64),
        {Scope.RANDOM: evaluates},
    )


def measure_people(ratings: Ratings) -> MeasuredPeople:
    """Return all results of experiment 1."""
    measured = MeasuredPeople()
    kinds = {}
    for scope, published_kind in measured.kinds.items():
        masks = [scope_mask(group.trials, scope, ratings.models) for group in ratings.groups]
        evaluation = evaluate(ratings, ACCURACY, masks)
        values, lower = (
            evaluation.of_groups(x).mean(axis=0) for x in (evaluation.values, evaluation.lower)
        )
        of_models = dict(zip(ratings.models, values.tolist(), strict=True))
        ceiling = float(lower[ratings.models.index("gpt2")])
        # A pilot does not measure the variance between items
        kinds[scope] = replace(published_kind, ceiling=ceiling, items=None, of_models=of_models)
    return replace(measured, kinds=kinds, best="gpt2")


def build_kinds(ratings: Ratings, people: MeasuredPeople, n_random: int) -> Kinds:
    """Return kind → its trials, and the populations of people and items."""
    trials = [trial for group in ratings.groups for trial in group.trials]
    result: Kinds = {}
    for study in (
        preferences_by_scope(trials, read_stimulus_scores(STUDY)),
        *([sample_random_pairs(n_random)] if n_random else []),
    ):
        for scope, populations in calibrate(study, people)[0].items():
            result[str(scope)] = study.of_scope(scope), populations
    return result


def read_ratings() -> Ratings:
    trials, responses = read_experiment(STUDY, STUDY.parent / "contstimlang-fork" / "data")
    return gather(trials, responses, read_stimulus_scores(STUDY))


def resample_trials(ratings: Ratings, scope: Scope, n: int, draws: int) -> tuple[str, float]:
    """Return the model that is first with all trials, and how often it is first with n trials.

    The n trials are drawn with replacement, from model pairs (and roles) as evenly as possible.
    Each trial has the answers of its ten people.
    """
    masks = [scope_mask(group.trials, scope, ratings.models) for group in ratings.groups]
    # (n_trials, n_models)
    evaluated = np.concatenate([mask[:, mask.any(axis=0)].T for mask in masks])
    sides, strata = [], []
    for group, mask in zip(ratings.groups, masks, strict=True):
        rows = [bool(column.any()) for column in mask.T]
        sides.append(
            np.sign(group.ratios[:, rows]) * (np.sign(group.ratings[:, rows] - 3.5)).mean(axis=0)
        )
        strata += [
            (t.model_1, t.model_2, t.kind_2) for t, x in zip(group.trials, rows, strict=True) if x
        ]
    agreed = np.concatenate(sides, axis=1).T * evaluated
    numbers = np.unique([" ".join(names) for names in strata], return_inverse=True)[1]
    members = np.argsort(numbers, kind="stable").reshape(numbers.max() + 1, -1)  # equal sizes
    first = int((agreed.sum(axis=0) / evaluated.sum(axis=0)).argmax())
    rng, wins = np.random.default_rng(0), 0.0
    for _ in range(draws):
        order = np.concatenate(
            [rng.permutation(len(members)) for _ in range(-(-n // len(members)))]
        )
        sample = members[order[:n], rng.integers(0, members.shape[1], n)]
        if evaluated[sample].any(axis=0).all():
            means = np.round(agreed[sample].sum(axis=0) / evaluated[sample].sum(axis=0), 12)
            wins += (means[first] == means.max()) / (means == means.max()).sum()
    return ratings.models[first], wins / draws


def print_real_first_places(ratings: Ratings, draws: int) -> None:
    sizes = TOTALS
    print(f"real answers: how often the best model of all trials is the best ({draws} draws)")
    print(f"  {'':33}" + "".join(f"{n:>7}" for n in sizes))
    for scope in map(Scope, PUBLISHED_KINDS):
        rates = [resample_trials(ratings, scope, n, draws) for n in sizes]
        print(f"  {scope:24} {rates[0][0]:8}" + "".join(f"{rate:7.3f}" for _, rate in rates))


def print_real_significance(ratings: Ratings, per_group: int, draws: int) -> None:
    """Print the share of significant comparisons of the model that is first with all trials.

    Experiments consist of resampled trials; the model pairs of a group's trials are also drawn.
    """
    for scope in map(Scope, PUBLISHED_KINDS):
        # (models and role) → trials: people's choices, models' preferences, evaluated models
        strata: dict[tuple[str, str, str], list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {}
        for group in ratings.groups:
            mask = scope_mask(group.trials, scope, ratings.models)
            for column in np.flatnonzero(mask.any(axis=0)).tolist():
                trial = group.trials[column]
                strata.setdefault((trial.model_1, trial.model_2, trial.kind_2), []).append(
                    (
                        group.ratings[:, column] > 3.5,
                        np.sign(group.ratios[:, column]),
                        mask[:, column],
                    )
                )
        items = list(strata.values())
        agreed = sum(
            (0.5 + s * (c.mean() - 0.5)) * evaluated
            for stratum in items
            for c, s, evaluated in stratum
        )
        best = int(
            (agreed / sum(evaluated for stratum in items for *_, evaluated in stratum)).argmax()
        )
        rng, better = np.random.default_rng(0), 0.0
        for _ in range(draws):
            rounds = -(-GROUPS * per_group // len(items))
            order = np.concatenate([rng.permutation(len(items)) for _ in range(rounds)])
            experiment = [
                [items[k][rng.integers(len(items[k]))] for k in order[g::GROUPS][:per_group]]
                for g in range(GROUPS)
            ]
            choices, sides, evaluated = (
                [np.stack([trial[part] for trial in of_group]) for of_group in experiment]
                for part in range(3)
            )
            is_better = significantly_better(
                [c.T[None] for c in choices], [s[None] for s in sides], evaluated, "groups"
            )
            better += is_better[best].sum() / (len(MODELS) - 1)
        print(f"  {scope:24} {ratings.models[best]:8}{better / draws:7.3f}")


def print_real_mixtures(ratings: Ratings, draws: int) -> None:
    """Print how often GPT-2 is the first of nine models, by mixture of conditions.

    The published mixture has one natural-controversial and one synthetic-synthetic trial for two
    natural-synthetic trials. The default mixture has no natural-synthetic trials. Trials and people
    are resampled.
    """
    # (condition, two models) → trials: preferences of all models, and people's choices
    items: dict[tuple[str, ...], list[tuple[np.ndarray, np.ndarray]]] = {}
    for group in ratings.groups:
        for trial, ratios, steps in zip(
            group.trials, group.ratios.T, group.preferences.T, strict=True
        ):
            kind = (str(trial.condition), *sorted((trial.model_1, trial.model_2)))
            items.setdefault(kind, []).append((np.sign(ratios), np.sign(steps)))
    pairs, best = sorted({kind[1:] for kind in items if kind[1]}), ratings.models.index("gpt2")
    published = ["natural-controversial", "synthetic-synthetic", *["natural-synthetic"] * 2]
    print(
        f"real answers: how often GPT-2 is first, by mixture and people per trial ({draws} draws)"
    )
    for name, mixture, people, factor in (
        ("published, 10", published, 10, 1),
        ("default, 10", published[:2], 10, 1),
        ("default, 5, twice the trials", published[:2], 5, 2),
    ):
        rates, rng = [], np.random.default_rng(0)
        for total in (18, 36, 72):
            n_first = 0.0
            for _ in range(draws):
                agreed = np.zeros(len(ratings.models))
                of_pairs = np.resize(rng.permutation(len(pairs)), factor * total)
                for pair, condition in zip(
                    of_pairs, rng.choice(mixture, factor * total), strict=True
                ):
                    trials_of_kind = items[(condition, *pairs[pair])]
                    sides, choices = trials_of_kind[rng.integers(len(trials_of_kind))]
                    agreed += sides * rng.choice(choices, people).mean()
                agreed = np.round(agreed, 12)
                n_first += float(agreed[best] == agreed.max()) / (agreed == agreed.max()).sum()
            rates.append(n_first / draws)
        print(f"  {name:33}" + "".join(f"{rate:7.3f}" for rate in rates))


def by_rivals(powers: dict[str, Power]) -> dict[str, Power]:
    return {
        f"{name} {part.populations[0].rivals}".strip(): part
        for name, power in powers.items()
        for part in power.parts
    }


def print_first_places(powers: dict[str, Power]) -> None:
    print(f"  {'':33}" + "".join(f"{n:>7}" for n in TOTALS))
    for name, power in powers.items():
        curve = power.mean_first_by_trials
        of_sizes = "".join(f"{curve[n - 1]:7.3f}" for n in TOTALS if n <= len(curve))
        print(f"  {name:33}{of_sizes}")


def print_trials_needed(powers: dict[str, Power]) -> None:
    print("trials needed, and random trials for each of these")
    for rate in RATES:
        for name, power in powers.items():
            random = powers[f"{Scope.RANDOM} {power.populations[0].rivals}"].trials_needed(rate)
            needed = power.trials_needed(rate)
            factor = f"{random / needed:.1f}" if random and needed else "unknown"
            print(f"  first in {rate:.0%}: {name:32} {needed or 'more'} trials, factor {factor}")


def print_significance(trials: Kinds, participants: int, simulations: int) -> None:
    print(
        "share of comparisons of the planted model with another that are significant in its favour "
        f"({GROUPS} groups of {participants}), by trials a group"
    )
    print(f"  {'':33}" + "".join(f"{n:>7}" for n in SIZES))
    for name, (comparisons, populations) in trials.items():
        rates = []
        for n in SIZES:
            if n <= np.bincount(comparisons.groups).min():
                rows = comparisons.thinned_rows(n, seed=1)
                thinned_populations = [people.of_trials(rows) for people in populations]
                power = simulate_power(
                    comparisons.of_trials(rows),
                    thinned_populations,
                    participants=participants,
                    simulations=simulations,
                )
                rates.append([part.mean_better for part in power.parts])
        for part, of_part in zip(power.parts, zip(*rates, strict=True), strict=True):
            label = f"{name} {part.populations[0].rivals}"
            print(f"  {label:33}" + "".join(f"{rate:7.3f}" for rate in of_part))


def draw_curves(powers: dict[str, Power], path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    kinds_drawn = list(dict.fromkeys(name.rpartition(" ")[0] for name in powers))
    for name, power in powers.items():
        kind, _, rivals = name.rpartition(" ")
        axis.plot(
            *(np.arange(1, 361), power.mean_first_by_trials[:360]),
            color=f"C{kinds_drawn.index(kind)}",
            linestyle="-" if rivals == DISTANT else "--",
            label=kind if rivals == DISTANT else None,
        )
    axis.plot([], [], color="black", linestyle="--", label="the same, close rivals")
    axis.axhline(1 / len(MODELS), color="gray", linewidth=0.8, linestyle=":")
    axis.set(xscale="log", xlabel="trials", ylabel="planted model comes first", ylim=(0, 1.02))
    axis.set_xticks([5, 10, 20, 50, 100, 200, 360], ["5", "10", "20", "50", "100", "200", "360"])
    axis.legend()
    figure.savefig(path, dpi=150)


def simulate_kinds(trials: Kinds, participants: int, simulations: int) -> dict[str, Power]:
    return {
        name: simulate_power(
            comparisons, populations, participants=participants, simulations=simulations
        )
        for name, (comparisons, populations) in trials.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer simulations")
    parser.add_argument("--figure", type=Path, help="image file for the curves")
    options = parser.parse_args()
    if not STUDY.is_dir():
        print(f"skipped, there is no folder {STUDY} (set CONTSTIM_DATA)")
        return
    simulations = 20 if options.quick else 200
    ratings = read_ratings()
    print_real_first_places(ratings, 100 if options.quick else 2000)
    print_real_mixtures(ratings, 100 if options.quick else 1000)
    for per_group in (9, 18, 36, 72):
        print(
            f"real answers: share of comparisons that are significant, {per_group} trials a group"
        )
        print_real_significance(ratings, per_group, 20 if options.quick else 400)
    print("people follow all models, as measured in experiment 1")
    as_measured = build_kinds(ratings, measure_people(ratings), 0)
    print_first_places(simulate_kinds(as_measured, 10, 2 * simulations))
    planted = build_kinds(ratings, MeasuredPeople(), 1000)
    for participants in (10, 1):
        started = perf_counter()
        print(f"each model planted, {participants} see each trial ({simulations} experiments)")
        powers = by_rivals(simulate_kinds(planted, participants, simulations))
        print_first_places(powers)
        print_trials_needed(powers)
        print_significance(planted, participants, max(20, simulations // 10))
        print(f"  {perf_counter() - started:.1f} s")
        if options.figure and participants == 10:
            draw_curves(powers, options.figure)


if __name__ == "__main__":
    main()
