"""The machine that this process runs on."""

from __future__ import annotations

import os
import sys


def total_memory() -> int | None:
    """Bytes of memory of this machine; None where the system does not tell."""
    if sys.platform == "win32":
        import ctypes

        class MemoryStatus(ctypes.Structure):
            """`MEMORYSTATUSEX` of Windows; its length is to be stated in the structure itself."""

            _fields_ = [
                ("length", ctypes.c_uint32),
                ("load", ctypes.c_uint32),
                ("total", ctypes.c_uint64),
                ("others", ctypes.c_uint64 * 6),
            ]

        status = MemoryStatus(length=ctypes.sizeof(MemoryStatus))
        if not ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
            return None
        return int(status.total)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return None
