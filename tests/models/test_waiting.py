"""How often the host waits for a GPU: questions to a device, and copies to it and from it.

A GPU is not at hand where these tests run; `simulated_gpu` stands for it and notes each wait.
Questions must not grow with the batches, and results must be copied when all has been computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from contstim.models import batching
from contstim.models.catalog import load_scorer
from contstim.models.causal.network import CausalNetwork
from contstim.models.checkpoints import load_checkpoint
from contstim.models.costs import Tally, counting
from contstim.models.loading import Loading
from contstim.words.sentence import Sentence
from tests.models import tiny
from tests.models.simulated_gpu import SimulatedGPU, simulated_gpu
from tests.models.tiny import Folder

SENTENCES = [Sentence.parse(text) for text in tiny.TEXTS]


def waits(gpu: SimulatedGPU, model: Any, sentences: list[Sentence]) -> tuple[list[str], int]:
    """For what the host waits in one call beside copying results, and the batches of the call."""
    gpu.waits.clear()
    with counting(Tally()) as tally:
        model.scores(sentences)
    return [wait for wait in gpu.waits if wait != "copy to the host"], tally.total.calls


@pytest.mark.parametrize("name", ["gpt2@chain", "llama", "bert@pll-original"])
def test_questions_to_the_device_do_not_grow_with_the_batches(
    tiny_checkpoint: Folder, name: str
) -> None:
    with simulated_gpu() as gpu:
        model: Any = load_scorer(tiny.specification(tiny_checkpoint, name), device="cuda")
        # Sentences of one length each: rows of several would be padded, and the library asks
        # whether a mask hides anything, once for a batch
        by_length: dict[int, list[Sentence]] = {}
        counts = model.token_counts(SENTENCES)
        for sentence, count in zip(SENTENCES, counts, strict=True):
            by_length.setdefault(int(count), []).append(sentence)
        alike = max(by_length.values(), key=len)[:3]
        assert len(alike) > 1
        model.scores(alike)  # what is read once for all
        asked, batches = {}, {}
        for tokens in (10**6, 16):
            for network in _budgets(model):
                network.tokens = tokens
            gpu.at_copies.clear()
            asked[tokens], batches[tokens] = waits(gpu, model, alike)
    # A copy for each batch of the last call; something is computed only between those of 32 batches
    # and the next
    assert len(gpu.at_copies) == batches[16]
    assert np.count_nonzero(np.diff(gpu.at_copies) > 1) == (batches[16] - 1) // 32
    assert batches[16] > batches[10**6]
    assert asked[16] == asked[10**6] == []


def test_words_before_a_place_are_read_with_one_wait(tiny_checkpoint: Folder) -> None:
    """A search reads the words before each place that it visits."""
    with simulated_gpu() as gpu:
        checkpoint = load_checkpoint(str(tiny_checkpoint("gpt2")), Loading(device="cuda"))
        network = CausalNetwork(checkpoint, by_words=True)
        context = network.begin((5,))
        gpu.waits.clear()
        network.extend(context, (7, 8, 9))
    assert gpu.waits == ["copy to the host"]


def _budgets(model: Any) -> list[batching.Budget]:
    network = getattr(model, "_network", None) or model._passes
    return [getattr(network, "_budget", None) or network.budget]


@pytest.mark.parametrize("name", ["gpt2", "bert@pll-original"])
def test_results_of_many_batches_come_back_together(
    tiny_checkpoint: Folder, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Nothing is copied to the host before the last batch has been handed to the device."""
    model: Any = load_scorer(tiny.specification(tiny_checkpoint, name), device="cpu")
    expected = model.scores(SENTENCES[:8])
    for budget in _budgets(model):
        budget.tokens = 64
    order: list[str] = []
    pad, cpu = batching.padded, torch.Tensor.cpu

    def padded(*arguments: Any) -> Any:
        order.append("batch")
        return pad(*arguments)

    def copied(tensor: torch.Tensor) -> torch.Tensor:
        order.append("copy")
        return cpu(tensor)

    monkeypatch.setattr(batching, "padded", padded)
    monkeypatch.setattr(torch.Tensor, "cpu", copied)
    # All results wait; on a CPU each would be written at once
    monkeypatch.setattr(batching, "writes_at_once", lambda _: 10**6)
    scores = model.scores(SENTENCES[:8])
    batches = order.count("batch")
    assert batches > 3
    assert order == ["batch"] * batches + ["copy"] * order.count("copy")
    assert scores == pytest.approx(expected, rel=1e-6)
