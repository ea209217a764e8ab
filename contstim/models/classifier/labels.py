"""Label that means acceptable, of a classifier's two."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from contstim.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Mapping

UNACCEPTABLE, ACCEPTABLE = "unacceptable", "acceptable"
LABELS = (UNACCEPTABLE, ACCEPTABLE)
"""In CoLA's order: 0 is unacceptable."""

_YES = frozenset({"acceptable", "grammatical", "correct", "1"})
_NO = frozenset({"unacceptable", "ungrammatical", "incorrect", "0"})
_NAMELESS = re.compile(r"label_([01])")


def acceptable_label(location: str, config: Any) -> int:
    """The number of the label that means acceptable; without names, 1 as in CoLA.

    Args:
        location: where the checkpoint came from.
        config: a `transformers` configuration.

    Raises:
        ModelError: there are not two labels, or their names do not tell.
    """
    names: Mapping[int, str] = config.id2label
    plain = {n: _NAMELESS.sub(r"\1", str(name).lower()) for n, name in names.items()}
    yes = [number for number, name in plain.items() if name in _YES]
    no = [number for number, name in plain.items() if name in _NO]
    if len(plain) != 2 or len(yes) != 1 or len(no) != 1:
        raise ModelError(
            f"{location} has the labels {', '.join(map(str, names.values()))}; a classifier of "
            f"acceptability has two: unacceptable and acceptable. 'contstim train acceptability' "
            f"makes one."
        )
    return int(yes[0])
