"""Compare the default recipe with the published one: drop after a number of forward passes.

    python benchmarks/search.py [--quick] [--pair M M]... [--sentences N] [--runs FILE] [--report]

Every pair of models is searched in both directions, with both recipes and one seed. The drop is
log p(natural | reject) - log p(synthetic | reject) in nats. Passes are sequences through both
networks, including drafts and estimates. Finished runs are stored in FILE and not repeated;
--report only reads them.

Natural sentences and the vocabulary are those of the 2023 study, from CONTSTIM_DATA. bert-mini and
gpt2-mini come from CONTSTIM_MODELS.
"""

from __future__ import annotations

import argparse
import json
import warnings
from dataclasses import asdict
from functools import lru_cache
from itertools import permutations
from pathlib import Path
from tempfile import mkdtemp
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
from inputs import DATA, MODELS, STUDY
from scipy.stats import spearmanr

from contstim.experiments.reproduce.published import read_vocabulary
from contstim.models.catalog import load_model
from contstim.models.costs import Cost, Tally, counting
from contstim.models.ngram.training import train_ngram
from contstim.models.vocabularies import shared_vocabulary
from contstim.optimization.search.recipes import RECIPES
from contstim.optimization.search.synthesize import synthesize
from contstim.words.corpus import read_sentences
from contstim.words.sentence import Sentence, repeats

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contstim.files.arrays import FloatArray
    from contstim.models.base import LanguageModel
    from contstim.words.vocabulary import Vocabulary

CORPUS = "natural_sentences_for_synthetic_controversial_sentence_pair_optimization.txt"
BERT, GPT = f"hf:{MODELS / 'bert-mini'}", f"hf:{MODELS / 'gpt2-mini'}@chain"
SEED = 0
FRACTIONS = (0.05, 0.1, 0.2, 1 / 3, 0.5, 1.0)
COMPARED = ("default", "golan2023")
Run = dict[str, Any]


@lru_cache
def load(specification: str) -> LanguageModel:
    """Load a model; train `2-gram` or `3-gram`."""
    if not specification.endswith("-gram"):
        return load_model(specification, device="cpu")
    path = Path(mkdtemp()) / f"{specification}.arpa"
    text = read_sentences(DATA / "text" / "openstax.train.txt")
    train_ngram(text, int(specification[0]), path)
    return load_model(f"kenlm:{path}")


def kind(specification: str) -> str:
    if specification.endswith("-gram"):
        return "n-gram"
    return load(specification).convention.fingerprint.partition("-")[0]


def naturals(vocabulary: Vocabulary, n: int, skip: int) -> list[Sentence]:
    """Return sentences of the study's corpus without repeated words, in random order."""
    path = STUDY / "resources" / "sentence_corpora" / CORPUS
    all_sentences = [Sentence.parse(line) for line in path.read_text(encoding="utf-8").splitlines()]
    usable = [s for s in all_sentences if not vocabulary.missing_words(s) and not repeats(s.words)]
    order = np.random.default_rng(SEED).permutation(len(usable))
    return [usable[i] for i in order[skip : skip + n].tolist()]


def search(accept: str, reject: str, natural: Sentence, words: Vocabulary, recipe: str) -> Run:
    models = load(accept), load(reject)
    start = process_time()
    result = synthesize(*models, natural, words, recipe=RECIPES[recipe], seed=SEED)
    seconds = process_time() - start
    curve, best_loss = [], result.climb.start.loss
    for step in result.climb.steps:
        if step.loss < best_loss:
            best_loss = step.loss
            curve.append((step.cost.rows, step.cost.tokens, result.climb.start.loss - best_loss))
    costs = [asdict(result.costs[name]) for name in result.models]
    return {
        "accept": accept,
        "reject": reject,
        "natural": natural.text,
        "recipe": recipe,
        "synthetic": result.synthetic.text,
        "costs": costs,
        "curve": curve,
        "drop": result.natural_log_probs[1] - result.log_probs[1],
        "slack": result.log_probs[0] - result.natural_log_probs[0],
        "visits": result.climb.visits,
        "steps": len(result.climb.steps),
        "seconds": seconds,
    }


def run_all(
    pairs: list[list[str]],
    n: int,
    path: Path,
    recipes: Iterable[str],
    *,
    only: int | None,
    both_ways: bool,
) -> None:
    finished = {(r["accept"], r["reject"], r["natural"], r["recipe"]) for r in read_runs(path)}
    study_words = read_vocabulary(STUDY)
    for index in range(n):
        for number, pair in enumerate(pairs):
            if only not in {None, number}:
                continue
            words, _ = shared_vocabulary([load(m) for m in pair], study_words)
            natural = naturals(words, 1, number * 1000 + index)[0]
            directions = list(permutations(pair))
            for accept, reject in directions if both_ways else [directions[index % 2]]:
                for recipe in recipes:
                    if (accept, reject, natural.text, recipe) in finished:
                        continue
                    run = search(accept, reject, natural, words, recipe)
                    with path.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(run) + "\n")
                    print(
                        f"{recipe:10} {run['drop']:6.2f} nats {total_cost(run).rows:8,} passes",
                        end="",
                    )
                    print(f" {run['seconds']:6.1f} s  {run['synthetic']}", flush=True)


def read_runs(path: Path) -> list[Run]:
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def total_cost(run: Run) -> Cost:
    return sum((Cost(**cost) for cost in run["costs"]), Cost())


def drop_at(run: Run, limit: float, *, tokens: bool = False) -> float:
    """Return the drop after `limit` passes (or tokens); 0 before the first step."""
    return max((drop for *spent, drop in run["curve"] if spent[tokens] <= limit), default=0.0)


def match_runs(runs: list[Run]) -> list[tuple[Run, Run]]:
    """Return (published, default) runs from the same sentence in the same direction."""
    runs_by_case: dict[tuple[str, ...], dict[str, Run]] = {}
    for run in runs:
        key = (run["accept"], run["reject"], run["natural"])
        runs_by_case.setdefault(key, {})[run["recipe"]] = run
    return [
        (r["golan2023"], r["default"]) for r in runs_by_case.values() if set(r) >= set(COMPARED)
    ]


def interval(ours: FloatArray, theirs: FloatArray) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the ratio of means, over pairs of runs."""
    rng = np.random.default_rng(0)
    draws = rng.integers(len(ours), size=(10_000, len(ours)))
    low, high = np.percentile(ours[draws].mean(axis=1) / theirs[draws].mean(axis=1), (2.5, 97.5))
    return float(low), float(high)


def print_comparison(title: str, pairs: list[tuple[Run, Run]]) -> None:
    sentences = {published["natural"] for published, _ in pairs}
    theirs = np.array([published["drop"] for published, _ in pairs])
    passes = np.array([total_cost(published).rows for published, _ in pairs])
    print(f"\n{title}: {len(pairs)} searches from {len(sentences)} natural sentences")
    print(f"  golan2023  mean drop {theirs.mean():6.2f} nats, {passes.mean():10,.0f} passes")
    own_passes = np.array([total_cost(default).rows for _, default in pairs])
    print(f"  default    mean drop {np.mean([r['drop'] for _, r in pairs]):6.2f} nats, ", end="")
    print(f"{own_passes.mean():10,.0f} passes until its end")
    print("  default, stopped at a share of the published search's passes (tokens):")
    for share in FRACTIONS:
        ours = np.array([drop_at(o, share * total_cost(p).rows) for p, o in pairs])
        by_tokens = [drop_at(o, share * total_cost(p).tokens, tokens=True) for p, o in pairs]
        low, high = interval(ours, theirs)
        print(
            f"    {share:5.2f}  mean drop {ours.mean():6.2f} ({np.mean(by_tokens):6.2f})  ", end=""
        )
        print(f"{ours.mean() / theirs.mean():5.2f} of golan2023's [{low:.2f}, {high:.2f}]")
    shares = np.linspace(0.01, 1, 100)
    means = [np.mean([drop_at(o, s * total_cost(p).rows) for p, o in pairs]) for s in shares]
    enough = [share for share, mean in zip(shares, means, strict=True) if mean >= theirs.mean()]
    print(
        f"  golan2023's mean drop is reached with {min(enough, default=np.nan):.2f} of its passes"
    )


def kinds_of(run: Run) -> tuple[str, ...]:
    return tuple(sorted((kind(run["accept"]), kind(run["reject"]))))


def print_costs_of_a_study(runs: list[Run], large: dict[str, float], flops: float) -> None:
    """Print costs per triplet by kind of pair, and the hours of a study of the published size."""
    pairs_of_kind = {
        ("causal", "masked"): 4,  # 1 x 4 models of the study; recurrent models are excluded
        ("causal", "n-gram"): 2,
        ("masked", "masked"): 6,
        ("masked", "n-gram"): 8,
        ("n-gram", "n-gram"): 1,
    }
    print("\nper triplet (both directions)     passes      tokens   CPU seconds")
    hours = dict.fromkeys(COMPARED, 0.0)
    for kinds, n_pairs in pairs_of_kind.items():
        for recipe in COMPARED:
            kind_runs = [r for r in runs if r["recipe"] == recipe and kinds_of(r) == kinds]
            if not kind_runs:
                continue
            spent = [total_cost(r) for r in kind_runs]
            passes, tokens = 2 * np.mean([(c.rows, c.tokens) for c in spent], axis=0)
            seconds = 2 * np.mean([r["seconds"] for r in kind_runs])
            title = f"  {' / '.join(kinds):18}{recipe:10}"
            print(f"{title}{passes:12,.0f}{tokens:12,.0f}{seconds:10.1f}")
            for r in kind_runs:
                for model, cost in zip((r["accept"], r["reject"]), r["costs"], strict=True):
                    work = 2 * cost["tokens"] * 2 * large.get(kind(model), 0.0)
                    hours[recipe] += n_pairs * 100 * work / len(kind_runs) / flops / 3600
    print(
        "the transformers' part of 36 pairs x 100 triplets, with 335 million weights in masked and"
    )
    print(f"1.56 billion in causal models at {flops / 1e12:.0f} TFLOP/s:")
    for recipe, needed in hours.items():
        print(f"  {recipe:10} {needed:8.1f} hours")


def print_agreement(specification: str, n: int, n_words: int) -> None:
    """Print the rank correlation of estimates with exact scores, over random words."""
    model = load(specification)
    words, _ = shared_vocabulary([model], read_vocabulary(STUDY))
    rng = np.random.default_rng(SEED)
    correlations: dict[str, list[float]] = {}
    passes: dict[str, list[float]] = {}
    for sentence in naturals(words, n, 0):
        position = int(rng.integers(1, len(sentence)))
        candidates = rng.choice(words.inner, n_words, replace=False).tolist()
        exact = model.replacement_log_probs(sentence, position, candidates)
        methods = {"bounds" if model.draft() is None else "shared terms": model.replacements}
        for effort in (0, 1, 2) if model.draft() is not None else ():
            draft = model.draft(effort)
            assert draft is not None
            methods[f"first estimate of draft {effort}"] = draft.replacements
            methods[f"draft {effort}"] = draft.replacement_scores  # type: ignore[assignment]
        for name, method in methods.items():
            with counting(Tally()) as tally:
                replacement_scores = method(sentence, position, candidates)
            values = getattr(replacement_scores, "estimate", replacement_scores)
            correlations.setdefault(name, []).append(float(spearmanr(values, exact).statistic))
            passes.setdefault(name, []).append(tally.total.rows)
    print(
        f"\nrank correlation with the exact score, {model.name}: {n} places, {n_words} words each"
    )
    for name, values in correlations.items():
        low, mean = min(values), np.mean(values)
        print(f"  {name:26} mean {mean:.3f}, lowest {low:.3f}, {np.mean(passes[name]):7.1f} passes")


def print_exact_pair(n: int) -> None:
    """Print time and drop of triplets of the 2-gram and the 3-gram over the whole vocabulary."""
    words, _ = shared_vocabulary([load("2-gram"), load("3-gram")], read_vocabulary(STUDY))
    first_sentence, *sentences = naturals(words, n + 1, 0)
    for recipe in COMPARED:
        search("2-gram", "3-gram", first_sentence, words, recipe)
        runs = [
            [search(a, r, natural, words, recipe) for a, r in permutations(("2-gram", "3-gram"))]
            for natural in sentences
        ]
        seconds = [sum(run["seconds"] for run in directions) for directions in runs]
        drop = np.mean([run["drop"] for directions in runs for run in directions])
        print(f"2-gram / 3-gram, {len(words.words):,} words, {n} triplets, {recipe}: ", end="")
        print(f"{np.mean(seconds):.2f} s each, at most {max(seconds):.2f}; mean drop {drop:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one sentence of one pair")
    parser.add_argument("--pair", nargs=2, action="append", help="two models; 2-gram, 3-gram too")
    parser.add_argument("--sentences", type=int, default=10, help="for each pair")
    parser.add_argument("--recipes", nargs="*", default=list(COMPARED), help="which to run")
    parser.add_argument("--runs", type=Path, default=Path(mkdtemp()) / "runs.jsonl")
    parser.add_argument("--only", type=int, help="index of the only pair to run, from 0")
    parser.add_argument(
        "--one-way", action="store_true", help="one direction per sentence, alternating"
    )
    parser.add_argument("--report", action="store_true", help="print stored runs only")
    parser.add_argument("--tflops", type=float, default=200.0, help="sustained speed of a GPU")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    pairs = options.pair or [[BERT, GPT], [BERT, "3-gram"], [GPT, "3-gram"]]
    if options.quick:
        pairs = [["2-gram", "3-gram"]]
    if not options.report:
        n = 1 if options.quick else options.sentences
        run_all(
            pairs,
            n,
            options.runs,
            options.recipes,
            only=options.only,
            both_ways=not options.one_way,
        )
    runs = read_runs(options.runs)
    for pair in sorted({tuple(sorted((r["accept"], r["reject"]))) for r in runs}):
        pair_runs = [r for r in runs if {r["accept"], r["reject"]} == set(pair)]
        if all(total_cost(r).rows for r in pair_runs):
            print_comparison(" / ".join(pair), match_runs(pair_runs))
    networks = match_runs([r for r in runs if total_cost(r).rows])
    if networks:
        print_comparison("all pairs", networks)
        print_costs_of_a_study(runs, {"masked": 0.335e9, "causal": 1.56e9}, options.tflops * 1e12)
    for model in sorted({r["accept"] for r in runs if kind(r["accept"]) != "n-gram"}):
        print_agreement(model, 6, 40)
    print_exact_pair(1 if options.quick else 10)


if __name__ == "__main__":
    main()
