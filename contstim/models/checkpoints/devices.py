"""Devices on which networks run, one or several, and the precision in which they compute.

`accelerate` spreads a network: each of its parts is on a GPU, in memory or on disk, and a part that
is not on a device that computes is brought there when its turn comes. `bitsandbytes` quantizes:
the weights of linear layers, apart from the output, become whole numbers of 8 or 4 bits with a
scale for each row or for 64 weights.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias, get_args

from contstim.errors import ModelError

Device: TypeAlias = Literal["auto", "cpu", "cuda"]
"""Where a network runs; `auto` takes a GPU if there is one."""
Precision: TypeAlias = Literal["auto", "float32", "bfloat16", "float16"]
"""The numbers that a network computes in; `auto` is float32."""
Quantization: TypeAlias = Literal["int8", "int4"]
"""How many bits a weight is rounded to, for networks that do not fit otherwise."""
DeviceMap: TypeAlias = Literal["auto"] | Mapping[str, str | int]
"""`auto` fills the GPUs, then the memory, then the disk; or a device for the name of each part."""


@dataclass(frozen=True)
class Placement:
    """Devices and precision of a network, all names resolved.

    Attributes:
        device: where its inputs go; `cpu` or `cuda`.
        dtype: what it computes in, such as `float32`.
        device_map: what its parts are spread over; None for one device.
        quantize: what its linear layers are quantized to; None for nothing.
    """

    device: str
    dtype: str
    device_map: DeviceMap | None = None
    quantize: Quantization | None = None

    @classmethod
    def resolve(
        cls,
        device: str = "auto",
        dtype: str = "auto",
        device_map: DeviceMap | None = None,
        quantize: str | None = None,
    ) -> Placement:
        """A placement from what a user gave.

        Raises:
            ModelError: there is no such device, precision or quantization; a device is given
                beside a map; or a package is missing.
        """
        if quantize is not None and quantize not in get_args(Quantization):
            raise ModelError(
                f"There is no quantization {quantize!r}; there are "
                f"{', '.join(get_args(Quantization))}."
            )
        if device_map is not None and device_map != "auto" and not isinstance(device_map, Mapping):
            raise ModelError(
                f"The device map {device_map!r} is not known: give auto, or in Python a device for "
                f"the name of each part."
            )
        if device_map is not None and device != "auto":
            raise ModelError(
                f"--device-map says where each part of a network goes, and --device {device} that "
                f"all go to one device: leave one of them out."
            )
        _require("--device-map" if device_map is not None else "", "accelerate")
        _require("--quantize" if quantize is not None else "", "accelerate", "bitsandbytes")
        return cls(resolve_device(device), resolve_precision(dtype), device_map, quantize)  # type: ignore[arg-type]

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for equal placements."""
        parts = self.device_map
        named = tuple(sorted(parts.items())) if isinstance(parts, Mapping) else parts
        return self.device, self.dtype, named, self.quantize

    def settings(self, offload: str) -> dict[str, Any]:
        """Settings of `from_pretrained`.

        Args:
            offload: a folder for parts on disk that cannot be read from the checkpoint's files.
        """
        import torch

        settings: dict[str, Any] = {"dtype": self.dtype}
        for package in ("accelerate", "bitsandbytes"):
            # They would tell of parts on disk and of kernels that they can do without
            logging.getLogger(package).setLevel(logging.ERROR)
        if self.device_map is not None:
            parts = self.device_map if self.device_map == "auto" else dict(self.device_map)
            settings |= {"device_map": parts, "offload_folder": offload}
        if self.quantize is not None:
            import transformers

            configuration: Any = transformers.BitsAndBytesConfig
            settings.setdefault("device_map", {"": self.device})  # loaded straight to its device
            settings["quantization_config"] = configuration(
                load_in_8bit=self.quantize == "int8",
                load_in_4bit=self.quantize == "int4",
                # Four-bit floats whose steps are those of a normal distribution, as weights are
                bnb_4bit_quant_type="nf4",
                bnb_4bit_compute_dtype=getattr(torch, self.dtype),
            )
        return settings


def _require(option: str, *packages: str) -> None:
    missing = [package for package in packages if find_spec(package) is None]
    if option and missing:
        raise ModelError(
            f"{option} needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} "
            f"not installed: pip install 'contstim[big]'."
        )


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
