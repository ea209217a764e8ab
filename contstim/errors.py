"""Everything that contstim raises on purpose, drawn once.

    ContstimError                     catch this one to catch them all
    ├── InputError (ValueError)       something that the user gave cannot be used
    │   ├── SentenceError             a text is not a sentence that can be scored or changed
    │   ├── VocabularyError           a word list is unusable, or a word is not in it
    │   ├── CorpusError               a text file is missing, empty, or not UTF-8
    │   └── ScoreError                a score table is malformed: nan, lengths, names
    ├── ModelError                    a model cannot be found, loaded, or asked this question
    ├── InfeasibleError               no set of stimuli satisfies the constraints; names who fails
    ├── StoreError                    the study's database is locked, damaged, or from elsewhere
    ├── WorkerError                   workers of a job cannot be started, or die
    └── VerificationError             a result failed its own independent check; never use it

Every message says what was given, what is allowed, and what to do next. The command line prints it
without a traceback and exits with status 2.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class ContstimError(Exception):
    """Base of everything that contstim raises on purpose."""


class InputError(ContstimError, ValueError):
    """Something that the user gave cannot be used."""


class SentenceError(InputError):
    """A text is not a sentence that can be scored or changed."""


class VocabularyError(InputError):
    """A word list is unusable, or a word is not in it."""


class CorpusError(InputError):
    """A text file is missing, empty, or not UTF-8."""


class ScoreError(InputError):
    """A score table is malformed: nan, unequal lengths, repeated names."""


class ModelError(ContstimError):
    """A model cannot be found, loaded, or asked this question."""


class InfeasibleError(ContstimError):
    """No set of stimuli satisfies the constraints."""


class StoreError(ContstimError):
    """The study's database is locked, damaged, or made by something else."""


class WorkerError(ContstimError):
    """Workers of a job cannot be started, or die."""


class VerificationError(ContstimError):
    """A result failed its own independent check and must not be used."""


@contextmanager
def needing(extra: str, what: str) -> Iterator[None]:
    """Imports that need an extra of the package.

    Raises:
        WorkerError: something is not installed; says how it is.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise WorkerError(
            f"{what} needs {error.name}, which is not installed: pip install 'contstim[{extra}]'."
        ) from error
