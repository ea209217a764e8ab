"""What `transformers` says while it loads."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


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


def first_line(error: Exception) -> str:
    """The first line of a long message, closed by a full stop."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".") + "."
