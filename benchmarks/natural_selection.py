"""Compare the selection of natural pairs with a greedy choice: objective, time and memory.

    python benchmarks/natural_selection.py [--quick]

The published scores are read from the folder in CONTSTIM_DATA; without them, this part is skipped.
The second part is synthetic: models share a factor, and scores are rounded, so that some are equal.
Both selections are repeated after a review that rejects every eighteenth pair. They are also
repeated for sentences of 7 to 9 words with the option `same_length`; longer sentences are then
less likely.
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from time import perf_counter

import numpy as np
from inputs import STUDY

from contstim.items.reviews import Decision, Review, undecided_items
from contstim.items.scores import ScoreTable
from contstim.optimization.selection.natural import select_natural
from contstim.optimization.selection.question import NaturalQuestion
from contstim.words.sentence import Sentence

SCORES = STUDY / "resources" / "precomputed_sentence_probabilities"
PREFIX = "natural_sentences_for_natural_controversial_sentence_pair_selection_probs_"
MODELS = "bigram trigram rnn lstm bert roberta xlm electra gpt2".split()


def published() -> ScoreTable:
    columns = [np.load(SCORES / f"{PREFIX}{model}.npy").ravel() for model in MODELS]
    return ScoreTable(None, tuple(MODELS), np.stack(columns, axis=1))


def synthetic(n_sentences: int, n_models: int) -> ScoreTable:
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(n_sentences, 1))
    scores = np.round(shared + 0.6 * rng.normal(size=(n_sentences, n_models)), 4)
    return ScoreTable(None, tuple(f"model-{m}" for m in range(n_models)), scores)


def greedy(table: ScoreTable, per_pair: int) -> int:
    """Repeatedly take the cheapest unused sentence of any source; return the sum of doubled ranks.

    It considers the same number of sentences per source as the exact method.
    """
    doubled = np.ascontiguousarray(table.doubled_ranks().T)
    n_models, n_sentences = doubled.shape
    enough = per_pair * n_models * (n_models - 1)
    orders = [np.argsort(ranks, kind="stable") for ranks in doubled]
    arcs = []
    for source, (reject, accept) in enumerate(permutations(range(n_models), 2)):
        order = orders[reject]
        rows = order[doubled[accept, order] >= n_sentences][:enough]
        arcs.append(np.stack([doubled[reject, rows], np.full(len(rows), source), rows]))
    cost, sources, rows = np.concatenate(arcs, axis=1)
    left = [per_pair] * (n_models * (n_models - 1))
    used: set[int] = set()
    total = 0
    for arc in np.argsort(cost, kind="stable").tolist():
        source, row = int(sources[arc]), int(rows[arc])
        if left[source] and row not in used:
            left[source] -= 1
            used.add(row)
            total += int(cost[arc])
    if any(left):
        sys.exit("The greedy choice found too few sentences, so there is no comparison.")
    return total


def compare(title: str, table: ScoreTable, per_pair: int) -> None:
    n_sentences, n_models = table.log_probs.shape
    print(f"{title}: {n_sentences:,} sentences × {n_models} models, {per_pair} per model pair")
    started = perf_counter()
    certificate = select_natural(table, NaturalQuestion(per_pair=per_pair)).certificate
    exact_seconds = perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # KiB on Linux
    cost = round(certificate.objective * 2 * n_sentences)
    print(f"  objective {certificate.objective:.10f} ({cost:,} / 2N)")
    print(f"  bound     {certificate.bound:.10f} ({certificate.status})")
    print(f"  {exact_seconds:.2f} s with verification, peak memory so far {peak:.2f} GiB")
    started = perf_counter()
    total = greedy(table, per_pair)
    greedy_seconds = perf_counter() - started
    worse = total / cost
    print(f"  greedy    {total / (2 * n_sentences):.10f}, {worse:.4f} times the optimum")
    print(
        f"  greedy {greedy_seconds:.2f} s; exact/greedy time {exact_seconds / greedy_seconds:.2f}"
    )
    after_a_review(table, per_pair)
    of_one_length(table, per_pair)


def with_texts(table: ScoreTable, words: Sequence[int]) -> ScoreTable:
    """Add artificial sentences to the scores; their numbers of words are `words`, in turn."""
    texts = (
        Sentence((f"row{row}", *("word",) * (words[row % len(words)] - 1)))
        for row in range(len(table.log_probs))
    )
    return replace(table, sentences=tuple(texts))


def after_a_review(table: ScoreTable, per_pair: int) -> None:
    named = with_texts(table, [8])
    before = select_natural(named, NaturalQuestion(per_pair=per_pair))
    items = undecided_items(before.pairs, "benchmark")
    review = Review(
        tuple(
            replace(item, decision=Decision.REJECT if not place % 18 else Decision.KEEP)
            for place, item in enumerate(items)
        )
    )
    started = perf_counter()
    after = select_natural(named, NaturalQuestion(per_pair=per_pair), review=review)
    certificate = after.certificate
    seconds = perf_counter() - started
    dearer = certificate.objective / before.certificate.objective
    print(
        f"  reviewed  {certificate.objective:.10f}, bound {certificate.bound:.10f}, "
        f"{dearer:.4f} times the optimum; {len(review.rejected)} of {len(items)} "
        f"rejected, {len(after.changed)} others changed; {seconds:.2f} s (all texts known: "
        f"{before.certificate.seconds:.2f} s without a review)"
    )


def of_one_length(table: ScoreTable, per_pair: int) -> None:
    lengths = np.array([7, 8, 9])
    spread = table.log_probs[np.isfinite(table.log_probs)].std()
    longer = -1.5 * spread * lengths[np.arange(len(table.log_probs)) % 3]
    named = replace(
        with_texts(table, lengths.tolist()), log_probs=table.log_probs + longer[:, None]
    )
    plain = select_natural(named, NaturalQuestion(per_pair=per_pair))
    unequal = sum(
        len(p.sentence_1) != len(p.sentence_2)
        for p in plain.pairs
        if p.sentence_1 is not None and p.sentence_2 is not None
    )
    started = perf_counter()
    same = select_natural(named, NaturalQuestion(per_pair=per_pair, same_length=True))
    certificate, seconds = same.certificate, perf_counter() - started
    words = [len(pair.sentence_1) for pair in same.pairs if pair.sentence_1 is not None]
    shares = [words.count(each) for each in lengths]
    print(
        f"  one length {certificate.objective:.10f}, bound {certificate.bound:.10f}, pairs of "
        f"7, 8, 9 words {shares}; {seconds:.2f} s (without: {plain.certificate.seconds:.2f} s, and "
        f"lengths differ in {unequal} of {len(plain.pairs)} pairs)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a smaller synthetic table")
    quick = parser.parse_args().quick
    if SCORES.is_dir():
        compare("published", published(), per_pair=10)
    else:
        print(f"published: skipped, there is no folder {SCORES} (set CONTSTIM_DATA)")
    compare("synthetic", synthetic(*((100_000, 10) if quick else (1_000_000, 20))), per_pair=10)


if __name__ == "__main__":
    main()
