"""Recurrent networks on real text: tokens a second, and the LSTM against a 3-gram.

    python benchmarks/recurrent_training.py [--quick] [--kind lstm] [--sentences N]
    python benchmarks/recurrent_training.py --compare [--out DIR]

The first form trains for one epoch and prints how many words (and ends of sentences) it learned
from in a second. The second trains the default network on the whole text with 20,000 words, maps
all other words of training and held-out text to one, trains a 3-gram on the mapped text, and
prints the perplexities of both on the mapped held-out text, the unknown word and the end of the
sentence counted. It takes most of an hour of processor time; started again with the same --out it
goes on where it stopped.

The text is `text/openstax.train.txt` in CONTSTIM_DATA; without it the embedded English serves for
the first form.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path

import numpy as np
from inputs import DATA

from contstim.english import generate
from contstim.models.base import LanguageModel
from contstim.models.catalog import load_model
from contstim.models.ngram.adapter import NgramModel
from contstim.models.ngram.training import train_ngram
from contstim.models.training.loop import Progress
from contstim.models.training.record import Training
from contstim.models.training.run import train_network
from contstim.models.training.settings import RecurrentSettings, TrainingSettings
from contstim.words.corpus import read_sentences
from contstim.words.sentence import Sentence

TEXT, HELD_OUT = (DATA / "text" / f"openstax.{part}.txt" for part in ("train", "heldout"))
WORDS = 20_000
UNKNOWN = "_unknown_"
EVERY = 250  # steps between two lines


def report(progress: Progress) -> None:
    if progress.step % EVERY == 0:
        perplexity = math.exp(progress.loss)
        print(
            f"epoch {progress.epoch}, step {progress.step:,} of {progress.steps:,}: training "
            f"perplexity so far {perplexity:.1f}",
            flush=True,
        )


def speed(kind: str, sentences: list[Sentence], words: int | None) -> None:
    """One epoch of the default network, and what it took."""
    with tempfile.TemporaryDirectory() as folder:
        network = RecurrentSettings(kind, vocabulary_size=words)  # type: ignore[arg-type]
        training = TrainingSettings(epochs=1)
        done = train_network(sentences, folder, network, training, on_progress=report)
    epoch = done.best
    print(
        f"{kind}: {epoch.predictions:,} words and ends in an epoch, "
        f"{epoch.predictions / epoch.training_seconds:,.0f} a second of wall time, "
        f"{epoch.predictions / epoch.cpu_seconds:,.0f} a second of processor time, validation "
        f"included (threads: {done.facts['threads']}, {done.facts['model']['vocabulary']:,} words)"
    )


def compare(kind: str, out: Path) -> None:
    """The default network against the 3-gram, on text of the same words."""
    text, held_out = list(read_sentences(TEXT)), list(read_sentences(HELD_OUT))
    network = RecurrentSettings(kind, vocabulary_size=WORDS)  # type: ignore[arg-type]
    done = train_network(text, out / kind, network, on_progress=report)
    describe(done)
    model = load_model(f"{kind}:{out / kind}")
    train_ngram(mapped(text, model), 3, out / "trigram.arpa")
    unseen = mapped(held_out, model)
    predictions = sum(len(sentence) + 1 for sentence in unseen)
    unknown = sum(word == UNKNOWN for sentence in unseen for word in sentence.words)
    print(f"held-out: {predictions:,} words and ends, {unknown:,} of them unknown")
    for name, scorer in (("3-gram", NgramModel(out / "trigram.arpa")), (kind, model)):
        print(f"{name}: held-out perplexity {perplexity(scorer, unseen):.2f}")


def describe(done: Training) -> None:
    for number, epoch in enumerate(done.curve, start=1):
        print(
            f"epoch {number}: perplexity {math.exp(epoch.training_loss):.1f} in training, "
            f"{math.exp(epoch.validation_loss):.1f} in validation; "
            f"{epoch.predictions / epoch.training_seconds:,.0f} a second, "
            f"{epoch.cpu_seconds / 60:.1f} min of processor time"
        )
    minutes = sum(epoch.cpu_seconds for epoch in done.curve) / 60
    print(f"in all {minutes:.1f} min of processor time; threads: {done.facts['threads']}")


def mapped(sentences: list[Sentence], model: LanguageModel) -> list[Sentence]:
    """The sentences with all words that a model does not know replaced by one."""
    words = list({word for sentence in sentences for word in sentence.words})
    known = {word for word, yes in zip(words, model.knows(words), strict=True) if yes}
    return [
        Sentence(tuple(word if word in known else UNKNOWN for word in sentence.words))
        for sentence in sentences
    ]


def perplexity(model: LanguageModel, sentences: list[Sentence]) -> float:
    predictions = sum(len(sentence) + 1 for sentence in sentences)
    return float(np.exp(-model.log_probs(sentences).sum() / predictions))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", default="lstm", choices=("rnn", "lstm", "bilstm"))
    parser.add_argument("--sentences", type=int, default=20_000)
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("recurrent-training"))
    parser.add_argument("--quick", action="store_true", help="2,000 sentences: a smoke run")
    options = parser.parse_args()
    n_sentences = 2_000 if options.quick else options.sentences
    if options.compare:
        compare(options.kind, options.out)
    elif TEXT.is_file():
        speed(options.kind, list(read_sentences(TEXT))[:n_sentences], None)
    else:
        speed(options.kind, generate(n_sentences, seed=0), None)


if __name__ == "__main__":
    main()
