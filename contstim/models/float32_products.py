"""Products of float32 numbers that are float32 numbers, whatever a program has asked PyTorch for.

To be quick, PyTorch may round the factors of float32 products to ten bits (TF32) or to seven
(bfloat16): GPUs those of recurrent layers unless told otherwise, and both GPUs and processors all
of them where a program asks for it. It can be asked in two ways, of which each hides what the other
has set: `allow_tf32` and `set_float32_matmul_precision`, and since PyTorch 2.9 `fp32_precision`,
kind of operation by kind of operation.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

_BACKENDS: Any = torch.backends


@contextmanager
def float32_products() -> Iterator[None]:
    """Within a `with` statement, float32 means float32 in this process.

    Afterwards a program finds its settings as they were.
    """
    kinds = _kinds_of_operations()
    before = [kind.fp32_precision for kind in kinds]
    try:
        older = torch.get_float32_matmul_precision(), _BACKENDS.cudnn.allow_tf32
    except RuntimeError:  # a program has set the newer ones, which the older ones cannot tell
        older = None
    try:
        if older is not None:
            _set_older("highest", allow_tf32=False)
        for kind in kinds:
            kind.fp32_precision = "ieee"
        yield
    finally:
        if older is not None:
            _set_older(older[0], allow_tf32=older[1])
        for kind, precision in zip(kinds, before, strict=True):
            kind.fp32_precision = precision


def _kinds_of_operations() -> list[Any]:
    """What has a precision of its own; nothing before PyTorch 2.9."""
    if not hasattr(_BACKENDS.cuda.matmul, "fp32_precision"):
        return []
    cudnn, onednn = _BACKENDS.cudnn, _BACKENDS.mkldnn
    return [
        _BACKENDS.cuda.matmul, cudnn.conv, cudnn.rnn, onednn.matmul, onednn.conv, onednn.rnn
    ]  # fmt: skip


def _set_older(matmul_precision: str, *, allow_tf32: bool) -> None:
    torch.set_float32_matmul_precision(matmul_precision)
    _BACKENDS.cudnn.allow_tf32 = allow_tf32
