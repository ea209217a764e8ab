"""Measure how far the results of searches are from the best possible sentence.

    python benchmarks/optimality.py [--quick] [--sentences N] [--recipe NAME]... [--folder DIR]

The gap is log p(result | reject) - log p(best | reject) in nats. A result counts as the best
sentence if its gap is within rounding.

Between a 2-gram and a 3-gram model, branch and bound finds the best sentence (see `best_sentence`).
The vocabulary has the most frequent words of the embedded English: 40 initial and 100 inner words.
Searches start from natural sentences of four to eight words, in both directions. Between small
networks, no such bounds are known; there, all sentences of four words from a small vocabulary are
scored.

Results are stored in DIR and not computed again.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import chain, permutations, product, zip_longest
from pathlib import Path
from tempfile import mkdtemp
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
from best_sentence import BestSentence

from contstim.demo import train
from contstim.english import generate
from contstim.optimization.search.recipes import DEFAULT, RECIPES
from contstim.optimization.search.restarts import SINGLE, SearchBudget
from contstim.optimization.search.synthesize import synthesize
from contstim.words.sentence import Sentence, repeats
from contstim.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contstim.files.arrays import FloatArray
    from contstim.models.base import LanguageModel

N_INITIAL, N_INNER, LENGTHS = 40, 100, (4, 5, 6, 7, 8)
NETWORKS = (("BERT", "GPT-2"), ("LSTM", "GPT-2"), ("BERT", "LSTM"))
# The default recipe with its settings for networks, also between n-gram models
WITHOUT_PRICES = "without prices"
COMPARED = {**RECIPES, WITHOUT_PRICES: replace(DEFAULT, with_cheap_words=None)}
FEW_WORDS = 9  # number of inner words of the vocabularies for networks
ROUNDING = {"n-gram": 1e-6, "network": 1e-3}
Case = dict[str, Any]


def frequent_words(text: list[Sentence], n_initial: int, n_inner: int) -> Vocabulary:
    """Return the most frequent words at the start of sentences and elsewhere."""
    initial = Counter(s.words[0] for s in text)
    inner = Counter(word for s in text for word in s.words[1:])
    return Vocabulary(
        tuple(word for word, _ in initial.most_common(n_initial)),
        tuple(word for word, _ in inner.most_common(n_inner)),
    )


def generate_cached(folder: Path, n: int, seed: int, words: int | None = None) -> list[Sentence]:
    """Generate sentences of the embedded English; cache them in a file."""
    path = folder / f"sentences-{n}-{seed}-{words}.txt"
    if not path.is_file():
        path.write_text("\n".join(s.text for s in generate(n, seed=seed, words=words)), "utf-8")
    return [Sentence.parse(line) for line in path.read_text(encoding="utf-8").splitlines()]


def natural_sentences(folder: Path, words: Vocabulary, length: int, n: int) -> list[Sentence]:
    """Return new sentences of these words without repeated words."""
    pool = generate_cached(folder, 3_000 if n > 2 else 300, seed=1, words=length)
    return [s for s in pool if not words.missing_words(s) and not repeats(s.words)][:n]


def run_search(
    accept: LanguageModel,
    reject: LanguageModel,
    natural: Sentence,
    words: Vocabulary,
    recipe: str,
    restarts: SearchBudget | None,
) -> Case:
    began = process_time()
    result = synthesize(accept, reject, natural, words, recipe=COMPARED[recipe], restarts=restarts)
    return {
        "accept": accept.name,
        "reject": reject.name,
        "natural": natural.text,
        "words": len(natural),
        "recipe": recipe,
        "synthetic": result.synthetic.text,
        "loss": result.log_probs[1],
        "drop": result.natural_log_probs[1] - result.log_probs[1],
        "passes": sum(cost.rows for cost in result.costs.values()),
        "seconds": process_time() - began,
    }


def ngram_cases(
    folder: Path, text: list[Sentence], n: int, lengths: tuple[int, ...]
) -> Iterator[Any]:
    """Yield directions of the n-gram pair, with a sentence and a function for the best loss."""
    pair = [train(name, text, folder, seed=0) for name in ("2-gram", "3-gram")]
    words = frequent_words(text, N_INITIAL, N_INNER)
    directions = [
        (accept, reject, partial(bounded_best, BestSentence(accept, reject, words), accept))  # type: ignore[arg-type]
        for accept, reject in permutations(pair)
    ]
    # Lengths and directions alternate, so that partial results are balanced
    by_length = [natural_sentences(folder, words, length, n) for length in lengths]
    for sentences in zip_longest(*by_length):
        for (accept, reject, best), natural in product(directions, sentences):
            if natural is not None:
                yield "n-gram", accept, reject, words, [natural], best


def bounded_best(
    solver: BestSentence, accept: LanguageModel, natural: Sentence, loss: float
) -> Case:
    """Return the lowest loss by branch and bound."""
    result = solver.find(float(accept.log_probs([natural])[0]), len(natural), loss)
    return {"best": min(loss, result.loss), "proven": result.proven, "nodes": result.nodes}


def network_cases(
    folder: Path, text: list[Sentence], n: int, *, quick: bool = False
) -> Iterator[Any]:
    """Yield directions of pairs of networks; each natural sentence has another vocabulary."""
    few_words, epochs = (6, 1) if quick else (FEW_WORDS, None)
    pool = generate_cached(folder, 500, seed=2, words=4)
    frequent = [word for word, _ in Counter(w for s in text for w in s.words[1:]).most_common(60)]
    rng = np.random.default_rng(0)
    for names in NETWORKS[:1] if quick else NETWORKS:
        pair = [train(name, text, folder, seed=0, most_epochs=epochs) for name in names]
        usable = [s for s in pool if not repeats(s.words)]
        usable = [s for s in usable if all(model.knows(s.words).all() for model in pair)]
        for accept, reject in permutations(pair):
            for natural in usable[:n]:
                other_words = [w for w in frequent if w not in natural.words[1:]]
                inner = [
                    *natural.words[1:],
                    *rng.permutation(other_words)[: few_words - 3].tolist(),
                ]
                words = Vocabulary((natural.words[0], "The", "He"), tuple(inner))
                all_sentences = [
                    Sentence((first, *later_words), natural.end)
                    for first in words.initial
                    for later_words in permutations(words.inner, 3)
                    if not repeats((first, *later_words))
                ]
                best = partial(exhaustive_best, all_sentences, accept, reject)
                yield "network", accept, reject, words, [natural], best


def exhaustive_best(
    all_sentences: list[Sentence],
    accept: LanguageModel,
    reject: LanguageModel,
    natural: Sentence,
    loss: float,
) -> Case:
    """Return the lowest loss by scoring all sentences."""
    floor = float(accept.log_probs([natural])[0])
    scores = accept.log_probs(all_sentences)
    feasible = [s for s, score in zip(all_sentences, scores, strict=True) if score >= floor]
    lowest = float(reject.log_probs(feasible).min()) if feasible else loss
    return {"best": min(loss, lowest), "proven": True, "nodes": len(all_sentences)}


def interval(values: FloatArray) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean."""
    rng = np.random.default_rng(0)
    draws = rng.integers(len(values), size=(10_000, len(values)))
    low, high = np.percentile(values[draws].mean(axis=1), (2.5, 97.5))
    return float(low), float(high)


def report(cases: list[Case]) -> None:
    by_case: dict[tuple[str, ...], dict[str, Case]] = {}
    for case in cases:
        key = (case["kind"], case["accept"], case["reject"], case["natural"])
        by_case.setdefault(key, {})[case["recipe"]] = case
    recipes = list(dict.fromkeys(case["recipe"] for case in cases))
    complete = {key: runs for key, runs in by_case.items() if len(runs) == len(recipes)}
    # The best loss is proven for all recipes of a case if it is proven for one
    proven = {k: s for k, s in complete.items() if any(c["proven"] for c in s.values())}
    print(f"{len(complete)} cases; the best sentence is proven in {len(proven)}")

    def table(title: str, keys: list[tuple[str, ...]]) -> None:
        if not keys:
            return
        print(f"\n{title}: {len(keys)} cases")
        print("recipe         the best   mean gap [95 %]          largest   drop of best   CPU s")
        for recipe in recipes:
            runs = [proven[key][recipe] for key in keys]
            best = [min(c["best"] for c in proven[key].values()) for key in keys]
            gaps = np.array([c["loss"] - b for c, b in zip(runs, best, strict=True)])
            share = np.mean(np.array(gaps) <= [ROUNDING[key[0]] for key in keys])
            possible = np.mean([c["drop"] + g for c, g in zip(runs, gaps, strict=True)])
            low, high = interval(gaps)
            print(
                f"{recipe:14} {share:8.2f} {gaps.mean():8.3f} [{low:6.3f}, {high:6.3f}] "
                f"{gaps.max():12.2f} {possible:12.2f} {np.mean([c['seconds'] for c in runs]):12.2f}"
            )

    table("n-gram x n-gram", [key for key in proven if key[0] == "n-gram"])
    for length in LENGTHS:
        of_length = {k for k, runs in proven.items() if runs[recipes[0]]["words"] == length}
        table(f"  {length} words", [k for k in proven if k[0] == "n-gram" and k in of_length])
    for pair in NETWORKS:
        keys = [k for k in proven if k[0] == "network" and set(k[1:3]) == set(pair)]
        table(" x ".join(pair), keys)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two sentences, poorly trained models")
    parser.add_argument("--sentences", type=int, default=20, help="number of each length")
    parser.add_argument("--of-networks", type=int, default=5, help="sentences of each direction")
    parser.add_argument("--recipe", action="append", choices=list(COMPARED))
    parser.add_argument("--folder", type=Path, help="folder for models and results")
    parser.add_argument("--report", action="store_true", help="print stored results only")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    folder = options.folder or Path(mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "optimality.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    cases = [json.loads(line) for line in lines]
    if not options.report:
        quick = options.quick
        text = generate_cached(folder, 300 if quick else 8_000, seed=0)
        finished = {(c["kind"], c["accept"], c["reject"], c["natural"], c["recipe"]) for c in cases}
        n, n_network_sentences = (2, 1) if quick else (options.sentences, options.of_networks)
        lengths = (5,) if quick else LENGTHS
        directions = chain(
            ngram_cases(folder, text, n, lengths),
            network_cases(folder, text, n_network_sentences, quick=quick)
            if n_network_sentences
            else (),
        )
        for kind, accept, reject, words, naturals_of_case, best in directions:
            for natural in naturals_of_case:
                for recipe in options.recipe or ("default", WITHOUT_PRICES):
                    if (kind, accept.name, reject.name, natural.text, recipe) in finished:
                        continue
                    restarts = SINGLE if quick else None
                    run = run_search(accept, reject, natural, words, recipe, restarts)
                    case = {"kind": kind, **run}
                    case |= best(natural, case["loss"])
                    cases.append(case)
                    with path.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(case) + "\n")
    report(cases)


if __name__ == "__main__":
    main()
