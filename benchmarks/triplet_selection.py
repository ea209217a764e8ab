"""Measure the selection of triplets, and designs of the published size: objective, bound, time.

    python benchmarks/triplet_selection.py [--quick]

The published triplets are read from the folder in CONTSTIM_DATA; without them, this part is
skipped. The second part selects from artificial triplets.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from inputs import STUDY

from contstim.experiments.design.building import build_design
from contstim.experiments.reproduce.published import read_natural_pairs, read_triplets
from contstim.items.stimuli import Pair, Triplet
from contstim.optimization.selection.question import TripletQuestion
from contstim.optimization.selection.triplets import by_model_pair, select_triplets
from contstim.words.sentence import Sentence

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.published.readers import read_natural_sentences


def made_up(per_pair: int, n_models: int) -> tuple[Triplet, ...]:
    rng = np.random.default_rng(0)
    triplets = []
    for one, two in combinations([f"model-{m}" for m in range(n_models)], 2):
        for i in range(per_pair):
            n1, n2, s1, s2 = map(float, rng.normal([-40, -40, -80, -80], 8))
            n, a, b = (Sentence.parse(f"{one} {two} {k}{i} is sentence {k} of {i}.") for k in "nab")
            scores = (n1, n2, s1, n2, n1, s2, n1 - s1 + n2 - s2)
            triplets.append(Triplet(f"t-{one}-{two}-{i}", one, two, n, a, b, *scores))
    return tuple(triplets)


def choose(title: str, triplets: tuple[Triplet, ...], seen: tuple[Triplet, ...]) -> None:
    print(f"{title}: {len(triplets):,} triplets of {len(by_model_pair(triplets))} model pairs")
    total, cpu = 0.0, process_time()
    for objective in ("worst-rank", "controversiality", "readable"):
        started = perf_counter()
        found = select_triplets(triplets, TripletQuestion(objective=objective))
        seconds = perf_counter() - started
        total += seconds
        certificate = found.certificate
        print(
            f"  {objective:16} {certificate.objective:.6f}, bound "
            f"{certificate.bound:.6f} ({certificate.status}), {seconds:.2f} s"
        )
        if seen:
            mine, published = (
                {p: {t[i].triplet_id for i in places} for p, places in by_model_pair(t).items()}
                for t in (found.triplets, seen)
            )
            same = sum(mine[pair] == published[pair] for pair in published)
            print(f"  {'':16} {same} of {len(published)} sets are the published ones")
    print(
        f"  all: {total:.2f} s with verification ({process_time() - cpu:.2f} s of processor time)"
    )
    if not seen:
        return
    for rules in ({"natural_once": True}, {"word_cap": 120}, {"word_cap": 100}):
        found = select_triplets(triplets, TripletQuestion(objective="controversiality", **rules))
        certificate = found.certificate
        print(
            f"  {rules}: {certificate.objective:.6f}, bound {certificate.bound:.6f} "
            f"({certificate.status}, {certificate.solver}), {certificate.seconds:.2f} s"
        )


def share(triplets: tuple[Triplet, ...], part: float) -> list[Triplet]:
    """Give a part of the triplets the natural sentence of another random triplet."""
    order = np.random.default_rng(0).permutation(len(triplets))
    n = int(part * len(triplets))
    shared = list(triplets)
    for one, other in zip(order[:n], order[n : 2 * n], strict=True):
        shared[one] = replace(shared[one], natural=shared[other].natural)
    return shared


def allocate(pairs: tuple[Pair, ...], triplets: tuple[Triplet, ...]) -> None:
    natural = read_natural_sentences(STUDY)
    for part in (0.0, 0.3):
        found = build_design(pairs, share(triplets, part), natural)
        certificate = found.certificate
        groups = [Counter(t.condition for t in found.trials if t.group == g) for g in range(1, 11)]
        print(
            f"design, {part:.0%} of natural sentences shared between model pairs: "
            f"{certificate.trials:,} trials, {certificate.seconds:.2f} s, {certificate.status}"
        )
        same = all(group == groups[0] for group in groups)
        counts = ", ".join(f"{n} {condition}" for condition, n in groups[0].items())
        print(f"  every group {'the same' if same else 'NOT the same'}: {counts}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer made-up triplets")
    quick = parser.parse_args().quick
    if STUDY.is_dir():
        seen = read_triplets(STUDY, selected=True)
        choose("published", read_triplets(STUDY), seen)
        allocate(read_natural_pairs(STUDY), seen)
    else:
        print(f"published: skipped, there is no folder {STUDY} (set CONTSTIM_DATA)")
    choose("made up", made_up(*((100, 4) if quick else (500, 12))), ())


if __name__ == "__main__":
    main()
