"""How many files and connections a process may have open at once."""

from __future__ import annotations

import sys

_ENOUGH = 65_536  # some systems have no limit at all, and libraries that walk through all numbers
_OWN = 64  # database, log, program, and what is read now and then
_MOST_CONNECTIONS, _FEWEST_CONNECTIONS = 4_096, 16


def raise_open_files() -> int:
    """Raise this process's limit of open files as far as the system lets it; the limit now."""
    if sys.platform == "win32":
        return _ENOUGH  # sockets are not counted there
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    wanted = _ENOUGH if hard == unlimited else min(hard, _ENOUGH)
    if soft != unlimited and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (ValueError, OSError):  # the kernel has a limit of its own below the stated one
            wanted = soft
        soft = wanted
    return _ENOUGH if soft == unlimited else soft


def most_connections(open_files: int) -> int:
    """How many connections a limit of open files allows: each may have a file open besides."""
    return min(_MOST_CONNECTIONS, max(_FEWEST_CONNECTIONS, (open_files - _OWN) // 2))
