"""Bibliography, `references.txt`, and search for the works that a text cites."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources


@cache
def works() -> tuple[tuple[str, str, str], ...]:
    """Return first author, year and reference of each work, in order of the bibliography."""
    text = (resources.files(__package__) / "references.txt").read_text(encoding="utf-8")
    return tuple(
        (*re.findall(r"^([^,]+),.*?\((\d{4})\)", work)[0], work) for work in text.splitlines()
    )


def works_in(text: str) -> list[str]:
    """Return references of cited works, such as `Golan et al., 2023` or `Golan et al. (2023)`."""
    plain = text.replace("\\", "")
    return [
        work
        for author, year, work in works()
        if re.search(rf"{author}('s| and \w+| & \w+| et al\.)?,? \(?{year}", plain)
    ]
