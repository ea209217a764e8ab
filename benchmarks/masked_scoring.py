"""Compare the speed of scores under masked models with simpler implementations.

    python benchmarks/masked_scoring.py [--base] [--quick] [--repeats 3] [--list 200]

Runs on $CONTSTIM_MODELS/bert-mini, or with --base on a network of BERT-base's shape with random
weights. Prints seconds, ratios, and the peak memory of the process. If minicons is installed, it is
compared on a copy with the same weights and PyTorch's linear layers.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import torch
from inputs import MODELS

from contstim.english import generate
from contstim.models.checkpoints import Checkpoint, load_checkpoint
from contstim.models.loading import Loading
from contstim.models.masked.adapter import MaskedModel
from contstim.models.masked.plan import n_passes
from contstim.models.onednn import use_onednn
from contstim.models.words import encode_batch
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable

WORDS = (
    "the man saw his old house and was very happy when they came back to him with good food"
).split()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--base", action="store_true", help="BERT-base's shape, random weights")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--list", type=int, help="sentences scored under pll-original (8 or 200)")
    parser.add_argument("--quick", action="store_true", help="two short sentences: a smoke run")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if not (MODELS / "bert-mini").is_dir():
        print(f"skipped: no bert-mini in {MODELS} (set CONTSTIM_MODELS)")
        return
    checkpoint = load_checkpoint(str(MODELS / "bert-mini"), Loading(device="cpu"))
    if options.base:
        checkpoint = base_shaped(checkpoint)
    tokens = set(checkpoint.tokenizer.get_vocab())
    words = [word for word in WORDS if word in tokens]
    rng = np.random.default_rng(0)
    sentences = [
        Sentence(("The", *rng.permutation(words)[:7].tolist()))
        for _ in range(2 if options.base else 8)
    ]
    candidates = [t for t in sorted(tokens) if t.isalpha() and t.islower() and len(t) > 2][:1000:10]
    if options.quick:
        short = [Sentence(sentence.words[:5]) for sentence in sentences[:2]]
        measure_chain(checkpoint, short, 1, n_orders=10)
        measure_natural_mix(checkpoint, 2, words=5)
        measure_replacements(checkpoint, short[0], candidates[:5], 1, "chain")
        return
    if options.base:
        measure_chain(checkpoint, sentences[:1], options.repeats)
        measure_replacements(checkpoint, sentences[0], candidates[:12], 1, "chain")
    else:
        measure_chain(checkpoint, sentences, options.repeats)
        measure_natural_mix(checkpoint, 8)
        measure_replacements(checkpoint, sentences[0], candidates[:20], options.repeats, "chain")
    measure_replacements(checkpoint, sentences[0], candidates, options.repeats, "pll-sentence-l2r")
    measure_pll_original(
        checkpoint, words, options.list or (8 if options.base else 200), options.repeats
    )
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


def base_shaped(checkpoint: Checkpoint) -> Checkpoint:
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(0)
    model: Any = BertForMaskedLM(BertConfig(vocab_size=30_522))
    use_onednn(model)
    return replace(checkpoint, model=model.eval(), location="bert-base-shaped")


def plain_copy(model: Any) -> Any:
    """Return a copy with PyTorch's own linear layers, as other libraries run it."""
    copy = type(model)(model.config)
    copy.load_state_dict(model.state_dict())
    return copy.eval()


def shortest_time(run: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the shortest time of some calls, and the result."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
    return min(times), result


def compare(title: str, ours: float, theirs: float) -> None:
    print(f"{title:62s} {ours:8.3f} s  against {theirs:8.3f} s: {theirs / ours:5.2f} x faster")


def measure_chain(
    checkpoint: Checkpoint, sentences: list[Sentence], repeats: int, n_orders: int = 100
) -> None:
    """Compare the exact chain rule with 100 sampled orders, one batch per order."""
    exact = MaskedModel(checkpoint, rule="chain")
    ours, scores = shortest_time(lambda: exact.log_probs(sentences), repeats)
    theirs, sampled = shortest_time(
        lambda: [orders_one_by_one(exact, s, n_orders) for s in sentences], max(1, repeats // 3)
    )
    words = len(sentences[0])
    compare(f"chain, {len(sentences)} sentences of {words} words", ours, theirs)
    for sentence, score, (mean, error) in zip(sentences[:3], scores, sampled, strict=False):
        print(f"    {score:10.4f} exactly, {mean:10.4f} ± {error:.4f} sampled: {sentence}")


def measure_natural_mix(checkpoint: Checkpoint, n: int, words: int = 8) -> None:
    """Compare the exact chain rule with 100 orders, for words of one or several tokens."""
    natural = generate(n, seed=0, words=words)
    exact = MaskedModel(checkpoint, rule="chain")
    sampled = MaskedModel(checkpoint, rule="chain-sampled")
    ours, _ = shortest_time(lambda: exact.log_probs(natural), 1)
    theirs, _ = shortest_time(lambda: sampled.log_probs(natural), 1)
    passes = [n_passes(e.word_of) for e in encode_batch(checkpoint.tokenizer, natural)]
    compare(f"    natural words, {np.median(passes):.0f} passes (median), 100 orders", ours, theirs)
    error = sampled.standard_errors(natural).mean()
    largest = exact.standard_errors(natural).max()
    print(
        f"    standard error of 100 orders {error:.4f} nats (mean), of ours {largest:.4f} (largest)"
    )


@torch.inference_mode()
def orders_one_by_one(model: MaskedModel, sentence: Sentence, n: int) -> tuple[float, float]:
    """Return mean and standard error of sampled orders, with one batch per order."""
    checkpoint, classes = model.checkpoint, model._network.normaliser.classes
    assert classes is not None
    ids = torch.tensor(checkpoint.tokenizer(sentence.text)["input_ids"])
    rng, totals = np.random.default_rng(0), []
    members = torch.from_numpy(np.flatnonzero(classes == 1))
    column = torch.full((len(classes),), -1)
    column[members] = torch.arange(len(members))
    for _ in range(n):
        order = 1 + rng.permutation(len(sentence))
        batch = ids.repeat(len(order), 1)
        for i in range(len(order)):
            batch[i, order[i:]] = checkpoint.tokenizer.mask_token_id
        positions = torch.from_numpy(order)
        logits = checkpoint.model(input_ids=batch).logits[torch.arange(len(order)), positions]
        log_probs = logits[:, members].log_softmax(-1)
        totals.append(float(log_probs[torch.arange(len(order)), column[ids[positions]]].sum()))
    return float(np.mean(totals)), float(np.std(totals, ddof=1) / np.sqrt(n))


def measure_replacements(
    checkpoint: Checkpoint, sentence: Sentence, words: list[str], repeats: int, rule: str
) -> None:
    """Compare scores of replacements, which share passes, with scores of each new sentence."""
    model = MaskedModel(checkpoint, rule=rule)
    rewritten = [sentence.replace(4, word) for word in words]
    ours, shared = shortest_time(lambda: model.replacement_log_probs(sentence, 4, words), repeats)
    theirs, fresh = shortest_time(
        lambda: np.concatenate([model.log_probs([s]) for s in rewritten]), repeats
    )
    compare(f"{rule}, {len(words)} words at position 4 of {len(sentence)}", ours, theirs)
    with without_deduplication():
        theirs, _ = shortest_time(lambda: model.log_probs(rewritten), repeats)
    compare("    against one batched call that runs equal passes again", ours, theirs)
    print(f"    largest difference {np.abs(shared - fresh).max():.1e} nats")


def without_deduplication() -> Any:
    """Disable the deduplication of passes."""
    return patch(
        "contstim.models.masked.network.batching.unique_rows",
        lambda rows: (list(rows), np.arange(len(rows))),
    )


def measure_pll_original(checkpoint: Checkpoint, words: list[str], n: int, repeats: int) -> None:
    """Compare pll-original with minicons at several batch sizes."""
    rng = np.random.default_rng(1)
    sentences = [Sentence(("The", *rng.permutation(words)[:7].tolist())) for _ in range(n)]
    model = MaskedModel(checkpoint, rule="pll-original")
    ours, scores = shortest_time(lambda: model.log_probs(sentences), repeats)
    print(
        f"pll-original, {len(sentences)} sentences of 8 words: {len(sentences) / ours:.1f} a second"
    )
    try:
        scorer = import_module("minicons.scorer")
    except ImportError:
        print("    minicons is not installed: no comparison")
        return
    theirs = minicons_scorer(scorer, checkpoint)
    texts = [sentence.text for sentence in sentences]

    def score(size: int) -> list[float]:
        result: list[float] = []
        for i in range(0, len(texts), size):
            result += theirs.sequence_score(
                texts[i : i + size], reduction=lambda x: x.sum(0).item(), PLL_metric="original"
            )
        return result

    for size in (1, 4, 16, len(texts)):
        minicons_seconds, minicons_scores = shortest_time(lambda size=size: score(size), 1)  # type: ignore[misc]
        compare(f"    against minicons in batches of {size}", ours, minicons_seconds)
        assert np.abs(np.array(minicons_scores) - scores).max() < 1e-3


def minicons_scorer(scorer: Any, checkpoint: Checkpoint) -> Any:
    """Return a minicons scorer of the same weights; restore a method that minicons needs."""
    checkpoint.tokenizer.batch_encode_plus = checkpoint.tokenizer.__call__
    return scorer.MaskedLMScorer(
        plain_copy(checkpoint.model), "cpu", tokenizer=checkpoint.tokenizer
    )


if __name__ == "__main__":
    main()
