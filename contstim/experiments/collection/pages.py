"""Files of the exported folder, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# Stated here because a system's own table may know .js as something that browsers refuse to run.
_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".css": "text/css",
    ".json": "application/json",
    ".map": "application/json",
    ".md": "text/markdown",
    ".txt": "text/plain",
    ".csv": "text/csv",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".gif": "image/gif",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}
_START = "index.html"


def find_page(folder: Path, path: str) -> Path | None:
    """The file that an address means; None where there is none, or none to be shown.

    Not shown are folders, names that begin with a dot, and whatever lies outside the folder once
    links are followed.

    Args:
        folder: resolved.
        path: decoded, relative to the server's root.
    """
    parts = (path.lstrip("/") or _START).split("/")
    if any(_forbidden(part) for part in parts):
        return None
    try:
        file = folder.joinpath(*parts).resolve()  # where links lead
        public = (
            file.is_relative_to(folder)
            and file.is_file()
            and not any(_forbidden(part) for part in file.relative_to(folder).parts)
        )
    except (OSError, ValueError, RuntimeError):  # too long a name; not a name; links in a circle
        return None
    return file if public else None


def is_same(file: Path, other: Path) -> bool:
    """True if two names mean one file, as `A` and `a` do on some systems."""
    try:
        return file.samefile(other)
    except OSError:  # one is gone meanwhile
        return False


def media_type(file: Path) -> str:
    """Media type of a file, for browsers."""
    return _TYPES.get(file.suffix.lower(), "application/octet-stream")


def _forbidden(part: str) -> bool:
    # On Windows a backslash divides folders, and a colon names a drive or a hidden stream
    return not part or part.startswith(".") or any(sign in part for sign in "\0\\:")
