"""Sentences scored by this process and by two others: an n-gram model and a small network.

    python benchmarks/scoring_workers.py [--quick]

Each row is a whole scoring, from models that are not loaded to scores in a store: seconds of the
clock in all, and sentences a second once it is known what the models are. Other programs on the
machine lengthen both, so the load average is printed too. The network is a GPT-2 of four layers
with random weights; in this process it uses all processors, in two processes half of them each.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from contstim.english import generate
from contstim.models.loading import Loading
from contstim.models.ngram.training import train_ngram
from contstim.models.scoring import score_sentences
from contstim.steps.execution import ScoringExecution
from contstim.store import Store
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from contstim.files.arrays import FloatArray
    from contstim.models.base import Scorer

QUICK = "--quick" in sys.argv
EXECUTIONS = {
    "local": ScoringExecution(),
    "1 process": ScoringExecution(executor="processes", workers=1),
    "2 processes": ScoringExecution(executor="processes", workers=2),
}


def network(folder: Path, sentences: list[Sentence]) -> str:
    """A GPT-2 with random weights and a tokenizer of whole words; its specification."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    words = sorted({word for sentence in sentences for word in sentence.text.split()})
    ids = {word: number for number, word in enumerate(["<unk>", "<s>", *words])}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    size = 64 if QUICK else 256
    shape = GPT2Config(
        vocab_size=len(ids),
        n_positions=64,
        n_embd=size,
        n_layer=4,
        n_head=8,
        bos_token_id=1,
        eos_token_id=1,
    )
    GPT2LMHeadModel(shape).save_pretrained(folder)
    PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="<s>"
    ).save_pretrained(folder)
    return f"hf:{folder}"


def scored(
    scorers: AbstractContextManager[list[Scorer]], sentences: list[Sentence]
) -> tuple[FloatArray, float, float]:
    """Scores, the seconds in all, and those of them that are left once models are loaded."""
    start = perf_counter()
    with (
        scorers as models,
        tempfile.TemporaryDirectory() as folder,
        Store(Path(folder) / "scores.sqlite") as store,
    ):
        loaded = perf_counter()
        table = score_sentences(models, sentences, store=store)
        end = perf_counter()
    return table.log_probs, end - start, end - loaded


def main() -> None:
    """Run everything and print it."""
    many = generate(2_000 if QUICK else 50_000, seed=1)
    few = many[: 200 if QUICK else 2_000]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train_ngram(generate(4_000, seed=0), 3, folder / "3.arpa")
        for what, model, sentences in (
            ("3-gram", f"kenlm:{folder / '3.arpa'}", many),
            ("network", network(folder / "network", few), few),
        ):
            distinct = len({*sentences})
            print(f"{what}: {distinct:,} sentences, load {os.getloadavg()[0]:.1f}")
            reference: FloatArray | None = None
            for kind, execution in EXECUTIONS.items():
                scorers = execution.scorers([model], Loading(device="cpu"), print)
                scores, seconds, scoring = scored(scorers, sentences)
                rate = distinct / scoring
                print(f"    {kind:12} {seconds:7.2f} s, {rate:9,.0f} sentences a second")
                reference = scores if reference is None else reference
                # Other batches may round a network's scores in another way
                assert np.allclose(scores, reference, rtol=1e-6, atol=1e-4)


if __name__ == "__main__":
    main()
