"""Rows of tokens through a network: deduplicated, sorted by length, packed by a token budget.

A GPU works while the host prepares what comes next, unless the host waits for it. So a batch's ids
go there from pinned memory, and its results come back together with those of other batches: within
a batch nothing waits.
"""

from __future__ import annotations

import threading
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from contstim.errors import ModelError
from contstim.models.costs import count, timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from contstim.files.arrays import BoolArray, IntArray

    Row: TypeAlias = Sequence[int] | IntArray
    Write: TypeAlias = Callable[[], None]
    Run: TypeAlias = Callable[[Tensor, Tensor, IntArray], Write | None]


_BACKENDS: Any = torch.backends
_LOCK = threading.Lock()
_restores: list[Callable[[], None]] = []  # one for each statement that has begun
_FLOAT32 = ("ieee", "none")  # none: nothing was set, which means float32


class SmallerBatches(UserWarning):
    """Memory ran out in a batch, and the work goes on in smaller ones."""


@dataclass
class Budget:
    """Budget of tokens, padding included, that pass through a network at once.

    On a CPU larger batches are slower: their activations no longer fit its caches. A GPU is faster
    with large ones. When memory runs out the budget is lowered for all later calls, and the first
    time a warning says so.
    """

    tokens: int
    device: torch.device | str = "cpu"
    warned: bool = False

    @classmethod
    def for_device(cls, device: torch.device | str) -> Budget:
        """A budget that suits the device."""
        return cls(1024 if torch.device(device).type == "cpu" else 16_384, device)

    def lower(self, n_rows: int, length: int, *, width: int = 1) -> None:
        """Halve what was tried, which may be less than the budget allowed: memory ran out.

        Args:
            n_rows: rows of the batch that was tried.
            length: tokens of its longest row.
            width: see `forward_in_batches`.
        """
        if torch.device(self.device).type == "cuda":
            torch.cuda.empty_cache()
        self.tokens = n_rows * width * max(1, length) // 2
        if not self.warned:
            self.warned = True
            warnings.warn(
                f"The memory of {self.device} does not hold {n_rows:,} inputs of {length} "
                f"tokens at once: the batches are made smaller, and the scores stay the same.",
                SmallerBatches,
                stacklevel=3,
            )


def forward_in_batches(
    rows: Sequence[Row],
    run: Run,
    *,
    pad: int,
    budget: Budget,
    width: int = 1,
) -> None:
    """Hand rows of token ids to `run` in batches of similar length, the longest first.

    Rows are padded on the right. `run` is called in inference mode with the ids (b, l), the
    attention mask (b, l) and the numbers (b,) of the rows. It writes its results to their places,
    or returns a function that copies them from the device and writes them; on a GPU, which would
    wait for each copy, such functions are called for many batches at once. When memory runs out,
    the budget is halved, for later calls too, and the same rows are tried again: until it has
    succeeded, `run` must add nothing to what other batches wrote.

    Args:
        rows: token ids, one sequence for each row, of any lengths.
        run: the function for a batch.
        pad: token id to pad with.
        budget: tokens a batch, padding included; a longer row goes alone; and the device.
        width: how many tokens the network reads for each token of a row.

    Raises:
        ModelError: a single row does not fit into memory.
    """
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    # Longest first: memory runs out in the first batch or in none, and rows of a batch need little
    # padding
    order = np.argsort(-lengths, kind="stable")
    start = 0
    writes: list[Write] = []
    device = budget.device
    at_once = writes_at_once(device)
    while start < len(order):
        longest = int(lengths[order[start]])
        tokens_a_row = width * max(1, longest)  # rows come longest first, and are padded to it
        chosen = order[start : start + max(1, budget.tokens // tokens_a_row)]
        ids, present = padded([rows[row] for row in chosen], pad)
        write, fits = None, True
        try:
            # Ids (b, l) and attention (b, l) on the device; `chosen` (b,) are the rows' numbers
            with computing():
                attention = to_device(present.astype(np.int64), device)
                write = run(to_device(ids, device), attention, chosen)
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            if len(chosen) == 1:
                raise ModelError(does_not_fit(longest, device)) from error
            fits = False
        if not fits:  # outside the handler: the error would hold the tensors of the failed pass
            budget.lower(len(chosen), longest, width=width)
            continue
        count(len(chosen), int(lengths[chosen].sum()))
        start += len(chosen)
        if write is not None:
            writes.append(write)
        if start == len(order) or len(writes) == at_once:
            with computing():  # a GPU is waited for here, which is part of its work
                for each in writes:
                    each()
            writes.clear()


def writes_at_once(device: torch.device | str) -> int:
    """After how many batches their results are written; small beside activations, they may wait."""
    return 1 if torch.device(device).type == "cpu" else 32


def to_device(indices: IntArray | Tensor, device: torch.device | str) -> Tensor:
    """Indices on a device, copied to a GPU without waiting for what it computes."""
    tensor = torch.as_tensor(indices)
    if torch.device(device).type == "cpu":
        return tensor.to(device)
    # From ordinary memory, the copy would wait until the GPU has done all that it was given
    return tensor.pin_memory().to(device, non_blocking=True)


def does_not_fit(n_tokens: int, device: torch.device | str) -> str:
    """The refusal of an input that cannot be made smaller."""
    return (
        f"A single input of {n_tokens} tokens does not fit into the memory of {device}. Use dtype "
        f"bfloat16, quantize int8 or int4, device_map auto, or a smaller model."
    )


def single_input(n_tokens: int, device: torch.device | str) -> AbstractContextManager[None]:
    """Within a `with` statement one input is computed, which no smaller batch could help.

    Raises:
        ModelError: the memory does not hold it.
    """
    return fitting_memory(does_not_fit(n_tokens, device))


@contextmanager
def fitting_memory(refusal: str) -> Iterator[None]:
    """Within a `with` statement, a lack of memory is a ModelError with this text.

    Raises:
        ModelError: see above.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        raise ModelError(refusal) from error


_NO_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "cannot allocate memory",
    "defaultcpuallocator",
    "could not create a memory object",
    "std::bad_alloc",
    "_alloc_failed",
)  # of CUDA and Apple's GPUs, the CPU's allocator, oneDNN, and of cuBLAS, cuDNN and their kin


def out_of_memory(error: Exception) -> bool:
    """True if a network failed because memory ran out, whichever library says so."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    message = str(error).lower()
    return any(sign in message for sign in _NO_MEMORY)


@contextmanager
def float32_products() -> Iterator[None]:
    """Within a `with` statement, products of float32 numbers are float32 numbers in this process.

    To be quick, PyTorch may round the factors of float32 products to ten bits (TF32) or to seven
    (bfloat16): GPUs those of recurrent layers unless told otherwise, and both GPUs and processors
    all of them where a program asks for it. It can be asked in two ways, of which each hides what
    the other has set: `allow_tf32` and `set_float32_matmul_precision`, and since PyTorch 2.9
    `fp32_precision`, kind of operation by kind of operation.

    The settings are those of all threads: the first statement that begins makes them, and when the
    last one has ended, a program finds its own again. What cuDNN has by default counts as set then,
    and is no longer changed by a wider setting.
    """
    with _LOCK:
        _restores.append((lambda: None) if _restores else _set_float32())
    try:
        yield
    finally:
        with _LOCK:
            _restores.pop()()  # whoever ends last undoes the settings of the first


def _set_float32() -> Callable[[], None]:
    """Have float32 products computed as such; returns what undoes it."""
    kinds = _kinds_of_operations()
    before = [kind.fp32_precision for kind in kinds]
    try:
        older = torch.get_float32_matmul_precision(), _BACKENDS.cudnn.allow_tf32
    except RuntimeError:  # a program has set the newer ones, which the older ones cannot tell
        older = None
    if older is not None:
        torch.set_float32_matmul_precision("highest")
        _BACKENDS.cudnn.allow_tf32 = False
    for kind in kinds:
        if kind.fp32_precision not in _FLOAT32:  # by a newer setting
            kind.fp32_precision = "ieee"

    def restore() -> None:
        if older is not None:
            torch.set_float32_matmul_precision(older[0])
            _BACKENDS.cudnn.allow_tf32 = older[1]
        for kind, precision in zip(kinds, before, strict=True):
            if kind.fp32_precision != precision:
                kind.fp32_precision = "none"  # which is enough where it was inherited
            if kind.fp32_precision != precision:
                kind.fp32_precision = precision

    return restore


def _kinds_of_operations() -> list[Any]:
    """Kinds of operations with a precision of their own; none before PyTorch 2.9."""
    if not hasattr(_BACKENDS.cuda.matmul, "fp32_precision"):
        return []
    cudnn, onednn = _BACKENDS.cudnn, _BACKENDS.mkldnn
    return [
        _BACKENDS.cuda.matmul, cudnn.conv, cudnn.rnn, onednn.matmul, onednn.conv, onednn.rnn
    ]  # fmt: skip


@contextmanager
def computing() -> Iterator[None]:
    """Within a `with` statement networks are not trained, float32 means float32, and time counts.

    See `float32_products`.
    """
    with float32_products(), torch.inference_mode(), timed():
        yield


def unique_rows(rows: Iterable[Row]) -> tuple[list[IntArray], IntArray]:
    """The distinct rows in order of first appearance, and the number among them of each row."""
    # Bytes hash faster than tuples of ids, and are the rows themselves when read back
    numbers: dict[bytes, int] = {}
    inverse = [
        numbers.setdefault(np.asarray(row, np.int64).tobytes(), len(numbers)) for row in rows
    ]
    return [np.frombuffer(key, np.int64) for key in numbers], np.array(inverse, np.int64)


def log_softmax32(logits: Tensor) -> Tensor:
    """Log-probabilities over the last axis, in float32 or better whatever the logits are."""
    precise = torch.promote_types(logits.dtype, torch.float32)
    return torch.log_softmax(logits, dim=-1, dtype=precise)


def padded(rows: Sequence[Row], pad: int = 0) -> tuple[IntArray, BoolArray]:
    """Rows as one array (b, l), padded on the right, and a mask (b, l) of the rows."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    present: BoolArray = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(present.shape, pad, np.int64)
    ids[present] = np.concatenate([np.asarray(row, np.int64) for row in rows])
    return ids, present
