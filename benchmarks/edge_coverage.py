"""Do 95 % intervals cover where nearly everybody agrees with the model, or two models agree?

    python benchmarks/edge_coverage.py [--quick] [--experiments 2000] [--seed 0]

People and items are drawn anew in every simulated experiment. Items differ in how surely people
side with the model (normal, 1.50 log odds), or everybody sides with it on all but a few items;
people vary by .15 log odds. A second model parts from the first on a share of the items, as often
to its advantage as not, so that both are equally good. Printed are how often intervals of the value
and of this difference cover, how often an interval of the value has no width, and how often the
crossed test calls the two models different at .05. What intervals must cover is the mean over all
experiments. Binomial standard errors of 2,000 experiments: .005 at .95, .002 at .99.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from contstim.experiments.analysis.crossed import Side, jackknife
from contstim.experiments.analysis.intervals import uncertainty_of
from contstim.experiments.analysis.measures import MEASURES
from contstim.experiments.analysis.ratings import GroupRatings, Ratings
from contstim.items.stimuli import Condition, Kind, Trial
from contstim.words.sentence import Sentence

ITEMS_SD, PEOPLE_SD = 1.50, 0.15  # log odds
THRESHOLDS = (-2.0, -1.0, 0.0, 1.0, 2.0)  # between ratings 1 to 6, log odds
LEVEL = 0.95
DESIGNS = {
    "one group of 20, 36 trials": (1, 20, 36),
    "one group of 4, 12 trials": (1, 4, 12),
    "10 groups of 10, 8 trials": (10, 10, 8),
    "20 people, 20 trials each": (20, 1, 20),
}


@dataclass(frozen=True)
class World:
    """How items are.

    Attributes:
        mean: log odds with which people side with the model on the mean item.
        exceptions: in place of that, the share of items on which nobody does.
        parting: the share of items on which the second model prefers the other sentence.
    """

    mean: float = 0.0
    exceptions: float = 0.0
    parting: float = 0.1


WORLDS = {
    "items vary, mean 2": World(2.0),
    "items vary, mean 4": World(4.0, parting=0.03),
    "items vary, mean 6": World(6.0, parting=0.01),
    "all but 5 % of items": World(exceptions=0.05, parting=0.05),
    "all but 1 % of items": World(exceptions=0.01, parting=0.01),
}


def experiment(design: tuple[int, int, int], world: World, chance: np.random.Generator) -> Ratings:
    """New people and new items."""
    groups, people, k = design
    made = []
    for number in range(groups):
        side = chance.choice([-1.0, 1.0], k)  # of the sentence that the first model prefers
        surely = world.mean + ITEMS_SD * chance.normal(size=k)
        if world.exceptions:
            surely = np.where(chance.random(k) < world.exceptions, -20.0, 20.0)
        ratios = side * (np.abs(surely) + chance.exponential(size=k))
        odds = side * surely + PEOPLE_SD * chance.normal(size=(people, 1))
        felt = odds + chance.logistic(size=(people, k))
        rated = 1 + np.digitize(felt, THRESHOLDS).astype(np.float64)
        # The second model's items are the first's, turned on some; on as many others the first's
        # are turned, so that neither is better.
        parts = chance.random((2, k)) < world.parting / 2
        both = np.where(parts, -ratios, ratios)
        log_probs = np.stack([np.zeros((2, k)), both], axis=-1)
        left = np.zeros_like(rated)  # sides are not drawn
        names = tuple(f"{number}-{person}" for person in range(people))
        made.append(GroupRatings(number, trials(number, k), names, rated, left, log_probs))
    return Ratings(("a", "b"), tuple(made))


def trials(group: int, k: int) -> tuple[Trial, ...]:
    """Random pairs."""
    natural = Condition.RANDOM_NATURAL, "", ""
    return tuple(
        Trial(
            f"{group}-{n}",
            group,
            *natural,
            Sentence.parse(f"First {group} {n}."),
            Sentence.parse(f"Second {group} {n}."),
            Kind.NATURAL,
            Kind.NATURAL,
            "",
        )
        for n in range(k)
    )


def simulate(design: tuple[int, int, int], world: World, experiments: int, seed: int) -> None:
    """Print the shares of one design and world."""
    rows: dict[str, list[list[float]]] = {measure.name: [] for measure in MEASURES}
    for number in range(experiments):
        ratings = experiment(design, world, np.random.default_rng([seed, number]))
        masks = [np.ones((2, design[2]), np.bool_)] * design[0]
        for measure in MEASURES:
            known = jackknife(ratings, measure, masks), np.ones(design[0]), measure.lowest
            value, difference = (uncertainty_of(*known, side) for side in (Side(0), Side(0, 1)))
            one, two = value.interval(LEVEL), difference.interval(LEVEL)
            ends = [one.low, one.high, two.low, two.high]
            rows[measure.name].append([float(value.estimate), *ends, float(difference.p_values())])
    for name, found in rows.items():
        mean, low, high, less, more, p_value = np.array(found).T
        truth = mean.mean()
        covers = np.mean((low <= truth) & (truth <= high))
        print(
            f"    {name:19} truth {truth:.3f}  covers {covers:.3f}, too low "
            f"{np.mean(truth > high):.3f}  width {np.mean(high - low):.3f}, "
            f"none in {np.mean(high == low):.3f}; difference covers "
            f"{np.mean((less <= 0) & (more >= 0)):.3f}, called so {np.mean(p_value < 0.05):.3f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="20 experiments")
    parser.add_argument("--experiments", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="one design, by its place from 0")
    options = parser.parse_args()
    for place, (about, design) in enumerate(DESIGNS.items()):
        if options.only not in (None, place):
            continue
        print(about)
        for kind, world in WORLDS.items():
            print(f"  {kind}")
            simulate(design, world, 20 if options.quick else options.experiments, options.seed)


if __name__ == "__main__":
    main()
