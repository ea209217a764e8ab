"""Every kind of model trained on the embedded English: perplexity, and a taste for agreement.

    python benchmarks/embedded_english.py [--quick] [--sentences N] [--only NAME ...]

Trains a 1-, 2- and 3-gram, an RNN, an LSTM, a BiLSTM, a small GPT-2 and a small BERT. Prints for
each of them the processor time, the perplexity (of held-out sentences, per word and end; for GPT-2
and BERT that of the validation loss, per token), and how often it prefers a grammatical sentence to
the same one with a verb in the wrong number. Such a sentence is made from the derivation: another
form of the verb, by the lexicon, for persons other than the subject. Chance is 50 %.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING

import numpy as np

from contstim.english import Derivation, generate, lexicon, sample_tree
from contstim.models.base import LanguageModel
from contstim.models.catalog import load_model
from contstim.models.ngram.training import train_ngram
from contstim.models.training.run import train_network
from contstim.models.training.settings import (
    RecurrentSettings,
    TrainingSettings,
    TransformerSettings,
)
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contstim.english import Entry

    Train = Callable[[list[Sentence], Path], float | None]

PAIRS, MOST_WORDS = 300, 8
HELD_OUT = 1_000


@dataclass(frozen=True)
class Contestant:
    """A kind of model: how it is trained into a place, and how that place is named."""

    train: Train
    specification: str


def ngram(order: int) -> Contestant:
    def train(text: list[Sentence], out: Path) -> None:
        train_ngram(text, order, out.with_suffix(".arpa"))

    return Contestant(train, "kenlm:{}.arpa")


def recurrent(kind: str, epochs: int) -> Contestant:
    sizes = RecurrentSettings(kind, embedding=128, hidden=256, dropout=0.1)  # type: ignore[arg-type]
    how = TrainingSettings(epochs=epochs, learning_rate=0.005)

    def train(text: list[Sentence], out: Path) -> float:
        return train_network(text, out, sizes, how).perplexity

    return Contestant(train, kind + ":{}")


def transformer(kind: str, epochs: int, learning_rate: float, rule: str) -> Contestant:
    sizes = TransformerSettings(kind, width=128, layers=2)  # type: ignore[arg-type]
    how = TrainingSettings(epochs=epochs, learning_rate=learning_rate, warmup=0.05)

    def train(text: list[Sentence], out: Path) -> float:
        return train_network(text, out, sizes, how).perplexity

    return Contestant(train, "hf:{}" + rule)


def contestants(epochs: int | None) -> dict[str, Contestant]:
    return {
        **{f"{order}-gram": ngram(order) for order in (1, 2, 3)},
        **{kind: recurrent(kind, epochs or 4) for kind in ("rnn", "lstm", "bilstm")},
        "gpt2": transformer("gpt2", epochs or 4, 0.003, ""),
        "bert": transformer("bert", epochs or 8, 0.001, "@chain"),
    }


def agreement_pairs(n: int, avoid: set[Sentence]) -> list[tuple[Sentence, Sentence]]:
    """Sentences that no model was trained on, each with one that violates agreement."""
    rng = random.Random(5)
    pairs: dict[Sentence, Sentence] = {}
    while len(pairs) < n:
        derivation = sample_tree(rng)
        sentence, wrong = derivation.sentence, list(violations(derivation))
        if wrong and len(sentence) <= MOST_WORDS and sentence not in avoid:
            pairs[sentence] = rng.choice(wrong)
    return list(pairs.items())


def violations(derivation: Derivation) -> Iterator[Sentence]:
    """The sentence with one finite verb in a form that its subject cannot have."""
    place = 0
    for leaf in derivation.nodes():
        if leaf.entry is None:
            continue
        for other in wrong_forms(leaf):
            words = list(derivation.sentence.words)
            for offset, word in enumerate(other.words):
                first = place + offset == 0
                words[place + offset] = word[:1].upper() + word[1:] if first else word
            yield Sentence(tuple(words), derivation.sentence.end)
        place += len(leaf.entry.words)


def wrong_forms(leaf: Derivation) -> list[Entry]:
    """Forms of the same verb in the same tense, for other persons than the subject."""
    entry, person, tense = leaf.entry, leaf.symbol.get("agr"), leaf.symbol.get("form")
    if entry is None or tense not in ("pres", "past") or "agr" not in entry.features:
        return []
    return [
        other
        for other in lexicon().entries[entry.category]
        if other.lemma == entry.lemma
        and other.form != entry.form
        and len(other.words) == len(entry.words)
        and tense in other.features.get("form", ())
        and person not in other.features.get("agr", (person,))
        and other.features.get("pol") == entry.features.get("pol")
    ]


def perplexity(model: LanguageModel, sentences: list[Sentence]) -> float:
    """Per word, and per end where the model scores it."""
    predictions = sum(len(s) + model.convention.end_scored for s in sentences)
    return float(np.exp(-model.log_probs(sentences).sum() / predictions))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=20_000)
    parser.add_argument("--only", nargs="*", default=[], help="of these models alone")
    parser.add_argument("--quick", action="store_true", help="500 sentences: a smoke run")
    options = parser.parse_args()
    text = generate(500 if options.quick else options.sentences, seed=0)
    seen = set(text)
    held_out = [s for s in generate(2 * HELD_OUT, seed=1) if s not in seen][:HELD_OUT]
    pairs = agreement_pairs(20 if options.quick else PAIRS, seen)
    print(f"{len(text):,} sentences, {len(held_out):,} held out, {len(pairs)} pairs such as")
    for good, bad in pairs[:3]:
        print(f"    {good}  |  {bad}")
    with tempfile.TemporaryDirectory() as folder:
        for name, contestant in contestants(1 if options.quick else None).items():
            if options.only and name not in options.only:
                continue
            out, began = Path(folder) / name, process_time()
            trained = contestant.train(text, out)
            seconds = process_time() - began
            model = load_model(contestant.specification.format(out))
            if contestant.specification.startswith("hf:"):
                told = f"{trained:.2f} a token in validation"
            else:
                told = f"{perplexity(model, held_out):.2f} a word, held out"
            scores = model.log_probs([sentence for pair in pairs for sentence in pair])
            ahead = scores[0::2] - scores[1::2]  # by pair: how much likelier the good sentence is
            right = np.mean(ahead > 0) + np.mean(ahead == 0) / 2
            print(
                f"{name:>7}: {seconds:5.0f} s of processor time; perplexity {told}; "
                f"agreement {right:.1%} of {len(pairs)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
