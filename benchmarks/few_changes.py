"""Measure searches for few new words: quality against an exhaustive search, costs and readers.

    python benchmarks/few_changes.py [--quick] [--only exhaustive|work]
    python benchmarks/few_changes.py --tables A/triplets.csv B/triplets.csv [--readers FOLDER]

Two 4-gram models are trained on halves of three quarters of openstax.train.txt in $CONTSTIM_DATA.
Natural sentences come from the last quarter. Networks are gpt2-mini and bert-mini in
$CONTSTIM_MODELS. The judge is the model in $CONTSTIM_REAL_MODEL, by default gpt2-mini.

exhaustive  Few words are allowed at each position, so that all sentences with one or two new words
            can be scored. Prints the share of searches with the fewest possible new words (with
            networks: at most two new words), and the share that finds the right sentence: of those
            that the judge likes almost as much as its favourite, the strongest disagreement.
work        All words are allowed. Prints, with and without the judge: number of triplets, seconds
            and rows of networks per triplet, drop under the judge, and all measures of --tables.
--tables    Describes tables of triplets: smaller drop, share of kept words, share of sentences with
            a complete parse (if link-grammar is installed), and planted truth. This is the median
            number of answers until the odds for one of the two models are 20 to 1. A simulated
            person follows one model: the person prefers synthetic_2 to synthetic_1 with
            probability logistic(.084 · log ratio of the sentences).
--readers   The first call writes sheet.csv into the folder: up to 80 new sentences of each table,
            and their natural sentences, under random identifiers and in random order. Readers save
            files labels-….csv with the columns id and label (fine, odd, ungrammatical, broken) in
            the same folder. Later calls print the share of fine sentences for each reader, and the
            agreement of the first two readers.
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
from collections import Counter
from itertools import combinations, product
from os import environ
from pathlib import Path
from shutil import which
from subprocess import run
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from inputs import MODELS, OPENSTAX
from scipy.special import expit, log_expit
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.proportion import proportion_confint

from contstim.items.reviews import changed_positions
from contstim.items.stimuli import read_triplets
from contstim.models.catalog import load_model
from contstim.models.ngram.training import train_ngram
from contstim.optimization.search.constraints import Candidates, Constraint, capitals, no_repeats
from contstim.optimization.search.few_changes import JUDGE_ERROR, FewChanges
from contstim.optimization.search.settings import SearchSettings
from contstim.optimization.search.synthesize import synthesize, synthesize_triplet
from contstim.steps.sentences import SentenceSettings
from contstim.words.corpus import read_sentences
from contstim.words.sentence import Sentence, repeats
from contstim.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contstim.items.stimuli import Triplet
    from contstim.models.base import LanguageModel

ENOUGH, ALL_DROPS = 3.0, 1e6
MIN_COUNT = 5
WORDS_OF_NGRAMS, WORDS_OF_NETWORKS = 40, 10  # allowed words at a position in exhaustive searches
REAL = environ.get("CONTSTIM_REAL_MODEL", "")
SLOPE = 0.084  # per nat; slopes of random natural pairs in experiment 1 of 2023 are .06 to .12
ODDS, MAX_ANSWERS, STUDIES = 20, 300, 2_000
READ_SENTENCES = 80


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one or two sentences of each kind")
    parser.add_argument("--only", choices=["exhaustive", "work"])
    parser.add_argument("--tables", nargs="+", type=Path, default=[])
    parser.add_argument("--readers", type=Path)
    options = parser.parse_args()
    if options.tables:
        for path in options.tables:
            triplets = read_triplets(path)
            print(f"{path}: {len(triplets)} triplets")
            describe(triplets)
        if options.readers:
            ask_readers(options.tables, options.readers)
        return
    if not OPENSTAX.is_file() or not (MODELS / "gpt2-mini").is_dir():
        print(f"skipped: no {OPENSTAX}, or no gpt2-mini in {MODELS}")
        return
    with TemporaryDirectory() as folder:
        first, second, vocabulary, naturals = prepare(Path(folder))
        gpt2 = load_model(f"gpt2=hf:{MODELS / 'gpt2-mini'}")
        bert = load_model(f"bert=hf:{MODELS / 'bert-mini'}")
        real = load_model(f"real=hf:{REAL}") if REAL else gpt2
        if options.only != "work":
            number = 2 if options.quick else 20
            print("exhaustive search: fewest new words found, right sentence by the judge found")
            compare((first, second), real, vocabulary, naturals[:number], WORDS_OF_NGRAMS)
            judge = real if REAL else second
            compare((first, gpt2), judge, vocabulary, naturals[:number], WORDS_OF_NETWORKS)
        if options.only != "exhaustive":
            number = 1 if options.quick else 40
            measure((first, second), (real,), vocabulary, naturals[:number])
            measure((first, real), (gpt2,) if REAL else (second,), vocabulary, naturals[:number])
            measure((bert, gpt2), (real,) if REAL else (), vocabulary, naturals[:number])


def prepare(folder: Path) -> tuple[LanguageModel, LanguageModel, Vocabulary, list[Sentence]]:
    """Train two models, and return them with their vocabulary and natural sentences."""
    text = list(read_sentences(OPENSTAX))
    random.Random(0).shuffle(text)
    natural_text, training = text[: len(text) // 4], text[len(text) // 4 :]
    for number in (0, 1):
        train_ngram(training[number::2], 4, folder / f"{number}.arpa")
    first, second = (load_model(f"half{n}=kenlm:{folder}/{n}.arpa") for n in (0, 1))
    vocabulary = Vocabulary.from_sentences(training, min_count=MIN_COUNT)
    for model in (first, second):
        vocabulary = vocabulary.restrict(model.knows)[0]
    return first, second, vocabulary, [*SentenceSettings().find(natural_text, vocabulary).sentences]


def default_constraints(natural: Sentence, vocabulary: Vocabulary) -> tuple[Constraint, ...]:
    """Return the default constraints on new words."""
    settings = SearchSettings(enough=ENOUGH).constraints(natural, every_fix=False)
    return tuple(rule for rule in (*settings, capitals(vocabulary)) if rule is not None)


def compare(
    pair: tuple[LanguageModel, LanguageModel],
    judge: LanguageModel,
    vocabulary: Vocabulary,
    naturals: Sequence[Sentence],
    n_words: int,
) -> None:
    """Compare searches with all sentences of one or two new words, and print two shares."""
    fewest, right = [], []
    for natural, (accept, reject) in product(naturals, (pair, pair[::-1])):
        candidates = Candidates(
            vocabulary,
            natural,
            (no_repeats(vocabulary.repeatable), *default_constraints(natural, vocabulary)),
        )
        rng = random.Random(natural.text)
        words = {
            i: sample_words(candidates.possible[i], n_words, rng) for i in candidates.positions
        }
        if not any(words.values()):
            continue
        limit = listed_words_only(words)
        sentences = list(few_new_words(natural, words, vocabulary))
        gains = accept.log_probs(sentences) - accept.log_probs([natural])
        drops = reject.log_probs([natural]) - reject.log_probs(sentences)
        feasible = [
            s for s, ok in zip(sentences, (gains >= 0) & (drops >= ENOUGH), strict=True) if ok
        ]
        if not feasible:
            continue
        least = min(len(changed_positions(natural, sentence)) for sentence in feasible)
        plain = synthesize(
            accept, reject, natural, vocabulary, constraints=[limit], few_changes=FewChanges(ENOUGH)
        )
        n_new = len(changed_positions(natural, plain.synthetic)) or len(natural)
        both_cheap = accept.cheap_replacements and reject.cheap_replacements
        fewest.append(n_new <= (least if both_cheap else 2))
        judged = synthesize(
            accept,
            reject,
            natural,
            vocabulary,
            constraints=[limit],
            judges=judge,
            few_changes=FewChanges(ENOUGH, judge_drop=ALL_DROPS),
        )
        scores = judge.log_probs(feasible)
        lowest = scores.max() - JUDGE_ERROR
        close = [s for s, score in zip(feasible, scores, strict=True) if score >= lowest]
        strongest = (accept.log_probs(close) - reject.log_probs(close)).max()
        is_close = judged.log_probs[2] >= lowest - 1e-3
        right.append(
            judged.changed
            and is_close
            and judged.log_probs[0] - judged.log_probs[1] >= strongest - 1e-3
        )
    names = " x ".join(model.name for model in pair)
    print(f"  {names}, {len(fewest)} searches: {np.mean(fewest):.2f}, {np.mean(right):.2f}")


def listed_words_only(words: dict[int, list[str]]) -> Constraint:
    """Return the constraint that a position may only have its listed words."""
    return Constraint(
        "some words", lambda _n, _s, i, listed: np.isin(listed, words[i]), lasting=True
    )


def sample_words(words: Sequence[str], number: int, rng: random.Random) -> list[str]:
    return rng.sample([*words], min(number, len(words)))


def few_new_words(
    natural: Sentence, words: dict[int, list[str]], vocabulary: Vocabulary
) -> Iterator[Sentence]:
    """Yield all sentences with one or two new words."""
    for n_new in (1, 2):
        for positions in combinations(words, n_new):
            for new_words in product(*(words[position] for position in positions)):
                sentence = natural
                for position, word in zip(positions, new_words, strict=True):
                    sentence = sentence.replace(position, word)
                if len(changed_positions(natural, sentence)) == n_new and not repeats(
                    sentence.words, vocabulary.repeatable
                ):
                    yield sentence


def measure(
    pair: tuple[LanguageModel, LanguageModel],
    judges: Sequence[LanguageModel],
    vocabulary: Vocabulary,
    naturals: Sequence[Sentence],
) -> None:
    """Search triplets of a pair, with and without judges, and print the results."""
    for used_judges in (judges, ()) if judges else ((),):
        triplets: list[Triplet] = []
        rows: Counter[str] = Counter()
        began = perf_counter()
        for natural in naturals:
            triplet, *sides = synthesize_triplet(
                *pair,
                natural,
                vocabulary,
                constraints=default_constraints(natural, vocabulary),
                judges=used_judges,
                few_changes=FewChanges(ENOUGH),
            )
            for side in sides:
                rows.update({name: cost.rows for name, cost in side.costs.items()})
            triplets += [triplet] * triplet.distinct
        seconds, n = perf_counter() - began, len(triplets)
        names = " & ".join(judge.name for judge in used_judges) or "no judge"
        print(f"{' x '.join(model.name for model in pair)}, {names}: {n} of {len(naturals)}")
        if triplets:
            costs = [f"{name} {number / n:,.0f}" for name, number in rows.items()]
            print(f"  {seconds / n:.1f} s a triplet; rows {' '.join(costs)}")
            describe(triplets)
            drops = [
                np.subtract.outer(*np.split(j.log_probs(t.sentences), [1]))
                for j in judges
                for t in triplets
            ]
            if drops:
                share = np.mean(np.array(drops) <= 5)
                print(f"  drop under the judge: median {np.median(drops):.1f}, <= 5 {share:.2f}")
        sys.stdout.flush()


def describe(triplets: Sequence[Triplet]) -> None:
    """Print measures of triplets."""
    pairs = [(t.natural, sentence) for t in triplets for sentence in t.sentences[1:]]
    kept = [1 - len(changed_positions(natural, new)) / len(natural) for natural, new in pairs]
    smaller = [min(triplet.drops) for triplet in triplets]
    print(
        f"  smaller drop {min(smaller):.1f} nats or more, median {np.median(smaller):.1f}; "
        f"words kept {np.mean(kept):.2f}"
    )
    if which("link-parser"):
        sides = zip(*pairs, strict=True)
        parsed = [complete_parses([*dict.fromkeys(sentences)]) for sentences in sides]
        print("  complete parses {1:.2f}, of natural sentences {0:.2f}".format(*parsed))
    first, second = (answers_needed(triplets, followed) for followed in (0, 1))
    print(f"  planted truth: {first:g} answers if people follow model_1, {second:g} if model_2")


def answers_needed(triplets: Sequence[Triplet], followed: int) -> float:
    """Return the median number of answers until the odds for one model are `ODDS` to 1.

    Each answer is to a random triplet, and follows model_1 (0) or model_2 (1).
    """
    ratios = np.array(
        [
            (
                t.log_prob_synthetic_2_model_1 - t.log_prob_synthetic_1_model_1,
                t.log_prob_synthetic_2_model_2 - t.log_prob_synthetic_1_model_2,
            )
            for t in triplets
        ]
    )
    rng = np.random.default_rng(0)
    rows = rng.integers(len(ratios), size=(STUDIES, MAX_ANSWERS))
    is_second = rng.random(rows.shape) < expit(SLOPE * ratios[rows, followed])
    leanings = SLOPE * np.where(is_second[..., None], ratios[rows], -ratios[rows])
    evidence = np.abs(np.cumsum(log_expit(leanings) @ [1, -1], axis=1)) >= np.log(ODDS)
    return float(np.median(np.where(evidence.any(axis=1), evidence.argmax(axis=1) + 1, np.inf)))


def ask_readers(paths: Sequence[Path], folder: Path) -> None:
    """Write the sentences that people should read, or print the labels that they gave."""
    rng = random.Random(0)
    groups: dict[str, list[str]] = {}
    for path in paths:
        triplets = read_triplets(path)
        sample = rng.sample(triplets, min(READ_SENTENCES // 2, len(triplets)))
        groups[f"{path}, new"] = [s.text for t in sample for s in t.sentences[1:]]
        groups[f"{path}, natural"] = [t.natural.text for t in sample]
    texts = sorted({text for group in groups.values() for text in group})
    identifiers = dict(zip(texts, rng.sample(range(10_000, 100_000), len(texts)), strict=True))
    sheet = folder / "sheet.csv"
    if not sheet.exists():
        folder.mkdir(parents=True, exist_ok=True)
        rng.shuffle(texts)
        rows = [("id", "sentence"), *((identifiers[text], text) for text in texts)]
        with sheet.open("w", newline="") as output:
            csv.writer(output).writerows(rows)
        print(f"{sheet}: {len(texts)} sentences to read")
        return
    files = sorted(folder.glob("labels-*.csv"))
    labels = [{row["id"]: row["label"] for row in csv.DictReader(file.open())} for file in files]
    for name, group in groups.items():
        print(name)
        for file, of_reader in zip(files, labels, strict=True):
            fine = sum(of_reader[str(identifiers[text])] == "fine" for text in group)
            low, high = proportion_confint(fine, len(group), method="beta")
            print(f"  {file.stem}: fine {fine / len(group):.2f} [{low:.2f}, {high:.2f}]")
    if len(labels) > 1:
        pair = [[of_reader[str(identifiers[text])] for text in texts] for of_reader in labels[:2]]
        kinds = sorted({*pair[0], *pair[1]})
        counts = np.zeros((len(kinds), len(kinds)))
        np.add.at(counts, tuple([kinds.index(label) for label in one] for one in pair), 1)
        agreement, kappa = np.trace(counts) / len(texts), cohens_kappa(counts).kappa
        print(f"agreement of the first two readers {agreement:.2f}, kappa {kappa:.2f}")


def complete_parses(sentences: Sequence[Sentence]) -> float:
    """Return the share of sentences that link-grammar can parse without omitting a word."""
    settings = ("!verbosity=1", "!null=0", "!limit=100", "!graphics=0", "!postscript=0")
    text = "\n".join([*settings, *(sentence.text for sentence in sentences), ""])
    printed = run(["link-parser", "en"], input=text, capture_output=True, text=True, check=True)
    return 1 - printed.stdout.count("No complete linkages found") / len(sentences)


if __name__ == "__main__":
    main()
