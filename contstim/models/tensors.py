"""Tensors on disk in the safetensors format, written whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.files import writing

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from torch import Tensor


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
