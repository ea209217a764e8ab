"""Products of float32 numbers that are float32 numbers, whatever a program has asked PyTorch for.

To be quick, PyTorch may round the factors of float32 products to ten bits (TF32) or to seven
(bfloat16): GPUs those of recurrent layers unless told otherwise, and both GPUs and processors all
of them where a program asks for it. It can be asked in two ways, of which each hides what the other
has set: `allow_tf32` and `set_float32_matmul_precision`, and since PyTorch 2.9 `fp32_precision`,
kind of operation by kind of operation.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_BACKENDS: Any = torch.backends
_LOCK = threading.Lock()
_FLOAT32 = ("ieee", "none")  # none: nothing was set, which means float32


@contextmanager
def float32_products() -> Iterator[None]:
    """Within a `with` statement, float32 means float32 in this process.

    The settings are those of all threads: the first statement that begins makes them, and when the
    last one has ended, a program finds its own again. What cuDNN has by default counts as set then,
    and is no longer changed by a wider setting.
    """
    with _LOCK:
        if not _Statements.begun:
            _Statements.restore = _set_float32()
        _Statements.begun += 1
    try:
        yield
    finally:
        with _LOCK:
            _Statements.begun -= 1
            if not _Statements.begun:
                _Statements.restore()


class _Statements:
    """Number of statements begun and not ended, and what undoes the settings of the first."""

    begun = 0
    restore: Callable[[], None]


def _set_float32() -> Callable[[], None]:
    """Have float32 products computed as such; returns what undoes it."""
    kinds = _kinds_of_operations()
    before = [kind.fp32_precision for kind in kinds]
    try:
        older = torch.get_float32_matmul_precision(), _BACKENDS.cudnn.allow_tf32
    except RuntimeError:  # a program has set the newer ones, which the older ones cannot tell
        older = None
    if older is not None:
        _set_older("highest", allow_tf32=False)
    for kind in kinds:
        if kind.fp32_precision not in _FLOAT32:  # by a newer setting
            kind.fp32_precision = "ieee"

    def restore() -> None:
        if older is not None:
            _set_older(older[0], allow_tf32=older[1])
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


def _set_older(matmul_precision: str, *, allow_tf32: bool) -> None:
    torch.set_float32_matmul_precision(matmul_precision)
    _BACKENDS.cudnn.allow_tf32 = allow_tf32
