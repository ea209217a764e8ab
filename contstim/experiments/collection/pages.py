"""Files of the exported folder, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import FileResponse

from contstim.experiments.collection.answering import HEADERS

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.responses import Response

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
        found = folder.joinpath(*parts).resolve()
        shown = found.is_relative_to(folder) and found.is_file()
        hidden = shown and any(_forbidden(part) for part in found.relative_to(folder).parts)
    except (OSError, ValueError, RuntimeError):  # too long a name; not a name; links in a circle
        return None
    return found if shown and not hidden else None


def is_same(file: Path, other: Path) -> bool:
    """Whether two names mean one file, as `A` and `a` do on some systems."""
    try:
        return file.samefile(other)
    except OSError:  # one is gone meanwhile
        return False


def page(file: Path) -> Response:
    """The file as an answer; browsers ask again each time whether it has changed."""
    kind = _TYPES.get(file.suffix.lower(), "application/octet-stream")
    return FileResponse(file, media_type=kind, headers=HEADERS | {"Cache-Control": "no-cache"})


def _forbidden(part: str) -> bool:
    return not part or part.startswith(".") or any(sign in part for sign in "\0\\:")
