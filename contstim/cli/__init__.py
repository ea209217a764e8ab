"""Entry point, exit and interrupts of the command line.

After an input error, the program prints a message on standard error, and exits with status 2. After
an interrupt, it exits silently with status 130. An interrupt while the program starts is silent,
too: this module imports little, and sets an interrupt handler before it imports the commands. After
an interrupt while a running command imports a module, the program exits when the import ends.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import warnings

from contstim.errors import ContstimError, InputError

TYPE_CHECKING = False  # not imported from typing, which is slower than all other imports here
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn, TextIO

_INPUT_ERROR, _INTERRUPTED, _CLOSED_PIPE = 2, 130, 1
_RETRY_DELAY = 0.05  # seconds until an interrupt during an import is sent again
_MAX_TRIES = 100
_n_tries = 0


def main() -> None:
    """Run the `contstim` program."""
    # During these imports, an interrupt exits at once; later, `_interrupt` handles it
    handler = signal.signal(signal.SIGINT, _exit_at_once)
    from contstim.cli.output import warn
    from contstim.cli.program import app

    warnings.showwarning = lambda message, *_source: warn(str(message))
    # A shell may start a job that ignores interrupts. Then the handler is not Python's default
    # handler, and must not be replaced
    signal.signal(signal.SIGINT, _interrupt if handler is signal.default_int_handler else handler)
    try:
        # Arguments are stored in records, tables and pages, which are UTF-8
        for argument in sys.argv[1:]:
            try:
                argument.encode()
            except UnicodeEncodeError:
                raise InputError(
                    f"The argument {argument!r} is not UTF-8. Use UTF-8 for texts, and "
                    "convert names of files, for instance with 'convmv -f LATIN1 -t UTF-8'."
                ) from None
        try:
            app()
        finally:
            if sys.stdout is not None:  # None if it was closed before the program began
                sys.stdout.flush()  # raise errors here, where they can be reported
            if _n_tries:  # an interrupt that came during an import has not been raised yet
                raise KeyboardInterrupt
    except ContstimError as error:
        _exit_with_error(f"error: {error}")
    except BrokenPipeError:  # the reader has closed the pipe, as in `contstim models | head -1`
        _discard(sys.stdout)
        sys.exit(_CLOSED_PIPE)
    except OSError as error:
        about = error.filename or "standard input or output"
        _exit_with_error(f"error: Cannot read or write {about}: {error.strerror or error}.")
    except UnicodeEncodeError as error:
        _exit_with_error(
            f"error: Standard output cannot show {error.object[error.start : error.end]!r} in "
            f"{error.encoding}. Set PYTHONIOENCODING=utf-8 and run the same command again."
        )
    except MemoryError:
        _exit_with_error(
            "error: There is not enough memory. Use fewer items, or a machine with more memory."
        )
    except KeyboardInterrupt:
        _discard(sys.stdout)
        sys.exit(_INTERRUPTED)
    finally:
        # An interrupt during the exit must not print a traceback
        signal.signal(signal.SIGINT, _exit_at_once)


def _interrupt(_signal: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt; during an import, send the signal again after `_RETRY_DELAY`.

    Python may lose an exception during an import, or replace it by another exception.
    """
    global _n_tries
    while frame is not None and _n_tries < _MAX_TRIES:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            from threading import Timer, main_thread

            _n_tries += 1
            retry = Timer(_RETRY_DELAY, signal.pthread_kill, [main_thread().ident, signal.SIGINT])
            retry.daemon = True
            retry.start()
            return
        frame = frame.f_back
    _n_tries = 0
    raise KeyboardInterrupt


def _exit_at_once(*_signal: object) -> NoReturn:
    # The normal exit of Python would import modules and print messages
    os._exit(_INTERRUPTED)


def _exit_with_error(message: str) -> NoReturn:
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        _discard(sys.stdout)
    from contstim.wording import printable

    print(printable(message), file=sys.stderr)
    sys.exit(_INPUT_ERROR)


def _discard(stream: TextIO) -> None:
    """Discard the buffer of a stream, so that closing it raises no error."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError) as error:  # no file descriptor, or already closed
        if getattr(error, "errno", None) not in (None, errno.EBADF):
            raise
