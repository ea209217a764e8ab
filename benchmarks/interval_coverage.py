"""Check the coverage of 95 % intervals and the type I error of tests in six simulated designs.

    python benchmarks/interval_coverage.py [--quick] [--experiments 2000] [--seed 0]

Every simulated experiment has new participants and new items. As in experiment 1 of the 2023 study,
standard deviations are 1.50 log odds between items and .15 between participants. The first two
models are equally good, and tests compare these two. The last model is worse.

Intervals should cover the expectation over new participants and items. It is estimated from other
experiments, with the definition of the measures. Measures and their jackknife are implemented here
again, for many experiments at once; they are compared with the package's in one group of each
design. Numbers in brackets are binomial standard errors, in thousandths.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from contstim.experiments.analysis.crossed import GroupJackknife, blocks_of, jackknife
from contstim.experiments.analysis.intervals import Uncertainty, uncertainty_of
from contstim.experiments.analysis.measures import ACCURACY, COSINE, Measure, signed_ranks
from contstim.experiments.analysis.ratings import GroupRatings, Ratings
from contstim.experiments.analysis.signed_ranks import signed_rank_p_values
from contstim.items.stimuli import Condition, Kind, Trial
from contstim.words.sentence import Sentence

ITEMS_SD = 1.50  # log odds
THRESHOLDS = (-2.0, -1.0, 0.0, 1.0, 2.0)  # between ratings 1 to 6, log odds
KNOWLEDGE = (0.6, 0.6, 0.3)  # correlation of each model's ratios with people's preferences
POOL = 100_000  # number of items in the population
LEVEL = 0.95
CELLS = 1_000_000  # people x trials x trials in one array
MEASURES = (ACCURACY, COSINE)
KINDS = ("value", "difference", "no difference", "to ceiling")


@dataclass(frozen=True)
class Layout:
    """A design.

    Attributes:
        name: name of the design.
        people: number of participants of each group.
        trials: number of trials of each group.
        models: number of models; one third has each value of `KNOWLEDGE`.
        targets: whether each trial compares two models and evaluates only these.
    """

    name: str
    people: tuple[int, ...]
    trials: int
    models: int = 3
    targets: bool = False


LAYOUTS = (
    Layout("one person a group", (1,) * 30, 40),
    Layout("five groups", (8,) * 5, 36),
    Layout("200 items once each", (1,) * 10, 20),
    Layout("unbalanced dropouts", (10, 9, 7, 5, 3, 2, 1, 1), 30),
    Layout("published: 10 groups of 10", (10,) * 10, 36, models=9, targets=True),
    Layout("one group sees all", (20,), 90),
)


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers of many groups with the same number of participants.

    Attributes:
        ratios: (n_groups, n_models, n_trials), nats.
        ratings: (n_groups, n_people, n_trials), 1 to 6.
    """

    ratios: np.ndarray
    ratings: np.ndarray


class World:
    """Population of participants and items."""

    def __init__(self, layout: Layout, people_sd: float) -> None:
        self.layout, self.people_sd = layout, people_sd
        rng = np.random.default_rng(0)
        n = layout.models
        knowledge = np.repeat(KNOWLEDGE, n // 3)[:, None]
        preferred, noise = rng.normal(size=POOL), rng.normal(size=(n, POOL))
        self.preferred = ITEMS_SD * preferred  # (POOL,) log odds of sentence_2
        self.ratios = 10 * (knowledge * preferred + np.sqrt(1 - knowledge**2) * noise)  # nats
        # Models disagree on the items of trials that target them
        self.pairs = [(a, b) for a in range(n) for b in range(a)] if layout.targets else []
        signs = np.sign(self.ratios)
        self.disagreements = [np.flatnonzero(signs[a] != signs[b]) for a, b in self.pairs]
        self.mask = np.ones((n, layout.trials), dtype=np.bool_)  # (n_models, n_trials)
        for trial, pair in enumerate(self.pairs):
            self.mask[:, trial] = np.isin(np.arange(n), pair)

    def draw(self, groups: int, people: int, rng: np.random.Generator) -> Answers:
        """Draw answers of new participants to new items."""
        items = rng.integers(POOL, size=(groups, self.layout.trials))
        if self.disagreements:
            items = np.stack(
                [rng.choice(indices, groups) for indices in self.disagreements], axis=1
            )
        leanings = rng.normal(0, self.people_sd, (groups, people, 1))
        odds = self.preferred[items][:, None] + leanings
        odds = odds + rng.logistic(size=(groups, people, self.layout.trials))
        return Answers(self.ratios[:, items].swapaxes(0, 1), 1.0 + np.digitize(odds, THRESHOLDS))


def omission_ranks(values: np.ndarray, *, leave_out: bool) -> np.ndarray:
    """Return signed ranks without omission, then with each trial omitted, (..., 1 + k, k).

    The rank of an omitted trial is 0.
    """
    if not leave_out:
        return signed_ranks(values)[..., None, :]
    sizes = np.abs(values)
    below = (sizes[..., :, None] < sizes[..., None, :]) + (
        (sizes[..., :, None] == sizes[..., None, :]) / 2
    )  # decrease of the rank of trial j if trial i is omitted
    ranks = np.abs(signed_ranks(values))[..., None, :]
    jackknife_ranks = (ranks - below) * (1 - np.eye(values.shape[-1]))
    signed: np.ndarray = np.sign(values)[..., None, :] * np.concatenate(
        [ranks, jackknife_ranks], axis=-2
    )
    return signed


def sums_of_squares(ranks: np.ndarray) -> np.ndarray:
    """Return k (k + 1) (2 k + 1) / 6 for k values that are not zero (Eq. 9 of the 2023 study)."""
    k: np.ndarray = (ranks != 0).sum(axis=-1)
    total: np.ndarray = k * (k + 1) * (2 * k + 1) / 6
    return total


def measure_answers(
    answers: Answers, mask: np.ndarray, models: list[int], *, leave_out: bool = True
) -> Iterator[np.ndarray]:
    """Yield accuracy, then cosine, (2, n_groups, n_people, n_models, 1 + n_trials).

    The first axis is value and lower ceiling. Index 0 of the last axis is without omission, other
    indices are with one trial omitted. A trial that does not evaluate a model does not affect it.
    """
    groups, people, trials = answers.ratings.shape
    shape = (2, groups, people, len(models), 1 + trials * leave_out)
    accuracy, cosine = np.full((2, *shape), np.nan)
    # Models that are evaluated on the same trials share people's ranks and ceilings
    for evaluated in np.unique(mask[models], axis=0):
        k, columns = evaluated.sum(), [0, *(1 + np.flatnonzero(evaluated) if leave_out else [])]
        ratings = answers.ratings[..., evaluated] - 3.5
        # (n_groups, n_people, 1 + k, k)
        ranks = omission_ranks(ratings, leave_out=leave_out)
        squared, votes = sums_of_squares(ranks), np.sign(ratings)
        model_indices = [
            index for index, model in enumerate(models) if (mask[model] == evaluated).all()
        ]
        sides = []  # (0 value or 1 ceiling, indices of models, signs, signed ranks)
        for index in model_indices:
            ratios = answers.ratios[:, None, models[index]][..., evaluated]  # (n_groups, 1, k)
            sides.append((0, [index], np.sign(ratios), omission_ranks(ratios, leave_out=leave_out)))
        if people > 1:
            ceiling_ranks = signed_ranks(ranks.sum(axis=1, keepdims=True) - ranks)
            majority = np.sign(votes.sum(axis=1, keepdims=True) - votes)
            sides.append((1, model_indices, majority, ceiling_ranks))
        for side, indices, signs, of_side in sides:
            agree = (1 + signs * votes) / 2
            total = agree.sum(axis=-1, keepdims=True)
            accuracies = np.concatenate([total / k, (total - agree) / (k - 1)], axis=-1)
            root = np.sqrt(sums_of_squares(of_side) * squared)
            cosines = (of_side * ranks).sum(axis=-1) / np.where(root > 0, root, np.inf)
            for index in indices:
                for values, of_trials in ((accuracy, accuracies), (cosine, cosines)):
                    values[side, :, :, index] = of_trials[..., :1]
                    values[side, :, :, index, columns] = np.moveaxis(
                        of_trials[..., : len(columns)], -1, 0
                    )
    yield from (accuracy, cosine)


def jackknife_of(of_measure: np.ndarray, mask: np.ndarray, first_item: int) -> GroupJackknife:
    """Return the same as `jackknife`, from results of `measure_answers` for a group."""
    k = mask.sum(axis=1)[:, None]
    without = of_measure[..., 1:]
    mean = (without * mask).sum(axis=-1, keepdims=True) / k
    influences = np.where(mask, np.sqrt((k - 1) / k) * (mean - without), 0.0)
    items = first_item + np.arange(mask.shape[1])
    values, influence = np.hstack([*of_measure[..., 0]]), np.hstack([*influences])
    return GroupJackknife(values, influence, np.tile(mask, (2, 1)), items)


def compare_with_package(world: World, models: list[int]) -> None:
    """Check that measures and influences equal those of the package."""
    answers = world.draw(1, 4, np.random.default_rng(0))
    trials = tuple(
        Trial(
            str(n),
            1,
            Condition.RANDOM_NATURAL,
            "",
            "",
            Sentence.parse(f"First {n}."),
            Sentence.parse(f"Second {n}."),
            Kind.NATURAL,
            Kind.NATURAL,
            "",
        )
        for n in range(world.layout.trials)
    )
    log_probs = np.stack([np.zeros(answers.ratios[0].shape), answers.ratios[0]], axis=-1)
    rating_values = answers.ratings[0]
    group = GroupRatings(
        1, trials, tuple("abcd"), rating_values, np.zeros(rating_values.shape), log_probs
    )
    ratings = Ratings(tuple("abcdefghi"[: world.layout.models]), (group,))
    for measure, results in zip(
        MEASURES, measure_answers(answers, world.mask, models), strict=True
    ):
        (package,) = jackknife(ratings, measure, [world.mask])
        expected = jackknife_of(results[:, 0], world.mask[models], 0)
        n, of_models, of_ceilings = len(models), models, [world.layout.models + m for m in models]
        for name in ("values", "influence"):
            by_package, by_hand = getattr(package, name), getattr(expected, name)
            # The package sums ceilings participant by participant, as published. Rounding may then
            # break ties
            tolerance = 0.03 if name == "values" else 1e-9
            assert np.allclose(by_package[:, of_models], by_hand[:, :n], atol=1e-9), measure.name
            assert np.allclose(by_package[:, of_ceilings], by_hand[:, n:], atol=tolerance), name


def simulate(layout: Layout, options: argparse.Namespace) -> None:
    started = perf_counter()
    world = World(layout, options.people_sd)
    models = [0, 1, layout.models - 1]
    mask = world.mask[models]
    compare_with_package(world, models)
    # True values: means over many groups of each size, weighted as in the design
    rng = np.random.default_rng([1, LAYOUTS.index(layout)])
    truth = np.zeros((len(MEASURES), len(KINDS)))
    sizes = sorted(set(layout.people))
    for size in sizes:
        share_of = np.array([layout.people.count(size) / len(layout.people)] * 3 + [np.nan])
        ceilings = [n for n in layout.people if n > 1]
        share_of[3] = layout.people.count(size) / max(1, len(ceilings)) if size > 1 else 0.0
        n_groups = max(200, options.truth * layout.people.count(size))
        for size_of_chunk in chunks(n_groups, size, layout):
            answers = world.draw(size_of_chunk, size, rng)
            results_by_measure = measure_answers(answers, world.mask, models, leave_out=False)
            for m, of_measure in enumerate(results_by_measure):
                value, ceiling = of_measure[..., 0].mean(axis=2)  # (n_groups, n_models)
                terms = [value[:, 0], value[:, 0] - value[:, 2], 0 * value[:, 0]]
                terms.append(value[:, 0] - ceiling[:, 0] if size > 1 else 0 * value[:, 0])
                truth[m] += share_of * [x.sum() / n_groups for x in terms]
    results = [[Tally() for _ in KINDS] for _ in MEASURES]
    tests: list[list[tuple[float, float, float]]] = [[] for _ in MEASURES]
    rng = np.random.default_rng([2 + options.seed, LAYOUTS.index(layout)])
    for size_of_chunk in chunks(options.experiments, sum(layout.people), layout):
        results_by_group = [
            list(measure_answers(world.draw(size_of_chunk, size, rng), world.mask, models))
            for size in layout.people
        ]
        for e in range(size_of_chunk):
            for m in range(len(MEASURES)):
                groups = [
                    jackknife_of(group[m][:, e], mask, g * layout.trials)
                    for g, group in enumerate(results_by_group)
                ]
                shares = np.ones(len(groups))
                for k in range(len(KINDS)):
                    second = (None, 2, 1, len(models))[k]
                    uncertainty = uncertainty_of(groups, shares, MEASURES[m].lowest, 0, second)
                    if not uncertainty.components.people:
                        continue
                    results[m][k].add(uncertainty, truth[m, k])
                    if k == 2:
                        blocks = blocks_of(groups, shares, 0, 1)
                        people = np.concatenate([b.values for b in blocks])[None]
                        means = np.array([b.values.mean() for b in blocks])[None]
                        by_unit = [signed_rank_p_values(x)[0] for x in (means, people)]
                        tests[m].append((float(uncertainty.p_values()), *by_unit))
    print(f"{layout.name}: {sum(layout.people)} people, {layout.trials} trials each")
    for measure, tallies, p_values in zip(MEASURES, results, tests, strict=True):
        report(measure, tallies, np.array(p_values), len(layout.people))
    print(f"  {perf_counter() - started:.0f} s", flush=True)


class Tally:
    """Intervals of one kind in all experiments."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, float, float, bool]] = []

    def add(self, uncertainty: Uncertainty, truth: float) -> None:
        interval = uncertainty.interval(LEVEL)
        covers = interval.low <= truth <= interval.high
        error, freedom = interval.standard_error, interval.degrees_of_freedom
        self.rows.append((float(uncertainty.estimate) - truth, error, freedom, covers))

    def __str__(self) -> str:
        offsets, errors, freedom, covers = np.array(self.rows).T
        sd = offsets.std()
        return (
            f"covers {share(covers)}  bias {offsets.mean() / sd:+.2f} sd  error "
            f"{np.sqrt((errors**2).mean()) / sd:.3f} sd  df {np.median(freedom):3.0f}"
        )


def report(measure: Measure, tallies: list[Tally], p_values: np.ndarray, groups: int) -> None:
    """Print the coverage of a measure's intervals, and the type I error of its tests."""
    for kind, tally in zip(KINDS, tallies, strict=True):
        if tally.rows:
            print(f"  {measure.name:19}{kind:14} {tally}")
    crossed, by_group, by_person = (share(column < 0.05) for column in p_values.T)
    over_groups = f", groups {by_group}" if groups > 1 else ""
    print(f"  {measure.name:19}type I: crossed {crossed}{over_groups}, participants {by_person}")


def chunks(n: int, people: int, layout: Layout) -> Iterator[int]:
    """Yield numbers of experiments (or groups) to simulate at once, so that arrays stay small."""
    trials = layout.models - 1 if layout.targets else layout.trials  # of a model, in a group
    at_once = max(1, CELLS // (people * trials**2))
    for start in range(0, n, at_once):
        yield min(at_once, n - start)


def share(hits: np.ndarray) -> str:
    """Format a share with its binomial standard error in thousandths."""
    mean = float(np.mean(hits))
    return f"{mean:.3f} ({1000 * np.sqrt(mean * (1 - mean) / len(hits)):.0f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="20 experiments")
    parser.add_argument("--experiments", type=int, default=2_000)
    parser.add_argument("--truth", type=int, default=20_000, help="experiments for the true values")
    parser.add_argument("--people-sd", type=float, default=0.15, help="log odds")
    parser.add_argument("--seed", type=int, default=0, help="other experiments, same true values")
    parser.add_argument("--only", type=int, help="index of one design, from 0")
    options = parser.parse_args()
    if options.quick:
        options.experiments, options.truth = 20, 500
    for layout in LAYOUTS if options.only is None else LAYOUTS[options.only : options.only + 1]:
        simulate(layout, options)


if __name__ == "__main__":
    main()
