"""The precision of a network: its name, its scatter between batches, and full float32.

In less than float32 (bfloat16, float16) a sentence's score depends on the batch that it is in by
tenths of a nat, and TF32, which GPUs use for recurrent networks unless told otherwise, rounds
products of float32 numbers to ten bits.
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
    Sentence(tuple(text.split()))
    for text in ("We go", "She reads a book", "The dog never sleeps here", "Go home now")
)
_MARGIN = 4.0  # the sentences above are few: others may scatter more


def precision_of(network: torch.nn.Module) -> str:
    """The coarsest precision among a network's weights, such as `bfloat16`.

    Of a quantized network its quantization and what it computes in, such as `int8 with float32`.
    """
    quantization = quantization_of(network)
    computes_in = str(_coarsest(network)).removeprefix("torch.")
    return f"{quantization} with {computes_in}" if quantization else computes_in


def quantization_of(network: Any) -> str:
    """Quantization of a network's weights, such as `int8` or `gptq`; empty for none."""
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
    """The share of a score by which it may differ between batches.

    In float32 a constant. In less precision, and of quantized networks, four times the largest
    difference between the scores of a few sentences alone and in one batch, and never less than the
    rounding of the precision.

    Args:
        network: the network.
        log_probs: the function that scores sentences, nats.
    """
    coarse = any(_is_coarse(tensor.dtype) for tensor in network.parameters())
    if not coarse and not quantization_of(network):
        return ROUNDING
    # a sentence alone and in a batch: the network rounds sums in another order
    with alone():  # nor in a batch with those of searches that run beside
        together = log_probs(_PROBES)
        each = np.array([log_probs([sentence])[0] for sentence in _PROBES])
    scatter = float(np.max(np.abs(each - together) / np.abs(together)))
    return max(_MARGIN * scatter, torch.finfo(_coarsest(network)).eps if coarse else ROUNDING)


@contextmanager
def in_float32(network: torch.nn.Module) -> Iterator[None]:
    """Within a `with` statement, the network with its weights as float32 numbers.

    Weights are cast in place and back, which loses nothing: there is no second copy in memory, but
    the weights take twice the room meanwhile. Earlier results of the network, such as keys and
    values of a prefix, must not be used within. Quantized weights stay as they are, and what they
    are multiplied with is a float32 number in int4, and rounded to eight bits in int8.

    Raises:
        ModelError: the memory does not hold them, or some are neither on a GPU nor in memory that
            computes; the network is as before.
    """
    tensors = (*network.parameters(), *network.buffers())
    coarse = [(tensor, tensor.dtype) for tensor in tensors if _is_coarse(tensor.dtype)]
    if coarse and has_parts_elsewhere(network):
        raise ModelError(
            "Scores of results are computed in float32, to which weights cannot be cast that a "
            "device map has put on disk or away from the GPUs. Use dtype float32."
        )
    # Layers of four bits name the precision of their products themselves
    modules: list[Any] = list(network.modules())
    kinds = ((module, getattr(module, "compute_dtype", None)) for module in modules)
    layers = [(module, kind) for module, kind in kinds if isinstance(kind, torch.dtype)]
    device = next((parameter.device for parameter in network.parameters()), "cpu")
    refusal = (
        f"Scores of results are computed in float32, for which the memory of {device} does not "
        f"suffice. Use a smaller model, or a device with more memory."
    )
    try:
        # Searches that run beside this one have the same weights
        with fitting_memory(refusal), alone():
            for layer, _ in layers:
                layer.compute_dtype = torch.float32
            for tensor, _ in coarse:
                tensor.data = tensor.data.to(torch.float32)
            yield
    finally:
        # Whatever happened: a model left in float32 would give other scores and fill twice the
        # memory
        for tensor, precision in coarse:
            tensor.data = tensor.data.to(precision)
        for layer, computed_in in layers:
            layer.compute_dtype = computed_in


def _is_coarse(precision: torch.dtype) -> bool:
    return precision.is_floating_point and torch.finfo(precision).bits < 32
