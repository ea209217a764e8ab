"""Devices on which networks run, and precisions in which they compute."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from contstim.errors import ModelError

Device: TypeAlias = Literal["auto", "cpu", "cuda"]
Precision: TypeAlias = Literal["auto", "float32", "bfloat16", "float16"]


def resolve_device(name: str) -> str:
    """The device that a name stands for; `auto` is a GPU where there is one.

    Raises:
        ModelError: there is no such device.
    """
    import torch

    if name not in get_args(Device):
        raise ModelError(f"There is no device {name!r}; there are {', '.join(get_args(Device))}.")
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise ModelError("PyTorch finds no GPU here. Use --device cpu, or auto.")
    return name


def resolve_precision(name: str) -> str:
    """The precision that a name stands for; `auto` is float32.

    Raises:
        ModelError: there is no such precision.
    """
    if name not in get_args(Precision):
        raise ModelError(
            f"There is no precision {name!r}; there are {', '.join(get_args(Precision))}."
        )
    return "float32" if name == "auto" else name
