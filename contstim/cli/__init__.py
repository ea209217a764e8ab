"""The command line: how the program begins and ends.

A mistake in what the user gave is one message on standard error and exit status 2; an interrupt is
silence and exit status 130, from the first moment on. So this module is light: the commands are
imported when an interrupt is provided for. Later imports are finished before an interrupt counts.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import warnings

from contstim.errors import ContstimError, InputError

TYPE_CHECKING = False  # as in typing, whose import takes longer than all else here
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn, TextIO

    from contstim.cli.program import app

__all__ = ["app", "main"]

_MISTAKE, _INTERRUPTED, _CLOSED_PIPE = 2, 130, 1
_LATER, _TRIES = 0.05, 100  # seconds from an interrupt during an import to the next try; tries
_tries = 0


def main() -> None:
    """The entry point of the `contstim` program."""
    # While modules are imported an interrupt ends at once; then it is the command's to notice
    before = signal.signal(signal.SIGINT, _leave)
    from contstim.cli.output import show_warning
    from contstim.cli.program import app

    warnings.showwarning = show_warning
    # A shell's background job may have been started to ignore interrupts
    signal.signal(signal.SIGINT, _interrupt if before is signal.default_int_handler else before)
    try:
        # Records, tables and pages are UTF-8, and could not hold what a shell gave in another.
        for argument in sys.argv[1:]:
            try:
                argument.encode()
            except UnicodeEncodeError:
                raise InputError(
                    f"The argument {argument!r} is not UTF-8. Give texts in UTF-8, and files names "
                    f"in it, for instance with 'convmv -f LATIN1 -t UTF-8'."
                ) from None
        try:
            app()
        finally:
            if sys.stdout is not None:  # closed before the program began
                sys.stdout.flush()  # what fails here would else fail when nothing can tell it
            if _tries:  # an interrupt still waits for an import that has ended
                raise KeyboardInterrupt
    except ContstimError as error:
        _end(f"error: {error}")
    except BrokenPipeError:  # `contstim models | head -1`: who reads has read enough
        _close(sys.stdout)
        sys.exit(_CLOSED_PIPE)
    except OSError as error:
        about = error.filename or "standard input or output"
        _end(f"error: Cannot read or write {about}: {error.strerror or error}.")
    except UnicodeEncodeError as error:
        _end(
            f"error: Standard output cannot show {error.object[error.start : error.end]!r} in "
            f"{error.encoding}. Set PYTHONIOENCODING=utf-8 and run the same command again."
        )
    except MemoryError:
        _end("error: There is not enough memory: ask for less, or use a larger machine.")
    except KeyboardInterrupt:
        _close(sys.stdout)
        sys.exit(_INTERRUPTED)
    finally:
        # What is left to do, at the end, is nothing that an interrupt should print a traceback of
        signal.signal(signal.SIGINT, _leave)


def __getattr__(name: str) -> object:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from contstim.cli.program import app

    return app


def _interrupt(_signal: int, frame: FrameType | None) -> None:
    """Stop the command; while it imports a module, try again a moment later, for some seconds.

    Python makes an error of its own of an interrupt in the middle of a class, or loses it.
    """
    global _tries
    while frame is not None and _tries < _TRIES:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            from threading import Timer, main_thread

            _tries += 1
            again = Timer(_LATER, signal.pthread_kill, [main_thread().ident, signal.SIGINT])
            again.daemon = True
            again.start()
            return
        frame = frame.f_back
    _tries = 0
    raise KeyboardInterrupt


def _leave(*_signal: object) -> NoReturn:
    # Past Python's own end, which would import and print more
    os._exit(_INTERRUPTED)


def _end(message: str) -> NoReturn:
    """Say what is wrong, without a word more from standard output, and end."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        _close(sys.stdout)
    from contstim.wording import printable

    print(printable(message), file=sys.stderr)
    sys.exit(_MISTAKE)


def _close(stream: TextIO) -> None:
    """Make nothing of what a stream still holds, so that its end is quiet."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError) as error:  # it has no file, or is closed already
        if getattr(error, "errno", None) not in (None, errno.EBADF):
            raise
