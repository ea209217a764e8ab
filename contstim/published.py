"""Readers for the files that the 2023 study published; pickles are opened through an allow-list."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import IO, Any

from contstim.errors import InputError
from contstim.vocabulary import Vocabulary

_INITIAL = "vocabulary/vocab_cap.pkl"
_INNER = "vocabulary/vocab_low.pkl"
_REPEATABLE = "preps.pkl"


class _PlainUnpickler(pickle.Unpickler):
    """Reads texts, numbers and plain containers; anything that could run code is refused."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it wants to load {module}.{name}")


def read_vocabulary(folder: Path | str) -> Vocabulary:
    """The study's vocabulary: 5,977 sentence-initial and 23,180 other words, 42 may repeat.

    Args:
        folder: the study's `resources` folder, or one that contains it.

    Raises:
        InputError: a file is missing, or is not a plain list of words.
    """
    folder = Path(folder)
    root = next((f for f in (folder, folder / "resources") if (f / _INITIAL).is_file()), None)
    if root is None:
        raise InputError(
            f"{folder} does not hold the published vocabulary; expected {_INITIAL} in it, as in "
            f"the folder 'resources' of the repository dpmlab/contstimlang."
        )
    initial, inner, repeatable = (
        _read_words(root / name) for name in (_INITIAL, _INNER, _REPEATABLE)
    )
    return Vocabulary(initial, inner, frozenset(repeatable))


def _read_words(path: Path) -> tuple[str, ...]:
    try:
        with path.open("rb") as file:
            words = _load(file)
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    except Exception as error:  # damaged pickles raise nearly anything
        raise InputError(f"{path} is not a plain list of words: {error}.") from error
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InputError(f"{path} is not a plain list of words.")
    return tuple(words)


def _load(file: IO[bytes]) -> object:
    loaded: object = _PlainUnpickler(file).load()
    return loaded
