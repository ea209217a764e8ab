"""Settings that commands ask for: what a field of a dataclass says of itself.

    @dataclass(frozen=True)
    class SurveySettings:
        timing: Annotated[bool, Help("Add a timing question to each trial.")] = False
        seed: Seed = 0

Type and default are those of the field; a field without a default must be given, and one without a
`Help` is not asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, get_args, get_type_hints

from contstim.errors import InputError
from contstim.scale import Scale

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True)
class Help:
    """Help of a command on a setting.

    Attributes:
        text: a phrase that ends with a full stop.
        flag: how the setting is given; by default `--`, its name, and `--no-` beside a yes.
        at_least: the smallest number that is taken.
        at_most: the largest number that is taken.
        metavar: what stands for the value, such as `LOW-HIGH`; by default its type.
    """

    text: str
    flag: str = ""
    at_least: float | None = None
    at_most: float | None = None
    metavar: str = ""


Seed = Annotated[int, Help("Decides everything that is left to chance.", at_least=0)]
AnswerScale = Annotated[
    Scale | None,
    Help(
        "The scale of the answers, where neither their record nor the trials name it: "
        "confidence, 1 to 6, or choice, 1 and 2."
    ),
]


def check_ranges(settings: DataclassInstance) -> None:
    """Refuse numbers that the `Help` of their field does not allow.

    Raises:
        InputError: names the field and what it may be.
    """
    for name, hint in get_type_hints(type(settings), include_extras=True).items():
        value = getattr(settings, name)
        for note in get_args(hint)[1:]:
            if not isinstance(note, Help) or value is None:
                continue
            if note.at_least is not None and not value >= note.at_least:
                raise InputError(f"{name} must be {note.at_least:g} or more, not {value}.")
            if note.at_most is not None and not value <= note.at_most:
                raise InputError(f"{name} must be {note.at_most:g} at most, not {value}.")
