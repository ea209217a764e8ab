"""Models as a user gives them: `[NAME=]SPECIFICATION`, and which names a model may bear.

A name stands in columns, files and figures. What precedes the first `=` is the name unless it holds
a `:` or a `/`: then it belongs to the specification, as in `server:host/api?tokenizer=gpt2` or in
`./a=b.arpa`.
"""

from __future__ import annotations

from dataclasses import dataclass

from contstim.errors import ModelError

RESERVED_NAMES = frozenset(
    {
        *("sentence", "id", "item", "label", "judgement", "phenomenon", "paradigm", "paradigms"),
        *("word", "place", "token", "position", "log_prob", "surprisal", "zipf"),
        *("model", "models", "ceiling", "people", "method", "pairs", "unread", "identical"),
        *("contrast", "condition", "trial_id", "group"),
    }
)
"""Columns and rows that tables have beside those of models, in small letters."""

_LONGEST = 60  # characters: names become parts of file names, which take 255 bytes
_SIGNS = " ._-"


@dataclass(frozen=True)
class GivenModel:
    """A model that is yet to be loaded.

    Attributes:
        name: what it is called in columns, files and figures.
        specification: see `contstim.models.catalog`.
    """

    name: str
    specification: str

    @classmethod
    def parse(cls, text: str) -> GivenModel:
        """Read `[NAME=]SPECIFICATION`; a model without a name is called by its specification.

        Raises:
            ModelError: what stands before the `=` cannot be a name.
        """
        name, equals, specification = text.partition("=")
        if not equals or ":" in name or "/" in name:
            return cls(text, text)
        _check_name(name.strip(), text)
        return cls(name.strip(), specification.strip())

    @property
    def text(self) -> str:
        """What `parse` reads as this."""
        if self.name == self.specification:
            return self.name
        return f"{self.name}={self.specification}"


def _check_name(name: str, text: str) -> None:
    allowed = all(sign.isalnum() or sign in _SIGNS for sign in name)
    if not allowed or not name[:1].isalnum():
        raise ModelError(
            f"{name!r} in {text!r} is not a name for a model: write NAME=MODEL, where NAME begins "
            f"with a letter or digit and has letters, digits, spaces, '.', '_' and '-' only. A "
            f"file whose own name holds '=' is given with its folder, such as ./{text}."
        )
    if len(name) > _LONGEST:
        raise ModelError(
            f"{name!r} has {len(name)} characters; a name for a model has {_LONGEST} at most."
        )
    if name.lower() in RESERVED_NAMES:
        raise ModelError(
            f"{name!r} in {text!r} cannot name a model: tables have a column or a row of that "
            f"name. Choose another, such as 'my {name}'."
        )
