"""Exceptions of contstim.

    ContstimError                     base of all exceptions of contstim
    ├── InputError (ValueError)       an input of the user is invalid
    │   ├── SentenceError             a text is not a sentence that can be scored or changed
    │   ├── VocabularyError           a word list is unusable, or a word is not in it
    │   ├── CorpusError               a text file is missing, empty, or not UTF-8
    │   └── ScoreError                a score table is malformed, or lacks a sentence or model
    ├── ModelError                    a model cannot be found, loaded, or used for this task
    ├── InfeasibleError               no set of stimuli satisfies the constraints; says why
    ├── StoreError                    a database or lock is in use, damaged, or of another program
    ├── WorkerError                   a worker of a job cannot be started, or exits early; or an
    │                                 optional package is not installed
    └── VerificationError             a result failed its independent check; never use it

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
    """A word list is unusable, or a word is not in it."""


class CorpusError(InputError):
    """A text file is missing, empty, or not UTF-8."""


class ScoreError(InputError):
    """A score table is malformed (nan, unequal lengths, repeated names), or lacks scores."""


class ModelError(ContstimError):
    """A model cannot be found, loaded, or used for this task."""


class InfeasibleError(ContstimError):
    """No set of stimuli satisfies the constraints."""


class StoreError(ContstimError):
    """A database or lock is in use, damaged, or made by another program."""


class WorkerError(ContstimError):
    """A worker of a job cannot be started or exits early, or a package is not installed."""


class VerificationError(ContstimError):
    """A result failed its independent check and must not be used."""


@contextmanager
def needing(extra: str, feature: str) -> Iterator[None]:
    """Report missing packages of imports that need an optional dependency ("extra") of contstim.

    Args:
        extra: name of the extra.
        feature: feature that needs it, for the message.

    Raises:
        WorkerError: if a package is not installed; the message names the command to install it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise WorkerError(
            f"{feature} needs {error.name}, which is not installed: "
            f"pip install 'contstim[{extra}]'."
        ) from error
