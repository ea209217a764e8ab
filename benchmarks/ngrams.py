"""Measure n-gram models: training, agreement with lmplz and KenLM, scoring, and searches.

The text is `text/openstax.train.txt` in CONTSTIM_DATA; without it, the embedded English. `--quick`
trains only orders 2 and 3.

`--equality` runs another check instead: orders 1 to 6 of the embedded English, 20,000 sentences of
each compared with KenLM bit for bit, and 200,000 timed (with `--quick` orders 1 to 3 and a tenth of
the sentences). Without it, comparisons with KenLM are skipped if kenlm is not installed.
"""

from __future__ import annotations

import math
import resource
import sys
import tempfile
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING

import numpy as np
from inputs import DATA, OPENSTAX, STUDY

from contstim.english import generate
from contstim.errors import ModelError
from contstim.models.ngram.adapter import NgramModel
from contstim.models.ngram.arpa import parse_arpa
from contstim.models.ngram.tables import NgramTables
from contstim.models.ngram.training import train_ngram
from contstim.optimization.search.synthesize import synthesize_triplet
from contstim.words.corpus import read_sentences
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable

HELD_OUT = DATA / "text" / "openstax.heldout.txt"
LMPLZ = DATA / "text" / "openstax.heldout.lmplz.tsv"
LMPLZ_COLUMN = {2: 0, 3: 1, 5: 2}


def train_model(order: int, folder: Path) -> NgramModel:
    """Train a model of one order, and print time, memory and sizes."""
    sentences = read_sentences(OPENSTAX) if OPENSTAX.is_file() else generate(20_000, seed=0)
    start = perf_counter()
    trained = train_ngram(sentences, order, folder / f"{order}.arpa")
    seconds = perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    sizes = " + ".join(f"{len(table.keys):,}" for table in trained.tables.orders)
    print(f"order {order}: {seconds:5.2f} s, peak {peak:.2f} GiB so far, {sizes} n-grams")
    for n, discounts in enumerate(trained.discounts, start=1):
        print(f"    {n}-gram discounts: " + ", ".join(f"{d:.6g}" for d in discounts))
    return NgramModel(folder / f"{order}.arpa")


def compare_with_lmplz(model: NgramModel, order: int) -> None:
    """Print the largest difference from lmplz's scores of the held-out sentences."""
    if not LMPLZ.is_file() or order not in LMPLZ_COLUMN:
        return
    rows = [line.rstrip("\n").split("\t") for line in LMPLZ.open(encoding="utf-8")][1:]
    theirs = np.array([float(row[LMPLZ_COLUMN[order]]) for row in rows])
    ours = model.log_probs([Sentence.parse(row[3]) for row in rows]) / math.log(10)
    print(
        f"    lmplz: at most {np.abs(ours - theirs).max():.6f} log10 apart, {len(rows):,} sentences"
    )


def measure_scoring(model: NgramModel, n: int) -> None:
    """Compare loading and scoring with our tables and with KenLM (one call per sentence)."""
    try:
        from contstim.models.ngram.adapter import KenlmQuery

        KenlmQuery(model.path)
    except ModelError:
        print("    kenlm is not installed: its time is not compared")
        return
    text = read_sentences(HELD_OUT) if HELD_OUT.is_file() else generate(2_000, seed=1)
    sentences = list(islice(cycle(text), n))
    loaders: dict[str, Callable[[], NgramTables | KenlmQuery]] = {
        "tables": lambda: parse_arpa(model.path.read_bytes(), model.path),
        "kenlm": lambda: KenlmQuery(model.path),
    }
    load, seconds, totals = {}, {}, {}
    for name, load_query in loaders.items():
        start = process_time()
        query = load_query()
        load[name] = process_time() - start
        start = process_time()
        totals[name] = query.totals(sentences, end=True)
        seconds[name] = process_time() - start
    equal = np.array_equal(totals["tables"], totals["kenlm"])
    print(
        f"    {n:,} sentences: tables {seconds['tables']:.2f} s, kenlm one by one "
        f"{seconds['kenlm']:.2f} s ({seconds['kenlm'] / seconds['tables']:.2f} times faster), "
        f"{'all equal bit for bit' if equal else 'NOT EQUAL'}; loading {load['tables']:.2f} s, "
        f"kenlm {load['kenlm']:.2f} s"
    )
    if not equal:
        sys.exit("Scores from tables are not KenLM's.")


def check_equality(folder: Path, *, quick: bool) -> None:
    """Compare tables with KenLM bit for bit, on new, partly unknown, and long sentences."""
    from contstim.models.ngram.adapter import KenlmQuery

    n = 2_000 if quick else 20_000
    text = generate(n, seed=0)
    new_sentences = generate(n, seed=1)
    rng = np.random.default_rng(0)
    # In turn: an unchanged sentence, one with an unknown word, and two joined sentences
    sentences = []
    for number, sentence in enumerate(new_sentences):
        words = list(sentence.words)
        if number % 3 == 1:
            words[int(rng.integers(len(words)))] = "zyzzyva"
        elif number % 3 == 2:
            words += new_sentences[number - 1].words
        sentences.append(Sentence(tuple(words), sentence.end))
    for order in range(1, 4 if quick else 7):
        path = folder / f"equality-{order}.arpa"
        train_ngram(text, order, path)
        tables, kenlm = parse_arpa(path.read_bytes(), path), KenlmQuery(path)
        for end in (True, False):
            ours, theirs = (query.totals(sentences, end=end) for query in (tables, kenlm))
            if not np.array_equal(ours, theirs):
                sys.exit(f"order {order}: {(ours != theirs).sum():,} scores are not KenLM's.")
        many = list(islice(cycle(sentences), 10 * n))
        seconds = []
        for query in (tables, kenlm):
            start = process_time()
            query.totals(many, end=True)
            seconds.append(process_time() - start)
        print(
            f"order {order}: {len(sentences):,} sentences equal bit for bit, with and without "
            f"their end; {len(many):,} in {seconds[0]:.2f} s, kenlm one by one {seconds[1]:.2f} s: "
            f"{seconds[1] / seconds[0]:.2f} times faster",
            flush=True,
        )


def measure_replacements(
    model: NgramModel, sentence: Sentence, words: tuple[str, ...], repeats: int
) -> None:
    """Compare scores of all replacements at each position with one call of KenLM per sentence."""
    try:
        import kenlm
    except ImportError:
        return
    one_by_one = kenlm.Model(str(model.path)).score
    model.replacement_log_probs(sentence, 1, words)  # reads the tables, once per search
    ours = theirs = 0.0
    for position in range(len(sentence)):
        first_words, last_words = sentence.words[:position], sentence.words[position + 1 :]
        texts = [" ".join((*first_words, word, *last_words)) for word in words]
        for _ in range(repeats):
            start = perf_counter()
            scores = model.replacement_log_probs(sentence, position, words)
            ours += perf_counter() - start
            start = perf_counter()
            expected = [one_by_one(text) for text in texts]
            theirs += perf_counter() - start
        np.testing.assert_allclose(scores, np.array(expected) * math.log(10), rtol=1e-5)
    runs = repeats * len(sentence)
    print(
        f"{len(words):,} words at a position: {1e3 * ours / runs:.2f} ms, kenlm one by one "
        f"{1e3 * theirs / runs:.1f} ms (texts joined beforehand): {theirs / ours:.1f} times faster"
    )


def measure_search(accept: NgramModel, reject: NgramModel, naturals: list[Sentence]) -> None:
    """Print the time of a triplet with the whole vocabulary."""
    words = accept.vocabulary(5)
    usable = [s for s in naturals if not words.missing_words(s)]
    start = perf_counter()
    for seed, natural in enumerate(usable):
        synthesize_triplet(accept, reject, natural, words, seed=seed)
    seconds = (perf_counter() - start) / len(usable)
    print(f"a triplet over {len(words.words):,} words: {seconds:.3f} s (mean of {len(usable)})")


def main() -> None:
    quick = "--quick" in sys.argv
    with tempfile.TemporaryDirectory() as name:
        if "--equality" in sys.argv:
            check_equality(Path(name), quick=quick)
            return
        models = {
            order: train_model(order, Path(name)) for order in ((2, 3) if quick else (2, 3, 5))
        }
        for order, model in models.items():
            compare_with_lmplz(model, order)
            measure_scoring(model, 10_000 if quick else 200_000)
        if STUDY.is_dir():
            from contstim.experiments.reproduce.published import read_vocabulary

            words = read_vocabulary(STUDY).inner
            sentence = Sentence.parse("Luke has a ton of experience with winning")
            (corpus,) = (STUDY / "resources" / "sentence_corpora").glob("*.txt")
            naturals = list(islice(read_sentences(corpus), 30))
        else:
            words = models[2].vocabulary(1).inner
            naturals = generate(5, seed=1, words=8)
            sentence = naturals[0]
        measure_replacements(models[3], sentence, words, repeats=1 if quick else 5)
        measure_search(models[3], models[2], naturals)


if __name__ == "__main__":
    main()
