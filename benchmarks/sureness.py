"""Are people's preferences as likely as they are said to be? Simulated studies, and recorded ones.

    python benchmarks/sureness.py [--quick]

What people in general prefer is known of simulated trials: each has a hidden value that varies as
in experiment 1 of the 2023 study; people differ in their leaning, and in how readily they call
themselves sure (`--scale`), and rate in six steps. Of all trials on which a preference is said to
be likely to .80-.85, .85-.90, …, the share is printed on which people in general do prefer that
sentence. Real people's preferences are not known; what half of the raters of experiment 1 say is
compared with the majority of the other half, which is right less often than people in general.
These data are read from the folder in CONTSTIM_DATA.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from inputs import DATA, STUDY

from contstim.experiments.analysis.reliability import reliabilities_of
from contstim.experiments.reproduce.golan2023_data import read_experiment
from contstim.items.scale import Scale
from contstim.items.stimuli import Condition, Kind, Trial
from contstim.words.sentence import Sentence

# Mean and standard deviation of trials' hidden values, in standard deviations of single answers:
# the likeliest for the choices in experiment 1, by condition.
PUBLISHED = {
    Condition.RANDOM_NATURAL: (0.0, 1.26),
    Condition.NATURAL_CONTROVERSIAL: (0.0, 0.97),
    Condition.SYNTHETIC_SYNTHETIC: (0.0, 1.65),
    Condition.NATURAL_SYNTHETIC: (-1.43, 0.98),
}
LEANING = 0.1
THRESHOLDS = np.array([-1.4, -0.6, 0.0, 0.6, 1.4])  # between ratings 1 to 6
LAYOUTS = ((6, 6), (12, 17), (40, 10), (360, 10), (40, 5))  # trials of a condition, raters
EDGES = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0)


def trials(condition: Condition, n: int) -> list[Trial]:
    one, two = Sentence.parse("One."), Sentence.parse("Two.")
    return [
        Trial(str(i), 1, condition, "", "", one, two, Kind.NATURAL, Kind.NATURAL, "")
        for i in range(n)
    ]


def drawn(
    condition: Condition, n: int, raters: int, scale: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(n,) whether people in general prefer sentence_2, and (n, n_raters) ratings."""
    mean, spread = PUBLISHED[condition]
    hidden = rng.normal(mean, spread, (n, 1))
    answered = hidden + rng.normal(0, LEANING, raters) + rng.normal(size=(n, raters))
    thresholds = THRESHOLDS * np.exp(rng.normal(0, scale, (raters, 1)))
    return hidden[:, 0] > 0, 1.0 + (answered[..., None] > thresholds).sum(axis=2)


def judged(condition: Condition, ratings: np.ndarray) -> np.ndarray:
    """(n,) how likely people in general are said to prefer sentence_2."""
    rated = zip(trials(condition, len(ratings)), ratings, strict=True)
    said = reliabilities_of(rated, Scale.CONFIDENCE)
    return np.array([one.sure_of_2 for one in said.values() if one is not None])


def show(name: str, said: np.ndarray, prefers: np.ndarray) -> None:
    """Print shares of right statements by what was stated; `prefers` 0 to 1, of sentence_2."""
    stated, right = np.maximum(said, 1 - said), np.where(said > 0.5, prefers, 1 - prefers)
    cells = []
    for low, high in pairwise(EDGES):
        some = (stated >= low) & ((stated < high) | (high == 1))
        cells.append(f"{right[some].mean():5.3f} ({some.sum():6})" if some.any() else f"{'–':>14}")
    print(f"  {name:38}" + " ".join(cells))


def simulated(studies: int, scale: float) -> None:
    rng = np.random.default_rng(0)
    for n, raters in LAYOUTS:
        for condition in PUBLISHED:
            found = []
            for _ in range(max(2, studies * 100 // n)):
                truth, ratings = drawn(condition, n, raters, scale, rng)
                found.append(np.stack([judged(condition, ratings), truth]))
            show(f"{n} trials, {raters} raters, {condition}", *np.concatenate(found, axis=1))


def recorded(splits: int) -> Iterator[tuple[Condition, np.ndarray, np.ndarray]]:
    """What one half of the raters say, and the majority of the other half."""
    design, responses = read_experiment(STUDY, DATA / "contstimlang-fork" / "data")
    of_trial: dict[str, list[int]] = {}
    for response in responses:
        of_trial.setdefault(response.trial_id, []).append(response.rating)
    rng = np.random.default_rng(0)
    for condition in PUBLISHED:
        names = [trial.trial_id for trial in design if trial.condition is condition]
        ratings = np.array([of_trial[name] for name in names], dtype=np.float64)
        said, others = [], []
        for _ in range(splits):
            mixed = rng.permuted(ratings, axis=1)
            said.append(judged(condition, mixed[:, :5]))
            others.append((mixed[:, 5:] > 3.5).mean(axis=1) > 0.5)
        yield condition, np.concatenate(said), np.concatenate(others)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer studies")
    parser.add_argument(
        "--scale",
        type=float,
        default=0.7,
        help="standard deviation of the logarithm of people's thresholds",
    )
    options = parser.parse_args()
    ranges = (f"{low:.2f}-{high:.2f}" for low, high in pairwise(EDGES))
    print(f"  {'share right (trials), stated':38}" + " ".join(f"{name:>14}" for name in ranges))
    simulated(2 if options.quick else 100, options.scale)
    if not DATA.is_dir():
        print(f"no recorded answers: there is no folder {DATA} (set CONTSTIM_DATA)")
        return
    print("experiment 1: five raters say, the majority of the other five")
    for condition, said, others in recorded(2 if options.quick else 50):
        show(str(condition), said, others)


if __name__ == "__main__":
    main()
