"""Exceptions of contstim.

    ContstimError
    ├── InputError (ValueError)
    │   ├── SentenceError
    │   ├── VocabularyError
    │   ├── CorpusError
    │   └── ScoreError
    ├── ModelError
    ├── InfeasibleError
    ├── StoreError
    ├── WorkerError
    └── VerificationError

Messages state the problem and, if possible, a remedy. The command line prints the message without a
traceback, and exits with status 2.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class ContstimError(Exception):
    """Base of all exceptions of contstim."""


class InputError(ContstimError, ValueError):
    """An input of the user is invalid."""


class SentenceError(InputError):
    """A text is not a sentence that can be scored or changed."""


class VocabularyError(InputError):
    """A word list is unusable, or a word is not in the list."""


class CorpusError(InputError):
    """A text file is missing, empty, or not UTF-8."""


class ScoreError(InputError):
    """A score table lacks a sentence or model, or has nan, a wrong shape, or repeated names."""


class ModelError(ContstimError):
    """A model cannot be found, loaded, or used for this task."""


class InfeasibleError(ContstimError):
    """No set of stimuli satisfies the constraints; the message says why."""


class StoreError(ContstimError):
    """A database or lock is in use, damaged, or made by another program."""


class WorkerError(ContstimError):
    """A worker process cannot start or exits early, or an optional package is not installed."""


class VerificationError(ContstimError):
    """A result failed its independent check and must not be used."""


@contextmanager
def needing(extra: str, feature: str) -> Iterator[None]:
    """Replace a `ModuleNotFoundError` by a `WorkerError` that says how to install the module.

    Args:
        extra: name of the group of optional dependencies that contains the package.
        feature: what needs the package; the subject of the message, such as "Collecting answers".
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise WorkerError(
            f"{feature} needs {error.name}, which is not installed: "
            f"pip install 'contstim[{extra}]'."
        ) from error
