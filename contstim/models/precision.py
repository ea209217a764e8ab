"""The precision of a network: its name, its scatter between batches, and full float32.

In less than float32 (bfloat16, float16) a sentence's score depends on the batch that it is in by
tenths of a nat, and TF32, which GPUs use for recurrent networks unless told otherwise, rounds
products of float32 numbers to ten bits.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import torch

from contstim.errors import ModelError
from contstim.models.base import ROUNDING
from contstim.models.batching import out_of_memory
from contstim.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from contstim.arrays import FloatArray

_PROBES = tuple(
    Sentence(tuple(text.split()))
    for text in ("We go", "She reads a book", "The dog never sleeps here", "Go home now")
)
_MARGIN = 4.0  # the sentences above are few: others may scatter more


def precision_of(network: torch.nn.Module) -> str:
    """The name of the coarsest precision among a network's weights, such as `bfloat16`."""
    kinds = {tensor.dtype for tensor in network.parameters() if tensor.is_floating_point()}
    coarsest = max(kinds, key=lambda kind: torch.finfo(kind).eps, default=torch.float32)
    return str(coarsest).removeprefix("torch.")


def tolerance_of(
    network: torch.nn.Module, log_probs: Callable[[Sequence[Sentence]], FloatArray]
) -> float:
    """The share of a score by which it may differ between batches.

    In float32 a constant. In less precision, four times the largest difference between the scores
    of a few sentences alone and in one batch, and never less than the rounding of the precision.

    Args:
        network: the network.
        log_probs: the function that scores sentences, nats.
    """
    if not any(_is_coarse(tensor.dtype) for tensor in network.parameters()):
        return ROUNDING
    # a sentence alone and in a batch: the network rounds sums in another order
    together = log_probs(_PROBES)
    alone = np.array([log_probs([sentence])[0] for sentence in _PROBES])
    scatter = float(np.max(np.abs(alone - together) / np.abs(together)))
    return max(_MARGIN * scatter, torch.finfo(getattr(torch, precision_of(network))).eps)


@contextmanager
def in_float32(network: torch.nn.Module) -> Iterator[None]:
    """Within a `with` statement, the network with its weights as float32 numbers.

    Weights are cast in place and back, which loses nothing: there is no second copy in memory, but
    the weights take twice the room meanwhile. Earlier results of the network, such as keys and
    values of a prefix, must not be used within.

    Raises:
        ModelError: the memory does not hold them; the network is as before.
    """
    tensors = (*network.parameters(), *network.buffers())
    coarse = [(tensor, tensor.dtype) for tensor in tensors if _is_coarse(tensor.dtype)]
    try:
        for tensor, _ in coarse:
            tensor.data = tensor.data.to(torch.float32)
        yield
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        raise ModelError(
            f"The scores of a result are computed in float32, for which the memory of "
            f"{next(network.parameters()).device} does not suffice. Use a smaller model, or a "
            f"device with more memory."
        ) from error
    finally:
        # Whatever happened: a model left in float32 would give other scores and fill twice the
        # memory
        for tensor, precision in coarse:
            tensor.data = tensor.data.to(precision)


def _is_coarse(precision: torch.dtype) -> bool:
    return precision.is_floating_point and torch.finfo(precision).bits < 32
