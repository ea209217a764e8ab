"""The words of the 2023 study, and how frequent they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from contstim.errors import InputError
from contstim.experiments.reproduce.published.pickles import load_plain
from contstim.vocabulary import Vocabulary

_INITIAL = "vocabulary/vocab_cap.pkl"
_INNER = "vocabulary/vocab_low.pkl"
_REPEATABLE = "preps.pkl"


def read_vocabulary(folder: Path | str) -> Vocabulary:
    """The study's vocabulary: 5,977 sentence-initial and 23,180 other words, 42 may repeat.

    Args:
        folder: the study's `resources` folder, or one that contains it.

    Raises:
        InputError: a file is missing, or is not a plain list of words.
    """
    root = _resources(folder)
    initial, inner, repeatable = (
        _read_words(root / name) for name in (_INITIAL, _INNER, _REPEATABLE)
    )
    return Vocabulary(initial, inner, frozenset(repeatable))


def read_frequencies(folder: Path | str) -> dict[str, float]:
    """The relative frequency of each word of the study's vocabulary, as it is written there.

    Args:
        folder: see `read_vocabulary`.

    Raises:
        InputError: a file is missing, or does not hold one frequency for each word.
    """
    root = _resources(folder)
    frequencies: dict[str, float] = {}
    # A word in both lists has the frequency that stands beside the initial words.
    for name in (_INNER, _INITIAL):
        words = _read_words(root / name)
        path = root / name.replace(".pkl", "_freqs.pkl")
        values = load_plain(path)
        numbers = isinstance(values, np.ndarray) and values.dtype.kind in "fiu"
        if not isinstance(values, np.ndarray) or not numbers or values.shape != (len(words),):
            raise InputError(f"{path} does not hold a frequency for each of {len(words):,} words.")
        frequencies.update(zip(words, values.tolist(), strict=True))
    return frequencies


def _resources(folder: Path | str) -> Path:
    folder = Path(folder)
    root = next((f for f in (folder, folder / "resources") if (f / _INITIAL).is_file()), None)
    if root is None:
        raise InputError(
            f"{folder} does not hold the published vocabulary; expected {_INITIAL} in it, as in "
            f"the folder 'resources' of the repository dpmlab/contstimlang."
        )
    return root


def _read_words(path: Path) -> tuple[str, ...]:
    words = load_plain(path)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InputError(f"{path} is not a plain list of words.")
    return tuple(words)
