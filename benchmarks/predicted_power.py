"""Is predicted power what happens? Predictions against simulated experiments in another world.

    python benchmarks/predicted_power.py [--quick] [--experiments 1000]

People and items come from `interval_coverage.World`: ratings of six steps, logistic noise, items
and people that vary as in experiment 1, models that know of what people prefer to different
degrees. From it come a pilot, designs whose power is predicted, and the experiments, each with new
people and new items, which the package analyses as `contstim analyze` does. Only the pilot's
accuracies and noise ceilings are known to the prediction, which is a mean over ten designs of the
same kind. `exact` is a pilot of 40,000 groups; `pilot` one of the design's own size, so that its
accuracies are as uncertain as a pilot's are. Printed are the largest and the mean distance between
predicted and observed shares of significant differences over all pairs of models, for tests of a
family and for single crossed tests of a stated difference, and for equivalence where two models
know as much.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from interval_coverage import Layout, World
from interval_coverage import measured as measures

from contstim.experiments.analysis.effects import Sampling, Units, compare
from contstim.experiments.analysis.families import every_contrast
from contstim.experiments.analysis.measures import ACCURACY
from contstim.experiments.analysis.ratings import GroupRatings, Ratings, Scope, scope_mask
from contstim.experiments.design.calibration import MeasuredKind, MeasuredPeople, calibrate
from contstim.experiments.design.population import ScopedPreferences, TrialPreferences
from contstim.experiments.design.power import simulate_power
from contstim.experiments.design.simulated_tests import family_limits, measure_precision, units_for
from contstim.items.stimuli import Condition, Kind, Trial
from contstim.words.sentence import Sentence

LAYOUTS = (
    Layout("12 groups of 8, 24 trials", (8,) * 12, 24, models=6),
    Layout("4 groups of 8, 40 trials", (8,) * 4, 40, models=6),
    Layout("one group of 24, 80 trials", (24,), 80, models=6),
    Layout("published: 10 groups of 10, 36 trials", (10,) * 10, 36, models=9, targets=True),
)
MARGIN = 0.1
EXACT = 40_000  # groups of a pilot that leaves next to no uncertainty
CHUNK = 500
DESIGNS = 10
PEOPLE_SD = 0.15  # log odds, of what people lean to; predictions have none of it


@dataclass(frozen=True)
class Predicted:
    """Shares of experiments: (n_models, n_models) significantly better, and of single tests."""

    better: np.ndarray
    found: float
    equivalent: float


class Trials:
    """Names and trials of a layout; their sentences differ, and nothing else of them matters."""

    def __init__(self, layout: Layout) -> None:
        self.models = tuple("abcdefghi"[: layout.models])
        pairs = [(a, b) for a in range(layout.models) for b in range(a)]
        condition = Condition.NATURAL_CONTROVERSIAL if layout.targets else Condition.RANDOM_NATURAL
        self.scope = Scope.NATURAL if layout.targets else Scope.RANDOM
        self.of_groups = [
            tuple(
                Trial(
                    f"{g}-{t}",
                    g + 1,
                    condition,
                    self.models[pairs[t][0]] if layout.targets else "",
                    self.models[pairs[t][1]] if layout.targets else "",
                    Sentence.parse(f"First {g} {t}."),
                    Sentence.parse(f"Second {g} {t}."),
                    Kind.NATURAL,
                    Kind.NATURAL,
                    "",
                )
                for t in range(layout.trials)
            )
            for g in range(len(layout.people))
        ]

    def ratings(self, ratios: np.ndarray, rated: np.ndarray) -> Ratings:
        """(n_groups, n_models, n_trials) ratios and (n_groups, n_people, n_trials) ratings."""
        people = tuple(f"p{n}" for n in range(rated.shape[1]))
        return Ratings(
            self.models,
            tuple(
                GroupRatings(
                    g + 1,
                    self.of_groups[g],
                    people,
                    rated[g],
                    np.zeros(rated[g].shape),
                    np.stack([np.zeros(ratios[g].shape), ratios[g]], axis=-1),
                )
                for g in range(len(ratios))
            ),
        )

    def study(self, ratios: np.ndarray) -> ScopedPreferences:
        """A design's trials, (n_groups, n_models, n_trials) ratios."""
        own = scope_mask(self.of_groups[0], self.scope, self.models).T  # (n_trials, n_models)
        n_groups, n_trials = len(ratios), ratios.shape[2]
        names = [(t.model_1, t.model_2) for t in self.of_groups[0]]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        every = TrialPreferences(
            self.models,
            np.concatenate(list(ratios.swapaxes(1, 2))),
            np.tile(own, (n_groups, 1)),
            np.repeat(np.arange(n_groups), n_trials),
            np.tile([numbers[name] for name in names], n_groups),
        )
        return ScopedPreferences(every, {self.scope: every.evaluates})


def measured(
    trials: Trials, world: World, groups: int, chance: np.random.Generator
) -> MeasuredPeople:
    """What a pilot of so many groups measures."""
    each, own = world.layout.people[0], world.mask
    models = list(range(world.layout.models))
    sums = np.zeros((2, len(models)))
    for start in range(0, groups, CHUNK):
        answers = world.draw(min(CHUNK, groups - start), each, chance)
        accuracy, _ = measures(answers, own, models, leave_out=False)
        sums += accuracy[..., 0].mean(axis=2).sum(axis=1)  # value and ceiling, of each model
    values, lower = sums / groups
    best = int(values.argmax())
    known = MeasuredKind(
        float(lower[best]),
        float(values[best]),
        rivals=(),
        raters=each,
        of_models=dict(zip(trials.models, values.tolist(), strict=True)),
    )
    return MeasuredPeople({trials.scope: known}, 0.0, "a pilot", trials.models[best])


def predict(
    trials: Trials, study: ScopedPreferences, people: MeasuredPeople, size: Layout, n: int
) -> tuple[Predicted, Units]:
    """Power of a design, by `contstim power`."""
    populations = calibrate(study, people)[0][trials.scope]
    kind, groups, each = study.of_scope(trials.scope), len(size.people), size.people[0]
    units = units_for([family_limits(kind, groups, each)])
    power = simulate_power(
        kind, populations, groups=groups, participants=each, simulations=n, units=units
    )
    best_and_last, alike = (
        measure_precision(kind, populations, participants=each, pair=pair)
        for pair in ((0, len(trials.models) - 1), (0, 1))
    )
    accuracies = people.kinds[trials.scope].of_models
    effect = accuracies["a"] - accuracies[trials.models[-1]]
    return Predicted(
        power.populations[0].better,
        best_and_last.power(effect, groups, each),
        alike.equivalence(MARGIN, groups, each),
    ), units


def observe(
    trials: Trials, world: World, size: Layout, units: Units, experiments: int
) -> Predicted:
    """What experiments show, each with new people and items, analysed as `analyze` does."""
    chance = np.random.default_rng(9)
    family, n_models = every_contrast(trials.models), len(trials.models)
    better, found, equivalent = np.zeros((n_models, n_models)), 0, 0
    for _ in range(experiments):
        drawn = world.draw(len(size.people), size.people[0], chance)
        ratings = trials.ratings(drawn.ratios, drawn.ratings)
        sampling = Sampling(units, smallest_effect=MARGIN)
        result = compare(ratings, trials.scope, ACCURACY, family, sampling)
        for contrast in result.comparisons:
            if contrast.second in trials.models and contrast.significant:
                i, j = (
                    trials.models.index(contrast.first),
                    trials.models.index(contrast.second),
                )
                better[(i, j) if contrast.difference > 0 else (j, i)] += 1
            if (contrast.first, contrast.second) == ("a", trials.models[-1]):
                found += contrast.interval.low > 0 or contrast.interval.high < 0
            if (contrast.first, contrast.second) == ("a", "b"):
                equivalent += contrast.equivalence_p < 0.05
    return Predicted(better / experiments, found / experiments, equivalent / experiments)


def compare_layout(size: Layout, options: argparse.Namespace) -> None:
    """Print predictions and observations of one design."""
    started = perf_counter()
    world, trials = World(size, PEOPLE_SD), Trials(size)
    chance = np.random.default_rng(5)
    pilots = {"exact": options.exact, "pilot": len(size.people)}
    # The items of one design differ by chance from those of others, and so do its predictions; what
    # is observed is of new items.
    designs = [trials.study(world.draw(len(size.people), 1, chance).ratios) for _ in range(DESIGNS)]
    predictions = {}
    for name, groups in pilots.items():
        people = measured(trials, world, groups, chance)
        parts = [
            predict(trials, design, people, size, max(2, options.experiments // DESIGNS))
            for design in designs
        ]
        units = parts[0][1]
        predictions[name] = Predicted(
            np.mean([part.better for part, _ in parts], axis=0),
            float(np.mean([part.found for part, _ in parts])),
            float(np.mean([part.equivalent for part, _ in parts])),
        )
    shown = observe(trials, world, size, units, options.experiments)
    print(f"{size.name}: tests of {units}, {options.experiments} experiments")
    pairs = ~np.eye(len(trials.models), dtype=np.bool_)
    print(f"  observed: significant {shown.better[pairs].mean():.3f} of ordered pairs")
    for name, predicted in predictions.items():
        apart = np.abs(predicted.better - shown.better)[pairs]
        print(
            f"  {name}: predicted {predicted.better[pairs].mean():.3f}; distance of pairs, mean "
            f"{apart.mean():.3f}, largest {apart.max():.3f}"
        )
        print(
            f"    one crossed test of {trials.models[0]} and {trials.models[-1]}: predicted "
            f"{predicted.found:.3f}, observed {shown.found:.3f}; {trials.models[0]} and "
            f"{trials.models[1]} shown to differ by less than {MARGIN}: predicted "
            f"{predicted.equivalent:.3f}, observed {shown.equivalent:.3f}"
        )
    print(f"  {perf_counter() - started:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="20 experiments")
    parser.add_argument("--experiments", type=int, default=1000)
    parser.add_argument("--exact", type=int, default=EXACT, help="groups of the exact pilot")
    parser.add_argument("--only", type=int, help="one design, by its place from 0")
    options = parser.parse_args()
    if options.quick:
        options.experiments, options.exact = 20, 500
    for size in LAYOUTS if options.only is None else LAYOUTS[options.only : options.only + 1]:
        compare_layout(size, options)


if __name__ == "__main__":
    main()
