"""Precision of a network's weights: name, tolerance of scores, and conversion to float32.

In bfloat16 and float16, a sentence's score can differ by tenths of a nat between two batches.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from contstim.errors import ModelError
from contstim.models.base import ROUNDING
from contstim.models.batching import fitting_memory
from contstim.models.merging import alone
from contstim.models.tensors import has_parts_elsewhere
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from contstim.files.arrays import FloatArray

_PROBES = tuple(
    map(Sentence.parse, ("We go", "She reads a book", "The dog never sleeps here", "Go home now"))
)


def precision_of(network: torch.nn.Module) -> str:
    """Return the coarsest precision of a network's weights. An example is `bfloat16`.

    For a quantized network, the result also names the quantization. For example, it is
    `int8 with float32`.
    """
    quantization = quantization_of(network)
    computes_in = str(_coarsest(network)).removeprefix("torch.")
    return f"{quantization} with {computes_in}" if quantization else computes_in


def quantization_of(network: Any) -> str:
    """Return the quantization of a network's weights, e.g. `int8` or `gptq`; empty for none."""
    settings = getattr(getattr(network, "config", None), "quantization_config", None)
    if settings is None:
        return ""
    facts = settings if isinstance(settings, dict) else settings.to_dict()
    for bits in (4, 8):
        if facts.get(f"load_in_{bits}bit") or facts.get(f"_load_in_{bits}bit"):
            return f"int{bits}"
    method = facts.get("quant_method", "quantized")
    return str(getattr(method, "value", method))


def _coarsest(network: torch.nn.Module) -> torch.dtype:
    kinds = {tensor.dtype for tensor in network.parameters() if tensor.is_floating_point()}
    return max(kinds, key=lambda kind: torch.finfo(kind).eps, default=torch.float32)


def tolerance_of(
    network: torch.nn.Module, log_probs: Callable[[Sequence[Sentence]], FloatArray]
) -> float:
    """Return the tolerance: the largest expected difference of a sentence's scores in two batches.

    The difference is relative to the score. The tolerance of float32 networks is `ROUNDING`. The
    tolerance of all other networks (in a coarser precision, or quantized) is measured. A few
    sentences are scored one by one, and again in one batch. The tolerance is then four times the
    largest relative difference, but at least the rounding error of the precision.
    """
    coarse = any(_is_coarse(tensor.dtype) for tensor in network.parameters())
    if not coarse and not quantization_of(network):
        return ROUNDING
    with alone():  # otherwise calls of concurrent searches could join these batches
        batch_scores = log_probs(_PROBES)
        single_scores = np.array([log_probs([sentence])[0] for sentence in _PROBES])
    deviation = float(np.max(np.abs(single_scores - batch_scores) / np.abs(batch_scores)))
    # A safety factor of 4, since scores of other sentences may differ more
    return max(4 * deviation, torch.finfo(_coarsest(network)).eps if coarse else ROUNDING)


@contextmanager
def in_float32(network: torch.nn.Module) -> Iterator[None]:
    """Convert a network's weights to float32 within a `with` statement.

    Weights are converted in place, and converted back after the statement, without loss. Float32
    weights take twice the memory of 16-bit weights. Within the statement, do not use earlier
    results of the network, such as cached keys and values of a prefix, because their precision is
    coarser.

    Quantized weights do not change. With int4 weights, the inputs of quantized layers are float32.
    With int8 weights, these inputs are rounded to eight bits.

    Raises:
        ModelError: if memory is insufficient; or if a device map, which assigns the parts of a
            network to devices, has put weights on disk or outside the GPUs. After such an error,
            the network is unchanged.
    """
    tensors = (*network.parameters(), *network.buffers())
    coarse = [(tensor, tensor.dtype) for tensor in tensors if _is_coarse(tensor.dtype)]
    if coarse and has_parts_elsewhere(network):
        raise ModelError(
            "Reported scores are computed in float32, but a device map placed weights on disk or "
            "outside the GPUs. These weights cannot be converted. Use dtype float32."
        )
    # Only four-bit layers have the attribute `compute_dtype`, the precision of their products
    kinds: Any = ((m, getattr(m, "compute_dtype", None)) for m in network.modules())
    layers = [(module, kind) for module, kind in kinds if isinstance(kind, torch.dtype)]
    device = next((parameter.device for parameter in network.parameters()), "cpu")
    refusal = (
        "Reported scores are computed in float32, which does not fit into the memory of "
        f"{device}. Use a smaller model, or a device with more memory."
    )
    try:
        # `alone`, because concurrent searches share the weights
        with fitting_memory(refusal), alone():
            for layer, _ in layers:
                layer.compute_dtype = torch.float32
            for tensor, _ in coarse:
                tensor.data = tensor.data.to(torch.float32)
            yield
    finally:
        for tensor, precision in coarse:
            tensor.data = tensor.data.to(precision)
        for layer, computed_in in layers:
            layer.compute_dtype = computed_in


def _is_coarse(precision: torch.dtype) -> bool:
    return precision.is_floating_point and torch.finfo(precision).bits < 32
