"""What nobody has filled in yet in the texts that participants read."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from contstim.experiments.platforms.jspsych.texts import TEXTS

if TYPE_CHECKING:
    from pathlib import Path

_BRACKETS = re.compile(r"\[[^\]\n]+\](?!\()")  # but no links
_EARLIER = ("[minutes]",)  # of texts that earlier versions wrote


def unfilled(folder: Path) -> dict[str, tuple[str, ...]]:
    """For each text of a page, the placeholders of our defaults that it still holds.

    Texts without any are left out, as are files that cannot be read.
    """
    found = {}
    for name in TEXTS:
        try:
            text = (folder / name).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            continue
        left = tuple(one for one in _placeholders() if one in text)
        if left:
            found[name] = left
    return found


def unfilled_warning(folder: Path) -> str:
    """What to say of them before people come; empty where all is filled in."""
    found = unfilled(folder)
    if not found:
        return ""
    listed = "; ".join(f"{name}: {', '.join(left)}" for name, left in found.items())
    return (
        f"the texts of {folder} still hold placeholders, which participants would read. Edit them "
        f"before anybody takes part. {listed}"
    )


@cache
def _placeholders() -> tuple[str, ...]:
    defaults = resources.files("contstim.experiments.platforms.jspsych") / "defaults"
    texts = [(defaults / name).read_text(encoding="utf-8") for name in TEXTS]
    found = [place for text in texts for place in _BRACKETS.findall(text)]
    return tuple(dict.fromkeys((*found, *_EARLIER)))
