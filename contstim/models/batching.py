"""Rows of tokens through a network: deduplicated, sorted by length, packed by a token budget."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch

from contstim.errors import ModelError
from contstim.models.costs import count, timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from contstim.arrays import IntArray

    Row: TypeAlias = Sequence[int] | IntArray
    Run: TypeAlias = Callable[[torch.Tensor, torch.Tensor, IntArray], None]


@dataclass
class Budget:
    """How many tokens, padding included, pass through a network at once.

    On a CPU larger batches are slower: their activations no longer fit its caches. A GPU is faster
    with large ones. When memory runs out the budget is lowered for all later calls.
    """

    tokens: int

    @classmethod
    def for_device(cls, device: torch.device | str) -> Budget:
        """A budget that suits the device."""
        return cls(1024 if torch.device(device).type == "cpu" else 16_384)


def forward_in_batches(
    rows: Sequence[Row],
    run: Run,
    *,
    pad: int,
    budget: Budget,
    width: int = 1,
    device: torch.device | str = "cpu",
    progress: Callable[[int], None] | None = None,
) -> None:
    """Hand rows of token ids to `run` in batches of similar length, the longest first.

    Rows are padded on the right. `run` is called in inference mode with the ids (b, l), the
    attention mask (b, l) and the numbers (b,) of the rows, by which it scatters its results. When
    memory runs out, the budget is halved, for later calls too, and the same rows are tried again.

    Args:
        rows: token ids, one sequence for each row, of any lengths.
        run: the function for a batch.
        pad: token id to pad with.
        budget: tokens a batch, padding included; a longer row goes alone.
        width: how many tokens the network reads for each token of a row.
        device: where the ids and the attention mask are put.
        progress: called with the number of rows of each finished batch.

    Raises:
        ModelError: a single row does not fit into memory.
    """
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    # Longest first: memory runs out in the first batch or in none, and rows of a batch need little
    # padding
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        longest = int(lengths[order[start]])
        tokens_a_row = width * max(1, longest)  # rows come longest first, and are padded to it
        chosen = order[start : start + max(1, budget.tokens // tokens_a_row)]
        ids, attention = _pad([rows[row] for row in chosen], lengths[chosen], pad)
        # Ids (b, l) and attention (b, l) on the device; `chosen` (b,) are the numbers of the rows
        with computing():
            done = _fits(run, ids.to(device), attention.to(device), chosen)
        if done:
            count(len(chosen), int(lengths[chosen].sum()))
            start += len(chosen)
            if progress is not None:
                progress(len(chosen))
        elif len(chosen) == 1:
            raise ModelError(
                f"A single input of {longest} tokens does not fit into the memory of {device}: "
                f"use a smaller model, another device, or shorter sentences."
            )
        else:
            # From what was tried, not from the budget, which short rows may not have filled
            budget.tokens = len(chosen) * tokens_a_row // 2


_NO_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "cannot allocate memory",
    "defaultcpuallocator",
    "could not create a memory object",
    "std::bad_alloc",
    "_alloc_failed",
)  # of CUDA, the CPU's allocator, oneDNN, and of cuBLAS, cuDNN and their kin


def out_of_memory(error: Exception) -> bool:
    """Whether a network failed because memory ran out, whichever library says so."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    message = str(error).lower()
    return any(sign in message for sign in _NO_MEMORY)


@contextmanager
def computing() -> Iterator[None]:
    """Within a `with` statement networks are not trained, float32 means float32, and time counts.

    GPUs would round float32 products to TF32's ten bits: those of recurrent layers unless told
    otherwise, those of others where a program has asked for it.
    """
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    before = cudnn.allow_tf32, matmul.allow_tf32
    cudnn.allow_tf32 = matmul.allow_tf32 = False
    try:
        with torch.inference_mode(), timed():
            yield
    finally:
        cudnn.allow_tf32, matmul.allow_tf32 = before


def unique_rows(rows: Iterable[Row]) -> tuple[list[IntArray], IntArray]:
    """The distinct rows in order of first appearance, and the number among them of each row."""
    # Bytes hash faster than tuples of ids, and are the rows themselves when read back
    numbers: dict[bytes, int] = {}
    inverse = [
        numbers.setdefault(np.asarray(row, np.int64).tobytes(), len(numbers)) for row in rows
    ]
    return [np.frombuffer(key, np.int64) for key in numbers], np.array(inverse, np.int64)


def log_softmax32(logits: torch.Tensor) -> torch.Tensor:
    """Log-probabilities over the last axis, in float32 or better whatever the logits are."""
    precise = torch.promote_types(logits.dtype, torch.float32)
    return torch.log_softmax(logits, dim=-1, dtype=precise)


def _pad(rows: list[Row], lengths: IntArray, pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    attention = np.arange(lengths.max()) < lengths[:, None]  # (b, l)
    ids = np.full(attention.shape, pad, np.int64)  # (b, l)
    ids[attention] = np.concatenate([np.asarray(row, np.int64) for row in rows])
    return torch.from_numpy(ids), torch.from_numpy(attention.astype(np.int64))


def _fits(run: Run, ids: torch.Tensor, attention: torch.Tensor, rows: IntArray) -> bool:
    try:
        run(ids, attention, rows)
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
    else:
        return True
    if ids.device.type == "cuda":
        # Outside the handler: within it the error would still hold the tensors of the failed pass
        torch.cuda.empty_cache()
    return False
