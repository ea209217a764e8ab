"""One word of a sentence replaced by 1,000 others: shared passes against whole sentences.

    python benchmarks/causal_scoring.py [--base] [--quick] [--words N] [--repeats N]

The small GPT-2 is read from the folder `gpt2-mini` in CONTSTIM_MODELS. `--base` is a network of
GPT-2's own size with random weights and the same tokenizer. Candidates that are one token each are
listed apart from words as they come in a text, read from CONTSTIM_DATA. Times on a CPU are
processor seconds of one thread, which other programs disturb less than wall time.
"""

from __future__ import annotations

import argparse
import resource
from collections import Counter
from dataclasses import replace
from time import perf_counter, process_time
from typing import TYPE_CHECKING

import numpy as np
import torch
from inputs import DATA, MODELS

from contstim.models.causal.adapter import CausalModel
from contstim.models.causal.network import CausalNetwork
from contstim.models.checkpoints import Checkpoint, load_checkpoint
from contstim.models.loading import Loading
from contstim.models.words import encode_batch
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable

SENTENCE = Sentence.parse("The state of the art was never important")
POSITION = 5


def gpt2_shaped(small: Checkpoint) -> Checkpoint:
    """A network of the size of GPT-2 (124 million weights), not trained."""
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config())
    return Checkpoint(model, small.tokenizer, "GPT-2 shape", small.device, "causal")


def single_tokens(checkpoint: Checkpoint, n_words: int) -> list[str]:
    """Words that are one token in their place, in the order of the vocabulary."""
    vocabulary = checkpoint.tokenizer.get_vocab()
    tokens = sorted((t for t in vocabulary if t.startswith("Ġ")), key=vocabulary.__getitem__)
    words = [token[1:] for token in tokens if token[1:].isascii() and token[1:].isalpha()]
    return words[:n_words]


def natural_words(n_words: int) -> list[str]:
    """The distinct words of a text by frequency, every third of the first 3 N."""
    text = DATA / "text" / "openstax.heldout.txt"
    counts = Counter(text.read_text(encoding="utf-8").split())
    return [word for word, _ in counts.most_common(3 * n_words)][::3]


def seconds(task: Callable[[], object], repeats: int) -> float:
    """The best of several runs."""
    clock = perf_counter if torch.cuda.is_available() else process_time
    times = []
    for _ in range(repeats):
        start = clock()
        task()
        times.append(clock() - start)
    return min(times)


def plain_batches(checkpoint: Checkpoint, sentences: list[Sentence]) -> Callable[[], object]:
    """The sentences through the network, each row beginning with the context, nothing shared."""
    tokenizer = checkpoint.tokenizer
    network = CausalNetwork(checkpoint, by_words=False)
    context = replace(network.begin((tokenizer.bos_token_id,)), cache=None)
    rows = [encoding.ids for encoding in encode_batch(tokenizer, sentences, special_tokens=False)]
    return lambda: network.continuations(context, rows)


def compare(checkpoint: Checkpoint, rule: str, kind: str, words: list[str], repeats: int) -> None:
    model = CausalModel(checkpoint, rule=rule)
    sentences = [SENTENCE.replace(POSITION, word) for word in words]
    gap = np.abs(
        model.replacement_log_probs(SENTENCE, POSITION, words) - model.log_probs(sentences)
    )
    plain = seconds(plain_batches(checkpoint, sentences), repeats)
    whole = seconds(lambda: model.log_probs(sentences), repeats)
    shared = seconds(lambda: model.replacement_log_probs(SENTENCE, POSITION, words), repeats)
    cutting = seconds(lambda: model.token_counts(sentences), repeats)
    bounds = seconds(lambda: model.replacements(SENTENCE, POSITION, words), repeats)
    tokens = model.token_counts(sentences).mean()
    print(f"{rule}, {len(words):,} words, {kind}, {tokens:.2f} tokens a sentence")
    print(f"  whole sentences, plain batches     {plain:7.2f} s  ratio {plain / shared:.2f}")
    print(f"  whole sentences, log_probs         {whole:7.2f} s  ratio {whole / shared:.2f}")
    print(f"  replacement_log_probs              {shared:7.2f} s")
    print(f"    of which cutting into tokens     {cutting:7.2f} s")
    print(f"  upper bounds, words cut before     {bounds:7.3f} s")
    print(f"  largest difference of scores       {gap.max():7.1e} nats")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", action="store_true", help="a network of GPT-2's own size")
    parser.add_argument("--words", type=int, default=1_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--quick", action="store_true", help="100 words, once: a smoke run")
    options = parser.parse_args()
    if options.quick:
        options.words, options.repeats = 100, 1
    torch.set_num_threads(1)
    if not (MODELS / "gpt2-mini").is_dir():
        print(f"skipped: no gpt2-mini in {MODELS} (set CONTSTIM_MODELS)")
        return
    checkpoint = load_checkpoint(str(MODELS / "gpt2-mini"), Loading(device=options.device))
    if options.base:
        checkpoint = gpt2_shaped(checkpoint)
    single = single_tokens(checkpoint, options.words)
    for rule in ("log-likelihood", "chain"):
        compare(checkpoint, rule, "one token each", single, options.repeats)
        if DATA.is_dir():
            words = natural_words(options.words)
            compare(checkpoint, rule, "as in a text", words, options.repeats)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory {peak:.2f} GiB")


if __name__ == "__main__":
    main()
