"""Measure the value of an answer, an item and a participant in experiment 1 of the 2023 study.

    python benchmarks/replay.py [--quick] [DATA]

One model of each pair predicts people better. The trials of *other* pairs determine this better
model. Pairs are only used if it is significantly better over the ten groups of participants
(t-test, 5 %).

Evidence of an answer: log Bayes factor of the better model against the other one, by condition of
the trial. According to a model, people choose sentence 2 with probability
logistic(slope · log p(s2)/p(s1)), with the log ratio limited in size. Each model's slope and limit
are maximum-likelihood estimates, from random natural pairs or from all trials of other pairs.

Choice of items: the ten triplets of a pair are sorted by a measure. Printed is how often most
answers of 20 people to the first one, three or five triplets prefer the better model. `today` sorts
as `select triplets` does: first triplets with `enough` nats, then those with fewer new words of
another part of speech, then those with fewer new words. `panel` sorts triplets with `enough` nats
by the mean rank of their drop under the models outside the pair.

Items and people: variances, and how often most answers to random triplets prefer the better model.
Intervals are bootstraps over pairs of models, and over models. The published data are read from
DATA, by default from CONTSTIM_DATA.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from inputs import DATA
from numpy.typing import NDArray
from scipy.special import log_expit
from scipy.stats import binom, rankdata, ttest_1samp

from contstim.experiments.reproduce.published import (
    MODELS,
    read_experiment,
    read_stimulus_scores,
    read_triplets,
)
from contstim.items.stimuli import Condition
from contstim.optimization.selection.question import TripletQuestion
from contstim.optimization.selection.triplets import triplet_costs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.items.scores import ScoreTable
    from contstim.items.stimuli import Triplet

LIMITS = np.array([2.5, 5, 10, 15, 20, 25, 30, 40, 50, 100, 1000])  # nats
ENOUGH = 5.0  # nats
SLOPES = np.linspace(0.005, 0.3, 60)

Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Experiment:
    """Trials with participants' choices, without catch trials.

    Attributes:
        conditions: condition of each trial, (n_trials,).
        groups: group of participants of each trial, (n_trials,).
        pairs: for each trial the two models that it compares; empty for random pairs.
        sources: identifier of the triplet of each trial.
        choices: number of people, of ten, who chose sentence_2, (n_trials,).
        ratios: log p(s2)/p(s1), (n_trials, n_models), nats.
    """

    conditions: NDArray[np.str_]
    groups: NDArray[np.int64]
    pairs: list[frozenset[str]]
    sources: list[str]
    choices: NDArray[np.int64]
    ratios: Numbers


@dataclass(frozen=True, eq=False)
class DecidedPair:
    """Two models and the answers to their ten triplets.

    Attributes:
        better: index of the model that predicts people better.
        worse: index of the other model.
        right: (10,) share of people who prefer the synthetic sentence that the better model
            prefers.
        triplets: the ten triplets.
    """

    better: int
    worse: int
    right: Numbers
    triplets: list[Triplet]


def read_trials(data: Path) -> Experiment:
    folder = data / "contstimlang"
    all_trials, responses = read_experiment(folder, data / "contstimlang-fork" / "data")
    trials = [trial for trial in all_trials if trial.condition is not Condition.CATCH]
    n_second = Counter(answer.trial_id for answer in responses if answer.rating > 3)
    stimuli = read_stimulus_scores(folder)
    first_scores, second_scores = (
        stimuli.log_probs[[stimuli.rows[sentence] for sentence in sentences]]
        for sentences in ([t.sentence_1 for t in trials], [t.sentence_2 for t in trials])
    )
    return Experiment(
        np.array([str(trial.condition) for trial in trials]),
        np.array([trial.group for trial in trials]),
        [frozenset({trial.model_1, trial.model_2} - {""}) for trial in trials],
        [trial.source_id for trial in trials],
        np.array([n_second[trial.trial_id] for trial in trials]),
        second_scores - first_scores,
    )


def decided_pairs(experiment: Experiment, triplets: Sequence[Triplet]) -> list[DecidedPair]:
    """Return the pairs of models for which trials of other pairs determine the better one."""
    shares = experiment.choices / 10
    predicted = np.where(experiment.ratios > 0, shares[:, None], 1 - shares[:, None])
    predicted[experiment.ratios == 0] = 0.5
    of_triplet = {
        source: row
        for row, (source, condition) in enumerate(
            zip(experiment.sources, experiment.conditions, strict=True)
        )
        if condition == Condition.SYNTHETIC_SYNTHETIC
    }
    decided = []
    for pair in combinations(range(len(MODELS)), 2):
        names = {MODELS[model] for model in pair}
        of_other_pairs = np.array([models != names for models in experiment.pairs])
        ahead = predicted[of_other_pairs, pair[0]] - predicted[of_other_pairs, pair[1]]
        groups = experiment.groups[of_other_pairs]
        test = ttest_1samp([ahead[groups == group].mean() for group in np.unique(groups)], 0)
        if test.pvalue >= 0.05:
            continue
        better, worse = pair if test.statistic > 0 else pair[::-1]
        pair_triplets = [t for t in triplets if {t.model_1, t.model_2} == names]
        # model_1 rejects synthetic_1, so it prefers sentence_2
        second = np.array([t.model_1 == MODELS[better] for t in pair_triplets])
        rows = [of_triplet[t.triplet_id] for t in pair_triplets]
        right = np.where(second, shares[rows], 1 - shares[rows])
        decided.append(DecidedPair(better, worse, right, pair_triplets))
    return decided


def identification_rate(shares: Numbers, people: int) -> float:
    """Return the probability that most answers of `people` to each item are right.

    A tie counts one half.
    """
    counts = binom.pmf(np.arange(people + 1), people, shares[:, None])
    right: Numbers = reduce(np.convolve, counts)
    half = len(shares) * people / 2
    numbers = np.arange(len(right))
    return float(right[numbers > half].sum() + right[numbers == half].sum() / 2)


class Bootstrap:
    """Means over pairs of models, with intervals over pairs and over models."""

    def __init__(self, pairs: Sequence[DecidedPair], draws: int) -> None:
        rng = np.random.default_rng(0)
        n, n_models = len(pairs), len(MODELS)
        self.over_pairs = rng.multinomial(n, np.full(n, 1 / n), size=draws)
        models = rng.multinomial(n_models, np.full(n_models, 1 / n_models), size=draws)
        better = [pair.better for pair in pairs]
        worse = [pair.worse for pair in pairs]
        weights = models[:, better] * models[:, worse]
        self.over_models = weights[weights.any(axis=1)]

    def format(self, values: Numbers) -> str:
        """Format a mean with its 95 % intervals over pairs and over models."""
        intervals = (
            np.quantile(weights @ values / weights.sum(axis=1), (0.025, 0.975))
            for weights in (self.over_pairs, self.over_models)
        )
        text = " ".join(f"[{low:5.2f},{high:5.2f}]" for low, high in intervals)
        return f"{values.mean():5.2f} {text}"


def choice_scores(experiment: Experiment) -> Numbers:
    """Return the mean log-probability of the ten answers to each trial.

    The shape is (n_models, n_limits, n_slopes, n_trials).
    """
    cut = np.clip(experiment.ratios.T[:, None], -LIMITS[:, None], LIMITS[:, None])
    leaning = SLOPES[:, None] * cut[:, :, None]
    second = experiment.choices / 10
    scores: Numbers = second * log_expit(leaning) + (1 - second) * log_expit(-leaning)
    return scores


def evidence(
    pairs: Sequence[DecidedPair], experiment: Experiment, *, by_random: bool
) -> dict[str, Numbers]:
    """Return condition → mean log Bayes factor of an answer, (n_pairs,), nats."""
    scores = choice_scores(experiment)
    factors = defaultdict(list)
    random = experiment.conditions == Condition.RANDOM_NATURAL
    for pair in pairs:
        names = {MODELS[pair.better], MODELS[pair.worse]}
        of_pair: Flags = np.array([models == names for models in experiment.pairs])
        fitted = []
        for model in (pair.better, pair.worse):
            fit = scores[model][..., random if by_random else ~of_pair].sum(axis=-1)
            fitted.append(scores[model][np.unravel_index(fit.argmax(), fit.shape)])
        for condition in np.unique(experiment.conditions):
            rows = experiment.conditions == condition
            rows &= random if condition == Condition.RANDOM_NATURAL else of_pair
            factors[str(condition)].append((fitted[0] - fitted[1])[rows].mean())
    return {condition: np.array(values) for condition, values in factors.items()}


def show_evidence(
    pairs: Sequence[DecidedPair], experiment: Experiment, bootstrap: Bootstrap
) -> None:
    for by_random in (True, False):
        trials = "random natural pairs" if by_random else "all trials of other pairs"
        print(f"\nLog Bayes factor of an answer, nats; choice rules fitted to {trials}")
        factors = evidence(pairs, experiment, by_random=by_random)
        for condition, values in factors.items():
            print(f"{condition:32} {bootstrap.format(values)}")
        difference = factors["synthetic-synthetic"] - factors["natural-synthetic"]
        print(f"{'synthetic minus nat.-synthetic':32} {bootstrap.format(difference)}")


def measures(pair: DecidedPair, scores: ScoreTable) -> dict[str, Numbers]:
    """Return measure → values of the triplets of a pair, (n_triplets,); lower is better."""
    natural, *synthetic = (
        scores.log_probs[[scores.rows[triplet.sentences[n]] for triplet in pair.triplets]]
        for n in range(3)
    )  # (n_triplets, n_models)
    outside = [m for m in range(len(MODELS)) if m not in (pair.better, pair.worse)]
    drops = (2 * natural - synthetic[0] - synthetic[1])[:, outside]
    today, *_ = triplet_costs(pair.triplets, TripletQuestion(), len(pair.triplets))
    too_few = np.array([min(triplet.drops) < ENOUGH for triplet in pair.triplets])
    panel = rankdata(drops, axis=0).mean(axis=1)
    return {
        "chance": np.zeros(len(panel)),
        "most nats": -np.array([triplet.controversiality for triplet in pair.triplets]),
        "today": 1000.0 * too_few + today,
        "panel": 1000.0 * too_few + panel,
    }


def show_choice(
    pairs: Sequence[DecidedPair], scores: ScoreTable, bootstrap: Bootstrap, draws: int
) -> None:
    """Print how often the first items by a measure identify the better model.

    Items with equal values are in random order.
    """
    rng = np.random.default_rng(0)
    rates: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
    for pair in pairs:
        for name, values in measures(pair, scores).items():
            orders = [np.lexsort((rng.random(len(values)), values)) for _ in range(draws)]
            for items in (1, 3, 5):
                shares = [identification_rate(pair.right[order[:items]], 20) for order in orders]
                rates[name, items].append(float(np.mean(shares)))
    print("\nBetter model identified by the first items, 20 answers to each")
    for (measure, items), of_pairs in sorted(rates.items(), key=lambda item: item[0][1]):
        print(f"{items} {measure:30} {bootstrap.format(np.array(of_pairs))}")


def show_items(pairs: Sequence[DecidedPair], bootstrap: Bootstrap, draws: int) -> None:
    """Print variances, and how often random items identify the better model."""
    right = np.stack([pair.right for pair in pairs])  # (n_pairs, 10 items), of ten people each
    of_answers = (right * (1 - right)).mean(axis=1) * 10 / 9
    of_items = right.var(axis=1, ddof=1) - of_answers / 10
    print("\nVariance of an answer (1 right, 0 wrong) between items of a pair, and within an item")
    print(f"{'between items':32} {bootstrap.format(of_items)}")
    print(f"{'within an item':32} {bootstrap.format(of_answers)}")
    rng = np.random.default_rng(0)
    drawn_shares = [rng.permuted(right, axis=1) for _ in range(draws)]  # shared by all sample sizes

    def mean_rate(items: int, people: int) -> Numbers:
        rates = [
            [identification_rate(shares[:items], people) for shares in draw]
            for draw in drawn_shares
        ]
        averages: Numbers = np.array(rates).mean(axis=0)
        return averages

    print("\nBetter model identified by random items; columns: answers to each item")
    people = (1, 2, 3, 5, 10, 20)
    table = {(k, n): mean_rate(k, n) for k in (1, 2, 3, 5, 10) for n in people}
    print(f"{'items':>8}" + "".join(f"{n:>7}" for n in people))
    for k in (1, 2, 3, 5, 10):
        print(f"{k:8}" + "".join(f"{table[k, n].mean():7.3f}" for n in people))
    print("\nGain by twice the items, and by twice the answers to each")
    for k, n in ((1, 1), (1, 5), (1, 10), (5, 1), (5, 5), (5, 10)):
        more_items, more_people = table[2 * k, n] - table[k, n], table[k, 2 * n] - table[k, n]
        print(
            f"{k} x {n:<2} {bootstrap.format(more_items)}   {bootstrap.format(more_people)}   "
            f"difference {bootstrap.format(more_items - more_people)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", type=Path, default=DATA)
    parser.add_argument("--quick", action="store_true", help="5 draws in place of 200")
    arguments = parser.parse_args()
    folder = arguments.data / "contstimlang"
    if not folder.is_dir():
        print(f"published: skipped, there is no folder {folder} (set CONTSTIM_DATA)")
        return
    draws = 5 if arguments.quick else 200
    experiment = read_trials(arguments.data)
    pairs = decided_pairs(experiment, read_triplets(folder, selected=True))
    bootstrap = Bootstrap(pairs, 100 * draws)
    print(f"{len(pairs)} decided pairs of models")
    for pair in pairs:
        if pair.right.mean() < 0.5:
            names = f"{MODELS[pair.better]}, not {MODELS[pair.worse]}"
            print(
                f"  contradicted by the pair's own items ({pair.right.mean():.2f} right): {names}"
            )
    show_evidence(pairs, experiment, bootstrap)
    show_choice(pairs, read_stimulus_scores(folder), bootstrap, min(draws, 20))
    show_items(pairs, bootstrap, draws)


if __name__ == "__main__":
    main()
