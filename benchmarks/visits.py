"""Time of a search's visits within networks and around them, and what tokenising anew would cost.

    python benchmarks/visits.py [--quick] [--causal FOLDER] [--masked FOLDER] [--profile]

A search with networks of a few thousand weights spends little in their layers; what remains of the
network is its output over a vocabulary of 50,000 tokens, which is counted apart. The rest is host
time: what everything around the networks takes. The tokenizers and the vocabulary are what counts:
--causal and --masked name folders of checkpoints, by default those of gpt2 and roberta with
their real tokenizers and tiny networks beside the published data, or small ones built on the spot
where these are absent. Every pair is searched in both directions under the default recipe; then a
few visits are timed again with all words tokenised anew at each, as though no word's tokens could
be kept, and the ratio is printed.

The vocabulary is that of the 2023 study, read from CONTSTIM_DATA, or the embedded English where
that is absent.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
import warnings
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path
from tempfile import mkdtemp
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import numpy as np
from inputs import DATA, ROOT, STUDY

from contstim.english import generate
from contstim.experiments.reproduce.published import read_vocabulary
from contstim.models import subwords
from contstim.models.catalog import load_model
from contstim.models.costs import Tally, counting
from contstim.models.ngram.training import train_ngram
from contstim.models.vocabularies import shared_vocabulary
from contstim.optimization.search.recipes import DEFAULT
from contstim.optimization.search.synthesize import synthesize
from contstim.words.sentence import Sentence, repeats
from contstim.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contstim.models.base import LanguageModel

REAL = DATA.parent / "tokenizers"
N_WORDS = 8


class Enough(Exception):  # noqa: N818
    """As many visits as were to be timed."""


def folder(name: str, given: Path | None) -> Path:
    """The folder that was given, that with the real tokenizer, or a small one built here."""
    if given is not None:
        return given
    if (REAL / name).is_dir():
        return REAL / name
    sys.path.insert(0, str(ROOT))
    from tests.models.tiny import build

    return build(name, Path(mkdtemp()))


def trigram(sentences: list[Sentence]) -> LanguageModel:
    path = Path(mkdtemp()) / "3-gram.arpa"
    train_ngram(sentences, 3, path)
    return load_model(f"kenlm:{path}")


def vocabulary(english: list[Sentence]) -> Vocabulary:
    if (STUDY / "resources").is_dir():
        return read_vocabulary(STUDY)
    return Vocabulary.from_sentences(english)


def natural_sentence(words: Vocabulary) -> Sentence:
    rng = np.random.default_rng(0)
    while True:
        first = str(rng.choice(words.initial))
        sentence = Sentence((first, *map(str, rng.choice(words.inner, N_WORDS - 1))))
        if not repeats(sentence.words):
            return sentence


def visits(
    accept: LanguageModel, reject: LanguageModel, words: Vocabulary, most: int
) -> tuple[int, float, float]:
    """How many visits were made (about `most`), their CPU seconds, and the share of networks."""
    natural = natural_sentence(words)
    made = [0]
    propose = type(DEFAULT.proposer).propose

    def counted(proposer: Any, *arguments: Any) -> Any:
        if made[0] == most:
            raise Enough
        made[0] += 1
        return propose(proposer, *arguments)

    proposer: Any = type(DEFAULT.proposer)
    proposer.propose = counted
    start, wall = process_time(), perf_counter()
    with counting(Tally()) as tally:
        try:
            synthesize(accept, reject, natural, words, recipe=DEFAULT)
        except Enough:
            pass
        finally:
            proposer.propose = propose
    return made[0], process_time() - start, tally.seconds / (perf_counter() - wall)


@contextmanager
def tokenised_anew() -> Iterator[None]:
    """Let no model keep the tokens of words, as where a tokenizer's words depend on each other."""
    module: Any = subwords
    kept = module.words_are_independent
    module.words_are_independent = lambda _tokenizer: False
    try:
        yield
    finally:
        module.words_are_independent = kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few visits of few words")
    parser.add_argument("--causal", type=Path, help="folder of a causal checkpoint")
    parser.add_argument("--masked", type=Path, help="folder of a masked checkpoint")
    parser.add_argument("--visits", type=int, default=60, help="of each search, at most")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    english = generate(3_000, seed=7)
    causal = f"hf:{folder('gpt2', options.causal)}@chain"
    masked = f"hf:{folder('roberta', options.masked)}"
    rules = ("pll-word-l2r", "pll-original")  # few passes: what is timed is not the network

    def load() -> dict[str, LanguageModel]:
        return {
            "causal": load_model(causal, device="cpu"),
            **{rule: load_model(f"{masked}@{rule}", device="cpu") for rule in rules},
            "3-gram": gram,
        }

    gram = trigram(english)
    models = load()
    words, _ = shared_vocabulary([models["causal"], models[rules[0]]], vocabulary(english))
    if options.quick:
        words = Vocabulary(words.initial[:200], words.inner[:1_000], words.repeatable)
    most, few = (6, 1) if options.quick else (options.visits, 2)
    print(f"{len(words.words):,} words, {causal}, {masked}")
    print("                                visits/s   ms a visit   network %   host ms   anew: ms")
    pairs = [("causal", rules[0]), rules, ("causal", "3-gram")]
    for pair in pairs:
        for accept, reject in permutations(pair):
            visits(models[accept], models[reject], words, most)  # fills what is kept between visits
            if options.profile:
                profile = cProfile.Profile()
                profile.enable()
            made, seconds, network = visits(models[accept], models[reject], words, most)
            if options.profile:
                profile.disable()
                pstats.Stats(profile).sort_stats("tottime").print_stats(25)
            with tokenised_anew():
                slow = load()
            n_slow, seconds_slow, _ = visits(slow[accept], slow[reject], words, few)
            each, each_slow = 1000 * seconds / made, 1000 * seconds_slow / n_slow
            print(
                f"{accept + ' / ' + reject:30}{1000 / each:10.1f}{each:13.1f}{100 * network:12.0f}"
                f"{each * (1 - network):10.1f}{each_slow:11.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
