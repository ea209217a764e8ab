"""Linear layers that use oneDNN on the CPU, instead of the BLAS library that PyTorch uses.

PyTorch computes float32 matrix products with MKL, which does not use the wide registers of AMD
processors. oneDNN, which is part of PyTorch, uses these registers. The weights do not change.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers.pytorch_utils import Conv1D

if TYPE_CHECKING:
    from collections.abc import Callable


class _Linear(torch.nn.Linear):
    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        return _linear(input, self.weight, self.bias, super().forward)


class _TransposedLinear(Conv1D):
    """GPT-2's linear layer, whose weight has the shape (in, out)."""

    def forward(self, x: Tensor) -> Tensor:
        return _linear(x, self.weight.t(), self.bias, super().forward)


_FASTER = {torch.nn.Linear: _Linear, Conv1D: _TransposedLinear}


def bound_onednn_memory() -> None:
    """Limit oneDNN's cache to 64 entries; call this before oneDNN computes anything.

    For each shape of its inputs, oneDNN prepares the computation of a product. By default, it
    caches 1,024 of these prepared computations, which take memory. Batches of a text rarely have
    equal shapes. So most batches add an entry, and a long training would use gigabytes.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")


def use_onednn(model: torch.nn.Module) -> None:
    """Compute a network's `Linear` and `Conv1D` layers with oneDNN, in float32 on the CPU.

    On another device or in another precision, these layers compute as before.
    """
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return
    for module in model.modules():
        # Skip subclasses of these layers, which may compute something else
        if type(module) in _FASTER:
            # Replace only the class, so that weights, names and hooks do not change
            module.__class__ = _FASTER[type(module)]


class _Product(torch.autograd.Function):
    """Product inputs (…, in) · weight (out, in)ᵀ + bias (out,), and its gradients."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        return _product(inputs, weight, bias)

    @staticmethod
    def backward(
        ctx: Any, *gradients: Tensor
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        inputs, weight = ctx.saved_tensors
        needs_inputs, needs_weight, needs_bias = ctx.needs_input_grad
        # Flatten all leading axes into n rows
        outer = gradients[0].reshape(-1, weight.shape[0])  # (n, out)
        inner = inputs.reshape(-1, weight.shape[1])  # (n, in)
        return (
            _product(gradients[0], weight.t()) if needs_inputs else None,
            _product(outer.t(), inner.t()) if needs_weight else None,
            outer.sum(0) if needs_bias else None,
        )


def _linear(
    inputs: Tensor, weight: Tensor, bias: Tensor | None, fallback: Callable[[Tensor], Tensor]
) -> Tensor:
    """Compute a float32 product on the CPU with oneDNN, and any other product with `fallback`."""
    can_use_onednn = (
        inputs.dtype == weight.dtype == torch.float32
        and inputs.device.type == "cpu"
        and inputs.numel() > 0
        and not torch.is_autocast_enabled("cpu")
    )
    product: Any = _Product.apply
    result: Tensor = product(inputs, weight, bias) if can_use_onednn else fallback(inputs)
    return result


def _product(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return inputs · weightᵀ + bias.

    The arguments "none", [] and "" mean that oneDNN applies no activation function to the result.
    """
    product: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, weight, bias, "none", [], "")
    return product
