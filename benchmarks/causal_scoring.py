"""Replace words of a sentence: time of shared passes and of complete sentences.

One word is replaced by 1,000 candidates; then batches of 36 sentences have two new words.

    python benchmarks/causal_scoring.py [--base] [--quick] [--words N] [--repeats N]

The network is the folder `gpt2-mini` in CONTSTIM_MODELS; with `--base`, a network of GPT-2's size
with random weights and the same tokenizer. Candidates are words of one token and, if CONTSTIM_DATA
exists, words of a text. On a CPU, times are processor seconds of one thread, because other programs
affect them less than wall time.
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
    """Return an untrained network of the size of GPT-2 (124 million weights)."""
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config())
    return Checkpoint(model, small.tokenizer, "GPT-2 shape", small.device, "causal")


def single_tokens(checkpoint: Checkpoint, n_words: int) -> list[str]:
    """Return words that are one token after a space, in the order of the vocabulary."""
    vocabulary = checkpoint.tokenizer.get_vocab()
    tokens = sorted((t for t in vocabulary if t.startswith("Ġ")), key=vocabulary.__getitem__)
    words = [token[1:] for token in tokens if token[1:].isascii() and token[1:].isalpha()]
    return words[:n_words]


def natural_words(n_words: int) -> list[str]:
    """Return every third of the 3 N most frequent words of a text."""
    text = DATA / "text" / "openstax.heldout.txt"
    counts = Counter(text.read_text(encoding="utf-8").split())
    return [word for word, _ in counts.most_common(3 * n_words)][::3]


def shortest_time(task: Callable[[], object], repeats: int) -> float:
    """Return the shortest time of several runs."""
    clock = perf_counter if torch.cuda.is_available() else process_time
    times = []
    for _ in range(repeats):
        start = clock()
        task()
        times.append(clock() - start)
    return min(times)


def plain_batches(checkpoint: Checkpoint, sentences: list[Sentence]) -> Callable[[], object]:
    """Return a function that runs the network on complete sentences after the context."""
    tokenizer = checkpoint.tokenizer
    network = CausalNetwork(checkpoint, by_words=False)
    context = replace(network.begin((tokenizer.bos_token_id,)), cache=None)
    rows = [encoding.ids for encoding in encode_batch(tokenizer, sentences, special_tokens=False)]
    return lambda: network.continuations(context, rows)


def compare(checkpoint: Checkpoint, rule: str, kind: str, words: list[str], repeats: int) -> None:
    model = CausalModel(checkpoint, rule=rule)
    sentences = [SENTENCE.replace(POSITION, word) for word in words]
    differences = np.abs(
        model.replacement_log_probs(SENTENCE, POSITION, words) - model.log_probs(sentences)
    )
    plain = shortest_time(plain_batches(checkpoint, sentences), repeats)
    single = shortest_time(lambda: model.log_probs(sentences), repeats)
    shared = shortest_time(lambda: model.replacement_log_probs(SENTENCE, POSITION, words), repeats)
    tokenization = shortest_time(lambda: model.token_counts(sentences), repeats)
    bounds = shortest_time(lambda: model.replacements(SENTENCE, POSITION, words), repeats)
    tokens = model.token_counts(sentences).mean()
    print(f"{rule}, {len(words):,} words, {kind}, {tokens:.2f} tokens a sentence")
    print(f"  whole sentences, plain batches     {plain:7.2f} s  ratio {plain / shared:.2f}")
    print(f"  whole sentences, log_probs         {single:7.2f} s  ratio {single / shared:.2f}")
    print(f"  replacement_log_probs              {shared:7.2f} s")
    print(f"    of which tokenization            {tokenization:7.2f} s")
    print(f"  upper bounds, words tokenized      {bounds:7.3f} s")
    print(f"  largest difference of scores       {differences.max():7.1e} nats")


def compare_batches(checkpoint: Checkpoint, words: list[str], repeats: int) -> None:
    """Score batches of 36 sentences with two new words, as the judges of a search do."""
    rng, n = np.random.default_rng(0), len(SENTENCE)
    sentences = []
    for _ in range(36 * 4):
        first, second = rng.choice(n, 2, replace=False).tolist()
        new_words = rng.choice(words, 2).tolist()
        sentences.append(SENTENCE.replace(first, new_words[0]).replace(second, new_words[1]))
    batches = [sentences[start : start + 36] for start in range(0, len(sentences), 36)]
    model = CausalModel(checkpoint)
    tasks = [plain_batches(checkpoint, batch) for batch in batches]
    plain = shortest_time(lambda: [task() for task in tasks], repeats)
    shared = shortest_time(lambda: [model.log_probs(batch) for batch in batches], repeats)
    print("144 sentences with two new words, in batches of 36")
    print(f"  plain batches                      {plain:7.2f} s  ratio {plain / shared:.2f}")
    print(f"  log_probs, trees of tokens         {shared:7.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", action="store_true", help="use a network of GPT-2's size")
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
    compare_batches(checkpoint, single, options.repeats)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory {peak:.2f} GiB")


if __name__ == "__main__":
    main()
