"""Search through a server, of which only scores are known, against the search of the same network.

    python benchmarks/server_search.py [--quick] [--sentences N] [--searches N] [--pool SEED]

A small GPT-2 is asked in this process, where a search sees bounds and estimates of all words, and
behind a server of its own, where it sees the scores of whole sentences, with a small local model
that drafts, and without. The draft is a 3-gram of the language that the GPT-2 was trained on, where
CONTSTIM_DATA has a text of it, else a 2-gram of the embedded English, which tells next to nothing
of it. Searches through the server may be repeated with other seeds; the best is kept. The other
model is a 3-gram; natural sentences are searched by turns in one and the other direction. Settings
were chosen on the pool of seed 101. Drop is log p(natural | reject) - log p(synthetic | reject) in
nats; sentences are those that the GPT-2 scored; seconds are of the processor, the server's
included.

Texts and vocabulary are those of the embedded English; gpt2-mini is read from CONTSTIM_MODELS.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from tempfile import mkdtemp
from time import process_time
from typing import TYPE_CHECKING

import numpy as np
import torch
from inputs import MODELS, OPENSTAX, ROOT

sys.path.insert(0, str(ROOT))

from contstim.english import generate
from contstim.models.catalog import load_model
from contstim.models.checkpoints import load_checkpoint
from contstim.models.loading import Loading
from contstim.models.ngram.training import train_ngram
from contstim.optimization.search.synthesize import synthesize
from contstim.words.corpus import read_sentences
from contstim.words.sentence import repeats
from contstim.words.vocabulary import Vocabulary
from tests.models.server.fakes import MODEL, FakeServer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.files.arrays import FloatArray
    from contstim.models.base import LanguageModel
    from contstim.words.sentence import Sentence


class Counted:
    """Counts the sentences that a model scores, whichever method is asked."""

    def __init__(self, model: LanguageModel) -> None:
        self.model, self.n = model, 0
        inner = model.log_probs
        replaced = model.replacement_log_probs

        def log_probs(sentences: Sequence[Sentence]) -> FloatArray:
            self.n += len(sentences)
            return inner(sentences)

        def replacement_log_probs(
            sentence: Sentence, position: int, words: Sequence[str]
        ) -> FloatArray:
            before = self.n
            scores = replaced(sentence, position, words)
            self.n = before + len(words)
            return scores

        model.log_probs = log_probs  # type: ignore[method-assign]
        model.replacement_log_probs = replacement_log_probs  # type: ignore[method-assign]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two sentences")
    parser.add_argument("--sentences", type=int, default=30)
    parser.add_argument("--searches", type=int, default=1, help="through the server, best of all")
    parser.add_argument("--pool", type=int, default=11, help="seed of the natural sentences")
    options = parser.parse_args()
    location = MODELS / "gpt2-mini"
    if not location.is_dir():
        print(f"skipped, there is no folder {location} (set CONTSTIM_MODELS)")
        return
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    text = generate(3_000, seed=7)
    folder = Path(mkdtemp())
    for order in (2, 3):
        train_ngram(text, order, folder / f"{order}.arpa")
    draft = folder / "2.arpa"
    if OPENSTAX.is_file() and not options.quick:
        draft = folder / "draft.arpa"
        train_ngram(read_sentences(OPENSTAX), 3, draft)
    trigram = load_model(f"kenlm:{folder / '3.arpa'}")
    checkpoint = load_checkpoint(str(location), Loading(device="cpu"))
    words = Vocabulary.from_sentences(text, min_count=2)
    pool = generate(2_000, seed=options.pool, words=6)
    usable = [s for s in pool if not words.missing(s) and not repeats(s.words)]
    naturals = usable[: 2 if options.quick else options.sentences]

    def network(row: list[int]) -> np.ndarray:
        with torch.no_grad():
            logits = checkpoint.model(torch.tensor([row])).logits[0]
        return np.asarray(logits.log_softmax(dim=1).double().numpy())

    fake = FakeServer(network, checkpoint.tokenizer, window=checkpoint.window or 1024)
    with fake.running() as url:
        served = f"server:{url}#{MODEL}?tokenizer={location}"
        drafting = load_model(f"{served}&draft=kenlm:{draft}")
        models = {"in this process": (load_model(f"hf:{location}", device="cpu"), 1)}
        models["server, draft"] = (drafting, options.searches)
        models["server alone"] = (load_model(served), options.searches)
        print(f"{len(naturals)} natural sentences, {len(words.words):,} words", flush=True)
        counted = {name: Counted(model) for name, (model, _) in models.items()}
        # Drop, sentences and seconds after each search; the best drop so far, the others summed
        runs: dict[str, list[list[tuple[float, int, float]]]] = {name: [] for name in models}
        for number, natural in enumerate(naturals):
            for name, (model, searches) in models.items():
                # By turns the one and the other direction
                pair = (model, trigram) if number % 2 else (trigram, model)
                before, began, best, after = counted[name].n, process_time(), 0.0, []
                for seed in range(searches):
                    result = synthesize(*pair, natural, words, seed=seed)
                    best = max(best, float(result.natural_log_probs[1] - result.log_probs[1]))
                    after.append((best, counted[name].n - before, process_time() - began))
                runs[name].append(after)
            told = (f"{drop:7.1f} {n:5}" for name in runs for drop, n, _ in runs[name][-1])
            print(f"  {number + 1:3}", *told, flush=True)
    base = np.array(runs["in this process"])[:, 0].mean(axis=0)
    for name, (_, searches) in models.items():
        for n in range(searches):
            drop, spent, seconds = np.array(runs[name])[:, n].mean(axis=0)
            print(
                f"{name:16} {n + 1} searches  drop {drop:6.2f} nats ({drop / base[0]:.2f})  "
                f"sentences {spent:6.0f} ({spent / base[1]:.2f})  {seconds:5.1f} s"
            )


if __name__ == "__main__":
    main()
