"""Networks whose parts are on several devices, in memory or on disk, as `accelerate` puts them.

A part that waits in memory or on disk has weights without values; a hook brings the values to the
device that computes when the part's turn comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contstim.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import torch


def is_spread(network: Any) -> bool:
    """True if the network's parts have a device map."""
    return getattr(network, "hf_device_map", None) is not None


def check_map(location: str, network: torch.nn.Module, device_map: Mapping[str, str | int]) -> None:
    """Refuse a map that leaves a part out, or puts weights that parts share on two devices.

    Args:
        location: where the network is.
        network: with the shapes of its weights at least.
        device_map: a device for the name of each part; the empty name stands for all others.

    Raises:
        ModelError: names the weights.
    """
    names: dict[int, list[str]] = {}
    for name, weight in network.named_parameters(remove_duplicate=False):
        names.setdefault(id(weight), []).append(name)
    for group in names.values():
        parts = [
            # The longest name counts: `transformer.wte` before `transformer`
            max(
                (part for part in device_map if not part or f"{name}.".startswith(f"{part}.")),
                key=len,
                default=None,
            )
            for name in group
        ]
        if None in parts:
            raise ModelError(
                f"The device map has no device for the weight {group[parts.index(None)]} of "
                f"{location}. Give one for each part, or one for the empty name."
            )
        if len({device_map[part] for part in parts if part is not None}) > 1:
            raise ModelError(
                f"The device map puts {' and '.join(group)} of {location} on several devices, "
                f"although they are the same weights. Put them on one."
            )


def input_device(network: Any) -> str:
    """Device for the inputs of a spread network: its embedding's, or where that is brought."""
    weight = getattr(network.get_input_embeddings(), "weight", None)
    if weight is not None and not weight.is_meta:
        return str(weight.device)
    places = (place for place in network.hf_device_map.values() if place not in {"cpu", "disk"})
    place = next(places, "cpu")
    return f"cuda:{place}" if isinstance(place, int) else str(place)


def has_parts_elsewhere(network: torch.nn.Module) -> bool:
    """True if some weights are not on a device that computes."""
    return any(weight.is_meta for weight in network.parameters())


def with_values(
    network: torch.nn.Module, tensors: Iterable[tuple[str, torch.Tensor]]
) -> Iterator[tuple[str, torch.Tensor]]:
    """Named tensors of a network with their values, read from memory or disk where they wait."""
    waiting: dict[str, tuple[Any, str]] = {}  # for a full name, a map of values and the key in it
    for name, module in network.named_modules():
        hook = getattr(module, "_hf_hook", None)
        for part in getattr(hook, "hooks", (hook,)):  # one hook, or several in sequence
            values = getattr(part, "weights_map", None)
            if values is not None:
                for key in module.state_dict(keep_vars=True):
                    waiting[f"{name}.{key}" if name else key] = (values, key)
    for name, tensor in tensors:
        if tensor.is_meta and name in waiting:
            values, key = waiting[name]
            yield name, values[key]
        else:
            yield name, tensor
