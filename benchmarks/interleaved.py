"""Searches one after the other and several at a time, which share the batches of the networks.

    python benchmarks/interleaved.py [--latency 20] [--searches 16] [--quick]

On a GPU a small batch takes as long as a larger one. So the same searches, between tiny networks on
the CPU, are run with a fixed latency of each call (20 ms, as of some dozens of layers), and as they
are, where a batch takes as long as its rows do. Batches are as large as on a GPU. Printed are
searches a minute by the clock, how many times as many as one after the other, the calls of both
networks, the mean rows of a call, and the processor time, which is the work of everything around
the networks and of the tiny networks themselves. The results are compared: they must be the same.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from contstim.english import generate
from contstim.jobs import InterleavedExecutor, LocalExecutor
from contstim.models.batching import Budget
from contstim.models.checkpoints import load_checkpoint
from contstim.models.loading import Loading
from contstim.models.specifications import parse_models
from contstim.models.training.transformers import train_tokenizer
from contstim.optimization.jobs.question import SearchQuestion
from contstim.optimization.jobs.tasks import SearchContext
from contstim.optimization.jobs.triplets import find_triplets
from contstim.reporter import Reporter
from contstim.store import Store
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    from contstim.jobs import Executor
    from contstim.optimization.jobs.results import TripletResults


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--latency", type=float, default=20, help="of a call, milliseconds")
    parser.add_argument("--searches", type=int, help="how many triplets; by default 16")
    parser.add_argument("--quick", action="store_true", help="few short searches: a smoke run")
    options = parser.parse_args()
    searches = options.searches or (4 if options.quick else 16)
    length = 3 if options.quick else 5
    torch.set_num_threads(1)
    Budget.for_device = classmethod(lambda cls, device: cls(16_384, device))  # type: ignore[method-assign,assignment]
    english = generate(2_000, seed=0)
    natural = [s for s in english if len(s) == len({*s.words}) == length][: 3 * searches]
    words = Vocabulary.from_sentences([*natural, *english[: 10 if options.quick else 40]])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_networks(english, folder)
        kinds = {
            "causal × masked": (f"hf:{folder}/gpt2", f"hf:{folder}/bert@pll-word-l2r"),
            "masked × masked": (
                f"hf:{folder}/bert@pll-word-l2r",
                f"hf:{folder}/bert2@pll-word-l2r",
            ),
        }
        for kind, models in list(kinds.items())[: 1 if options.quick else None]:
            question = SearchQuestion(
                per_pair=searches,
                seed=1,
                frame="none",
                restarts=1,
                plausible="none",
                capitals="anywhere",
            )
            plan = Plan(question, models, natural, words)
            for latency in (options.latency, 0.0):
                what = f"{latency:g} ms a call" if latency else "as it is"
                print(f"\n{kind}, {what}: {searches} triplets, {len(words.words):,} words")
                print("   at a time    a minute   ratio     calls    rows   CPU s")
                compare(plan, latency / 1e3, (4,) if options.quick else (2, 4, 8))


class Plan(NamedTuple):
    """Searches that are made in several ways."""

    question: SearchQuestion
    models: tuple[str, str]
    natural: list[Sentence]
    words: Vocabulary


def compare(plan: Plan, latency: float, sizes: tuple[int, ...]) -> None:
    """Print the searches of a plan one after the other, and several at a time."""
    reference: tuple[TripletResults, float] | None = None
    executors: list[Executor] = [LocalExecutor(), *map(InterleavedExecutor, sizes)]
    for at_a_time, executor in zip((1, *sizes), executors, strict=True):
        used = process_time()
        found, seconds, calls = run(plan, executor, latency)
        used = process_time() - used
        if reference is None:
            reference = found, seconds
        assert found.triplets == reference[0].triplets
        print(
            f"{at_a_time:12}{60 * plan.question.per_pair / seconds:12.1f}"
            f"{reference[1] / seconds:8.2f}"
            f"{calls['calls']:10,}{calls['rows'] / calls['calls']:8.1f}{used:8.1f}",
            flush=True,
        )


def run(
    plan: Plan, executor: Executor, latency: float
) -> tuple[TripletResults, float, Counter[str]]:
    """What a job finds, its seconds after models are loaded, and calls and rows of networks."""
    counted: Counter[str] = Counter()
    began: list[float] = []

    def wait(_network: Any, _inputs: Any, options: dict[str, Any], _output: Any) -> None:
        if began:
            counted["calls"] += 1
            counted["rows"] += len(options["input_ids"])
            sleep(latency)

    # Held here, so that the job uses the same networks
    folders = [model.removeprefix("hf:").partition("@")[0] for model in plan.models]
    checkpoints = [load_checkpoint(folder, Loading(device="cpu")) for folder in folders]
    hooks = [
        checkpoint.model.register_forward_hook(wait, with_kwargs=True) for checkpoint in checkpoints
    ]

    class First(Reporter):
        def progress(self, *_told: object) -> None:
            if not began:
                began.append(perf_counter())

    context = SearchContext(Loading(device="cpu"), vocabulary=plan.words)
    with tempfile.TemporaryDirectory() as name, Store(Path(name) / "study.sqlite") as store:
        models = parse_models(plan.models)
        found = find_triplets(
            plan.question, models, plan.natural, store, executor, context, reporter=First()
        )
        seconds = perf_counter() - began[0]
    for hook in hooks:
        hook.remove()
    return found, seconds, counted


def save_networks(english: list[Sentence], folder: Path) -> None:
    """Save a GPT-2 and two BERTs of two layers with random weights."""
    import transformers

    hf: Any = transformers
    for number, kind in enumerate(("gpt2", "bert", "bert2")):
        torch.manual_seed(number)
        tokenizer = train_tokenizer(english, "gpt2" if kind == "gpt2" else "bert", None, 64)
        if kind == "gpt2":
            ends = {f"{end}_token_id": tokenizer.eos_token_id for end in ("bos", "eos")}
            config = hf.GPT2Config(
                vocab_size=len(tokenizer), n_positions=64, n_embd=32, n_layer=2, n_head=4, **ends
            )
            network = hf.GPT2LMHeadModel(config)
        else:
            config = hf.BertConfig(
                vocab_size=len(tokenizer),
                hidden_size=32,
                num_hidden_layers=2,
                num_attention_heads=4,
                intermediate_size=64,
                max_position_embeddings=64,
                pad_token_id=tokenizer.pad_token_id,
            )
            network = hf.BertForMaskedLM(config)
        with torch.no_grad():  # so that words differ by nats
            network.get_input_embeddings().weight.mul_(20)
        network.save_pretrained(folder / kind)
        tokenizer.save_pretrained(folder / kind)


if __name__ == "__main__":
    main()
