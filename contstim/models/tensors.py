"""Tensors of networks: where their values are, files of them, and fingerprints.

`accelerate` spreads a network over several devices, memory or disk: a part that waits there has
weights without values; a hook brings the values to the device that computes when the part's turn
comes. `bitsandbytes` quantizes: the weights of linear layers, apart from the output, become whole
numbers of 8 or 4 bits with a scale for each row or for 64 weights. Fingerprints do not depend on
names of files.
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


def spreading(loading: Loading, offload: str) -> dict[str, Any]:
    """Settings of `from_pretrained` for precision, device map and quantization.

    Args:
        loading: resolved, see `Loading.resolved`.
        offload: a folder for parts on disk that cannot be read from the checkpoint's files.
    """
    import torch

    settings: dict[str, Any] = {"dtype": loading.dtype}
    for package in ("accelerate", "bitsandbytes"):
        # They would tell of parts on disk and of kernels that they can do without
        logging.getLogger(package).setLevel(logging.ERROR)
    if loading.device_map is not None:
        parts = loading.device_map if loading.device_map == "auto" else dict(loading.device_map)
        settings |= {"device_map": parts, "offload_folder": offload}
    if loading.quantize is not None:
        import transformers

        configuration: Any = transformers.BitsAndBytesConfig
        settings.setdefault("device_map", {"": loading.device})  # loaded straight to its device
        settings["quantization_config"] = configuration(
            load_in_8bit=loading.quantize == "int8",
            load_in_4bit=loading.quantize == "int4",
            # Four-bit floats whose steps are those of a normal distribution, as weights are
            bnb_4bit_quant_type="nf4",
            bnb_4bit_compute_dtype=getattr(torch, loading.dtype),
        )
    return settings


def is_spread(network: Any) -> bool:
    """True if the network's parts have a device map."""
    return getattr(network, "hf_device_map", None) is not None


def check_map(location: str, network: torch.nn.Module, device_map: Mapping[str, str | int]) -> None:
    """Refuse a map that puts weights that parts share on two devices.

    Args:
        location: where the network is.
        network: with the shapes of its weights at least.
        device_map: a device for the name of each part; the empty name stands for all others.

    Raises:
        ModelError: names the weights.
    """
    placed: dict[int, dict[str | int, str]] = {}  # of each weight, by device, one of its names
    for name, weight in network.named_parameters(remove_duplicate=False):
        parts = [part for part in device_map if not part or f"{name}.".startswith(f"{part}.")]
        if parts:  # else the library names it; the longest counts: `transformer.wte`, not its body
            placed.setdefault(id(weight), {})[device_map[max(parts, key=len)]] = name
    for names in placed.values():
        if len(names) > 1:
            raise ModelError(
                f"The device map puts {' and '.join(names.values())} of {location} on several "
                f"devices, although they are the same weights. Put them on one."
            )


def input_device(network: Any) -> str:
    """Device for the inputs of a spread network: its embedding's, or where that is brought."""
    weight = getattr(network.get_input_embeddings(), "weight", None)
    if weight is not None and not weight.is_meta:
        return str(weight.device)
    devices = (each for each in network.hf_device_map.values() if each not in {"cpu", "disk"})
    device = next(devices, "cpu")
    return f"cuda:{device}" if isinstance(device, int) else str(device)


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
        values, key = waiting.get(name, ({}, ""))
        yield name, values[key] if tensor.is_meta and key else tensor


# Entries of a configuration that change with the place or the library, not with the network
_VOLATILE = frozenset({"_name_or_path", "architectures", "dtype", "transformers_version"})


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> None:
    """Write named tensors; the file that was there before stays until all is written.

    Raises:
        InputError: the file cannot be written, for instance because the disk is full.
    """
    import safetensors.torch
    from safetensors import SafetensorError

    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with writing(path) as partial:
        partial.touch()
        mode = partial.stat().st_mode  # the library would let nobody else read it
        try:
            safetensors.torch.save_file(contiguous, partial, dict(metadata or {}))
        except SafetensorError as error:  # also where the system would say OSError
            raise OSError(None, str(error)) from error
        partial.chmod(mode)


def fingerprint(model: Any, tokenizer: Any) -> str:
    """Hash of weights, their precision, configuration and tokenizer.

    Args:
        model: a `transformers` model.
        tokenizer: a `transformers` tokenizer.
    """
    facts = model.config.to_diff_dict().items()
    lasting = {key: value for key, value in facts if key not in _VOLATILE}
    configuration = json.dumps(lasting, sort_keys=True, default=str)
    return fingerprint_of_network(model, configuration, _tokenization(tokenizer))


def fingerprint_of_tokenizer(tokenizer: Any) -> str:
    """Hash of the settings that decide how a text is cut.

    Args:
        tokenizer: a `transformers` tokenizer.
    """
    return short_hash(_tokenization(tokenizer))


def fingerprint_of_network(network: Any, *descriptions: str) -> str:
    """Hash of weights, their precision, and descriptions of the network.

    Args:
        network: a `torch` module.
        descriptions: its configuration and vocabulary, in a fixed order.
    """
    # Changing the order or the form of any part would make all stored scores unknown
    return short_hash("".join((*_weights(network), *descriptions)))


def _weights(model: Any) -> Iterator[str]:
    def digest(item: tuple[str, Any]) -> str:
        import torch

        name, tensor = item
        # as bytes, since NumPy has no bfloat16
        flat = tensor.detach().cpu().contiguous().view(-1)
        content = hashlib.sha256(memoryview(flat.view(torch.uint8).numpy())).hexdigest()
        return f"{name} {tuple(tensor.shape)} {tensor.dtype} {content}\n"

    with ThreadPoolExecutor() as pool:  # hashing releases the interpreter's lock
        yield from pool.map(digest, with_values(model, sorted(model.state_dict().items())))


def _slow_settings(tokenizer: Any) -> Iterator[str]:
    """Options and files, such as merges, of a tokenizer that runs in Python."""
    options = tokenizer.init_kwargs.items()
    # Numbers and switches, such as do_lower_case; texts among the options are names and paths
    yield json.dumps(sorted((k, v) for k, v in options if isinstance(v, bool | int)))
    with TemporaryDirectory() as folder:
        for path in sorted(tokenizer.save_vocabulary(folder)):
            yield hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _tokenization(tokenizer: Any) -> str:
    """The settings that decide how a text is cut, without padding and truncation."""
    special = sorted((role, str(token)) for role, token in tokenizer.special_tokens_map.items())
    if tokenizer.is_fast:
        parts = json.loads(tokenizer.backend_tokenizer.to_str())
        # Padding and truncation change with the last call of the tokenizer, not with how it cuts a
        # text
        parts = {key: parts[key] for key in sorted(parts) if key not in {"padding", "truncation"}}
    else:
        parts = [sorted(tokenizer.get_vocab().items()), *_slow_settings(tokenizer)]
    return json.dumps([special, parts])
