"""Tensors of networks on disk, and fingerprints, which do not depend on names of files."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from contstim.files import writing
from contstim.models.spread import with_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torch import Tensor

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
    return hashlib.sha256(_tokenization(tokenizer).encode()).hexdigest()[:24]


def fingerprint_of_network(network: Any, *descriptions: str) -> str:
    """Hash of weights, their precision, and descriptions of the network.

    Args:
        network: a `torch` module.
        descriptions: its configuration and vocabulary, in a fixed order.
    """
    digest = hashlib.sha256()
    # Changing the order or the form of any part would make all stored scores unknown
    for part in (*_weights(network), *descriptions):
        digest.update(part.encode())
    return digest.hexdigest()[:24]


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
