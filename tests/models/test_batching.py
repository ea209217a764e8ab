"""Rows in batches: every row once, results in their places, memory that runs out."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from contstim.errors import ModelError
from contstim.files.arrays import IntArray
from contstim.models import batching

ROWS = [[1, 2, 3], [4], [5, 6, 7, 8, 9], [1, 2], [3, 3, 3], [7]]


def sums(rows: list[list[int]], budget: int, fits: int = 10**6) -> tuple[list[int], list[int]]:
    """Each row's sum, computed in batches, and the sizes of the batches that fitted."""
    result, sizes = np.full(len(rows), -1), []

    def run(ids: torch.Tensor, attention: torch.Tensor, batch: IntArray) -> None:
        assert torch.is_inference_mode_enabled()
        if ids.numel() > fits:
            raise torch.OutOfMemoryError("no room")
        assert (ids[attention == 0] == 99).all()
        result[batch] = (ids * attention).sum(1).numpy()
        sizes.append(ids.numel())

    batching.forward_in_batches(rows, run, pad=99, budget=batching.Budget(budget))
    return result.tolist(), sizes


@pytest.mark.parametrize("budget", [1, 5, 6, 9, 100])
def test_every_row_is_run_and_lands_in_its_place(budget: int) -> None:
    found, sizes = sums(ROWS, budget)
    assert found == [sum(row) for row in ROWS]
    assert max(sizes) <= max(budget, 5)


def test_the_longest_come_first_and_padding_is_rare() -> None:
    assert sums(ROWS, 6)[1] == [5, 6, 6]


@pytest.mark.parametrize("fits", [5, 6, 11])
def test_when_memory_runs_out_smaller_batches_give_the_same(fits: int) -> None:
    with pytest.warns(RuntimeWarning) as said:
        found, sizes = sums(ROWS, 100, fits)
    assert len(said) == 1  # however often the batch was halved
    assert found == [sum(row) for row in ROWS]
    assert max(sizes) <= fits


def test_a_row_that_does_not_fit_is_refused() -> None:
    with (
        pytest.warns(RuntimeWarning),
        pytest.raises(ModelError, match="5 tokens does not fit") as refusal,
    ):
        sums(ROWS, 100, fits=4)
    assert all(way in str(refusal.value) for way in ("dtype", "quantize", "device_map"))


def test_an_input_that_is_no_batch_says_what_did_not_fit() -> None:
    with pytest.raises(ModelError, match="7 tokens does not fit"), batching.single_input(7, "cpu"):
        raise torch.OutOfMemoryError("no room")
    with pytest.raises(RuntimeError, match="shapes"), batching.single_input(7, "cpu"):
        raise RuntimeError("shapes cannot be multiplied")


def test_results_that_are_written_later_are_the_same_and_none_counts_twice() -> None:
    """Witness: sums of the rows; a batch that fails after it has computed adds nothing."""
    total, failed = np.zeros(1), []

    def run(ids: torch.Tensor, attention: torch.Tensor, _: IntArray) -> Callable[[], None]:
        part = (ids * attention).sum().numpy()
        if ids.numel() > 6:
            failed.append(ids.numel())
            raise torch.OutOfMemoryError("no room")
        return lambda: np.add(total, part, out=total)

    with pytest.warns(RuntimeWarning):
        batching.forward_in_batches(ROWS, run, pad=0, budget=batching.Budget(12))
    assert failed
    assert total.item() == sum(map(sum, ROWS))


def test_errors_of_another_kind_are_not_swallowed() -> None:
    def run(*_: object) -> None:
        raise RuntimeError("shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="shapes"):
        batching.forward_in_batches(ROWS, run, pad=0, budget=batching.Budget(10))


@pytest.mark.parametrize(
    "message",
    [
        "CUDA out of memory. Tried to allocate 2.00 GiB",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "[enforce fail at alloc_cpu.cpp:118] DefaultCPUAllocator: can't allocate memory: you tried "
        "to allocate 1 bytes. Error code 12 (Cannot allocate memory)",
        "could not create a memory object",
        "MPS backend out of memory (MPS allocated: 9.05 GB, other allocations: 1.00 GB)",
    ],
)
def test_every_library_s_words_for_no_memory_are_understood(message: str) -> None:
    """Witness: the messages as cuBLAS, cuDNN, oneDNN and PyTorch's allocators write them."""
    sizes = []

    def run(ids: torch.Tensor, *_: object) -> None:
        if len(ids) > 1:
            raise RuntimeError(message)
        sizes.append(len(ids))

    with pytest.warns(RuntimeWarning):
        batching.forward_in_batches(ROWS, run, pad=0, budget=batching.Budget(100))
    assert sum(sizes) == len(ROWS)


def test_what_did_not_fit_is_not_tried_again() -> None:
    budget, failed = batching.Budget(100), []

    def run(ids: torch.Tensor, *_: object) -> None:
        if ids.numel() > 6:
            failed.append(ids.numel())
            raise torch.OutOfMemoryError("no room")

    with pytest.warns(RuntimeWarning):
        batching.forward_in_batches(ROWS, run, pad=0, budget=budget)
    first = len(failed)
    assert first > 0
    for _ in range(10):
        batching.forward_in_batches(ROWS, run, pad=0, budget=budget)
    assert len(failed) == first
    assert budget.tokens >= 1


def test_log_softmax_is_computed_in_float32_and_keeps_float64() -> None:
    logits = torch.tensor([[10.0, 10.01, -50.0]])
    half = batching.log_softmax32(logits.bfloat16())
    assert half.dtype == torch.float32
    assert half.exp().sum() == pytest.approx(1, abs=1e-6)
    assert batching.log_softmax32(logits.double()).dtype == torch.float64


def test_indices_reach_a_gpu_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Witness: what PyTorch is asked for, since here is no GPU."""
    asked: list[str] = []

    def pin(tensor: torch.Tensor) -> torch.Tensor:
        asked.append("pin")
        return tensor

    def copy(tensor: torch.Tensor, device: object, *, non_blocking: bool = False) -> torch.Tensor:
        asked.append(f"copy to {device}, {'go on' if non_blocking else 'wait'}")
        return tensor

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    monkeypatch.setattr(torch.Tensor, "to", copy)
    batching.to_device(np.arange(3), "cuda:1")
    assert asked == ["pin", "copy to cuda:1, go on"]
    asked.clear()
    batching.to_device(np.arange(3), "cpu")
    assert asked == ["copy to cpu, wait"]
