"""Check scores on a GPU, and measure the speed of scoring and searching at published sizes.

    python benchmarks/gpu.py [--device cuda] [--seconds 15] [--quick]

Two networks have random weights and published shapes: GPT-2 XL (48 layers, width 1,600) and
BERT-large (24 layers, width 1,024). Their tokenizers are trained on the embedded English. Printed
are

* the largest difference between scores on the device (float32, bfloat16) and on the CPU (float64),
  for complete sentences and for a replaced word; the benchmark fails if a difference is too large;
* sentences per second by rule, precision and batch size; the share of the time in which the GPU
  computes (PyTorch's profiler); how often the host waits for the GPU per batch (below 1 is good);
  and the peak memory;
* searches between the two networks: seconds per visited position, and the networks' share;
* visits per second of one search at a time, and of 4 and 8 searches that share batches;
* the estimated time of a study of the published size: 36 pairs of models, 100 triplets per pair,
  two directions, 200 visits per search, and 230,000 sentences scored under nine models.

A run takes less than ten minutes on one GPU, and about 25 GB of main memory for GPT-2 XL's weights
in float64. Without a GPU, nothing is measured. With --quick or --device cpu, the same code runs on
tiny networks, whose numbers say nothing about a GPU.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from copy import deepcopy
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import transformers

from contstim.english import generate
from contstim.jobs import InterleavedExecutor, worker_pool
from contstim.jobs.worker_context import Reply, WorkerContext, WorkerTask
from contstim.models.causal.adapter import CausalModel
from contstim.models.checkpoints import Checkpoint
from contstim.models.costs import Tally, counting
from contstim.models.masked.adapter import MaskedModel
from contstim.models.merging import merged
from contstim.models.onednn import use_onednn
from contstim.models.training.transformers import train_tokenizer
from contstim.models.vocabularies import shared_vocabulary
from contstim.optimization.search.recipes import DEFAULT
from contstim.optimization.search.synthesize import synthesize
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable

    from contstim.models.base import LanguageModel

hf: Any = transformers

# Maximum relative difference from scores in float64
LIMITS = {"float32": 2e-5, "bfloat16": 0.05}
STUDY_VISITS = 36 * 100 * 2 * 200
STUDY_SENTENCES = 230_000 * 9
RULES = ("pll-original", "chain")


class Enough(Exception):  # noqa: N818
    """The time of a search is over."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), help="by default a GPU, if any")
    parser.add_argument("--seconds", type=float, default=15, help="of each measurement")
    parser.add_argument("--quick", action="store_true", help="tiny networks: a smoke run")
    options = parser.parse_args()
    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cuda" and not torch.cuda.is_available():
        print("skipped: PyTorch finds no GPU here")
        return
    if device == "cpu" and not (options.quick or options.device):
        print("skipped: PyTorch finds no GPU here; --quick runs the same code on tiny networks")
        return
    tiny = options.quick or device == "cpu"
    seconds = 0.2 if tiny else options.seconds
    warnings.simplefilter("ignore")
    start = perf_counter()
    if device == "cuda":
        print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    else:
        print("Tiny networks on the CPU: the code runs, and the numbers say nothing of a GPU.")
    english = generate(600 if tiny else 4_000, seed=0)
    # Eight words as in the published study, or four in a smoke run
    sentences = [sentence for sentence in english if len(sentence.words) == (4 if tiny else 8)]
    is_exact, speed = True, {}
    networks = [("causal", causal(english, tiny)), ("masked", masked(english, tiny))]
    precise = {kind: move_to_device(checkpoint, device, "float32") for kind, checkpoint in networks}
    coarse = {kind: move_to_device(checkpoint, device, "bfloat16") for kind, checkpoint in networks}
    print("\nlargest difference from float64 on the CPU   share of a score   largest score, nats")
    for kind, checkpoint in networks:
        witness = move_to_device(checkpoint, "cpu", "float64")
        for precision, copy in (("float32", precise[kind]), ("bfloat16", coarse[kind])):
            is_exact &= compare(kind, precision, models(copy), models(witness), english)
        del witness
    print("\nscoring                            sentences/s  device busy  waits/batch  memory GiB")
    for precision, checkpoints in (("float32", precise), ("bfloat16", coarse)):
        for kind, checkpoint in checkpoints.items():
            for name, model in models(checkpoint).items():
                speed[precision, name] = time_scoring(
                    f"{kind} {name}, {precision}", model, sentences, seconds
                )
    print("\nsize of a batch, causal, bfloat16   sentences/s")
    for tokens in (1024,) if tiny else (4_096, 16_384, 65_536):
        model = models(coarse["causal"])["log-likelihood"]
        model._network._budget.tokens = tokens
        print(f"{tokens:>11,} tokens {sentences_per_second(model, sentences, seconds / 2):30.1f}")
    print("\nsearch                             visits/s  seconds a visit  share of networks")
    slowest = 0.0
    for precision, checkpoints in (("float32", precise), ("bfloat16", coarse)):
        pair = [
            models(checkpoints["causal"])["log-likelihood"],
            models(checkpoints["masked"])["pll-original"],
        ]
        for accept, reject in (pair, pair[::-1]):
            seconds_a_visit = time_search(f"{kind_of(accept)} / {kind_of(reject)}, {precision}",
                             accept, reject, english, 2 * seconds, tiny=tiny)  # fmt: skip
            slowest = max(slowest, seconds_a_visit)
    print("\nsearches at a time                 visits/s")
    for precision, checkpoints in (("float32", precise), ("bfloat16", coarse)):
        accept = models(checkpoints["causal"])["log-likelihood"]
        reject = models(checkpoints["masked"])["pll-original"]
        for at_a_time in (1, 2) if tiny else (1, 4, 8):
            visits = time_searches(accept, reject, english, seconds, at_a_time, tiny=tiny)
            print(f"{f'{at_a_time}, {precision}':35}{visits:8.2f}", flush=True)
    if not tiny:
        hours = STUDY_VISITS * slowest / 3600
        scoring = STUDY_SENTENCES / min(speed.values()) / 3600
        print(
            f"\nA study of the published size, at the slowest of these speeds: {hours:,.0f} hours "
            f"of searches, {scoring:,.1f} hours of scoring on one such GPU."
        )
    print(f"\n{perf_counter() - start:.0f} seconds in all")
    if not is_exact:
        sys.exit("error: scores differ by more than their precision explains")


def causal(english: list[Sentence], tiny: bool) -> Checkpoint:
    """Return a network of GPT-2 XL's shape, or a tiny one."""
    tokenizer = train_tokenizer(english, "gpt2", None, 64)
    shape = {"n_embd": 64, "n_layer": 2, "n_head": 4} if tiny else {
        "n_embd": 1_600, "n_layer": 48, "n_head": 25
    }  # fmt: skip
    ends = {f"{end}_token_id": tokenizer.eos_token_id for end in ("bos", "eos")}
    size = len(tokenizer) if tiny else 50_257
    torch.manual_seed(0)
    network = hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=size, **ends, **shape))
    return Checkpoint(enlarge_embeddings(network), tokenizer, "causal", "cpu", "causal")


def masked(english: list[Sentence], tiny: bool) -> Checkpoint:
    """Return a network of BERT-large's shape, or a tiny one."""
    tokenizer = train_tokenizer(english, "bert", None, 64)
    hidden, layers, heads = (64, 2, 4) if tiny else (1_024, 24, 16)
    torch.manual_seed(0)
    config = hf.BertConfig(
        vocab_size=len(tokenizer) if tiny else 30_522,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
        pad_token_id=tokenizer.pad_token_id,
    )
    return Checkpoint(
        enlarge_embeddings(hf.BertForMaskedLM(config)), tokenizer, "masked", "cpu", "masked"
    )


@torch.no_grad()
def enlarge_embeddings(network: Any) -> Any:
    """Enlarge the embeddings, so that scores of words differ by nats."""
    network.get_input_embeddings().weight.mul_(5)
    return network


def move_to_device(checkpoint: Checkpoint, device: str, precision: str) -> Checkpoint:
    network = deepcopy(checkpoint.model).to(device=device, dtype=getattr(torch, precision))
    if device == "cpu" and precision == "float32":
        use_onednn(network)  # as `load_checkpoint` does
    return Checkpoint(network, checkpoint.tokenizer, checkpoint.location, device, checkpoint.kind)


def models(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return rule → model of a checkpoint."""
    if checkpoint.kind == "causal":
        return {"log-likelihood": CausalModel(checkpoint, name="causal")}
    return {rule: MaskedModel(checkpoint, rule=rule, name="masked") for rule in RULES}


def kind_of(model: LanguageModel) -> str:
    return model.name


def compare(
    kind: str,
    precision: str,
    device_models: dict[str, Any],
    reference_models: dict[str, Any],
    english: list[Sentence],
) -> bool:
    """Print relative differences from reference scores; return whether they are small enough."""
    is_exact = True
    sentences = [sentence for sentence in english if len(sentence.words) == 6][:6]
    words = list(dict.fromkeys(sentence.words[2] for sentence in sentences))
    # `chain` needs 63 passes per sentence
    for rule in device_models if kind == "causal" else RULES[:1]:
        scores, expected = (
            np.concatenate(
                [model.log_probs(sentences), model.replacement_log_probs(sentences[0], 2, words)]
            )
            for model in (device_models[rule], reference_models[rule])
        )
        share = float(np.max(np.abs(scores - expected) / np.abs(expected)))
        is_exact &= share <= LIMITS[precision]
        print(
            f"{kind + ' ' + rule + ', ' + precision:43}{share:18.1e}{np.abs(expected).max():22.1f}"
            f"{'' if share <= LIMITS[precision] else '   TOO FAR'}",
            flush=True,
        )
    return is_exact


def sentences_per_second(model: Any, english: list[Sentence], seconds: float) -> float:
    """Return sentences per second, scored in calls of growing size."""
    model.log_probs(english[:2])  # the first call of a kernel is slow
    n, start, size = 0, perf_counter(), 2
    while perf_counter() - start < seconds or not n:
        begin = n % len(english)
        part = english[begin : begin + size]
        model.log_probs(part)
        n += len(part)
        # Calls stop growing after a quarter of the time
        size = min(2 * size, 2_048) if perf_counter() - start < seconds / 4 else size
    return n / (perf_counter() - start)


def time_scoring(title: str, model: Any, english: list[Sentence], seconds: float) -> float:
    """Print a row of the table of scoring; return sentences per second."""
    checkpoint = model.checkpoint
    on_gpu = checkpoint.device == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    speed = sentences_per_second(model, english, seconds)
    gpu_columns = f"{'-':>12}{'-':>13}{'-':>12}"
    if on_gpu:
        sentences = english[: max(32, int(speed))][:2_000]
        share = busy_share(lambda: model.log_probs(sentences))
        waits = waits_per_batch(lambda: model.log_probs(sentences))
        memory = torch.cuda.max_memory_allocated() / 2**30
        gpu_columns = f"{share:12.0%}{waits:13.1f}{memory:12.1f}"
    print(f"{title:35}{speed:11.1f}{gpu_columns}", flush=True)
    return speed


def busy_share(work: Callable[[], object]) -> float:
    """Return the share of the time in which the GPU computes."""
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as record:
        start = perf_counter()
        work()
        torch.cuda.synchronize()
        elapsed = perf_counter() - start
    computed: float = sum(event.self_device_time_total for event in record.key_averages())
    return computed / 1e6 / elapsed


def waits_per_batch(work: Callable[[], object]) -> float:
    """Return how often the host waits for the GPU, per batch."""
    with warnings.catch_warnings(record=True) as caught_warnings, counting(Tally()) as tally:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            work()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    waits = sum("synchroniz" in str(warning.message) for warning in caught_warnings)
    return waits / max(1, tally.total.calls)


def time_search(
    title: str,
    accept: Any,
    reject: Any,
    english: list[Sentence],
    seconds: float,
    *,
    tiny: bool,
) -> float:
    """Print a row of the table of searches; return seconds per visit."""
    (natural, words), *_ = search_starts(accept, reject, english, 1, tiny=tiny)
    proposer: Any = type(DEFAULT.proposer)
    propose, n, start = proposer.propose, 0, perf_counter()

    def propose_until_deadline(*arguments: Any) -> Any:
        nonlocal n, start
        if n and perf_counter() - start > seconds:
            raise Enough
        n += 1
        return propose(*arguments)

    proposer.propose = propose_until_deadline
    try:
        with counting(Tally()) as tally:
            synthesize(accept, reject, natural, words, recipe=DEFAULT)
    except Enough:
        pass
    finally:
        proposer.propose = propose
    elapsed = perf_counter() - start
    print(
        f"{title:35}{n / elapsed:8.2f}{elapsed / n:17.3f}{tally.seconds / elapsed:19.0%}",
        flush=True,
    )
    return elapsed / n


def search_starts(
    accept: Any, reject: Any, english: list[Sentence], n: int, *, tiny: bool
) -> list[tuple[Sentence, Vocabulary]]:
    """Return natural sentences, each with the vocabulary of its search."""
    words, _ = shared_vocabulary([accept, reject], Vocabulary.from_sentences(english))
    length = 4 if tiny else 8
    naturals = [s for s in english if len(s.words) == len(set(s.words)) == length][:n]
    if not tiny:
        return [(natural, words) for natural in naturals]
    cases = []
    for natural in naturals:
        first, *later_words = natural.words
        initial = dict.fromkeys((first, *words.initial[:20]))
        inner = dict.fromkeys((*later_words, *words.inner[:60]))
        cases.append((natural, Vocabulary(tuple(initial), tuple(inner), words.repeatable)))
    return cases


@dataclass(frozen=True, eq=False)
class Search(WorkerTask[WorkerContext]):
    """Repeat a search with other seeds until the time is over."""

    accept: Any
    reject: Any
    natural: Sentence
    words: Vocabulary

    def perform(self, context: WorkerContext) -> None:
        del context
        seed = 0
        with merged():
            while True:
                synthesize(
                    self.accept.for_another_search(),
                    self.reject.for_another_search(),
                    self.natural,
                    self.words,
                    recipe=DEFAULT,
                    seed=seed,
                )
                seed += 1


def time_searches(
    accept: Any, reject: Any, english: list[Sentence], seconds: float, at_a_time: int, *, tiny: bool
) -> float:
    """Return visits per second of several searches that share batches."""
    proposer: Any = type(DEFAULT.proposer)
    propose, n_visits, start = proposer.propose, 0, perf_counter()

    def propose_until_deadline(*arguments: Any) -> Any:
        nonlocal n_visits
        if n_visits >= at_a_time and perf_counter() - start > seconds:
            raise Enough
        n_visits += 1
        return propose(*arguments)

    proposer.propose = propose_until_deadline
    try:
        executor = InterleavedExecutor(at_a_time)
        with worker_pool(executor, WorkerContext()) as pool:
            for _ in range(at_a_time):
                pool.receive()
            searches = search_starts(accept, reject, english, at_a_time, tiny=tiny)
            start = perf_counter()
            for worker, (natural, words) in enumerate(searches):
                executor.send(worker, Search(accept, reject, natural, words))
            for _ in searches:
                _, reply = pool.receive() or (0, None)
                assert isinstance(reply, Reply)
                if "Enough" not in str(reply.error):
                    sys.exit(f"error: a search failed: {reply.error}")
    finally:
        proposer.propose = propose
    return n_visits / (perf_counter() - start)


if __name__ == "__main__":
    main()
