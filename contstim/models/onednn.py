"""Linear layers of networks on the CPU through oneDNN instead of the BLAS that PyTorch links.

PyTorch's builds hand float32 products to MKL, which leaves the wide registers of AMD processors
unused; oneDNN, part of the same build, does not. The weights do not change.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor
from transformers.pytorch_utils import Conv1D


class _Linear(torch.nn.Linear):
    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        if not _suits(input, self.weight):
            return super().forward(input)
        return _linear(input, self.weight, self.bias)


class _TransposedLinear(Conv1D):
    """GPT-2's layer, whose weight is (in, out)."""

    def forward(self, x: Tensor) -> Tensor:
        if not _suits(x, self.weight):
            whole: Tensor = super().forward(x)  # type: ignore[no-untyped-call]
            return whole
        return _linear(x, self.weight.t(), self.bias)


_FASTER = {torch.nn.Linear: _Linear, Conv1D: _TransposedLinear}


_CACHED_PRODUCTS = 64


def bound_onednn_memory() -> None:
    """Bound the memory of oneDNN's cache; without effect once oneDNN has computed something.

    By default it caches 1,024 products, one for every size of a batch that occurred, each with its
    own memory. Batches of a text hardly ever have the same size: a long training would fill
    gigabytes.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(_CACHED_PRODUCTS))


def use_onednn(model: torch.nn.Module) -> None:
    """Let a network's linear layers compute through oneDNN wherever that is possible.

    Layers of other classes than PyTorch's `Linear` and transformers' `Conv1D` are left alone. A
    layer computes as before on another device or in another precision.
    """
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return
    for module in model.modules():
        # The very class: a subclass may compute something else
        if type(module) in _FASTER:
            # The class and not the module: weights, names and hooks stay where they are
            module.__class__ = _FASTER[type(module)]


def _suits(inputs: Tensor, weight: Tensor) -> bool:
    return (
        inputs.dtype == weight.dtype == torch.float32
        and inputs.device.type == "cpu"
        and inputs.numel() > 0
        and not torch.is_autocast_enabled("cpu")
    )


class _Product(torch.autograd.Function):
    """inputs (…, in) · weight (out, in)ᵀ + bias (out,), and its gradients."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        return _product(inputs, weight, bias)

    @staticmethod
    def backward(
        ctx: Any, *gradients: Tensor
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        inputs, weight = ctx.saved_tensors
        of_inputs, of_weight, of_bias = ctx.needs_input_grad
        # All leading axes are rows of one product
        outer = gradients[0].reshape(-1, weight.shape[0])  # (n, out)
        inner = inputs.reshape(-1, weight.shape[1])  # (n, in)
        return (
            _product(gradients[0], weight.t()) if of_inputs else None,
            _product(outer.t(), inner.t()) if of_weight else None,
            outer.sum(0) if of_bias else None,
        )


def _linear(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    product: Tensor = _Product.apply(inputs, weight, bias)  # type: ignore[no-untyped-call]
    return product


def _product(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Inputs · weightᵀ + bias; the last three arguments say that nothing is fused after it."""
    product: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, weight, bias, "none", [], "")
    return product
