"""How often the host would wait for a GPU: questions to a device, and copies from it.

A GPU is not at hand where these tests run. Witness: PyTorch's own dispatcher, which tells every
operation whose result the host has to wait for (`.item()`, `bool()`, masks as indices), and every
copy to the host that is asked for with `.cpu()`. What is counted must not grow with the batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch.utils import _python_dispatch

from contstim.models import batching
from contstim.models.catalog import load_scorer
from contstim.models.costs import Tally, counting
from contstim.sentence import Sentence
from tests.models import tiny

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Folder = Callable[[str], Path]

mode: Any = _python_dispatch.TorchDispatchMode
SENTENCES = [Sentence.parse(text) for text in tiny.TEXTS]

_ASKS = ("_local_scalar_dense", "nonzero", "is_nonzero", "equal", "masked_select")


class Questions(mode):  # type: ignore[misc]
    """The operations so far whose results the host waits for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name in _ASKS:
            self.asked.append(name)
        # A mask as an index asks how many there are
        if name == "index" and any(t is not None and t.dtype == torch.bool for t in args[1]):
            self.asked.append("index by a mask")
        return func(*args, **(kwargs or {}))


def waits(model: Any, sentences: list[Sentence]) -> tuple[int, int]:
    """The questions to the device, and the batches, of one call."""
    with counting(Tally()) as tally, Questions() as questions:
        model.scores(sentences)
    return len(questions.asked), tally.total.calls


@pytest.mark.parametrize("name", ["gpt2", "gpt2@chain", "llama", "bert@pll-original"])
def test_questions_to_the_device_do_not_grow_with_the_batches(
    tiny_checkpoint: Folder, name: str
) -> None:
    location, _, rule = name.partition("@")
    specification = f"hf:{tiny_checkpoint(location)}" + (f"@{rule}" if rule else "")
    model: Any = load_scorer(specification, device="cpu")
    # Sentences of one length each: rows of several would be padded, and the library asks whether
    # a mask hides anything, once for a batch
    by_length: dict[int, list[Sentence]] = {}
    counts = model.token_counts(SENTENCES)
    for sentence, count in zip(SENTENCES, counts, strict=True):
        by_length.setdefault(int(count), []).append(sentence)
    alike = max(by_length.values(), key=len)
    assert len(alike) > 1
    model.scores(alike)  # what is read once for all
    asked, batches = {}, {}
    for tokens in (10**6, 16):
        for network in _budgets(model):
            network.tokens = tokens
        asked[tokens], batches[tokens] = waits(model, alike)
    assert batches[16] > batches[10**6]
    assert asked[16] == asked[10**6] == 0


def _budgets(model: Any) -> list[batching.Budget]:
    network = getattr(model, "_network", None) or model._passes
    return [getattr(network, "_budget", None) or network.budget]


@pytest.mark.parametrize("name", ["gpt2", "bert@pll-original"])
def test_results_of_many_batches_come_back_together(
    tiny_checkpoint: Folder, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Nothing is copied to the host before the last batch has been handed to the device."""
    location, _, rule = name.partition("@")
    specification = f"hf:{tiny_checkpoint(location)}" + (f"@{rule}" if rule else "")
    model: Any = load_scorer(specification, device="cpu")
    expected = model.scores(SENTENCES[:8])
    for budget in _budgets(model):
        budget.tokens = 64
    order: list[str] = []
    attempt, cpu = batching._attempt, torch.Tensor.cpu

    def attempted(*arguments: Any) -> Any:
        order.append("batch")
        return attempt(*arguments)

    def copied(tensor: torch.Tensor) -> torch.Tensor:
        order.append("copy")
        return cpu(tensor)

    monkeypatch.setattr(batching, "_attempt", attempted)
    monkeypatch.setattr(torch.Tensor, "cpu", copied)
    # All results wait; on a CPU each would be written at once
    monkeypatch.setattr(batching, "writes_at_once", lambda _: 10**6)
    scores = model.scores(SENTENCES[:8])
    batches = order.count("batch")
    assert batches > 3
    assert order == ["batch"] * batches + ["copy"] * order.count("copy")
    assert scores == pytest.approx(expected, rel=1e-6)


def test_a_few_results_wait_and_not_all(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    monkeypatch.setattr(batching, "writes_at_once", lambda _: 2)

    def run(*_: object) -> Callable[[], None]:
        order.append("batch")
        return lambda: order.append("write")

    batching.forward_in_batches([[1]] * 5, run, pad=0, budget=batching.Budget(1))
    assert order == [*["batch"] * 2, *["write"] * 2] * 2 + ["batch", "write"]
