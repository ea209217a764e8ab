"""Models one after the other, so that one at a time is in memory."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, TypeVar

from contstim.models.catalog import (
    check_model,
    given_models,
    load_scorer,
    parse_specification,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.models.base import Scorer
    from contstim.models.checkpoints import Device, Precision
    from contstim.models.given import GivenModel

_Result = TypeVar("_Result")


def with_each_model(
    specifications: Sequence[str],
    work: Callable[[Scorer], _Result],
    *,
    device: Device = "auto",
    dtype: Precision = "auto",
    prompt: str | None = None,
    trust_remote_code: bool = False,
) -> list[_Result]:
    """Load each model, do something with it, and let it go before the next one is loaded.

    Names, specifications, files and configurations of all are checked before the first is loaded.
    Neighbours that share a checkpoint, such as two rules, share its network.

    Args:
        specifications: `[NAME=]SPECIFICATION` each.
        work: what to do; keeps nothing of the model.
        device: see `load_scorer`.
        dtype: see `load_scorer`.
        prompt: see `load_scorer`.
        trust_remote_code: see `load_scorer`.

    Returns:
        What came of each, in the order given.

    Raises:
        ModelError: see `load_scorers`.
    """
    given = given_models(specifications)
    for model_given in given:
        check_model(model_given.specification, trust_remote_code=trust_remote_code)
    results = []
    previous: Scorer | None = None  # its network is shared by the next model
    for current, following in zip(given, [*given[1:], None], strict=True):
        model = load_scorer(
            current.specification,
            name=current.name,
            device=device,
            dtype=dtype,
            prompt=prompt,
            trust_remote_code=trust_remote_code,
        )
        results.append(work(model))
        previous = model if following and _same_place(current, following) else None
        del model
        free_memory()
    del previous
    return results


def free_memory() -> None:
    """Give a dropped network's memory back at once, also to other workers on the same GPU."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.cuda.empty_cache()


def _same_place(model: GivenModel, other: GivenModel) -> bool:
    first, second = (parse_specification(m.specification) for m in (model, other))
    return (first.family, first.location) == (second.family, second.location)
