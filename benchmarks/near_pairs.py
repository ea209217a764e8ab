"""How readable are near pairs, by how much do models disagree on them, and how long do they take?

    python benchmarks/near_pairs.py [--quick] [--kind NAME] [--sentences N] [--show]

Sentences, models and parser are those of `readable.py`: of published natural sentences, the single
new word on which two models disagree most. Beside the share of sentences of which link-grammar
parses every word stand the nats by which models disagree, in how many pairs the first model finds
the natural sentence likelier, the parts of speech of the words replaced, and seconds of the
processor for each natural sentence.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from pathlib import Path
from shutil import which
from tempfile import mkdtemp
from time import process_time

import numpy as np
import torch
from inputs import MODELS, STUDY
from readable import KINDS, model_named, parsed, words_and_naturals

from contstim.models.catalog import load_models
from contstim.steps.near_pairs import FindNearPairs


def measure(kind: str, folder: Path, n: int, *, show: bool) -> None:
    """A row of the table."""
    specifications = tuple(model_named(name, folder) for name in KINDS[kind])
    _, words, naturals = words_and_naturals(kind, load_models(specifications), n, seed=1)
    words.save(folder / "words.txt")
    (folder / "natural.txt").write_text("".join(f"{s.text}\n" for s in naturals), encoding="utf-8")
    step = FindNearPairs(
        models=specifications,
        sentences=folder / "natural.txt",
        out=folder / "near-pairs.csv",
        vocabulary=folder / "words.txt",
    )
    before = process_time()
    pairs = step.run()
    seconds = (process_time() - before) / len(naturals)
    if show:
        for pair, (first, second) in zip(pairs.pairs, pairs.margins.tolist(), strict=True):
            shown = f"{pair.good.text}  ->  {pair.bad.text}  {pair.paradigm}"
            print(f"    {shown} {first:+.1f} {second:+.1f}")
    good, bad = ([getattr(pair, side) for pair in pairs.pairs] for side in ("good", "bad"))
    paradigms = Counter(pair.paradigm for pair in pairs.pairs)
    nats = np.abs(pairs.margins).min(axis=1)
    print(
        f"{kind:24} pairs {len(good)} of {len(naturals)}"
        f"  parsed {np.mean(parsed(bad)):.2f} (natural {np.mean(parsed(good)):.2f})"
        f"  nats {np.median(nats):.1f} (least {nats.min():.1f})"
        f"  first model for natural {np.mean(pairs.margins[:, 0] > 0):.2f}"
        f"  {seconds:.2f} s a sentence\n    {dict(paradigms.most_common())}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="three sentences of the demo's models")
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--sentences", type=int, default=40)
    parser.add_argument("--models", type=Path, help="where trained models are kept")
    parser.add_argument("--show", action="store_true", help="print the pairs")
    options = parser.parse_args()
    if which("link-parser") is None or not STUDY.is_dir():
        print("skipped: it needs Debian's link-grammar and the published data (CONTSTIM_DATA)")
        return
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    folder = options.models or Path(mkdtemp())
    folder.mkdir(exist_ok=True)
    for kind in ["demo's 2-gram × 3-gram"] if options.quick else options.kind or list(KINDS):
        if any(name.endswith("-mini") and not (MODELS / name).is_dir() for name in KINDS[kind]):
            print(f"{kind}: skipped, no models (set CONTSTIM_MODELS)")
            continue
        measure(kind, folder, 3 if options.quick else options.sentences, show=options.show)


if __name__ == "__main__":
    main()
