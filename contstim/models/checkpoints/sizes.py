"""Whether a configuration describes a network that its weights could be of.

The library builds whatever `config.json` asks for before it compares it with the weights: billions
of layers one by one, or an embedding larger than the memory.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from contstim.errors import ModelError
from contstim.models.checkpoints.stored import n_stored

if TYPE_CHECKING:
    from collections.abc import Iterator

_COUNT = re.compile(r"(^|_)(layers?|blocks?|groups?|experts?)(_num)?$")
_MOST_PARTS = 4_096  # far more than any network has; each takes a millisecond to build
_MOST_IN_BUFFERS = 2**31  # numbers in what is not trained, such as masks and tables of angles


def check_counts(location: str, config: dict[str, Any]) -> None:
    """Refuse a configuration that asks for more layers or experts than can be built.

    Raises:
        ModelError: it does; names the entry.
    """
    for name, value in _numbers(config):
        if _COUNT.search(name) and value > _MOST_PARTS:
            raise ModelError(
                f"{location}: config.json says {name} = {_short(value)}; networks of up to "
                f"{_MOST_PARTS:,} can be loaded. Give the configuration that the weights were "
                f"saved with."
            )


def without_weights(model_class: Any, config: Any, *, trust_remote_code: bool) -> Any:
    """The network that a configuration describes, with the shapes of its weights only.

    Args:
        model_class: an auto class of `transformers`.
        config: its configuration.
        trust_remote_code: whether it may run code of its own.
    """
    import torch
    from transformers.initialization import no_init_weights

    with torch.device("meta"), no_init_weights():
        return model_class.from_config(config, trust_remote_code=trust_remote_code)


def check_sizes(location: str, network: Any) -> None:
    """Refuse a configuration of a network that is far larger than the weights in its folder.

    Args:
        location: a folder; nothing is known beforehand of what lies on the hub.
        network: see `without_weights`.

    Raises:
        ModelError: it is.
    """
    stored = n_stored(location)
    if stored is None:
        return
    weights = sum(weight.numel() for weight in network.parameters())
    buffers = sum(buffer.numel() for buffer in network.buffers())
    if weights > max(4 * stored, 10**7) or buffers > _MOST_IN_BUFFERS:
        raise ModelError(
            f"{location}: config.json describes a network of {max(weights, buffers):,} numbers, "
            f"the files beside it hold {stored:,}. Give the configuration that the weights were "
            f"saved with."
        )


def _numbers(config: Any, name: str = "") -> Iterator[tuple[str, int]]:
    if isinstance(config, dict):
        for key, value in config.items():
            yield from _numbers(value, str(key))
    elif isinstance(config, int):
        yield name, config


def _short(number: int) -> str:
    return f"{number:,}" if number < 10**15 else "a number of more than 15 digits"
