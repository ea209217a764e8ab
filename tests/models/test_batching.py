"""Batches of rows: each row is read once, results are in order, and memory may run out."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from contstim.errors import ModelError
from contstim.files.arrays import IntArray
from contstim.models import batching

ROWS = [[1, 2, 3], [4], [5, 6, 7, 8, 9], [1, 2], [3, 3, 3], [7]]


def sum_rows(
    rows: list[list[int]], budget: int, max_size: int = 10**6
) -> tuple[list[int], list[int]]:
    """Return the sum of each row, computed in batches, and the sizes of the successful batches."""
    result, sizes = np.full(len(rows), -1), []

    def run(ids: torch.Tensor, attention: torch.Tensor, batch: IntArray) -> None:
        assert torch.is_inference_mode_enabled()
        if ids.numel() > max_size:
            raise torch.OutOfMemoryError("no room")
        assert (ids[attention == 0] == 99).all()
        result[batch] = (ids * attention).sum(1).numpy()
        sizes.append(ids.numel())

    batching.forward_in_batches(rows, run, pad=99, budget=batching.Budget(budget))
    return result.tolist(), sizes


@pytest.mark.parametrize("budget", [1, 5, 6, 9, 100])
def test_each_row_is_read_once_and_results_are_in_order(budget: int) -> None:
    row_sums, sizes = sum_rows(ROWS, budget)
    assert row_sums == [sum(row) for row in ROWS]
    assert max(sizes) <= max(budget, 5)


def test_longest_rows_come_first_with_little_padding() -> None:
    assert sum_rows(ROWS, 6)[1] == [5, 6, 6]


@pytest.mark.parametrize("max_size", [5, 6, 11])
def test_smaller_batches_give_the_same_when_memory_runs_out(max_size: int) -> None:
    with pytest.warns(RuntimeWarning) as warning_records:
        row_sums, sizes = sum_rows(ROWS, 100, max_size)
    assert len(warning_records) == 1  # one warning, no matter how often the batch was halved
    assert row_sums == [sum(row) for row in ROWS]
    assert max(sizes) <= max_size


def test_row_that_exceeds_memory_is_refused() -> None:
    with (
        pytest.warns(RuntimeWarning),
        pytest.raises(ModelError, match="5 tokens does not fit") as error,
    ):
        sum_rows(ROWS, 100, max_size=4)
    assert all(option in str(error.value) for option in ("dtype", "quantize", "device_map"))


def test_single_input_error_names_its_tokens() -> None:
    with pytest.raises(ModelError, match="7 tokens does not fit"), batching.single_input(7, "cpu"):
        raise torch.OutOfMemoryError("no room")
    with pytest.raises(RuntimeError, match="shapes"), batching.single_input(7, "cpu"):
        raise RuntimeError("shapes cannot be multiplied")


def test_deferred_results_are_added_exactly_once() -> None:
    """Witness: sums of the rows. A batch that fails after its computation adds nothing."""
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


def test_other_errors_are_raised() -> None:
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
def test_out_of_memory_messages_of_all_libraries_are_recognized(message: str) -> None:
    """Witness: messages as cuBLAS, cuDNN, oneDNN and PyTorch's allocators write them."""
    sizes = []

    def run(ids: torch.Tensor, *_: object) -> None:
        if len(ids) > 1:
            raise RuntimeError(message)
        sizes.append(len(ids))

    with pytest.warns(RuntimeWarning):
        batching.forward_in_batches(ROWS, run, pad=0, budget=batching.Budget(100))
    assert sum(sizes) == len(ROWS)


def test_oversized_batches_are_not_retried() -> None:
    budget, failed = batching.Budget(100), []

    def run(ids: torch.Tensor, *_: object) -> None:
        if ids.numel() > 6:
            failed.append(ids.numel())
            raise torch.OutOfMemoryError("no room")

    with pytest.warns(RuntimeWarning):
        batching.forward_in_batches(ROWS, run, pad=0, budget=budget)
    n_failed = len(failed)
    assert n_failed > 0
    for _ in range(10):
        batching.forward_in_batches(ROWS, run, pad=0, budget=budget)
    assert len(failed) == n_failed
    assert budget.tokens >= 1


def test_log_softmax_is_computed_in_float32_and_keeps_float64() -> None:
    logits = torch.tensor([[10.0, 10.01, -50.0]])
    half = batching.log_softmax32(logits.bfloat16())
    assert half.dtype == torch.float32
    assert half.exp().sum() == pytest.approx(1, abs=1e-6)
    assert batching.log_softmax32(logits.double()).dtype == torch.float64


def test_indices_are_copied_to_a_gpu_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Witness: calls of PyTorch, because the test has no GPU."""
    calls: list[str] = []

    def pin(tensor: torch.Tensor) -> torch.Tensor:
        calls.append("pin")
        return tensor

    def copy(tensor: torch.Tensor, device: object, *, non_blocking: bool = False) -> torch.Tensor:
        calls.append(f"copy to {device}, {'go on' if non_blocking else 'wait'}")
        return tensor

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    monkeypatch.setattr(torch.Tensor, "to", copy)
    batching.to_device(np.arange(3), "cuda:1")
    assert calls == ["pin", "copy to cuda:1, go on"]
    calls.clear()
    batching.to_device(np.arange(3), "cpu")
    assert calls == ["copy to cpu, wait"]
