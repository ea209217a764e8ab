"""All of BLiMP under a 5-gram model: what training, reading, scoring and writing take.

On `text/openstax.train.txt` and `blimp` of the published data (environment variable CONTSTIM_DATA)
where they are present, else on the embedded English and pairs made by shuffling. `--quick` trains a
2-gram model and takes ten pairs of each paradigm.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from inputs import DATA, OPENSTAX

from contstim.corpus import read_sentences
from contstim.english import generate
from contstim.evaluation.accuracies import evaluate_minimal_pairs
from contstim.evaluation.folder import write_findings
from contstim.evaluation.minimal_pair_report import minimal_pair_findings
from contstim.evaluation.minimal_pairs import (
    MinimalPair,
    pair_files,
    read_minimal_pairs,
    sample_pairs,
)
from contstim.evaluation.scores import score_pairs
from contstim.models.ngram.adapter import NgramModel
from contstim.models.ngram.training import train_ngram
from contstim.sentence import Sentence
from contstim.store import Store


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print how long the block took."""
    start = perf_counter()
    yield
    print(f"{what}: {perf_counter() - start:.1f} s")


def read_pairs() -> list[MinimalPair]:
    """BLiMP's pairs, or sentences against their shuffled words."""
    if (DATA / "blimp").is_dir():
        return read_minimal_pairs(pair_files(DATA / "blimp"))
    chance = random.Random(0)
    pairs = []
    for number, good in enumerate(generate(2_000, seed=1)):
        bad = Sentence(tuple(chance.sample(good.words, len(good))))
        pairs.append(MinimalPair(f"shuffled_{number % 5}", "order", str(number), good, bad))
    return pairs


def main() -> None:
    """Run everything and print it."""
    quick = "--quick" in sys.argv
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with timed("training"):
            text = read_sentences(OPENSTAX) if OPENSTAX.is_file() else generate(5_000, seed=0)
            train_ngram(text, 2 if quick else 5, folder / "model.arpa")
        with timed("loading"):
            model = NgramModel(folder / "model.arpa", name="n-gram")
        with timed("reading pairs"):
            pairs = sample_pairs(read_pairs(), 10 if quick else 1_000, seed=0)
        what = f"scoring {len(pairs):,} pairs by all methods"
        with Store(folder / "scores.sqlite") as store, timed(what):
            scoring = score_pairs([model], pairs, store=store)
        with timed("tables, figures and report"):
            evaluation = evaluate_minimal_pairs(scoring, models=[model])
            write_findings(minimal_pair_findings(evaluation), folder / "out", models=[model])
        for method, table in evaluation.accuracies.items():
            print(f"{method}: accuracy {table.mean()[0]:.4f} in {len(table.paradigms)} paradigms")


if __name__ == "__main__":
    main()
