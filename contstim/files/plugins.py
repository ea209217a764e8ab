"""Values that installed packages add by entry points, each of a kind and under a name."""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from contstim.errors import ContstimError


_Kind = TypeVar("_Kind")


def plugin_names(group: str) -> list[str]:
    """The names of a group, in alphabetical order."""
    return list(_names_found(group, tuple(sys.path)))


@cache
def _names_found(group: str, _path: tuple[str, ...]) -> tuple[str, ...]:
    """The names, for which every package on the path is looked at, so once for each path."""
    return tuple(sorted({entry.name for entry in entry_points(group=group)}))


def plugin(group: str, name: str, kind: type[_Kind], error: type[ContstimError]) -> _Kind | None:
    """Value added under a name; None if there is none.

    Args:
        group: of entry points.
        name: of the entry point and of the value.
        kind: what the value must be.
        error: raised where two packages add it, or what one adds cannot be loaded or is something
            else.
    """
    word = kind.__name__
    entries = list(entry_points(group=group, name=name))
    # One package may be found twice, installed and on the path: then both name the same value
    if len({entry.value for entry in entries}) > 1:
        raise error(
            f"Several packages add the {word.lower()} {name!r}: "
            f"{', '.join(map(_origin, entries))}. Uninstall all but one of them."
        )
    if not entries:
        return None
    (entry, *_) = entries
    try:
        value = entry.load()
    # Loading runs another package's code, which may fail in any way
    except Exception as reason:
        raise error(
            f"The {word.lower()} {name!r} of {_origin(entry)} cannot be loaded: "
            f"{type(reason).__name__}: {reason}. Mend or uninstall that package."
        ) from reason
    if not isinstance(value, kind) or getattr(value, "name", None) != name:
        raise error(
            f"The entry point {name!r} of {_origin(entry)} is not a {word} of that name, but "
            f"{value!r}. Its value names a {kind.__module__}.{word}(name={name!r}, …)."
        )
    return value


def _origin(entry: EntryPoint) -> str:
    package = entry.dist.name if entry.dist else "an unknown package"
    return f"{package} ({entry.value})"
