"""A simulated GPU: tensors on another device that are computed on the CPU.

Within `simulated_gpu` PyTorch has a device `simulated`. As with a GPU,

* mixing its tensors with CPU tensors is an error;
* its tensors have no numpy arrays, and their numbers are read only by a copy to the host, the CPU;
* the host waits for the device if the host needs numbers, or results whose size depends on numbers.

Each wait is recorded with its operation. The CPU computes the numbers, so tests can check results,
but not speed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any
from unittest import mock

import pytest
import torch
from torch.utils import _python_dispatch, backend_registration
from torch.utils._mode_utils import no_dispatch
from torch.utils._pytree import tree_leaves, tree_map

from contstim.models import loading
from contstim.models.recurrent import adapter

DEVICE = "simulated"

# Operations whose results are numbers on the host, or have a size that the host must know
_SYNCHRONIZING = {
    "_local_scalar_dense", "allclose", "argwhere", "equal", "is_nonzero", "item", "masked_select",
    "nonzero", "nonzero_numpy", "_unique2", "unique_consecutive", "unique_dim",
}  # fmt: skip
_MIXED = (
    "{}: expected all tensors to be on the same device, and found some on the CPU and some on "
    "the simulated one"
)
_COPYING = {"to", "_to_copy", "copy_"}
_METADATA_ONLY = {"_has_compatible_shallow_copy_type"}

if not hasattr(backend_registration, "_setup_privateuseone_for_python_backend"):
    pytest.skip("this PyTorch has no devices in Python", allow_module_level=True)

_mode: Any = _python_dispatch.TorchDispatchMode
_internals: Any = backend_registration


_tensor: Any = torch.Tensor
_set_data = _tensor.data.__set__


class OnDevice(torch.Tensor):
    """A tensor of the simulated device."""

    numbers: torch.Tensor  # its values, a CPU tensor

    @staticmethod
    def __new__(cls, numbers: torch.Tensor) -> OnDevice:
        make: Any = torch.Tensor._make_wrapper_subclass
        tensor: OnDevice = make(
            cls,
            numbers.size(),
            strides=numbers.stride(),
            storage_offset=numbers.storage_offset(),
            dtype=numbers.dtype,
            device=f"{DEVICE}:0",
        )
        tensor.numbers = numbers
        return tensor

    @property  # type: ignore[override]
    def data(self) -> OnDevice:
        """The tensor without its history; assigning a tensor takes over its numbers."""
        return OnDevice(self.numbers)

    @data.setter
    def data(self, other: OnDevice) -> None:
        _set_data(self, other)
        self.numbers = other.numbers

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        # In other threads, and after the `with` statement
        return SimulatedGPU.latest.__torch_dispatch__(func, types, args, kwargs)


class SimulatedGPU(_mode):  # type: ignore[misc]
    """Runs operations of the simulated device and records when the host waits."""

    latest: SimulatedGPU

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[str] = []  # operations for which the host waited
        self.operations = 0  # number of operations so far
        self.at_copies: list[int] = []  # `operations` at each copy to the host
        SimulatedGPU.latest = self

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        leaves = tree_leaves((args, kwargs))
        on_device = [leaf for leaf in leaves if isinstance(leaf, OnDevice)]
        on_cpu = [leaf for leaf in leaves if _is_cpu_tensor(leaf)]
        # The target device: `to` takes a device or a tensor on that device
        requested_types = [leaf.type for leaf in leaves if isinstance(leaf, torch.device)]
        target = requested_types[0] if requested_types else DEVICE if on_device else "cpu"
        if name == "copy_":
            target = DEVICE if isinstance(args[0], OnDevice) else "cpu"
        if name == "to" and "other" in str(func):
            target = args[1].device.type
        if on_device or target == DEVICE:
            self._record(name, args, on_device, on_cpu, target)
        compute = _GPU_OPERATIONS.get(name, func) if on_device else func
        values = compute(*tree_map(_to_cpu, args), **tree_map(_to_cpu, kwargs))
        if name.endswith("_") and not name.endswith("__"):  # in place
            if torch.Tag.inplace_view in func.tags and isinstance(args[0], OnDevice):
                with no_dispatch():  # changes the stored shape as well
                    func(*args, **kwargs)
            return args[0]
        if "out" in kwargs:
            return kwargs["out"]
        if target != DEVICE:
            return values
        if len(on_device) == 1 and values is on_device[0].numbers:
            return on_device[0]  # nothing to do
        return tree_map(lambda v: OnDevice(v) if isinstance(v, torch.Tensor) else v, values)

    def _record(
        self,
        name: str,
        args: Any,
        on_device: list[OnDevice],
        on_cpu: list[torch.Tensor],
        target: str,
    ) -> None:
        self.operations += 1
        if name in _COPYING:
            if on_device and target == "cpu":
                self.waits.append("copy to the host")
                self.at_copies.append(self.operations)
            elif target == DEVICE and any(len(t) and not hasattr(t, "pinned") for t in on_cpu):
                self.waits.append("copy from memory that is not pinned")
        elif name in _SYNCHRONIZING:
            self.waits.append(name)
        elif name in {"index", "index_put", "index_put_"}:
            indices = [index for index in args[1] if index is not None]
            # Indices may come from the host, but not the indexed tensor or the new values
            if any(map(_is_cpu_tensor, (args[0], *args[2:]))):
                raise RuntimeError(_MIXED.format(name))
            if any(index.dtype in {torch.bool, torch.uint8} for index in indices):
                self.waits.append(f"{name} by a mask")
            if any(_is_cpu_tensor(index) for index in indices):
                self.waits.append(f"{name} by numbers of the host")
        elif name == "repeat_interleave" and any(isinstance(x, torch.Tensor) for x in args[1:]):
            self.waits.append(name)
        elif on_cpu and on_device and name not in _METADATA_ONLY:
            raise RuntimeError(_MIXED.format(name))


def _is_cpu_tensor(leaf: object) -> bool:
    """Return whether this is a CPU tensor; scalars do not count, as GPUs accept them."""
    return isinstance(leaf, torch.Tensor) and not isinstance(leaf, OnDevice) and leaf.dim() > 0


def _to_cpu(leaf: Any) -> Any:
    if isinstance(leaf, OnDevice):
        return leaf.numbers
    return torch.device("cpu") if isinstance(leaf, torch.device) else leaf


def _pin(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy that is marked as pinned memory."""
    copy: Any = tensor.clone()
    copy.pinned = True
    return copy  # type: ignore[no-any-return]


def _histc(numbers: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Count integers too, as a GPU does."""
    return torch.histc(numbers.float(), *args, **kwargs).to(numbers.dtype)


def _lstm_cell(
    input_gates: torch.Tensor, state_gates: torch.Tensor, cell: torch.Tensor, *biases: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return an LSTM's state, cell and gates after a step, which a GPU computes at once."""
    gates = input_gates + state_gates
    for bias in biases:
        gates = gates + bias
    input_gate, forget_gate, candidate, output_gate = gates.chunk(4, dim=1)
    cell = forget_gate.sigmoid() * cell + input_gate.sigmoid() * candidate.tanh()
    return output_gate.sigmoid() * cell.tanh(), cell, gates


# Operations that PyTorch implements only for GPUs
_GPU_OPERATIONS = {"histc": _histc, "_thnn_fused_lstm_cell": _lstm_cell}


class _Hook(torch._C._acc.PrivateUse1Hooks):
    """Reports to PyTorch that the device exists only within `simulated_gpu`."""

    is_active = False

    def is_available(self) -> bool:
        return _Hook.is_active

    def has_primary_context(self, _device: int) -> bool:
        return True

    def is_built(self) -> bool:
        return True


class _Module(_internals._DummyBackendModule):  # type: ignore[misc]
    """Reports to PyTorch the precisions below float32 that the device supports."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]


@cache
def _register() -> None:
    _internals._setup_privateuseone_for_python_backend(
        DEVICE, backend_module=_Module(), hook=_Hook()
    )


def _enter(inference_mode: Any) -> None:
    inference_mode.instead = torch.no_grad()
    inference_mode.instead.__enter__()


def _leave(inference_mode: Any, *error: Any) -> None:
    inference_mode.instead.__exit__(*error)


@contextmanager
def simulated_gpu() -> Iterator[SimulatedGPU]:
    """Provide a device `simulated` to this thread within a `with` statement."""
    _register()
    _Hook.is_active = True
    only_cpu = torch._C._only_lift_cpu_tensors()
    torch._C._set_only_lift_cpu_tensors(True)  # otherwise `torch.tensor` copies unnoticed
    try:
        with ExitStack() as stack:
            for module in (loading, adapter):
                stack.enter_context(
                    mock.patch.object(module, "resolve_device", return_value=DEVICE)
                )
            stack.enter_context(mock.patch.object(torch.Tensor, "pin_memory", _pin))
            # Python cannot make views of tensors in inference mode
            stack.enter_context(mock.patch.object(torch.inference_mode, "__enter__", _enter))
            stack.enter_context(mock.patch.object(torch.inference_mode, "__exit__", _leave))
            yield stack.enter_context(SimulatedGPU())
    finally:
        torch._C._set_only_lift_cpu_tensors(only_cpu)
        _Hook.is_active = False
