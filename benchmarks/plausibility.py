"""How plausible must a natural sentence be for people to agree about what is made of it?

    python benchmarks/plausibility.py [--quick] [DATA]

Three questions to the published answers (experiment 1 of the 2023 study, ten people a trial). The
first: about which synthetic pairs do nine of ten people agree? Not the most controversial ones (Eq.
4), but those whose better sentence strong models find likely. The second: how likely, as a quantile
of the 231,725 natural sentences under GPT-2 and under the mean of four transformers? The third is
the default of `contstim triplets --plausible`: about which pairs do people agree, by the quantile
of their natural sentence under the two models that were searched with, the lower of the two, and
what does a floor there leave of controversiality? Intervals are bootstraps over pairs. The
published data are read from CONTSTIM_DATA or a folder that is named; without them there is nothing
to measure.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
from inputs import DATA
from numpy.typing import NDArray
from scipy.stats import spearmanr

from contstim.experiments.reproduce.golan2023_data import read_experiment
from contstim.experiments.reproduce.published import MODELS, read_stimulus_scores, read_triplets
from contstim.items.stimuli import Condition

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.published.readers import read_natural_scores

STRONG = [MODELS.index(name) for name in ("bert", "roberta", "electra", "gpt2")]
GPT2 = MODELS.index("gpt2")
EDGES = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 1.01)  # of quantiles; the last is above all
NEAR_UNANIMOUS = 0.9

Numbers = NDArray[np.float64]


def interval(values: Numbers, draws: int) -> str:
    """A mean with its 95 % interval."""
    means = np.random.default_rng(0).choice(values, (draws, len(values))).mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return f"{values.mean():6.2f} [{low:.2f}, {high:.2f}]"


def table(title: str, quantiles: Numbers, near: Numbers, drops: Numbers, draws: int) -> None:
    """Near-unanimity and controversiality of pairs, by a quantile and above each floor."""
    rho = spearmanr(quantiles, near).statistic
    print(f"\n{title} ({len(near)} pairs, Spearman's rho with near-unanimity {rho:.2f})")
    print(f"{'quantile':>12} {'pairs':>6} {'near-unanimous':>22} {'Eq. 4':>26}")
    for low, high in pairwise(EDGES):
        rows = (quantiles >= low) & (quantiles < high)
        if rows.any():
            shares = interval(near[rows], draws), interval(drops[rows], draws)
            print(f"{low:5.2f}-{min(high, 1):.2f} {rows.sum():7} {shares[0]:>22} {shares[1]:>26}")
    for floor in EDGES[:-1]:
        rows = quantiles >= floor
        shares = interval(near[rows], draws), interval(drops[rows], draws)
        print(f"  from {floor:.2f} {rows.sum():7} {shares[0]:>22} {shares[1]:>26}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", type=Path, default=DATA)
    parser.add_argument("--quick", action="store_true", help="100 bootstraps in place of 10,000")
    arguments = parser.parse_args()
    folder = arguments.data / "contstimlang"
    if not folder.is_dir():
        print(f"published: skipped, there is no folder {folder} (set CONTSTIM_DATA)")
        return
    draws = 100 if arguments.quick else 10_000

    trials, responses = read_experiment(folder, arguments.data / "contstimlang-fork" / "data")
    ratings = defaultdict(list)
    for response in responses:
        ratings[response.trial_id].append(response.rating)
    triplets = {t.triplet_id: t for t in read_triplets(folder, selected=True)}
    stimuli = read_stimulus_scores(folder)
    natural = np.sort(read_natural_scores(folder).log_probs, axis=0)  # (n_sentences, n_models)

    def quantiles(sentence: object) -> Numbers:
        """Share of natural sentences no likelier than this one, under each model, (n_models,)."""
        scores = stimuli.log_probs[stimuli.rows[sentence]]  # type: ignore[index]
        places = [np.searchsorted(natural[:, m], score, "right") for m, score in enumerate(scores)]
        return np.array(places) / len(natural)

    rows = []
    for trial in trials:
        if trial.condition is not Condition.SYNTHETIC_SYNTHETIC:
            continue
        triplet = triplets[trial.source_id]
        share = np.mean(np.array(ratings[trial.trial_id]) > 3)  # who prefer sentence_2
        pair = [MODELS.index(triplet.model_1), MODELS.index(triplet.model_2)]
        both = np.stack([quantiles(trial.sentence_1), quantiles(trial.sentence_2)])
        scores = stimuli.log_probs[[stimuli.rows[trial.sentence_1], stimuli.rows[trial.sentence_2]]]
        rows.append(
            (
                max(share, 1 - share),
                triplet.controversiality,
                scores[:, STRONG].mean(axis=1).max(),
                both[:, STRONG].mean(axis=1).max(),
                both[:, GPT2].max(),
                both[:, GPT2].min(),
                quantiles(triplet.natural)[pair].min(),
                len({*pair} & {*STRONG}),
            )
        )
    agreed, drops, log_probs, better, gpt2, worse, by_pair, n_strong = np.array(rows).T
    near = (agreed >= NEAR_UNANIMOUS).astype(np.float64)

    print(f"{len(near)} synthetic pairs, {near.mean():.0%} near-unanimous (9 of 10 people or more)")
    for name, value in (
        ("controversiality (Eq. 4)", drops),
        ("better sentence's mean log p, four transformers", log_probs),
        ("worse sentence's quantile under GPT-2", worse),
    ):
        quarters = np.digitize(value, np.quantile(value, (0.25, 0.5, 0.75)))
        shares = ", ".join(f"{near[quarters == quarter].mean():.0%}" for quarter in range(4))
        rho = spearmanr(value, agreed).statistic
        print(f"agreement by {name}: rho = {rho:.2f}; near-unanimous by quartile: {shares}")
    table("Better sentence, four transformers", better, near, drops, draws)
    table("Better sentence, GPT-2", gpt2, near, drops, draws)
    table("Worse sentence, GPT-2: a floor for both", worse, near, drops, draws)
    title = "Natural sentence under its two models, the lower"
    for among, chosen in (
        ("all", n_strong >= 0),
        ("one strong", n_strong == 1),
        ("both strong", n_strong == 2),
        ("none strong", n_strong == 0),
    ):
        table(f"{title}: {among}", by_pair[chosen], near[chosen], drops[chosen], draws)


if __name__ == "__main__":
    main()
