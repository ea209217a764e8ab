"""Compare selections with greedy choices and published sets: objective, bound, time and memory.

    python benchmarks/selection.py [--quick]

Natural pairs are selected from the published scores, and from synthetic ones: models share a
factor, and scores are rounded, so that some are equal. Both selections are repeated after a review
that rejects every eighteenth pair. They are also repeated for sentences of 7 to 9 words with the
option `same_length`; longer sentences are then less likely. Triplets are selected from the
published and from artificial ones, and assigned to groups. The published data are read from the
folder in CONTSTIM_DATA; without them, their parts are skipped.
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from inputs import STUDY

from contstim.experiments.design.building import build_design
from contstim.experiments.reproduce.published import read_natural_pairs, read_triplets
from contstim.items.reviews import Decision, Review, undecided_items
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Pair, Triplet
from contstim.optimization.selection.natural import select_natural
from contstim.optimization.selection.question import NaturalQuestion, TripletQuestion
from contstim.optimization.selection.triplets import by_model_pair, select_triplets
from contstim.words.sentence import Sentence

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.published.readers import read_natural_sentences

SCORES = STUDY / "resources" / "precomputed_sentence_probabilities"
PREFIX = "natural_sentences_for_natural_controversial_sentence_pair_selection_probs_"
MODELS = "bigram trigram rnn lstm bert roberta xlm electra gpt2".split()


def read_published_scores() -> ScoreTable:
    columns = [np.load(SCORES / f"{PREFIX}{model}.npy").ravel() for model in MODELS]
    return ScoreTable(None, tuple(MODELS), np.stack(columns, axis=1))


def synthetic_scores(n_sentences: int, n_models: int) -> ScoreTable:
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(n_sentences, 1))
    scores = np.round(shared + 0.6 * rng.normal(size=(n_sentences, n_models)), 4)
    return ScoreTable(None, tuple(f"model-{m}" for m in range(n_models)), scores)


def greedy_sum(table: ScoreTable, per_pair: int) -> int:
    """Repeatedly take the cheapest unused sentence of any source; return the sum of doubled ranks.

    It considers the same number of sentences per source as the exact method.
    """
    doubled = np.ascontiguousarray(table.doubled_ranks().T)
    n_models, n_sentences = doubled.shape
    n_candidates = per_pair * n_models * (n_models - 1)
    orders = [np.argsort(ranks, kind="stable") for ranks in doubled]
    arcs = []
    for source, (reject, accept) in enumerate(permutations(range(n_models), 2)):
        order = orders[reject]
        rows = order[doubled[accept, order] >= n_sentences][:n_candidates]
        arcs.append(np.stack([doubled[reject, rows], np.full(len(rows), source), rows]))
    cost, sources, rows = np.concatenate(arcs, axis=1)
    n_missing = [per_pair] * (n_models * (n_models - 1))
    used: set[int] = set()
    total = 0
    for arc in np.argsort(cost, kind="stable").tolist():
        source, row = int(sources[arc]), int(rows[arc])
        if n_missing[source] and row not in used:
            n_missing[source] -= 1
            used.add(row)
            total += int(cost[arc])
    if any(n_missing):
        sys.exit("The greedy choice found too few sentences, so there is no comparison.")
    return total


def compare_natural(title: str, table: ScoreTable, per_pair: int) -> None:
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
    total = greedy_sum(table, per_pair)
    greedy_seconds = perf_counter() - started
    worse = total / cost
    print(f"  greedy    {total / (2 * n_sentences):.10f}, {worse:.4f} times the optimum")
    print(
        f"  greedy {greedy_seconds:.2f} s; exact/greedy time {exact_seconds / greedy_seconds:.2f}"
    )
    select_after_review(table, per_pair)
    select_one_length(table, per_pair)


def with_texts(table: ScoreTable, words: Sequence[int]) -> ScoreTable:
    """Add artificial sentences to the scores; their numbers of words are `words`, in turn."""
    texts = (
        Sentence((f"row{row}", *("word",) * (words[row % len(words)] - 1)))
        for row in range(len(table.log_probs))
    )
    return replace(table, sentences=tuple(texts))


def select_after_review(table: ScoreTable, per_pair: int) -> None:
    scores = with_texts(table, [8])
    old_selection = select_natural(scores, NaturalQuestion(per_pair=per_pair))
    items = undecided_items(old_selection.pairs, "benchmark")
    review = Review(
        tuple(
            replace(item, decision=Decision.REJECT if not index % 18 else Decision.KEEP)
            for index, item in enumerate(items)
        )
    )
    started = perf_counter()
    new_selection = select_natural(scores, NaturalQuestion(per_pair=per_pair), review=review)
    certificate = new_selection.certificate
    seconds = perf_counter() - started
    ratio = certificate.objective / old_selection.certificate.objective
    print(
        f"  reviewed  {certificate.objective:.10f}, bound {certificate.bound:.10f}, "
        f"{ratio:.4f} times the optimum; {len(review.rejected)} of {len(items)} "
        f"rejected, {len(new_selection.changed)} others changed; {seconds:.2f} s (all texts known: "
        f"{old_selection.certificate.seconds:.2f} s without a review)"
    )


def select_one_length(table: ScoreTable, per_pair: int) -> None:
    lengths = np.array([7, 8, 9])
    spread = table.log_probs[np.isfinite(table.log_probs)].std()
    offsets = -1.5 * spread * lengths[np.arange(len(table.log_probs)) % 3]
    scores = replace(
        with_texts(table, lengths.tolist()), log_probs=table.log_probs + offsets[:, None]
    )
    plain = select_natural(scores, NaturalQuestion(per_pair=per_pair))
    unequal = sum(
        len(p.sentence_1) != len(p.sentence_2)
        for p in plain.pairs
        if p.sentence_1 is not None and p.sentence_2 is not None
    )
    started = perf_counter()
    selection = select_natural(scores, NaturalQuestion(per_pair=per_pair, same_length=True))
    certificate, seconds = selection.certificate, perf_counter() - started
    words = [len(pair.sentence_1) for pair in selection.pairs if pair.sentence_1 is not None]
    shares = [words.count(length) for length in lengths]
    print(
        f"  one length {certificate.objective:.10f}, bound {certificate.bound:.10f}, pairs of "
        f"7, 8, 9 words {shares}; {seconds:.2f} s (without: {plain.certificate.seconds:.2f} s, and "
        f"lengths differ in {unequal} of {len(plain.pairs)} pairs)"
    )


def artificial_triplets(per_pair: int, n_models: int) -> tuple[Triplet, ...]:
    rng = np.random.default_rng(0)
    triplets = []
    for model_1, model_2 in combinations([f"model-{m}" for m in range(n_models)], 2):
        for i in range(per_pair):
            n1, n2, s1, s2 = map(float, rng.normal([-40, -40, -80, -80], 8))
            n, a, b = (
                Sentence.parse(f"{model_1} {model_2} {k}{i} is sentence {k} of {i}.") for k in "nab"
            )
            scores = (n1, n2, s1, n2, n1, s2, n1 - s1 + n2 - s2)
            triplets.append(
                Triplet(f"t-{model_1}-{model_2}-{i}", model_1, model_2, n, a, b, *scores)
            )
    return tuple(triplets)


def compare_triplets(
    title: str, triplets: tuple[Triplet, ...], published_triplets: tuple[Triplet, ...]
) -> None:
    print(f"{title}: {len(triplets):,} triplets of {len(by_model_pair(triplets))} model pairs")
    total, cpu = 0.0, process_time()
    for objective in ("worst-rank", "controversiality", "readable"):
        started = perf_counter()
        selection = select_triplets(triplets, TripletQuestion(objective=objective))
        seconds = perf_counter() - started
        total += seconds
        certificate = selection.certificate
        print(
            f"  {objective:16} {certificate.objective:.6f}, bound "
            f"{certificate.bound:.6f} ({certificate.status}), {seconds:.2f} s"
        )
        if published_triplets:
            selected, published_sets = (
                {p: {t[i].triplet_id for i in indices} for p, indices in by_model_pair(t).items()}
                for t in (selection.triplets, published_triplets)
            )
            n_same = sum(selected[pair] == published_sets[pair] for pair in published_sets)
            print(f"  {'':16} {n_same} of {len(published_sets)} sets are the published ones")
    print(
        f"  all: {total:.2f} s with verification ({process_time() - cpu:.2f} s of processor time)"
    )
    if not published_triplets:
        return
    for rules in ({"natural_once": True}, {"word_cap": 120}, {"word_cap": 100}):
        selection = select_triplets(
            triplets, TripletQuestion(objective="controversiality", **rules)
        )
        certificate = selection.certificate
        print(
            f"  {rules}: {certificate.objective:.6f}, bound {certificate.bound:.6f} "
            f"({certificate.status}, {certificate.solver}), {certificate.seconds:.2f} s"
        )


def share_sentences(triplets: tuple[Triplet, ...], fraction: float) -> list[Triplet]:
    """Give a part of the triplets the natural sentence of another random triplet."""
    order = np.random.default_rng(0).permutation(len(triplets))
    n = int(fraction * len(triplets))
    shared = list(triplets)
    for index, source_index in zip(order[:n], order[n : 2 * n], strict=True):
        shared[index] = replace(shared[index], natural=shared[source_index].natural)
    return shared


def print_allocation(pairs: tuple[Pair, ...], triplets: tuple[Triplet, ...]) -> None:
    natural = read_natural_sentences(STUDY)
    for part in (0.0, 0.3):
        design = build_design(pairs, share_sentences(triplets, part), natural)
        certificate = design.certificate
        groups = [Counter(t.condition for t in design.trials if t.group == g) for g in range(1, 11)]
        print(
            f"design, {part:.0%} of natural sentences shared between model pairs: "
            f"{len(design.trials):,} trials, {certificate['seconds']:.2f} s, "
            f"{certificate['status']}"
        )
        is_same = all(group == groups[0] for group in groups)
        counts = ", ".join(f"{n} {condition}" for condition, n in groups[0].items())
        print(f"  every group {'the same' if is_same else 'NOT the same'}: {counts}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="smaller synthetic tables")
    quick = parser.parse_args().quick
    if SCORES.is_dir():
        compare_natural("published", read_published_scores(), per_pair=10)
        published_triplets = read_triplets(STUDY, selected=True)
        compare_triplets("published", read_triplets(STUDY), published_triplets)
        print_allocation(read_natural_pairs(STUDY), published_triplets)
    else:
        print(f"published: skipped, there is no folder {SCORES} (set CONTSTIM_DATA)")
    compare_natural(
        "synthetic", synthetic_scores(*((100_000, 10) if quick else (1_000_000, 20))), per_pair=10
    )
    compare_triplets("artificial", artificial_triplets(*((100, 4) if quick else (500, 12))), ())


if __name__ == "__main__":
    main()
