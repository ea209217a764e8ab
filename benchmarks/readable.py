"""How readable are synthetic sentences, and what do a frame and few changes cost?

    python benchmarks/readable.py [--quick] [--kind NAME] [--sentences N] [--enough NATS] [--show]

Triplets between pairs of models of several kinds, from published natural sentences: searched for as
many nats as can be, with new words of the same part of speech, with as few new words as reach
enough nats, and with both. Words and natural sentences are those that `contstim vocabulary` and
`contstim sentences` find in the texts. A parser that contstim does not use (Debian's
`link-grammar`) tells of which sentences it parses every word. Beside it stand the nats of the
smaller side, the share of words kept, new words of another part of speech, characters and mean Zipf
frequency beside those of the natural sentence, the share of natural sentences that are passed over,
seconds of the processor for each triplet, and how many triplets have flags, by their kind. Last,
how many answers name the better model in 95 of 100 studies, each to another item: one of the two
models in turn is planted, and people follow it as they followed the better of two in experiment 1
of 2023. The published data are read from CONTSTIM_DATA, bert-mini and gpt2-mini from
CONTSTIM_MODELS; kinds whose models are not there are left out.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import warnings
from dataclasses import replace
from pathlib import Path
from shutil import which
from tempfile import mkdtemp
from time import process_time
from typing import TYPE_CHECKING

import numpy as np
import torch
from inputs import MODELS, OPENSTAX, STUDY
from replay import answer_prob
from scipy.stats import binom

from contstim.english import generate
from contstim.english.tags import english_tags
from contstim.english.words import english_rules
from contstim.items.matching import match
from contstim.models.catalog import load_models
from contstim.models.ngram.training import train_ngram
from contstim.models.training.run import train_network
from contstim.models.training.settings import RecurrentSettings, TrainingSettings
from contstim.models.vocabularies import shared_vocabulary
from contstim.optimization.jobs.tasks import SEEDS
from contstim.optimization.search.constraints import capitals
from contstim.optimization.search.recipes import recipe_named
from contstim.optimization.search.settings import SearchSettings
from contstim.optimization.search.synthesize import synthesize_triplet
from contstim.steps.review import flags_of
from contstim.steps.sentences import SentenceSettings
from contstim.words.corpus import read_sentences
from contstim.words.frequencies import WordFrequencies
from contstim.words.word_rules import sort_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.items.stimuli import Triplet
    from contstim.models.base import LanguageModel
    from contstim.words.sentence import Sentence
    from contstim.words.vocabulary import Vocabulary

NATURAL = STUDY / "resources" / "sentence_corpora"
KINDS = {
    "2-gram × 3-gram": ("2gram", "3gram"),
    "3-gram × LSTM": ("3gram", "lstm"),
    "3-gram × GPT-2": ("3gram", "gpt2-mini"),
    "BERT × GPT-2": ("bert-mini", "gpt2-mini"),
    "demo's 2-gram × 3-gram": ("demo2", "demo3"),
}
LSTMS = {"lstm": (128, 192), "small-lstm": (32, 48)}  # widths of a word's vector and of the state
WAYS = ("nothing", "frame", "few changes", "both", "default", "golan2023")
RULE, LIMIT = (0.0824, -4.51, 0.43), 30.0  # the likeliest of those that replay.py prints
SURE = 0.95
_BATCH = ("-graphics=0", "-links=0", "-verbosity=1", "-null=0", "-limit=100")


def parsed(sentences: Sequence[Sentence]) -> list[bool]:
    """Of which sentences link-grammar parses every word."""
    lines = "".join(f"{sentence.text}\n" for sentence in sentences)
    command = ["link-parser", "en", *_BATCH]
    told = subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout
    # What breaks rules beyond linkages is told in two lines, the second with "(0 of"
    answers = [
        line.startswith("Found ")
        for line in told.splitlines()
        if line.startswith(("Found ", "No complete")) and "(0 of" not in line
    ]
    assert len(answers) == len(sentences), told
    return answers


def answers_needed(triplets: Sequence[Triplet], misfits: Sequence[int]) -> int:
    """Answers, each to another item, of which most name the planted model in 95 of 100 studies.

    Args:
        triplets: items, each two synthetic sentences to choose from; each model in turn is planted.
        misfits: new words of another part of speech in each triplet.
    """
    nats = [
        (
            t.log_prob_synthetic_2_model_1 - t.log_prob_synthetic_1_model_1,
            t.log_prob_synthetic_1_model_2 - t.log_prob_synthetic_2_model_2,
        )
        for t in triplets
    ]
    prob = answer_prob(RULE, LIMIT, np.array(nats), np.array(misfits)[:, None]).mean()
    return next(n for n in range(1, 100_001, 2) if binom.sf(n // 2, n, prob) >= SURE)


def model_named(name: str, folder: Path) -> str:
    """The specification of a model; those that are trained here are kept in a folder."""
    path = folder / name
    text: Callable[[], list[Sentence]] = (
        (lambda: generate(3_000, seed=0))
        if name.startswith("demo")
        else (lambda: list(read_sentences(OPENSTAX)))
    )
    if name.endswith("-mini"):
        return f"{name}=hf:{MODELS / name}"
    if name in LSTMS:
        if not path.is_dir():
            embedding, hidden = LSTMS[name]
            network = RecurrentSettings(embedding=embedding, hidden=hidden, min_count=5)
            train_network(text(), path, network, TrainingSettings(epochs=1, learning_rate=0.005))
        return f"{name}=lstm:{path}"
    if not path.with_suffix(".arpa").exists():
        train_ngram(text(), 2 if "2" in name else 3, path.with_suffix(".arpa"))
    return f"{name}=kenlm:{path.with_suffix('.arpa')}"


def words_and_naturals(
    kind: str, models: Sequence[LanguageModel], n: int, seed: int
) -> tuple[list[Sentence], Vocabulary, list[Sentence]]:
    """The text, those of its words that both models know, and sentences of eight of these."""
    if kind.startswith("demo"):
        text, least, pool = generate(3_000, seed=0), 2, generate(2_000, seed=11, words=8)
    else:
        text, least = list(read_sentences(OPENSTAX)), 20
        pool = list(read_sentences(next(NATURAL.glob("*optimization.txt"))))
    words, _ = shared_vocabulary(
        models, sort_words(text, english_rules(), min_count=least).vocabulary
    )
    fit = SentenceSettings(words="8").find(pool, words).sentences
    return text, words, random.Random(seed).sample(fit, min(n, len(fit)))


def measure(
    kind: str, folder: Path, n: int, ways: dict[str, SearchSettings], *, seed: int, show: bool
) -> None:
    """A row of the table for each way to search."""
    models = load_models([model_named(name, folder) for name in KINDS[kind]])
    text, words, naturals = words_and_naturals(kind, models, n, seed)
    frequencies, rule = WordFrequencies.of(text), capitals(words)
    print(f"\n{kind}: natural sentences parsed {np.mean(parsed(naturals)):.2f}")
    for way, settings in ways.items():
        triplets: list[Triplet] = []
        before = process_time()
        for natural in naturals:
            constraints = settings.constraints(natural, every_fix=False)
            if rule is not None:
                constraints = (*constraints, rule)
            triplet, *_ = synthesize_triplet(
                models[0],
                models[1],
                natural,
                words,
                recipe=recipe_named(settings.recipe),
                constraints=constraints,
                seeds=SEEDS,
                few_changes=settings.few_changes,
            )
            if triplet.distinct:
                triplets.append(replace(triplet, triplet_id=f"{len(triplets)}"))
        seconds = (process_time() - before) / max(1, len(triplets))
        if not triplets:
            print(f"  {way:22} all natural sentences are passed over")
            continue
        synthetic = [(t.natural, s) for t in triplets for s in (t.synthetic_1, t.synthetic_2)]
        if show:
            for natural, sentence in synthetic:
                print(f"    {natural.text}  ->  {sentence.text}")
        matches = [match(*pair, english_tags()) for pair in synthetic]
        misfits = [len(each.misfits) for each in matches]
        of_triplets = [sum(misfits[i : i + 2]) for i in range(0, len(misfits), 2)]
        new = [len(m.changed) / len(n) for m, (n, _) in zip(matches, synthetic, strict=True)]
        zipfs = [frequencies.mean_zipf(s) - frequencies.mean_zipf(n) for n, s in synthetic]
        print(
            f"  {way:22} parsed {np.mean(parsed([s for _, s in synthetic])):.2f}"
            f"  kept {1 - np.mean(new):.2f}"
            f"  misfits {np.mean(misfits):4.2f}"
            f"  nats {np.mean([min(t.drops) for t in triplets]):5.1f}"
            f" (least {min(min(t.drops) for t in triplets):4.1f})"
            f"  characters {np.mean([len(s.bare) - len(n.bare) for n, s in synthetic]):+5.1f}"
            f"  Zipf {np.mean(zipfs):+5.2f}"
            f"  passed over {1 - len(triplets) / len(naturals):.2f}"
            f"  {seconds:6.1f} s a triplet"
            f"  answers {answers_needed(triplets, of_triplets)}\n    {flags_of(triplets).text}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="three sentences of the demo's models")
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--sentences", type=int, default=40)
    parser.add_argument("--enough", type=float, default=5.0)
    parser.add_argument("--changes", type=int, help="new words, at most; half of all by default")
    parser.add_argument("--way", action="append", choices=WAYS)
    parser.add_argument("--seed", type=int, default=1, help="of the natural sentences")
    parser.add_argument("--models", type=Path, help="where trained models are kept")
    parser.add_argument("--show", action="store_true", help="print the sentences")
    options = parser.parse_args()
    if which("link-parser") is None or not STUDY.is_dir():
        print("skipped: it needs Debian's link-grammar and the published data (CONTSTIM_DATA)")
        return
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    both = SearchSettings(enough=options.enough, max_changes=options.changes)
    ways = {
        "nothing": SearchSettings(frame="none"),
        "frame": SearchSettings(enough=0, same_length=99, same_frequency=9),
        "few changes": SearchSettings(frame="none", enough=options.enough),
        "both": replace(both, same_length=99, same_frequency=9),
        "default": both,
        "golan2023": SearchSettings(recipe="golan2023"),
    }
    ways = {way: each for way, each in ways.items() if way in (options.way or ways)}
    kinds = ["demo's 2-gram × 3-gram"] if options.quick else options.kind or list(KINDS)
    folder = options.models or Path(mkdtemp())
    folder.mkdir(exist_ok=True)
    for kind in kinds:
        if any(name.endswith("-mini") and not (MODELS / name).is_dir() for name in KINDS[kind]):
            print(f"{kind}: skipped, no models (set CONTSTIM_MODELS)")
            continue
        n = 3 if options.quick else options.sentences
        measure(kind, folder, n, ways, seed=options.seed, show=options.show)


if __name__ == "__main__":
    main()
