"""How well `contstim plan` foretells how long a study takes on this machine.

    python benchmarks/plan.py [--quick] [--study NAME]...

Small studies of models that are trained on the embedded English are planned, run in a process of
their own, and planned again from the start, so that the estimate stands for the load of the machine
before and after the run. Printed are, for each stage, the geometric mean of both estimates, what
the records of the run say, and their ratio; short stages are summed up. The second table is about
single searches: how many positions one visits, and how often a sentence is searched, which
`contstim.optimization.jobs.speed` assumes where a search takes longer than it is measured.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import mean
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from contstim.english import generate
from contstim.models.catalog import load_model
from contstim.models.ngram.training import train_ngram
from contstim.models.vocabularies import shared_vocabulary
from contstim.optimization.search.recipes import RECIPES
from contstim.optimization.search.synthesize import synthesize
from contstim.study.planning import plan_study
from contstim.study.stage_records import record_path
from contstim.study.study_file import read_study
from contstim.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator

NGRAMS = {
    "bigram": '{ train = "ngram", order = 2 }',
    "trigram": '{ train = "ngram", order = 3 }',
}
LSTM = '{ train = "lstm", embedding = 64, hidden = 64, epochs = 4, min_count = 1, device = "cpu" }'
GPT2 = '{ train = "gpt2", width = 64, layers = 2, heads = 2, window = 64, epochs = 4 }'
STUDIES = {
    "2-gram, 3-gram": NGRAMS,
    "2-gram, LSTM": {"bigram": NGRAMS["bigram"], "lstm": LSTM},
    "2-gram, GPT-2": {"bigram": NGRAMS["bigram"], "gpt": GPT2},
    "2-gram, 3-gram, LSTM, GPT-2": {**NGRAMS, "lstm": LSTM, "gpt": GPT2},
}
QUICK = ("2-gram, 3-gram",)
_STUDY = """\
seed = 1
[texts]
training = "english:{training}"
natural = "english:600"
[models]
{models}
[vocabulary]
min_count = 2
[sentences]
words = "8"
[pairs]
per_pair = {selected}
[triplets]
per_pair = {searched}
{restarts}
[selection]
per_pair = {selected}
quantiles = 0
[design]
groups = 3
random_per_group = 2
catch_per_group = 2
[power]
simulations = 100
[export.jspsych]
"""
_SHORT = 1.0  # seconds


def write_study(folder: Path, models: dict[str, str], *, quick: bool) -> Path:
    """A study file in a new folder."""
    folder.mkdir(parents=True)
    text = _STUDY.format(
        training=1_000 if quick else 4_000,
        models="\n".join(f"{name} = {model}" for name, model in models.items()),
        selected=3 if quick else 6,
        searched=6 if quick else 15,
        restarts="restarts = 2" if quick else "",
    )
    path = folder / "study.toml"
    path.write_text(text)
    return path


def planned(path: Path) -> dict[str, float]:
    """The seconds of each stage that a plan, made by another process, foretells."""
    # Another folder without results: everything is to be done
    fresh = path.parent.with_name(f"{path.parent.name}-planned")
    fresh.mkdir()
    shutil.copy(path, fresh)
    call = [sys.executable, __file__, "--plan", str(fresh / path.name)]
    seconds: dict[str, float] = json.loads(subprocess.check_output(call))
    shutil.rmtree(fresh)
    return seconds


def compare(name: str, path: Path) -> tuple[float, float]:
    """Plan, run and plan again; print stages, and return the totals foretold and taken."""
    before = planned(path)
    call = [sys.executable, "-m", "contstim", "run", str(path), "--quiet"]
    status = subprocess.run(call, capture_output=True, text=True, check=False)
    if status.returncode not in (0, 3):  # 3: not every triplet was found
        raise SystemExit(status.stderr)
    after = planned(path)
    print(f"\n{name}\n{'stage':<20}{'estimate':>10}{'taken':>10}{'ratio':>8}")
    short = [0.0, 0.0]
    totals = [0.0, 0.0]
    for stage, first in before.items():
        record = path.parent / record_path(stage)
        taken = json.loads(record.read_text())["seconds"]
        estimate = (max(first, 1e-3) * max(after[stage], 1e-3)) ** 0.5
        totals = [totals[0] + estimate, totals[1] + taken]
        if max(taken, estimate) < _SHORT:
            short = [short[0] + estimate, short[1] + taken]
            continue
        print(row(stage, estimate, taken))
    print(row("all others", *short))
    print(row("in all", *totals))
    return totals[0], totals[1]


def row(name: str, estimate: float, taken: float) -> str:
    """A line of a table."""
    ratio = f"{estimate / taken:8.2f}" if taken else ""
    return f"{name:<20}{estimate:>8.1f} s{taken:>8.1f} s{ratio}"


def searches(n_sentences: int) -> Iterator[tuple[str, float, float]]:
    """For each recipe, visits of a search of eight words, and searches of a sentence."""
    folder = Path(mkdtemp())
    text = generate(2_000, seed=1)
    models = []
    for order in (1, 2, 3):
        path = folder / f"{order}.arpa"
        train_ngram(text, order, path)
        models.append(load_model(f"kenlm:{path}", name=f"{order}-gram"))
    vocabulary, _ = shared_vocabulary(models, Vocabulary.from_sentences(text, min_count=2))
    naturals = [s for s in generate(400, seed=2, words=8) if not vocabulary.missing(s)]
    for name, recipe in RECIPES.items():
        found = [
            synthesize(accept, reject, natural, vocabulary, recipe=recipe)
            for natural in naturals[:n_sentences]
            for accept, reject in ((models[0], models[1]), (models[2], models[1]))
        ]
        visits = [search.visits for each in found for search in each.history.searches]
        yield name, mean(visits), mean(len(each.history.searches) for each in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one smaller study")
    parser.add_argument("--study", action="append", choices=STUDIES, help="these studies alone")
    parser.add_argument("--plan", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.plan is not None:
        plan = plan_study(read_study(options.plan))
        print(json.dumps({stage.stage: stage.seconds or 0.0 for stage in plan.stages}))
        return
    root = Path(mkdtemp())
    ratios = []
    for number, name in enumerate(options.study or (QUICK if options.quick else STUDIES)):
        path = write_study(root / str(number), STUDIES[name], quick=options.quick)
        estimate, taken = compare(name, path)
        ratios.append(estimate / taken)
    print(f"\nestimate / taken of whole studies: {min(ratios):.2f} to {max(ratios):.2f}")
    print(f"\n{'recipe':<12}{'visits a search':>16}{'searches':>10}")
    for recipe, visits, number_of in searches(1 if options.quick else 20):
        print(f"{recipe:<12}{visits:>16.0f}{number_of:>10.1f}")


if __name__ == "__main__":
    main()
