"""Measure the evaluation and the selection of minimal pairs.

    python benchmarks/minimal_pairs.py [--quick] [--only PART] [--models FOLDER]

`evaluation`: time of training a 5-gram model, and of reading, scoring and reporting BLiMP.

`time`: time of reading a table of all pairs, and of selecting from it for nine models (36 pairs of
models). Margins are random, with a part that all models share.

`truth`: how often do selected minimal pairs identify the better model? Answers are simulated; each
of two models in turn is the planted model, whose preferences people share. They choose the
acceptable sentence with probability logistic(.055 d), where d is log p(acceptable) - log p(other)
under the planted model, limited to ±27 nats. Similar values describe choices between natural
sentences in 2023 (Golan et al.). The probabilities of items vary by a beta distribution, so that
answers to the same item correlate. The model that predicts more answers is identified; a tie counts
one half. 20 selected items are compared with random items of the same paradigms. Shares are
simulated (1,000 experiments) and computed. A factor of f means: 20 f random items, drawn with
replacement, identify the planted model as often.

`openstax.train.txt` and `blimp` are read from CONTSTIM_DATA. Without these, `evaluation` and `time`
use the embedded English and shuffled sentences. bert-mini and gpt2-mini are read from
CONTSTIM_MODELS; pairs of models without their files are skipped. `--quick` uses fewer pairs, and
only n-gram models for `truth`.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from pathlib import Path
from time import perf_counter, process_time
from typing import get_args

import numpy as np
import torch
from inputs import DATA, MODELS, OPENSTAX
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import betabinom

from contstim.english import generate
from contstim.evaluation.accuracies import evaluate_minimal_pairs
from contstim.evaluation.folder import write_findings
from contstim.evaluation.minimal_pair_report import minimal_pair_findings
from contstim.evaluation.minimal_pairs import (
    Method,
    MinimalPair,
    MinimalPairSettings,
    pair_files,
    read_minimal_pairs,
    sample_pairs,
)
from contstim.evaluation.scores import score_pairs
from contstim.items.minimal_pair_scores import MinimalPairScores
from contstim.models.ngram.adapter import NgramModel
from contstim.models.ngram.training import train_ngram
from contstim.models.training.run import train_network
from contstim.models.training.settings import RecurrentSettings, TrainingSettings
from contstim.optimization.selection.minimal_pairs import select_minimal_pairs
from contstim.optimization.selection.question import MinimalPairObjective, MinimalPairQuestion
from contstim.steps.evaluation import EvaluateMinimalPairs
from contstim.store import Store
from contstim.words.corpus import read_sentences
from contstim.words.sentence import Sentence

KINDS = {
    "2-gram × 3-gram": ("2gram", "3gram"),
    "small LSTM × LSTM": ("small-lstm", "lstm"),
    "3-gram × LSTM": ("3gram", "lstm"),
    "3-gram × GPT-2": ("3gram", "gpt2-mini"),
    "LSTM × GPT-2": ("lstm", "gpt2-mini"),
    "BERT × GPT-2": ("bert-mini", "gpt2-mini"),
}
LSTMS = {"lstm": (128, 192), "small-lstm": (32, 48)}  # sizes of embedding and state
PARTS = ("evaluation", "time", "truth")
RULE = "pll-word-l2r"  # for masked models, because the chain rule would take a day
ITEMS, SIMULATIONS = 20, 1_000
SLOPE, LIMIT = 0.055, 27.0  # per nat, and nats
CORRELATION = 0.27  # between answers to an item: maximum-likelihood value in experiment 1 of 2023
BOTH = 1 / CORRELATION - 1  # sum of both parameters of the beta distribution

Numbers = NDArray[np.float64]


@contextmanager
def timed(title: str) -> Iterator[None]:
    """Print the duration of a block."""
    start = perf_counter()
    yield
    print(f"{title}: {perf_counter() - start:.1f} s")


def read_pairs() -> list[MinimalPair]:
    """Read BLiMP's pairs; without BLiMP, pair sentences with their shuffled words."""
    if (DATA / "blimp").is_dir():
        return read_minimal_pairs(pair_files(DATA / "blimp"))
    rng = random.Random(0)
    pairs = []
    for number, good in enumerate(generate(2_000, seed=1)):
        bad = Sentence(tuple(rng.sample(good.words, len(good))))
        pairs.append(MinimalPair(f"shuffled_{number % 5}", str(number), good, bad, "order"))
    return pairs


def measure_evaluation(folder: Path, *, quick: bool) -> None:
    """Print the seconds of each step from a text to a report."""
    with timed("training"):
        text = read_sentences(OPENSTAX) if OPENSTAX.is_file() else generate(5_000, seed=0)
        train_ngram(text, 2 if quick else 5, folder / "model.arpa")
    with timed("loading"):
        model = NgramModel(folder / "model.arpa", name="n-gram")
    with timed("reading pairs"):
        pairs = sample_pairs(read_pairs(), 10 if quick else 1_000, seed=0)
    title = f"scoring {len(pairs):,} pairs by all methods"
    with Store(folder / "scores.sqlite") as store, timed(title):
        scoring = score_pairs([model], pairs, store=store)
    with timed("tables, figures and report"):
        evaluation = evaluate_minimal_pairs(scoring, models=[model])
        write_findings(minimal_pair_findings(evaluation), folder / "out", models=[model])
    for method, table in evaluation.accuracies.items():
        print(f"{method}: accuracy {table.mean()[0]:.4f} in {len(table.paradigms)} paradigms")


def measure_time(folder: Path, *, quick: bool) -> None:
    """Print the seconds of reading a table of nine models, and of selecting from it."""
    pairs = sample_pairs(read_pairs(), 100 if quick else 1_000, seed=0)
    rng, models = np.random.default_rng(0), tuple(f"model {number}" for number in range(1, 10))
    margins = rng.normal(0.5, 2, (len(pairs), 1)) + rng.normal(0, 2, (len(pairs), 9))
    good_scores = -40 - np.abs(rng.normal(0, 10, margins.shape))
    path = folder / "nine.csv"
    scores = np.stack([good_scores, good_scores - margins], axis=1)
    MinimalPairScores(tuple(pairs), models, scores).write(path)
    for _ in range(1 if quick else 3):
        started = process_time()
        scores_from_file = MinimalPairScores.from_file(path)
        middle = process_time()
        selection = select_minimal_pairs(scores_from_file)
        ended = process_time()
        print(
            f"{len(pairs):,} pairs, 9 models, seconds of the processor: "
            f"reading {middle - started:.1f}, selecting "
            f"{len(selection.pairs)} {ended - middle:.1f}, both {ended - started:.1f}; "
            f"{selection.certificate.text}",
            flush=True,
        )


def trained_model(name: str, folder: Path) -> str:
    """Return the specification of a model; train it first if necessary."""
    path = folder / name
    if name.endswith("-mini"):
        return f"{name}=hf:{MODELS / name}"
    if name in LSTMS:
        if not path.is_dir():
            embedding, hidden = LSTMS[name]
            network = RecurrentSettings(embedding=embedding, hidden=hidden, min_count=5)
            text = list(read_sentences(OPENSTAX))
            train_network(text, path, network, TrainingSettings(epochs=1, learning_rate=0.005))
        return f"{name}=lstm:{path}"
    if not path.with_suffix(".arpa").exists():
        train_ngram(list(read_sentences(OPENSTAX)), int(name[0]), path.with_suffix(".arpa"))
    return f"{name}=kenlm:{path.with_suffix('.arpa')}"


def score_sample(kinds: Sequence[str], folder: Path, sample: int) -> MinimalPairScores:
    """Score a sample of pairs of each paradigm under the models of kinds; cache the scores."""
    names = dict.fromkeys(name for kind in kinds for name in KINDS[kind])
    models = [trained_model(name, folder) + f"@{RULE}" * (name == "bert-mini") for name in names]
    step = EvaluateMinimalPairs(
        data=DATA / "blimp",
        models=tuple(models),
        out=folder / "blimp",
        settings=MinimalPairSettings(sample=sample, method=(Method.FULL_SENTENCE,)),
    )
    step.run()
    return MinimalPairScores.from_file(folder / "blimp" / "pairs.csv")


def scores_of_kind(scores: MinimalPairScores, kind: str) -> MinimalPairScores:
    """Return the scores under the two models of a kind."""
    columns = [scores.models.index(name) for name in KINDS[kind]]
    return replace(scores, models=KINDS[kind], log_probs=scores.log_probs[:, :, columns])


def acceptable_choice_rates(margins: Numbers, planted: int) -> Numbers:
    """Return the probability that people choose the acceptable sentence."""
    probs: Numbers = expit(SLOPE * np.clip(margins[..., planted], -LIMIT, LIMIT))
    return probs


def lead_per_answer(margins: Numbers, planted: int) -> NDArray[np.int64]:
    """Return the lead of the planted model, in half points, if an answer prefers the good side.

    The last axis of `margins` is that of the two models.
    """
    signs = np.sign(margins).astype(int)
    ahead: NDArray[np.int64] = signs[..., planted] - signs[..., 1 - planted]
    return ahead


def lead_distributions(margins: Numbers, planted: int, answers: int) -> Numbers:
    """Return the distribution of the planted model's lead by item, (n_items, 4 * answers + 1).

    Leads are from -2 * answers to 2 * answers, in half points.
    """
    n_good, prob = np.arange(answers + 1), acceptable_choice_rates(margins, planted)[:, None]
    probs = betabinom.pmf(n_good, answers, BOTH * prob, BOTH * (1 - prob))
    item_leads = lead_per_answer(margins, planted)[:, None] * (2 * n_good - answers)
    distribution = np.zeros((len(margins), 4 * answers + 1))
    np.add.at(distribution, (np.arange(len(margins))[:, None], item_leads + 2 * answers), probs)
    return distribution


def identification_rate(total: Numbers) -> float:
    """Return the probability of a positive lead, plus half that of a lead of zero."""
    middle = len(total) // 2
    return float(total[middle + 1 :].sum() + total[middle] / 2)


def random_rate(lead: Numbers, n: int) -> float:
    """Return `identification_rate` for the total lead of n items from one distribution."""
    size = n * (len(lead) - 1) + 1
    return identification_rate(np.fft.irfft(np.fft.rfft(lead, size) ** n, size))


def sample_size_factor(share: float, lead: Numbers) -> float:
    """Return n / 20 for the n random items that identify the planted model as often as `share`."""
    low, high = 1, 1
    while random_rate(lead, high) < share:
        low, high = high, 2 * high
        if high > 2**17:
            return np.inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if random_rate(lead, middle) < share else (low, middle)
    return high / ITEMS


def simulated_rate(margins: Numbers, planted: int, answers: int, rng: np.random.Generator) -> float:
    """Return the share of simulations that identify the planted model.

    `margins` has shape (n_simulations, n_items, 2).
    """
    prob = acceptable_choice_rates(margins, planted)
    n_good = rng.binomial(answers, rng.beta(BOTH * prob, BOTH * (1 - prob)))
    lead = (lead_per_answer(margins, planted) * (2 * n_good - answers)).sum(axis=1)
    return float((lead > 0).mean() + (lead == 0).mean() / 2)


def show_truth(scores: MinimalPairScores, kind: str) -> None:
    """Print a row for each objective, with results for one and for five answers to each item."""
    pair_scores = scores_of_kind(scores, kind)
    rows = {(pair.paradigm, pair.pair_id): row for row, pair in enumerate(pair_scores.pairs)}
    paradigms = np.array([pair.paradigm for pair in pair_scores.pairs])
    of_paradigm = {
        name: np.flatnonzero(paradigms == name) for name in np.unique(paradigms).tolist()
    }
    differ = (np.sign(pair_scores.margins[:, 0]) * np.sign(pair_scores.margins[:, 1]) < 0).mean()
    print(f"\n{kind}: opposite verdicts on {differ:.2f} of {len(rows):,} pairs")
    for objective in get_args(MinimalPairObjective):
        question = MinimalPairQuestion(per_pair=ITEMS, objective=objective)
        pairs = select_minimal_pairs(pair_scores, question).pairs
        margins = pair_scores.margins[[rows[pair.paradigm, pair.pair_id] for pair in pairs]]
        pools = [of_paradigm[pair.paradigm] for pair in pairs]
        median_nats = np.median(np.abs(margins), axis=0)
        print(f"  {objective:8} nats (median) {median_nats[0]:4.1f} {median_nats[1]:4.1f}", end="")
        for answers in (1, 5):
            rng = np.random.default_rng([answers, 0])
            results = []
            for planted in (0, 1):
                random_rows = np.stack([rng.choice(pool, SIMULATIONS) for pool in pools], axis=1)
                selected_margins = np.broadcast_to(margins, (SIMULATIONS, *margins.shape))
                all_leads = lead_distributions(pair_scores.margins, planted, answers)
                lead = np.mean([all_leads[pool].mean(axis=0) for pool in pools], axis=0)
                share = identification_rate(
                    reduce(np.convolve, lead_distributions(margins, planted, answers))
                )
                results.append(
                    (
                        simulated_rate(selected_margins, planted, answers, rng),
                        simulated_rate(pair_scores.margins[random_rows], planted, answers, rng),
                        share,
                        sample_size_factor(share, lead),
                    )
                )
            selected, by_random, computed, _ = np.mean(results, axis=0)
            factors = " ".join(f"{result[-1]:6.1f}" for result in results)
            print(
                f"   {answers} answers: selected {selected:.3f} (computed {computed:.3f}) "
                f"random {by_random:.3f} factors {factors}",
                end="",
            )
        print(flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", choices=PARTS)
    parser.add_argument("--models", type=Path, help="folder that caches trained models and scores")
    parser.add_argument("--sample", type=int, default=100, help="pairs of each paradigm")
    options = parser.parse_args()
    parts = options.only or PARTS
    with tempfile.TemporaryDirectory() as path:
        if "evaluation" in parts:
            measure_evaluation(Path(path), quick=options.quick)
        if "time" in parts:
            measure_time(Path(path), quick=options.quick)
        if "truth" not in parts:
            return
        if not (DATA / "blimp").is_dir() or not OPENSTAX.is_file():
            print("truth: skipped, BLiMP and a text are needed (set CONTSTIM_DATA)")
            return
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        folder = options.models or Path(path) / "models"
        folder.mkdir(exist_ok=True)
        kinds = [
            kind
            for kind, names in list(KINDS.items())[: 1 if options.quick else None]
            if all((MODELS / name).is_dir() for name in names if name.endswith("-mini"))
        ]
        scores = score_sample(kinds, folder, options.sample)
        for kind in kinds:
            show_truth(scores, kind)


if __name__ == "__main__":
    main()
