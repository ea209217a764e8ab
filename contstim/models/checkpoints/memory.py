"""Memory: what a network needs before it is loaded, what is free, and whether that is enough.

Weights are counted on the network without memory that the configuration describes, see
`weights.without_weights`. Beside them stand, for GPT-2 small in float32 (768 wide, 12 layers,
50,257 tokens), for each token of a pass:

    logits               50,257 numbers, and twice as many float32 ones while they are normalised
    keys and values      12 layers * 2 * 768 numbers, of a causal network
    within a layer       about 8 * 768 + 2 * 3,072 numbers

A network is refused only if one sentence does not fit beside the weights: larger batches are made
smaller as memory runs out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.errors import ModelError

if TYPE_CHECKING:
    from contstim.models.checkpoints.devices import Placement, Quantization

_SENTENCE = 32  # tokens
_BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0}
_QUANTIZED_BYTES: dict[Quantization, float] = {
    "int8": 1.0,  # a weight; the scales are one for each row
    "int4": 0.5 + 4 / 64,  # a scale of four bytes for 64 weights
}


@dataclass(frozen=True)
class Need:
    """Memory that a network needs in one precision, in bytes.

    Attributes:
        weights: with tables that are not trained.
        a_token: the most that a pass holds for each token that it reads, roughly.
    """

    weights: int
    a_token: int

    @property
    def least(self) -> int:
        """For the weights and a pass of one sentence."""
        return self.weights + _SENTENCE * self.a_token

    @classmethod
    def of(cls, network: Any, dtype: str, quantize: Quantization | None = None) -> Need:
        """The need of a network, which may be one without memory.

        Args:
            network: a `transformers` model.
            dtype: `float32`, `bfloat16` or `float16`.
            quantize: what linear layers but the output are quantized to.
        """
        from torch.nn import Linear
        from transformers.pytorch_utils import Conv1D

        a_number = _BYTES[dtype]
        small: dict[int, float] = {}  # bytes of a number, of the weights that are quantized
        if quantize is not None:
            output = network.get_output_embeddings()
            small = {
                id(module.weight): _QUANTIZED_BYTES[quantize]
                for module in network.modules()
                if isinstance(module, Linear | Conv1D) and module is not output
            }
        weights = sum(
            weight.numel() * small.get(id(weight), a_number) for weight in network.parameters()
        )
        weights += sum(buffer.nbytes for buffer in network.buffers())
        config = network.config.get_text_config()

        def size(*names: str) -> int:
            values = (getattr(config, name, None) for name in names)
            return next((value for value in values if isinstance(value, int)), 0)

        hidden = size("hidden_size", "n_embd", "d_model")
        inner = size("intermediate_size", "n_inner", "ffn_dim") or 4 * hidden
        cached = 2 * hidden * size("num_hidden_layers", "n_layer")
        vocabulary = size("vocab_size")
        a_token = (8 * hidden + 2 * inner + cached + vocabulary) * a_number + 8 * vocabulary
        return cls(int(weights), int(a_token))


def check_memory(location: str, network: Any, placement: Placement) -> None:
    """Refuse a network that its device cannot hold, before anything of it is loaded.

    Args:
        location: where it is.
        network: as of `Need.of`.
        placement: where it is to run and in what precision; without a device map.

    Raises:
        ModelError: says what it needs, what is free, and which options need less.
    """
    from contstim.models.batching import Budget

    device, dtype, quantize = placement.device, placement.dtype, placement.quantize
    need = Need.of(network, dtype, quantize)
    batch = Budget.for_device(device).tokens
    # On their way to a GPU weights pass through the machine's memory, unless they are quantized
    places = {device: need.least} if quantize else {"cpu": need.weights, device: need.least}
    for place, least in places.items():
        free = free_memory(place)
        if free is None or least <= free:
            continue
        ways = [
            f"{option} ({_size(other.weights)})"
            for option, other in (
                ("--dtype bfloat16", Need.of(network, "bfloat16", quantize)),
                ("--quantize int8", Need.of(network, dtype, "int8")),
                ("--quantize int4", Need.of(network, dtype, "int4")),
            )
            if other.weights < need.weights
        ]
        precision = dtype if quantize is None else f"{quantize} with {dtype}"
        where = "this machine" if place == "cpu" else f"the device {place}"
        via = "" if place == device else f", through which they get to {device}"
        raise ModelError(
            f"{location} does not fit: its weights take {_size(need.weights)} in {precision} and "
            f"a sentence of {_SENTENCE} tokens about {_size(need.least - need.weights)} more (a "
            f"batch of {batch:,} tokens {_size(batch * need.a_token)}); {_size(free)} of the "
            f"memory of {where}{via} are free. Use "
            f"{', '.join([*ways, '--device-map auto'])}, which spreads it over all GPUs, memory "
            f"and disk; or a smaller model."
        )


def free_memory(device: str) -> int | None:
    """The bytes that are free on a device; None where the system does not say.

    Args:
        device: `cpu`, for the memory of the machine, or a GPU.
    """
    if device == "cpu":
        limits = [_available(), *left_in_groups()]
        return min((limit for limit in limits if limit is not None), default=None)
    import torch

    free, _ = torch.cuda.mem_get_info(device)
    # What PyTorch has kept of dropped networks is free as well
    return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))


def _available() -> int | None:
    """The system's estimate of what can be had without swapping; Linux only."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    sizes = dict(line.split(":", 1) for line in lines if ":" in line)
    if "MemAvailable" not in sizes:
        return None
    return int(sizes["MemAvailable"].split()[0]) * 1024


def left_in_groups(
    membership: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")
) -> list[int]:
    """Bytes that each control group of this process may still take: a cluster limits jobs by them.

    Args:
        membership: the file that names the groups.
        root: the folder of all groups.
    """
    try:
        lines = membership.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    names = [line.removeprefix("0::/") for line in lines if line.startswith("0::/")]
    left = []
    for name in names:
        group = root / name
        for folder in (group, *group.parents):
            try:
                limit = int((folder / "memory.max").read_text())  # or `max`, which is no limit
                used = int((folder / "memory.current").read_text())
                state = (folder / "memory.stat").read_text().splitlines()
            except (OSError, ValueError):
                continue
            # Files in the cache make way for what is asked for
            cached = sum(
                int(line.split()[1]) for line in state if line.startswith("inactive_file ")
            )
            left.append(limit - used + cached)
    return left


def _size(n_bytes: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if n_bytes < 1024:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:,.1f} GiB"
