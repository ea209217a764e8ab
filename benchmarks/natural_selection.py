"""Natural selection: optimum, proof, time and memory, against a greedy choice on the same work.

    python benchmarks/natural_selection.py [--quick]

The published scores are read from the folder in CONTSTIM_DATA, by default ../shared/data beside the
repository; without them that part is skipped. The second part is synthetic: models that share a
factor, scores rounded so that some tie.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
from itertools import permutations
from pathlib import Path
from time import perf_counter

import numpy as np

from contstim.optimization.selection.natural import select_natural
from contstim.scores import ScoreTable

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("CONTSTIM_DATA", ROOT.parent / "shared" / "data"))
SCORES = DATA / "contstimlang" / "resources" / "precomputed_sentence_probabilities"
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
    """Take the cheapest sentence that is left, wherever it is cheapest; the sum of doubled ranks.

    It looks at as many sentences per source as the exact method.
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
        sys.exit("The greedy choice ran out of sentences: nothing to compare with.")
    return total


def compare(title: str, table: ScoreTable, per_pair: int) -> None:
    n_sentences, n_models = table.log_probs.shape
    print(f"{title}: {n_sentences:,} sentences × {n_models} models, {per_pair} per model pair")
    started = perf_counter()
    certificate = select_natural(table, per_pair=per_pair).certificate
    exact_seconds = perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # KiB on Linux
    print(f"  objective {certificate.objective:.10f} ({certificate.objective_numerator:,} / 2N)")
    print(f"  bound     {certificate.bound:.10f} ({certificate.status})")
    print(f"  {exact_seconds:.2f} s with verification, peak memory so far {peak:.2f} GiB")
    started = perf_counter()
    total = greedy(table, per_pair)
    greedy_seconds = perf_counter() - started
    worse = total / certificate.objective_numerator
    print(f"  greedy    {total / (2 * n_sentences):.10f}, {worse:.4f} times the optimum")
    print(
        f"  greedy {greedy_seconds:.2f} s; exact/greedy time {exact_seconds / greedy_seconds:.2f}"
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
