"""Tensors of networks: device maps, files and fingerprints.

A device map assigns the parts of a network to devices, memory or disk, and `accelerate` distributes
the parts. If weights are offloaded to memory or disk, the network contains placeholders (meta
tensors) instead of them. When a layer runs, a hook copies the values of its weights from memory or
disk to the computing device.

`bitsandbytes` quantizes the weights of all linear layers except the output layer. Each quantized
weight is multiplied by a scale. With 8 bits, the weights in one row of a weight matrix share a
scale. With 4 bits, every 64 weights share a scale.
"""

from __future__ import annotations

import hashlib
import json
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from contstim.errors import ModelError
from contstim.files.files import writing
from contstim.models.base import short_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import torch
    from torch import Tensor

    from contstim.models.loading import Loading


def placement_options(loading: Loading, offload: str) -> dict[str, Any]:
    """Return options of `from_pretrained` for precision, device map and quantization.

    `offload` is a folder for offloaded weights that cannot be read from the checkpoint's files.
    """
    import torch

    settings: dict[str, Any] = {"dtype": loading.dtype}
    for package in ("accelerate", "bitsandbytes"):
        # Suppress warnings about offloaded weights and missing optional kernels
        logging.getLogger(package).setLevel(logging.ERROR)
    if loading.device_map is not None:
        parts = loading.device_map if loading.device_map == "auto" else dict(loading.device_map)
        settings |= {"device_map": parts, "offload_folder": offload}
    if loading.quantize is not None:
        import transformers

        configuration: Any = transformers.BitsAndBytesConfig
        settings.setdefault("device_map", {"": loading.device})  # load directly to the device
        settings["quantization_config"] = configuration(
            load_in_8bit=loading.quantize == "int8",
            load_in_4bit=loading.quantize == "int4",
            # With "nf4", the 16 values that a 4-bit weight can have are quantiles of a normal
            # distribution. These values suit the weights, which are approximately normal
            bnb_4bit_quant_type="nf4",
            bnb_4bit_compute_dtype=getattr(torch, loading.dtype),
        )
    return settings


def is_spread(network: Any) -> bool:
    """Return True if the network has a device map."""
    return getattr(network, "hf_device_map", None) is not None


def check_map(location: str, network: torch.nn.Module, device_map: Mapping[str, str | int]) -> None:
    """Refuse a device map that assigns shared weights to two devices.

    The empty name in a device map means all other parts of the network.

    Raises:
        ModelError: if shared weights are assigned to two devices.
    """
    names_by_weight: dict[int, dict[str | int, str]] = {}  # weight id -> device -> a name
    for name, weight in network.named_parameters(remove_duplicate=False):
        parts = [part for part in device_map if not part or f"{name}.".startswith(f"{part}.")]
        # Of several matching names, the longest applies. A weight without a matching name is not
        # checked here, because `transformers` refuses it
        if parts:
            names_by_weight.setdefault(id(weight), {})[device_map[max(parts, key=len)]] = name
    for names in names_by_weight.values():
        if len(names) > 1:
            raise ModelError(
                f"The device map puts {' and '.join(names.values())} of {location} on several "
                f"devices, although they are the same weights. Put them on one device."
            )


def input_device(network: Any) -> str:
    """Return the device of a distributed network's input embedding; inputs are copied there."""
    weight = getattr(network.get_input_embeddings(), "weight", None)
    if weight is not None and not weight.is_meta:
        return str(weight.device)
    device = next((d for d in network.hf_device_map.values() if d not in {"cpu", "disk"}), "cpu")
    return f"cuda:{device}" if isinstance(device, int) else str(device)


def has_parts_elsewhere(network: torch.nn.Module) -> bool:
    """Return True if some weights are placeholders.

    Weights are placeholders if they are offloaded to memory or disk, or if they are not loaded.
    """
    return any(weight.is_meta for weight in network.parameters())


def with_values(
    network: torch.nn.Module, tensors: Iterable[tuple[str, torch.Tensor]]
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield names and tensors of a network; each placeholder is replaced by its values."""
    offloaded: dict[str, tuple[Any, str]] = {}  # full name -> (map of values, key)
    for name, module in network.named_modules():
        hook = getattr(module, "_hf_hook", None)
        for part in getattr(hook, "hooks", (hook,)):  # one hook, or several in sequence
            if (values := getattr(part, "weights_map", None)) is not None:
                for key in module.state_dict(keep_vars=True):
                    offloaded[f"{name}.{key}" if name else key] = (values, key)
    for name, tensor in tensors:
        values, key = offloaded.get(name, ({}, ""))
        yield name, values[key] if tensor.is_meta and key else tensor


# Entries of the configuration that depend on the path or on `transformers`, not on the network
_VOLATILE = frozenset({"_name_or_path", "architectures", "dtype", "transformers_version"})


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> None:
    """Write named tensors to a file. An existing file is replaced after all tensors are written.

    Raises:
        InputError: if the file cannot be written, for instance because the disk is full.
    """
    import safetensors.torch
    from safetensors import SafetensorError

    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with writing(path) as partial:
        partial.touch()
        # Store the permissions and restore them below, because safetensors makes the file
        # unreadable for other users
        mode = partial.stat().st_mode
        try:
            safetensors.torch.save_file(contiguous, partial, dict(metadata or {}))
        except SafetensorError as error:  # raised also for system errors
            raise OSError(None, str(error)) from error
        partial.chmod(mode)


def fingerprint(model: Any, tokenizer: Any) -> str:
    """Return a hash of a `transformers` model's weights, precision, configuration and tokenizer."""
    facts = model.config.to_diff_dict().items()
    lasting = {key: value for key, value in facts if key not in _VOLATILE}
    configuration = json.dumps(lasting, sort_keys=True, default=str)
    return fingerprint_of_network(model, configuration, _tokenization(tokenizer))


def fingerprint_of_tokenizer(tokenizer: Any) -> str:
    """Return a hash of the settings of a `transformers` tokenizer that affect tokenization."""
    return short_hash(_tokenization(tokenizer))


def fingerprint_of_network(network: Any, *descriptions: str) -> str:
    """Return a hash of a `torch` module's weights and precision, and of descriptions.

    Descriptions are texts in a fixed order, such as the configuration and the vocabulary.
    """

    def digest(item: tuple[str, Any]) -> str:
        import torch

        name, tensor = item
        # Hash bytes instead of numbers, since NumPy has no bfloat16
        flat = tensor.detach().cpu().contiguous().view(-1)
        content = hashlib.sha256(memoryview(flat.view(torch.uint8).numpy())).hexdigest()
        return f"{name} {tuple(tensor.shape)} {tensor.dtype} {content}\n"

    with ThreadPoolExecutor() as pool:  # hashing releases the interpreter's lock
        weights = pool.map(digest, with_values(network, sorted(network.state_dict().items())))
    # Another order or format of these parts would invalidate all cached scores
    return short_hash("".join((*weights, *descriptions)))


def _slow_settings(tokenizer: Any) -> Iterator[str]:
    options = tokenizer.init_kwargs.items()
    # Omit settings that are texts, because they are names and paths. Numbers and Boolean values,
    # such as `do_lower_case`, affect tokenization
    yield json.dumps(sorted((k, v) for k, v in options if isinstance(v, bool | int)))
    with TemporaryDirectory() as folder:
        for path in sorted(tokenizer.save_vocabulary(folder)):
            yield hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _tokenization(tokenizer: Any) -> str:
    special = sorted((role, str(token)) for role, token in tokenizer.special_tokens_map.items())
    if tokenizer.is_fast:
        parts = json.loads(tokenizer.backend_tokenizer.to_str())
        # Padding and truncation depend on the last call and do not affect tokenization
        parts = {key: parts[key] for key in sorted(parts) if key not in {"padding", "truncation"}}
    else:
        parts = [sorted(tokenizer.get_vocab().items()), *_slow_settings(tokenizer)]
    return json.dumps([special, parts])
