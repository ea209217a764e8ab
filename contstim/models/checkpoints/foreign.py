"""Messages of `transformers` while it loads: silenced, or raised as a ModelError."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from contstim.errors import ContstimError, ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST = 300  # characters of a foreign message


class UnavailableError(ModelError):
    """Files are missing or damaged, or not on this machine."""


@contextmanager
def foreign_errors(location: str) -> Iterator[None]:
    """Turn any failure of loading a checkpoint into an error that names the checkpoint.

    Damaged files can make the libraries fail in any way: with their own errors, with Python's, or
    with a panic of their compiled parts, which is not even an `Exception`.

    Raises:
        UnavailableError: a library failed.
        ModelError: a package is missing, or there is not enough memory.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of formats and empty layers; what matters is checked
            yield
    except ContstimError:
        raise
    except ImportError as error:
        what = first_line(error)
        how = " Install it with pip install 'contstim[xlm]'." if "sacremoses" in what else ""
        raise ModelError(f"{location} needs a package that is missing: {what}{how}") from error
    except MemoryError as error:
        raise _too_large(location) from error
    except RecursionError as error:
        raise UnavailableError(
            f"Cannot load {location}: one of its files is nested too deeply."
        ) from error
    except Exception as error:
        from contstim.models.batching import out_of_memory

        if out_of_memory(error):  # of a GPU, say
            raise _too_large(location) from error
        raise UnavailableError(f"Cannot load {location}: {first_line(error)}") from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise UnavailableError(f"Cannot load {location}: {first_line(error)}") from error


def _too_large(location: str) -> ModelError:
    return ModelError(
        f"{location} needs more memory than there is. If config.json and the weights are whole, "
        f"use --dtype bfloat16, --quantize int8 or int4, --device-map auto, or a smaller model."
    )


@contextmanager
def silence() -> Iterator[None]:
    """Keep `transformers` from printing bars, advice and reports while it loads."""
    import transformers

    chatter: Any = transformers.utils.logging
    level, bars = chatter.get_verbosity(), chatter.is_progress_bar_enabled()
    chatter.set_verbosity_error()
    chatter.disable_progress_bar()
    try:
        yield
    finally:
        chatter.set_verbosity(level)
        if bars:
            chatter.enable_progress_bar()


def first_line(error: BaseException) -> str:
    """The first line of a long message, closed by a full stop, in characters that print."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    line = lines[0] if lines else type(error).__name__
    if len(lines) > 1 and line.endswith(":"):
        line = f"{line} {lines[1]}"
    if type(error).__module__ == "builtins" and not isinstance(error, OSError | ValueError):
        line = f"{type(error).__name__}: {line}"
    printable = line.encode("utf-8", "backslashreplace").decode()
    if len(printable) > _LONGEST:
        printable = f"{printable[:_LONGEST]}…"
    return printable.rstrip(".") + "."
