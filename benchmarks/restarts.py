"""Whether searching a sentence again pays more than perturbing it for longer, at the same cost.

    python benchmarks/restarts.py [--quick] [--sentences N] [--searches N] [--pair M/M]...

Each natural sentence is searched in one direction, by turns: once; several times with other seeds,
as the default recipe does between cheap models; and once with as many rounds of perturbation as
take what the several searches took. Cost is passes through networks, or CPU seconds between n-gram
models, which make none; there the default recipe, which searches once with perturbations of another
kind, has a line of its own. Drop is log p(natural | reject) - log p(synthetic | reject) in nats;
means over the sentences with 95 % bootstrap intervals. A second table tells for each patience how
many searches it allows and how far they get: what the default recipe's own was chosen from.

The models are those of the demo, trained on the embedded English on the spot. `2-gram/3-gram` is
measured over the vocabulary and the sentences of the 2023 study where CONTSTIM_DATA has them.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import mkdtemp
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
from inputs import DATA, STUDY

from contstim.demo import train
from contstim.english import generate
from contstim.experiments.reproduce.published import read_vocabulary
from contstim.models.catalog import load_model
from contstim.models.ngram.training import train_ngram
from contstim.models.vocabularies import default_vocabulary, shared_vocabulary
from contstim.optimization.search.perturbation import Perturbation
from contstim.optimization.search.recipes import DEFAULT
from contstim.optimization.search.restarts import SINGLE, SearchBudget
from contstim.optimization.search.synthesize import synthesize
from contstim.words.corpus import read_sentences
from contstim.words.sentence import Sentence, repeats
from contstim.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    from contstim.files.arrays import FloatArray
    from contstim.models.base import LanguageModel
    from contstim.optimization.search.synthesize import Synthesis

CORPUS = "natural_sentences_for_synthetic_controversial_sentence_pair_optimization.txt"
PAIRS = ("2-gram/3-gram", "LSTM/3-gram", "GPT-2/3-gram")
# Between n-gram models as between networks
DEFAULT_OF_NETWORKS = replace(DEFAULT, with_cheap_words=None)
WORDS_OF_CAUSAL = 400  # of the vocabulary: a causal search over all of it takes too long here
PATIENCES = (1, 2, 3, 4, 5, 6, 8)


@dataclass(frozen=True)
class UntilSpent(Perturbation):
    """The default perturbation until a search has cost so much, whatever it gains."""

    patience: int = 10**9
    passes: float = np.inf
    ends: float = np.inf  # CPU seconds of this process

    def perturb(self, *arguments: Any) -> Any:
        evaluator = arguments[2].evaluator
        if evaluator.cost.rows >= self.passes or process_time() >= self.ends:
            return None
        return super().perturb(*arguments)


def study(folder: Path) -> tuple[list[LanguageModel], Vocabulary, list[Sentence]]:
    """A 2-gram and a 3-gram model over the words of the published study, and its sentences."""
    text = list(read_sentences(DATA / "text" / "openstax.train.txt"))
    for n in (2, 3):
        train_ngram(text, n, folder / f"{n}.arpa")
    pair: list[LanguageModel] = [load_model(f"kenlm:{folder / f'{n}.arpa'}") for n in (2, 3)]
    words, _ = shared_vocabulary(pair, read_vocabulary(STUDY))
    lines = (STUDY / "resources" / "sentence_corpora" / CORPUS).read_text(encoding="utf-8")
    return pair, words, [Sentence.parse(line) for line in lines.splitlines()]


def embedded(
    names: list[str], folder: Path, n: int, *, quick: bool
) -> tuple[list[LanguageModel], Vocabulary, list[Sentence]]:
    """Two models of the demo over the words that both know, and new sentences."""
    text = generate(1_000 if quick else 8_000, seed=0)
    epochs = 1 if quick else None
    pair = [train(name, text, folder, seed=0, most_epochs=epochs) for name in names]
    words, _ = shared_vocabulary(pair, default_vocabulary(pair))
    sentences = [s for s in generate(2_000, seed=1, words=8) if not words.missing(s)][: 2 * n + 10]
    if any(name in names for name in ("GPT-2", "BERT")):
        used = {word for sentence in sentences for word in sentence.words}
        stride = len(words.inner) // WORDS_OF_CAUSAL + 1
        few = [
            tuple(w for i, w in enumerate(some) if i % stride == 0 or w in used)
            for some in (words.initial, words.inner)
        ]
        words = Vocabulary(few[0], few[1], words.repeatable)
    return pair, words, sentences


def measure(pair: str, n: int, n_searches: int, *, quick: bool) -> None:
    folder = Path(mkdtemp())
    if pair == PAIRS[0] and (STUDY / "resources").is_dir() and not quick:
        models, words, every = study(folder)
    else:
        models, words, every = embedded(pair.split("/"), folder, n, quick=quick)
    usable = [s for s in every if not words.missing(s) and not repeats(s.words)]
    order = np.random.default_rng(0).permutation(len(usable))[:n]

    def search(number: int, natural: Sentence, budget: SearchBudget, recipe: Any) -> Synthesis:
        accept, reject = models if number % 2 == 0 else models[::-1]
        return synthesize(accept, reject, natural, words, recipe=recipe, restarts=budget)

    search(0, usable[order[0]], SINGLE, DEFAULT_OF_NETWORKS)  # fills what is kept between searches
    losses, several_costs, natural_scores, long = [], [], [], []
    # Drop and seconds of the default between n-gram models
    crossing: list[tuple[float, float]] = []
    for number, index in enumerate(order.tolist()):
        natural = usable[index]
        began = process_time()
        found = search(
            number, natural, SearchBudget(n_searches, patience=None), DEFAULT_OF_NETWORKS
        )
        seconds = process_time() - began
        passes = [sum(c.rows for c in s.costs.values()) for s in found.searches]
        losses.append([summary.loss for summary in found.searches])
        natural_scores.append(found.natural_log_probs[1])
        # What the searches took up to each; of n-gram models, all searches about alike by visits.
        visits = np.cumsum([s.visits for s in found.searches])
        several_costs.append(np.cumsum(passes) if sum(passes) else seconds * visits / visits[-1])
        is_network = bool(sum(passes))
        default = DEFAULT.restarts
        _, last = dry(np.array(losses[-1]), default.patience or n_searches, default.min_gain)
        spent = float(several_costs[-1][last])
        limits: dict[str, Any] = {"passes": spent}
        if not is_network:
            limits = {"ends": process_time() + spent}
        recipe = replace(DEFAULT_OF_NETWORKS, perturbation=UntilSpent(**limits))
        longer = search(number, natural, SINGLE, recipe)
        long.append(longer.natural_log_probs[1] - longer.log_probs[1])
        if not is_network:
            began = process_time()
            once = search(number, natural, DEFAULT.between(models).restarts, DEFAULT)
            drop = once.natural_log_probs[1] - once.log_probs[1]
            crossing.append((drop, process_time() - began))
    report(pair, len(words.words), np.array(losses), several_costs, natural_scores, long)
    if crossing:
        drop, seconds = np.mean(crossing, axis=0)
        print(f"  default, below the floor  mean drop {drop:6.2f} nats, {seconds:9.2f} seconds")


def dry(losses: FloatArray, patience: int, min_gain: float) -> tuple[float, int]:
    """The lowest loss when so many searches in a row gained little, and the last one's number."""
    lowest, in_vain = losses[0], 0
    for number in range(1, len(losses)):
        in_vain = 0 if lowest - losses[number] >= min_gain else in_vain + 1
        lowest = min(lowest, losses[number])
        if in_vain == patience:
            return float(lowest), number
    return float(lowest), len(losses) - 1


def report(
    pair: str,
    n_words: int,
    losses: FloatArray,
    costs: list[FloatArray],
    natural: list[float],
    long: list[float],
) -> None:
    default = DEFAULT.restarts
    is_network = any(cost.dtype.kind == "i" for cost in costs)
    unit = "passes" if is_network else "seconds"
    print(f"\n{pair}: {len(losses)} sentences, {n_words:,} words, {losses.shape[1]} searches each")
    single = np.array(natural) - losses[:, 0]
    ends = [dry(row, default.patience or 1, default.min_gain) for row in losses]
    several = np.array(natural) - np.array([lowest for lowest, _ in ends])
    longer = np.array(long)
    spent = np.mean([cost[last] for cost, (_, last) in zip(costs, ends, strict=True)])
    once = np.mean([cost[0] for cost in costs])
    number = np.mean([last + 1 for _, last in ends])
    print(f"  one search                mean drop {single.mean():6.2f} nats, {once:9.2f} {unit}")
    for title, drops in (
        (f"restarts ({number:.1f} searches)", several),
        ("longer perturbation", longer),
    ):
        low, high = interval(drops - single)
        print(
            f"  {title:25} mean drop {drops.mean():6.2f} nats, {spent:9.2f} {unit}; "
            f"{(drops - single).mean():+.2f} [{low:.2f}, {high:.2f}]"
        )
    low, high = interval(several - longer)
    print(f"  restarts less longer      {(several - longer).mean():+.2f} [{low:.2f}, {high:.2f}]")
    print("  patience   searches   mean drop")
    for patience in PATIENCES:
        ends = [dry(row, patience, default.min_gain) for row in losses]
        drops = np.array(natural) - np.array([lowest for lowest, _ in ends])
        print(f"  {patience:8}{np.mean([last + 1 for _, last in ends]):11.1f}{drops.mean():12.2f}")


def interval(differences: FloatArray) -> tuple[float, float]:
    """A 95 % bootstrap interval of the mean over sentences."""
    rng = np.random.default_rng(0)
    draws = rng.integers(len(differences), size=(10_000, len(differences)))
    low, high = np.percentile(differences[draws].mean(axis=1), (2.5, 97.5))
    return float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two sentences, three searches each")
    parser.add_argument("--sentences", type=int, default=24, help="for each pair")
    parser.add_argument("--searches", type=int, default=12, help="of each sentence")
    parser.add_argument("--pair", action="append", help=f"such as {', '.join(PAIRS)}")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    n, n_searches = (2, 3) if options.quick else (options.sentences, options.searches)
    for pair in options.pair or (PAIRS[:2] if options.quick else PAIRS):
        measure(pair, n, n_searches, quick=options.quick)


if __name__ == "__main__":
    main()
