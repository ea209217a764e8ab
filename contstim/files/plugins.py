"""Plugins: named values that installed packages provide as entry points."""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from contstim.errors import ContstimError


_Kind = TypeVar("_Kind")


def plugin_names(group: str) -> list[str]:
    """Return the names of the entry points in a group, in alphabetical order."""
    return list(_find_names(group, tuple(sys.path)))


@cache
def _find_names(group: str, _path: tuple[str, ...]) -> tuple[str, ...]:
    # Cached for each `sys.path`, because the search through all packages is slow
    return tuple(sorted({entry.name for entry in entry_points(group=group)}))


def plugin(group: str, name: str, kind: type[_Kind], error: type[ContstimError]) -> _Kind | None:
    """Load the value that an installed package provides under a name.

    Return None if no package provides a value. The value must be an instance of `kind`. Its
    attribute `name` must be the name of the entry point.

    Raises:
        ContstimError: if several packages provide different values; if the value cannot be loaded;
            or if it is not an instance of `kind` with this name. The class of the error is `error`.
    """
    word = kind.__name__
    entries = list(entry_points(group=group, name=name))
    if len({entry.value for entry in entries}) > 1:
        raise error(
            f"Several packages provide the {word.lower()} {name!r}: "
            f"{', '.join(map(_origin, entries))}. Uninstall all but one of them."
        )
    if not entries:
        return None
    (entry, *_) = entries
    try:
        value = entry.load()
    except Exception as reason:  # code of another package may raise anything
        raise error(
            f"The {word.lower()} {name!r} of {_origin(entry)} cannot be loaded: "
            f"{type(reason).__name__}: {reason}. Repair or uninstall this package."
        ) from reason
    if not isinstance(value, kind) or getattr(value, "name", None) != name:
        raise error(
            f"The entry point {name!r} of {_origin(entry)} must be a {word} of this name, "
            f"got {value!r}. Set it to a {kind.__module__}.{word}(name={name!r}, …)."
        )
    return value


def _origin(entry: EntryPoint) -> str:
    return f"{entry.dist.name if entry.dist else 'an unknown package'} ({entry.value})"
