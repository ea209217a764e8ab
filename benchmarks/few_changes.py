"""Measure searches for few new words: quality against an exhaustive search, and costs.

    python benchmarks/few_changes.py [--quick] [--only exhaustive|work]

Two 4-gram models are trained on halves of three quarters of openstax.train.txt in $CONTSTIM_DATA.
Natural sentences come from the last quarter. Networks are gpt2-mini and bert-mini in
$CONTSTIM_MODELS. The judge is the model in $CONTSTIM_REAL_MODEL, by default gpt2-mini.

exhaustive  Few words are allowed at each position, so that all sentences with one or two new words
            can be scored. Prints the share of searches with the fewest possible new words (with
            networks: at most two new words), and the share that finds the right sentence: of those
            that the judge likes almost as much as its favourite, the strongest disagreement.
work        All words are allowed. Prints, with and without the judge: number of triplets, seconds
            and rows of networks per triplet, share of kept words, share of sentences with a
            complete parse (if link-grammar is installed), and change of the judge's
            log-probability.
"""

from __future__ import annotations

import argparse
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

from contstim.items.reviews import changed_positions
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

    from contstim.models.base import LanguageModel

ENOUGH, ALL_DROPS = 3.0, 1e6
MIN_COUNT = 5
WORDS_OF_NGRAMS, WORDS_OF_NETWORKS = 40, 10  # allowed words at a position in exhaustive searches
REAL = environ.get("CONTSTIM_REAL_MODEL", "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one or two sentences of each kind")
    parser.add_argument("--only", choices=["exhaustive", "work"])
    options = parser.parse_args()
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
        strongest = reject.log_probs(close).min()
        is_close = judged.log_probs[2] >= lowest - 1e-3
        right.append(judged.changed and is_close and judged.log_probs[1] <= strongest + 1e-3)
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
        drops: list[float] = []
        new_sentences: list[Sentence] = []
        shares: list[float] = []
        rows: Counter[str] = Counter()
        n_found, began = 0, perf_counter()
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
            if triplet.distinct:
                n_found += 1
                for sentence in triplet.sentences[1:]:
                    new_sentences.append(sentence)
                    shares.append(1 - len(changed_positions(natural, sentence)) / len(natural))
                for judge in judges:
                    scores = judge.log_probs(triplet.sentences)
                    drops += (scores[1:] - scores[0]).tolist()
        seconds = perf_counter() - began
        names = " & ".join(judge.name for judge in used_judges) or "no judge"
        print(f"{' x '.join(model.name for model in pair)}, {names}: {n_found} of {len(naturals)}")
        if n_found:
            print(
                f"  {seconds / n_found:.1f} s a triplet; words kept {np.mean(shares):.2f}; rows",
                end="",
            )
            print("".join(f" {name} {number / n_found:,.0f}" for name, number in rows.items()))
            if which("link-parser"):
                parsed = [complete_parses(sentences) for sentences in (new_sentences, naturals)]
                print("  complete parses {:.2f}, of natural sentences {:.2f}".format(*parsed))
        if drops:
            share = np.mean(np.array(drops) >= -5)
            print(f"  change under the judge: median {np.median(drops):+.1f}, >= -5 {share:.2f}")
        sys.stdout.flush()


def complete_parses(sentences: Sequence[Sentence]) -> float:
    """Return the share of sentences that link-grammar can parse without omitting a word."""
    settings = ("!verbosity=1", "!null=0", "!limit=100", "!graphics=0", "!postscript=0")
    text = "\n".join([*settings, *(sentence.text for sentence in sentences), ""])
    printed = run(["link-parser", "en"], input=text, capture_output=True, text=True, check=True)
    return 1 - printed.stdout.count("No complete linkages found") / len(sentences)


if __name__ == "__main__":
    main()
