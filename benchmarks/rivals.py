"""The default search against rivals: how far, after as many passes and in as much time.

    python benchmarks/rivals.py [--quick] [--folder DIR] [--sentences N] [--length N] [--words N]

Six kinds of pairs of small models (those of the demo, trained on the embedded English; of two
masked or two causal ones the second has another seed) search from the same natural sentences, in
one and the other direction by turns. The published recipe runs once; what it took, in passes and in
seconds of the processor, is the budget of all others, which go on until both are used up: our
recipes and random greedy search with other seeds, greedy search guided by gradients, beam search,
simulated annealing (`rival_searches`). Drop is log p(natural | reject) - log p(synthetic | reject)
in nats of the best sentence so far that keeps the floor; passes are sequences through networks.

Prints the mean drop of each at 10, 25, 50 and 100 % of the budget, and default less rival with 95 %
bootstrap intervals over natural sentences. Draws the mean drop against the share of the budget.
Runs are kept in DIR/rivals.jsonl as they finish and not repeated: it goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import warnings
import zlib
from collections import Counter
from contextlib import suppress
from itertools import product
from pathlib import Path
from tempfile import mkdtemp
from time import process_time
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import torch
from rival_searches import RIVALS, Contest, Spent

from contstim.demo import train
from contstim.english import generate
from contstim.optimization.search.constraints import Candidates, no_repeats
from contstim.words.sentence import Sentence, repeats
from contstim.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contstim.files.arrays import FloatArray
    from contstim.models.base import LanguageModel

# The number after a model's name is its seed.
KINDS = {
    "masked x masked": ("BERT 0", "BERT 1"),
    "masked x causal": ("BERT 0", "GPT-2 0"),
    "causal x causal": ("GPT-2 0", "GPT-2 1"),
    "causal x n-gram": ("GPT-2 0", "3-gram 0"),
    "recurrent x causal": ("LSTM 0", "GPT-2 0"),
    "masked x recurrent": ("BERT 0", "LSTM 0"),
}
SHARES = (0.1, 0.25, 0.5, 1.0)
PUBLISHED, OURS = "golan2023", "default"
Run = dict[str, Any]


def load(name: str, folder: Path, text: list[Sentence], epochs: int | None) -> LanguageModel:
    kind, seed = name.split()
    of_seed = folder / f"seed-{seed}"
    of_seed.mkdir(parents=True, exist_ok=True)
    model = train(kind, text, of_seed, seed=int(seed), most_epochs=epochs)
    model.name = name
    return model


def contests(
    folder: Path, n: int, length: int, n_words: int, n_text: int, epochs: int | None
) -> Iterator[tuple[str, LanguageModel, LanguageModel, Candidates]]:
    """Every kind of pair with its next sentence, so that what is there is balanced at any time."""
    path = folder / f"text-{n_text}.txt"
    if not path.is_file():
        path.write_text("\n".join(s.text for s in generate(n_text, seed=0)), encoding="utf-8")
    text = [Sentence.parse(line) for line in path.read_text(encoding="utf-8").splitlines()]
    inner = Counter(word for s in text for word in s.words[1:])
    frequent = [word for word, _ in inner.most_common(n_words)]
    initial = [word for word, _ in Counter(s.words[0] for s in text).most_common(n_words // 3)]
    known = set(inner)
    pool = [s for s in generate(20 * n + 50, seed=1, words=length) if not repeats(s.words)]
    usable = [s for s in pool if set(s.words[1:]) <= known and s.words[0] in initial][:n]
    models: dict[str, LanguageModel] = {}
    for number, natural in enumerate(usable):
        vocabulary = Vocabulary((*initial,), (*natural.words[1:], *frequent))
        candidates = Candidates(vocabulary, natural, (no_repeats(vocabulary.repeatable),))
        for kind, names in KINDS.items():
            for name in names:
                models[name] = models.get(name) or load(name, folder, text, epochs)
            accept, reject = names if number % 2 == 0 else names[::-1]
            yield kind, models[accept], models[reject], candidates


def run_all(path: Path, every: Iterator[Any], times: float) -> None:
    done = {(r["kind"], r["natural"], r["search"]): r for r in read(path)}
    for kind, accept, reject, candidates in every:
        natural = candidates.natural.text
        missing = [name for name in RIVALS if (kind, natural, name) not in done]
        # How words are cut into tokens is found out once, not by the search that comes first
        for model, index in product((accept, reject) if missing else (), (0, 1)):
            model.replacements(candidates.natural, index, candidates.vocabulary.at(index))
        for name in missing:
            search = RIVALS[name]
            limits: dict[str, Any] = {}
            if name != PUBLISHED:
                published = done[kind, natural, PUBLISHED]
                limits = {key: times * published[key] for key in ("passes", "seconds")}
            began = process_time()
            contest = Contest((accept, reject), candidates, **limits)
            # Seeds do not depend on what else is run
            rng = np.random.default_rng(zlib.crc32(f"{kind} {natural} {name}".encode()))
            with suppress(Spent):
                search(contest, rng)
            run = {
                "kind": kind,
                "accept": accept.name,
                "reject": reject.name,
                "natural": natural,
                "search": name,
                "drop": contest.natural.loss - contest.best,
                "passes": contest.cost.rows,
                "seconds": process_time() - began,
                "curve": contest.curve,
            }
            done[kind, natural, name] = run
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(run) + "\n")


def read(path: Path) -> list[Run]:
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def drop_at(run: Run, limit: float, column: int) -> float:
    """The drop after that many passes (column 0) or seconds (column 1)."""
    return max((point[2] for point in run["curve"] if point[column] <= limit), default=0.0)


def interval(differences: FloatArray) -> tuple[float, float]:
    """A 95 % bootstrap interval of the mean over natural sentences."""
    rng = np.random.default_rng(0)
    draws = rng.integers(len(differences), size=(10_000, len(differences)))
    low, high = np.percentile(differences[draws].mean(axis=1), (2.5, 97.5))
    return float(low), float(high)


def matched(runs: list[Run], kind: str) -> list[dict[str, Run]]:
    """Runs of all searches from one sentence."""
    found: dict[str, dict[str, Run]] = {}
    for run in runs:
        if run["kind"] == kind:
            found.setdefault(run["natural"], {})[run["search"]] = run
    return [some for some in found.values() if len(some) == len(RIVALS)]


def report(runs: list[Run]) -> None:
    for kind in KINDS:
        every = matched(runs, kind)
        if not every:
            continue
        passes = np.mean([some[PUBLISHED]["passes"] for some in every])
        seconds = np.mean([some[PUBLISHED]["seconds"] for some in every])
        print(f"\n{kind}: {len(every)} sentences; budget {passes:,.0f} passes, {seconds:.1f} s")
        for column, unit in enumerate(("passes", "seconds")):
            print(f"  at shares of its {unit}: mean drop, and default less it [95 %]")
            drops = {
                name: np.array(
                    [
                        [drop_at(s[name], share * s[PUBLISHED][unit], column) for share in SHARES]
                        for s in every
                    ]
                )
                for name in RIVALS
            }
            for name, values in drops.items():  # (n_sentences, n_shares)
                cells = []
                for index, share in enumerate(SHARES):
                    cell = f"{share:4.0%} {values[:, index].mean():6.2f}"
                    if name != OURS:
                        difference = drops[OURS][:, index] - values[:, index]
                        low, high = interval(difference)
                        cell += f" {difference.mean():+6.2f} [{low:6.2f},{high:6.2f}]"
                    cells.append(cell)
                print(f"    {name:14} " + "   ".join(cells))


def draw(runs: list[Run], path: Path) -> None:
    """A panel for each kind of pair: mean drop against the share of the published passes."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(2, 3, figsize=(12, 7), sharex=True, layout="constrained")
    shares = np.linspace(0, 1, 101)
    for kind, panel in zip(KINDS, panels.flat, strict=True):
        every = matched(runs, kind)
        panel.set_title(f"{kind} ({len(every)} sentences)")
        for name in RIVALS:
            curves = [
                [drop_at(some[name], share * some[PUBLISHED]["passes"], 0) for share in shares]
                for some in every
            ]
            if curves:
                panel.plot(shares, np.mean(curves, axis=0), label=name, lw=2.5 - (name != OURS))
    for panel in panels[1]:
        panel.set_xlabel("share of the published recipe's passes")
    for panel in panels[:, 0]:
        panel.set_ylabel("mean drop (nats)")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(RIVALS), frameon=False)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one sentence, hardly trained models")
    parser.add_argument("--folder", type=Path, help="keeps models and runs")
    parser.add_argument("--sentences", type=int, default=30, help="of each kind of pair")
    parser.add_argument("--length", type=int, default=6, help="words of a sentence")
    parser.add_argument("--words", type=int, default=300, help="the most frequent ones")
    parser.add_argument("--text", type=int, default=8_000, help="sentences to train on")
    parser.add_argument("--epochs", type=int, help="at most")
    parser.add_argument("--report", action="store_true", help="run nothing, print what is there")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    folder = options.folder or Path(mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "rivals.jsonl"
    if not options.report:
        sizes = (options.sentences, options.length, options.words, options.text, options.epochs)
        if options.quick:
            sizes = (1, 4, 30, 200, 1)
        run_all(path, contests(folder, *sizes), 1.0)
    runs = read(path)
    report(runs)
    draw(runs, folder / "rivals.png")
    print(f"\ncurves: {folder / 'rivals.png'}")


if __name__ == "__main__":
    main()
