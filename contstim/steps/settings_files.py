"""Files that settings name, which a record counts among what was read."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any


def files_of_settings(settings: Any) -> list[Path]:
    """The values of a dataclass's fields that are paths, or tuples of them, in order."""
    values = (getattr(settings, field.name) for field in fields(settings))
    every = (each for value in values for each in (value if isinstance(value, tuple) else (value,)))
    return [path for path in every if isinstance(path, Path)]
