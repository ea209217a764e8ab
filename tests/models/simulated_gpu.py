"""A GPU that there is not: tensors that stand on another device and are computed on the CPU.

Within `simulated_gpu` PyTorch has a device `simulated`. As with a GPU,

* a tensor there cannot be mixed with one of the CPU, which is an error;
* it has no numpy array, and its numbers are read only by a copy to the host;
* whoever asks for its numbers, or for something whose size depends on them, waits for the device.

Each wait is noted with the operation that it came of. Numbers are those of the CPU, so that whether
they are right can be seen too; how fast a GPU is cannot.
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

# Their results are numbers on the host, or have a size that the host must know
_ASK = {
    "_local_scalar_dense", "allclose", "argwhere", "equal", "is_nonzero", "item", "masked_select",
    "nonzero", "nonzero_numpy", "_unique2", "unique_consecutive", "unique_dim",
}  # fmt: skip
_MIXED = (
    "{}: expected all tensors to be on the same device, and found some on the CPU beside some on "
    "the simulated one"
)
_COPY = {"to", "_to_copy", "copy_"}
_ARE_TOLD_BY_SHAPES = {"_has_compatible_shallow_copy_type"}

if not hasattr(backend_registration, "_setup_privateuseone_for_python_backend"):
    pytest.skip("this PyTorch has no devices in Python", allow_module_level=True)

_mode: Any = _python_dispatch.TorchDispatchMode
_internals: Any = backend_registration


_tensor: Any = torch.Tensor
_set_data = _tensor.data.__set__


class OnDevice(torch.Tensor):
    """A tensor of the simulated device."""

    numbers: torch.Tensor  # what it holds, a tensor of the CPU

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
        """The tensor without its history; set to another one, it holds the other's numbers."""
        return OnDevice(self.numbers)

    @data.setter
    def data(self, other: OnDevice) -> None:
        _set_data(self, other)
        self.numbers = other.numbers

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        # In other threads, and behind the end of the `with` statement
        return SimulatedGPU.latest.__torch_dispatch__(func, types, args, kwargs)


class SimulatedGPU(_mode):  # type: ignore[misc]
    """What happens on the simulated device."""

    latest: SimulatedGPU

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[str] = []  # the operations so far for which the host waited
        self.operations = 0  # how many operations the device has computed
        self.at_copies: list[int] = []  # how many of them there had been at each copy to the host
        SimulatedGPU.latest = self

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        leaves = tree_leaves((args, kwargs))
        there = [leaf for leaf in leaves if isinstance(leaf, OnDevice)]
        here = [leaf for leaf in leaves if _is_of_the_cpu(leaf)]
        # Where the result is to be: `to` takes a device or a tensor whose device is meant
        wanted = [leaf.type for leaf in leaves if isinstance(leaf, torch.device)]
        target = wanted[0] if wanted else DEVICE if there else "cpu"
        if name == "copy_":
            target = DEVICE if isinstance(args[0], OnDevice) else "cpu"
        if name == "to" and "other" in str(func):
            target = args[1].device.type
        if there or target == DEVICE:
            self._note(name, args, there, here, target)
        compute = _OF_GPUS.get(name, func) if there else func
        values = compute(*tree_map(_on_the_cpu, args), **tree_map(_on_the_cpu, kwargs))
        if name.endswith("_") and not name.endswith("__"):  # changed in its place
            if torch.Tag.inplace_view in func.tags and isinstance(args[0], OnDevice):
                with no_dispatch():  # its shape too, which is kept beside the numbers
                    func(*args, **kwargs)
            return args[0]
        if "out" in kwargs:
            return kwargs["out"]
        if target != DEVICE:
            return values
        if len(there) == 1 and values is there[0].numbers:
            return there[0]  # nothing was to be done
        return tree_map(lambda v: OnDevice(v) if isinstance(v, torch.Tensor) else v, values)

    def _note(
        self, name: str, args: Any, there: list[OnDevice], here: list[torch.Tensor], target: str
    ) -> None:
        self.operations += 1
        if name in _COPY:
            if there and target == "cpu":
                self.waits.append("copy to the host")
                self.at_copies.append(self.operations)
            elif target == DEVICE and any(len(t) and not hasattr(t, "pinned") for t in here):
                self.waits.append("copy from memory that is not pinned")
        elif name in _ASK:
            self.waits.append(name)
        elif name in {"index", "index_put", "index_put_"}:
            indices = [index for index in args[1] if index is not None]
            # Indices may come from the host; what they point to, and what is put there, may not
            if any(map(_is_of_the_cpu, (args[0], *args[2:]))):
                raise RuntimeError(_MIXED.format(name))
            if any(index.dtype in {torch.bool, torch.uint8} for index in indices):
                self.waits.append(f"{name} by a mask")
            if any(_is_of_the_cpu(index) for index in indices):
                self.waits.append(f"{name} by numbers of the host")
        elif name == "repeat_interleave" and any(isinstance(x, torch.Tensor) for x in args[1:]):
            self.waits.append(name)
        elif here and there and name not in _ARE_TOLD_BY_SHAPES:
            raise RuntimeError(_MIXED.format(name))


def _is_of_the_cpu(leaf: object) -> bool:
    """A single number of the CPU may stand beside tensors of a GPU, and counts as a number."""
    return isinstance(leaf, torch.Tensor) and not isinstance(leaf, OnDevice) and leaf.dim() > 0


def _on_the_cpu(leaf: Any) -> Any:
    if isinstance(leaf, OnDevice):
        return leaf.numbers
    return torch.device("cpu") if isinstance(leaf, torch.device) else leaf


def _pinned(tensor: torch.Tensor) -> torch.Tensor:
    """A copy that is known to be in pinned memory."""
    copy: Any = tensor.clone()
    copy.pinned = True
    return copy  # type: ignore[no-any-return]


def _histc(numbers: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """A GPU counts whole numbers too."""
    return torch.histc(numbers.float(), *args, **kwargs).to(numbers.dtype)


def _lstm_cell(
    of_input: torch.Tensor, of_state: torch.Tensor, cell: torch.Tensor, *biases: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """An LSTM's state, cell and gates after a step, which a GPU computes at once."""
    gates = of_input + of_state
    for bias in biases:
        gates = gates + bias
    enter, forget, new, leave = gates.chunk(4, dim=1)
    cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
    return leave.sigmoid() * cell.tanh(), cell, gates


# Operations that PyTorch has for GPUs alone
_OF_GPUS = {"histc": _histc, "_thnn_fused_lstm_cell": _lstm_cell}


class _Hook(torch._C._acc.PrivateUse1Hooks):
    """Tells PyTorch that the device is there within `simulated_gpu` and nowhere else."""

    here = False

    def is_available(self) -> bool:
        return _Hook.here

    def has_primary_context(self, _device: int) -> bool:
        return True

    def is_built(self) -> bool:
        return True


class _Module(_internals._DummyBackendModule):  # type: ignore[misc]
    """Tells PyTorch what the device computes in where less than float32 is asked for."""

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
    """Within a `with` statement there is a device `simulated`, in this thread."""
    _register()
    _Hook.here = True
    only_cpu = torch._C._only_lift_cpu_tensors()
    torch._C._set_only_lift_cpu_tensors(True)  # else `torch.tensor` copies unseen
    try:
        with ExitStack() as stack:
            for module in (loading, adapter):
                stack.enter_context(
                    mock.patch.object(module, "resolve_device", return_value=DEVICE)
                )
            stack.enter_context(mock.patch.object(torch.Tensor, "pin_memory", _pinned))
            # Tensors of an inference mode cannot be looked at in part from Python
            stack.enter_context(mock.patch.object(torch.inference_mode, "__enter__", _enter))
            stack.enter_context(mock.patch.object(torch.inference_mode, "__exit__", _leave))
            yield stack.enter_context(SimulatedGPU())
    finally:
        torch._C._set_only_lift_cpu_tensors(only_cpu)
        _Hook.here = False
