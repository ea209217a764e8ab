"""Options for loading models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from contstim.errors import ModelError
from contstim.options import Help

Device: TypeAlias = Literal["auto", "cpu", "cuda"]
"""Device of a network; `auto` is a GPU if available."""
Precision: TypeAlias = Literal["auto", "float32", "bfloat16", "float16"]
"""Precision of a network's computations; `auto` is float32."""
TrustRemoteCode: TypeAlias = Annotated[
    bool, Help("Run Python code that comes with a model; read this code first.")
]
Quantization: TypeAlias = Literal["int8", "int4"]
"""Type of the integers that replace a network's weights, so that the network needs less memory."""

if TYPE_CHECKING:
    DeviceMap: TypeAlias = Literal["auto"] | Mapping[str, str | int]
else:
    DeviceMap = Literal["auto"]  # the only value in commands and study files
"""Distribution of a network over devices. `auto` fills the GPUs, then main memory, then the disk.

In Python, the value may also map parts of the network to devices, for example
`{"transformer": 0, "lm_head": "cpu"}`.
"""


@dataclass(frozen=True, kw_only=True)
class Loading:
    """Options for loading models."""

    PANEL: ClassVar[str] = "Loading of models"

    device: Annotated[Device, Help("Device of networks; auto is a GPU if available.")] = "auto"
    dtype: Annotated[
        Precision,
        Help("Precision of transformers; auto is float32. Half precision leads to tied scores."),
    ] = "auto"
    device_map: Annotated[
        DeviceMap | None, Help("Distribute a model over all GPUs, memory and disk.")
    ] = None
    quantize: Annotated[
        Quantization | None, Help("Weights in 8 or 4 bits; this changes scores.")
    ] = None
    trust_remote_code: TrustRemoteCode = False

    weights: bool = True  # if False, load no weights; the model can tokenize, but not score

    def resolved(self) -> Loading:
        """Return the options with `auto` replaced by the actual device and precision.

        Raises:
            ModelError: if `device`, `dtype`, `quantize` or `device_map` has no valid value; if both
                `device` and `device_map` are set; or if a required package is not installed.
        """
        check_choice("dtype", self.dtype, Precision)
        if self.quantize is not None:
            check_choice("quantize", self.quantize, Quantization)
            require_packages("`quantize`", "big", "accelerate", "bitsandbytes")
        if self.device_map is not None:
            if self.device_map != "auto" and not isinstance(self.device_map, Mapping):
                raise ModelError(
                    "`device_map` must be auto or, in Python, map names of parts to devices, "
                    f"got {self.device_map!r}."
                )
            if self.device != "auto":
                raise ModelError("`device` and `device_map` exclude each other. Set one of them.")
            require_packages("`device_map`", "big", "accelerate")
        dtype: Precision = "float32" if self.dtype == "auto" else self.dtype
        return replace(self, device=resolve_device(self.device), dtype=dtype)


DEFAULT_LOADING = Loading()


def resolve_device(name: str) -> Device:
    """Return `cpu` or `cuda`; for `auto`, return `cuda` if PyTorch finds a GPU.

    Raises:
        ModelError: if the name is not a `Device`, or if it is `cuda` and PyTorch finds no GPU.
    """
    import torch

    check_choice("device", name, Device)
    if name == "cuda" and not torch.cuda.is_available():
        raise ModelError("PyTorch finds no GPU here. Use the device cpu, or auto.")
    return "cuda" if name != "cpu" and torch.cuda.is_available() else "cpu"


def check_choice(field: str, value: str, choices: Any) -> None:
    """Check that a field has one of the values that the type `choices`, a `Literal`, lists.

    Raises:
        ModelError: if the value is not one of `choices`.
    """
    if value not in get_args(choices):
        names = ", ".join(get_args(choices))
        raise ModelError(f"`{field}` must be one of {names}, got {value!r}.")


def require_packages(user: str, extra: str, *packages: str) -> None:
    """Check that packages are installed.

    Two arguments are for the message: `user` is the option or file that needs the packages. `extra`
    is contstim's optional set of dependencies that contains the packages, such as `big`.

    Raises:
        ModelError: if a package is not installed.
    """
    if not all(map(find_spec, packages)):
        raise ModelError(f"{user} needs {' and '.join(packages)}: pip install 'contstim[{extra}]'.")
