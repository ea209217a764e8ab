"""Rows of tokens through a network: deduplicated, sorted by length, packed by a token budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch

from contstim.errors import ModelError
from contstim.models.costs import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.arrays import IntArray

    Row: TypeAlias = Sequence[int] | IntArray
    Run: TypeAlias = Callable[[torch.Tensor, torch.Tensor, IntArray], None]


@dataclass(frozen=True)
class Budget:
    """How many tokens, padding included, pass through a network at once.

    On a CPU larger batches are slower: their activations no longer fit its caches. A GPU wants to
    be filled.
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
    budget: int,
    device: torch.device | str = "cpu",
    progress: Callable[[int], None] | None = None,
) -> None:
    """Hand rows of token ids to `run` in batches of similar length, the longest first.

    Rows are padded on the right. `run` is called in inference mode with the ids (b, l), the
    attention mask (b, l) and the numbers (b,) of the rows, by which it scatters its results. When
    memory runs out, the budget is halved and the same rows are tried again.

    Args:
        rows: token ids, one sequence for each row, of any lengths.
        run: what to do with a batch.
        pad: token id to pad with.
        budget: tokens a batch, padding included; a longer row goes alone.
        device: where the ids and the attention mask are put.
        progress: told the number of rows in each finished batch.

    Raises:
        ModelError: a single row does not fit into memory.
    """
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        longest = int(lengths[order[start]])
        chosen = order[start : start + max(1, budget // max(1, longest))]
        ids, attention = _pad([rows[row] for row in chosen], lengths[chosen], pad)
        with torch.inference_mode():
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
            budget = len(chosen) * longest // 2


def unique_rows(rows: Iterable[Row]) -> tuple[list[IntArray], IntArray]:
    """The distinct rows in order of first appearance, and for each row the number of its twin."""
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
    except torch.OutOfMemoryError:
        pass
    except RuntimeError as error:
        if "out of memory" not in str(error).lower():
            raise
    else:
        return True
    if ids.device.type == "cuda":
        torch.cuda.empty_cache()
    return False
