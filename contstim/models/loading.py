"""Loading of models: one value carries what a user chose from the surface to the network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from contstim.errors import ModelError
from contstim.options import Help

Device: TypeAlias = Literal["auto", "cpu", "cuda"]
"""Device of a network; `auto` is a GPU where there is one."""
Precision: TypeAlias = Literal["auto", "float32", "bfloat16", "float16"]
"""The numbers that a network computes in; `auto` is float32."""
Quantization: TypeAlias = Literal["int8", "int4"]
"""Bits that a weight is rounded to, for networks that do not fit otherwise."""

if TYPE_CHECKING:
    DeviceMap: TypeAlias = Literal["auto"] | Mapping[str, str | int]
else:
    DeviceMap = Literal["auto"]  # all that commands and study files can say
"""`auto` fills the GPUs, then the memory, then the disk; in Python also a device for the name of
each part, such as `{"transformer": 0, "lm_head": "cpu"}`."""


@dataclass(frozen=True, kw_only=True)
class Loading:
    """Options of loading models."""

    PANEL: ClassVar[str] = "Loading of models"

    device: Annotated[Device, Help("Where networks run; auto: a GPU where there is one.")] = "auto"
    dtype: Annotated[
        Precision, Help("What transformers compute in; auto: float32. Half precision makes ties.")
    ] = "auto"
    device_map: Annotated[DeviceMap | None, Help("Spread over all GPUs, memory and disk.")] = None
    quantize: Annotated[Quantization | None, Help("Weights in 8 or 4 bits; scores differ.")] = None
    trust_remote_code: Annotated[
        bool, Help("Let transformers run Python code that comes with a checkpoint. Read it first.")
    ] = False

    weights: bool = True  # without them, tokenizers tell how models read words, and nothing scores

    @property
    def without_weights(self) -> Loading:
        """The same for tokenizers and lists of words alone, which tell how models read words."""
        return replace(self, weights=False)

    def resolved(self) -> Loading:
        """The same with the names of the device and of the precision in place of `auto`.

        Raises:
            ModelError: there is no such device, precision or quantization; a device is given
                beside a map; or a package is missing.
        """
        _check_choice("dtype", self.dtype, Precision)
        if self.quantize is not None:
            _check_choice("quantize", self.quantize, Quantization)
            require_packages("`quantize`", "big", "accelerate", "bitsandbytes")
        if self.device_map is not None:
            if self.device_map != "auto" and not isinstance(self.device_map, Mapping):
                raise ModelError(
                    f"`device_map` must be auto, or in Python a device for the name of each part, "
                    f"not {self.device_map!r}."
                )
            if self.device != "auto":
                raise ModelError("`device` and `device_map` exclude each other: give one of them.")
            require_packages("`device_map`", "big", "accelerate")
        dtype: Precision = "float32" if self.dtype == "auto" else self.dtype
        return replace(self, device=resolve_device(self.device), dtype=dtype)


DEFAULT_LOADING = Loading()


def resolve_device(name: str) -> Device:
    """The device that a name stands for, `cpu` or `cuda`.

    Raises:
        ModelError: there is no such device.
    """
    import torch

    _check_choice("device", name, Device)
    if name == "cpu" or (name == "auto" and not torch.cuda.is_available()):
        return "cpu"
    if not torch.cuda.is_available():
        raise ModelError("PyTorch finds no GPU here. Use the device cpu, or auto.")
    return "cuda"


def _check_choice(field: str, value: str, choices: Any) -> None:
    if value not in get_args(choices):
        allowed = ", ".join(get_args(choices))
        raise ModelError(f"`{field}` must be one of {allowed}, not {value!r}.")


def require_packages(user: str, extra: str, *packages: str) -> None:
    """Refuse to go on without packages of an extra.

    Args:
        user: what needs them, for the message.
        extra: the extra of contstim that installs them.
        packages: their names.

    Raises:
        ModelError: if one of them is not installed.
    """
    if not all(map(find_spec, packages)):
        raise ModelError(f"{user} needs {' and '.join(packages)}: pip install 'contstim[{extra}]'.")
