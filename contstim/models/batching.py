"""Batches of token rows for a network. A batch has rows of similar length, and limited size.

A GPU can compute while the host, the computer's processor, prepares the next batch. The host should
therefore rarely wait for the GPU. Token ids are copied from pinned memory, so that the host can
continue during the copy. The results of several batches are copied together.
"""

from __future__ import annotations

import threading
import warnings
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from contstim.errors import ModelError
from contstim.models.costs import count, timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from contstim.files.arrays import BoolArray, IntArray

    Row: TypeAlias = Sequence[int] | IntArray
    Write: TypeAlias = Callable[[], None]
    Run: TypeAlias = Callable[[Tensor, Tensor, IntArray], Write | None]


_BACKENDS: Any = torch.backends
_LOCK = threading.Lock()
_restores: list[Callable[[], None]] = []  # one function for each active `float32_products`


@dataclass
class Budget:
    """Maximum number of tokens in a batch, including padding.

    Large batches are faster on a GPU. Large batches are slower on a CPU, because the caches of a
    CPU are too small for the activations of a large batch. When memory runs out, the budget is
    lowered for all later calls.

    Attributes:
        warned: whether the user has been warned that the budget was lowered.
    """

    tokens: int
    device: torch.device | str = "cpu"
    warned: bool = False

    @classmethod
    def for_device(cls, device: torch.device | str) -> Budget:
        """Return a budget suitable for the device."""
        return cls(1024 if torch.device(device).type == "cpu" else 16_384, device)

    def lower(self, n_rows: int, length: int, *, width: int = 1) -> None:
        """Set the budget to half the size of a batch that did not fit into memory.

        The batch has `n_rows` rows of at most `length` tokens; for `width`, see
        `forward_in_batches`. Half of the old budget could be too large, because the batch may have
        been far smaller than the budget.
        """
        if torch.device(self.device).type == "cuda":
            torch.cuda.empty_cache()
        self.tokens = n_rows * width * max(1, length) // 2
        if not self.warned:
            self.warned = True
            warnings.warn(
                f"The memory of {self.device} is too small for {n_rows:,} inputs of {length} "
                "tokens: batches are made smaller. Scores do not change.",
                RuntimeWarning,
                stacklevel=3,
            )


def forward_in_batches(
    rows: Sequence[Row], run: Run, *, pad: int, budget: Budget, width: int = 1
) -> None:
    """Pass rows of token ids to `run` in batches of similar length, the longest first.

    Rows are padded on the right. `run` is called in inference mode, for a batch of b rows and l
    columns. Its arguments are the ids (b, l), the attention mask (b, l) and the row indices (b,).
    `run` stores its results, or returns a function that copies the results from the device and
    stores them. On a GPU, these functions are called for many batches together, because the GPU is
    idle while the host copies results.

    When memory runs out, the budget is lowered, and the rows are retried in smaller batches. So
    `run` must not store results before the network has succeeded.

    Args:
        rows: token ids, one sequence for each row, of any lengths.
        run: function that processes a batch.
        pad: id of the padding token.
        budget: device, and maximum number of tokens of a batch; a longer row is a batch by itself.
        width: number of tokens that the network reads for each token of a row. It exceeds 1 if
            `run` reads further tokens, such as a whole sentence for each candidate word.

    Raises:
        ModelError: if a single row does not fit into memory.
    """
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    # Rows of similar length need little padding. The longest rows are first, because all other rows
    # fit into memory if these rows fit
    order = np.argsort(-lengths, kind="stable")
    start = 0
    writes: list[Write] = []
    device = budget.device
    # Number of batches after which results are copied and stored
    n_pending_writes = 1 if torch.device(device).type == "cpu" else 32
    while start < len(order):
        longest = int(lengths[order[start]])
        tokens_a_row = width * max(1, longest)  # rows are padded to the length of the first row
        chosen = order[start : start + max(1, budget.tokens // tokens_a_row)]
        ids, present = pad_rows([rows[row] for row in chosen], pad)
        write, fits = None, True
        try:
            with computing():
                attention = to_device(present.astype(np.int64), device)
                write = run(to_device(ids, device), attention, chosen)
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            if len(chosen) == 1:
                raise ModelError(does_not_fit(longest, device)) from error
            fits = False
        # Retry outside the handler. Inside, the error keeps the failed pass's tensors in memory
        if not fits:
            budget.lower(len(chosen), longest, width=width)
            continue
        count(len(chosen), int(lengths[chosen].sum()))
        start += len(chosen)
        if write is not None:
            writes.append(write)
        if start == len(order) or len(writes) == n_pending_writes:
            with computing():  # the wait for the GPU counts as its computing time
                for write_results in writes:
                    write_results()
            writes.clear()


def to_device(indices: IntArray | Tensor, device: torch.device | str) -> Tensor:
    """Copy indices to a device, without waiting for a GPU."""
    tensor = torch.as_tensor(indices)
    if torch.device(device).type == "cpu":
        return tensor.to(device)
    # A copy from unpinned memory waits until the GPU has finished all its work
    return tensor.pin_memory().to(device, non_blocking=True)


def does_not_fit(n_tokens: int, device: torch.device | str) -> str:
    """Return the error message for a single input that does not fit into memory."""
    return (
        f"A single input of {n_tokens} tokens does not fit into the memory of {device}. Use dtype "
        f"bfloat16, quantize int8 or int4, device_map auto, or a smaller model."
    )


def single_input(n_tokens: int, device: torch.device | str) -> AbstractContextManager[None]:
    """Return a context manager for computing a single input.

    Raises:
        ModelError: if the input does not fit into memory.
    """
    return fitting_memory(does_not_fit(n_tokens, device))


@contextmanager
def fitting_memory(refusal: str) -> Iterator[None]:
    """Convert out-of-memory errors in the `with` statement to a ModelError.

    `refusal` is the message of the ModelError.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        raise ModelError(refusal) from error


_OUT_OF_MEMORY_SIGNS = (
    "out of memory",
    "can't allocate memory",
    "cannot allocate memory",
    "defaultcpuallocator",
    "could not create a memory object",
    "std::bad_alloc",
    "_alloc_failed",
)  # messages of CUDA, Apple's GPUs, the CPU's allocator, oneDNN, cuBLAS, cuDNN and others


def out_of_memory(error: Exception) -> bool:
    """Return True if a library's error means that memory ran out."""
    is_memory_error = isinstance(error, MemoryError | torch.OutOfMemoryError)
    return is_memory_error or any(sign in str(error).lower() for sign in _OUT_OF_MEMORY_SIGNS)


@contextmanager
def float32_products() -> Iterator[None]:
    """Compute products of float32 numbers in full float32 within a `with` statement.

    For speed, PyTorch may round the factors of float32 products to ten bits (TF32) or to seven bits
    (bfloat16). By default, PyTorch rounds only in recurrent and convolutional layers on GPUs.
    PyTorch has two interfaces for these settings. The older interface consists of `allow_tf32` and
    `set_float32_matmul_precision`. The newer interface, from PyTorch 2.9 on, is `fp32_precision`
    for each kind of operation. If a program has used the newer interface, the older interface may
    raise an error or return an outdated value.

    The settings apply to all threads. If several statements overlap, the statement that begins
    first changes the settings, and the statement that ends last restores the settings. Afterwards,
    cuDNN's precision is set explicitly, so it no longer follows PyTorch's general setting.
    """
    with _LOCK:
        _restores.append((lambda: None) if _restores else _set_float32())
    try:
        yield
    finally:
        with _LOCK:
            _restores.pop()()  # the statement that ends last calls the first statement's function


def _set_float32() -> Callable[[], None]:
    """Enable full float32 products; return a function that restores the settings."""
    kinds = _kinds_of_operations()
    old_precisions = [kind.fp32_precision for kind in kinds]
    try:
        older = torch.get_float32_matmul_precision(), _BACKENDS.cudnn.allow_tf32
    except RuntimeError:  # a program has used the newer interface
        older = None
    if older is not None:
        torch.set_float32_matmul_precision("highest")
        _BACKENDS.cudnn.allow_tf32 = False
    for kind in kinds:
        # "none" is the default setting; it also means full float32
        if kind.fp32_precision not in ("ieee", "none"):
            kind.fp32_precision = "ieee"

    def restore() -> None:
        if older is not None:
            torch.set_float32_matmul_precision(older[0])
            _BACKENDS.cudnn.allow_tf32 = older[1]
        for kind, precision in zip(kinds, old_precisions, strict=True):
            if kind.fp32_precision != precision:
                # "none" inherits the general setting, which may already equal the old precision
                kind.fp32_precision = "none"
            if kind.fp32_precision != precision:
                kind.fp32_precision = precision

    return restore


def _kinds_of_operations() -> list[Any]:
    if not hasattr(_BACKENDS.cuda.matmul, "fp32_precision"):
        return []
    cudnn, onednn = _BACKENDS.cudnn, _BACKENDS.mkldnn
    return [
        _BACKENDS.cuda.matmul, cudnn.conv, cudnn.rnn, onednn.matmul, onednn.conv, onednn.rnn
    ]  # fmt: skip


@contextmanager
def computing() -> Iterator[None]:
    """Within a `with` statement, use inference mode and `float32_products`, and measure time."""
    with float32_products(), torch.inference_mode(), timed():
        yield


def unique_rows(rows: Iterable[Row]) -> tuple[list[IntArray], IntArray]:
    """Return the distinct rows in order of first appearance.

    Also return, for each row, its index among the distinct rows.
    """
    # Bytes hash faster than tuples of ids
    numbers: dict[bytes, int] = {}
    keys = (np.asarray(row, np.int64).tobytes() for row in rows)
    inverse = [numbers.setdefault(key, len(numbers)) for key in keys]
    return [np.frombuffer(key, np.int64) for key in numbers], np.array(inverse, np.int64)


def log_softmax32(logits: Tensor) -> Tensor:
    """Return log-probabilities over the last axis, in float32 or higher precision."""
    return torch.log_softmax(logits, -1, torch.promote_types(logits.dtype, torch.float32))


def entropy(log_probs: Tensor) -> Tensor:
    """Return the entropy of distributions over the last axis, nats, float64."""
    # Clamp, so that outcomes of probability 0 contribute 0. `torch.special.entr` is slower
    return -(log_probs.exp() * log_probs.clamp(min=-1e4)).sum(-1, dtype=torch.float64)


def pad_rows(rows: Sequence[Row], pad: int = 0) -> tuple[IntArray, BoolArray]:
    """Return rows as one array (b, l), padded on the right, and a mask of their tokens (b, l)."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    present: BoolArray = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(present.shape, pad, np.int64)
    ids[present] = np.concatenate([np.asarray(row, np.int64) for row in rows])
    return ids, present
