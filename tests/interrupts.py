"""Programs that a test ends with Ctrl-C."""

from __future__ import annotations

import signal


def hear_interrupts() -> None:
    """Given to a new process as `preexec_fn`, have it end at Ctrl-C.

    A shell's background jobs ignore Ctrl-C, and so would all processes that tests start there.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
