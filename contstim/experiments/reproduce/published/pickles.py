"""Pickles of numbers, texts and plain containers; anything that could run code is refused."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

_ALLOWED = {
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy._core.multiarray", "_reconstruct"),
}


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        today = module.replace("numpy.core.", "numpy._core.")  # the name before NumPy 2
        if (today, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it wants to load {module}.{name}")
        return super().find_class(today, name)


def load_plain(path: Path) -> object:
    """Contents of a pickle, if it is built of numbers, texts, arrays and plain containers alone.

    Raises:
        InputError: the file is missing, damaged, or wants to load anything else.
    """
    try:
        with path.open("rb") as file:
            loaded: object = _PlainUnpickler(file).load()
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    except Exception as error:  # damaged pickles raise nearly anything
        raise InputError(f"{path} is not a pickle of plain values: {error}.") from error
    return loaded
