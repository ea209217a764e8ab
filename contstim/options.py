"""Declarations of fields: what a setting, a file or a model is, said once at the field itself.

    @dataclass(frozen=True, kw_only=True)
    class TripletQuestion:
        per_pair: Annotated[int, Help("Triplets for each pair of models.", at_least=1)] = 10
        counts: Annotated[Path | None, Reads("A table model_1, model_2, per_pair.")] = None

Options of commands, keys of study files, ranges and records follow. Type and default are those of
the field; a field without a default must be given, and one without a note is not asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

from contstim.errors import InputError
from contstim.files.documents import shortened
from contstim.files.tables import TABLE_KINDS, table_kind
from contstim.items.scale import Scale

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema


LARGEST = 10**9
"""Size of the largest number of a setting that has no other limit."""


@dataclass(frozen=True)
class Help:
    """Help on a setting, and its range.

    Attributes:
        text: a phrase that ends with a full stop.
        flag: how a command is given it; by default `--`, its name, and `--no-` beside a yes.
        at_least: the smallest number that is taken; by default less `LARGEST`.
        at_most: the largest number that is taken; by default `LARGEST`.
        above: a number that is itself too small.
        below: a number that is itself too large.
        metavar: what stands for the value, such as `LOW-HIGH`; by default its type.
        panel: heading under which the help of a command lists it; by default among the options
            that most users need.
        folder: whether a path may be that of a folder that is read.
        content: what a file must hold (`contstim.steps.contents`), checked before a study runs.
    """

    text: str
    flag: str = ""
    at_least: float | None = None
    at_most: float | None = None
    above: float | None = None
    below: float | None = None
    metavar: str = ""
    panel: str = ""
    folder: bool = False
    content: str = ""

    @property
    def range(self) -> str:
        """The range in brackets, as help shows it; empty for none."""
        if self.above is not None or self.below is not None:
            return f" [{self._exclusive}]"
        if self.at_most is not None and self.at_most <= LARGEST:
            return f" [{self.at_least or 0:g} to {self.at_most:g}]"
        return f" [{self.at_least:g} or more]" if self.at_least else ""

    @property
    def _exclusive(self) -> str:
        """The bounds that are no values themselves, in words."""
        if self.above is None:
            return f"below {self.below:g}"
        if self.below is None:
            return f"above {self.above:g}"
        return f"between {self.above:g} and {self.below:g}"

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Schema of the type, with the range or the endings that are allowed."""
        from pydantic_core.core_schema import no_info_after_validator_function

        return no_info_after_validator_function(self.in_range, handler(source))

    def in_range(self, value: Any) -> Any:
        """The value, a number or several, or something else.

        Raises:
            ValueError: a number is out of range, or not finite.
        """
        for number in value if isinstance(value, tuple) else (value,):
            is_number = isinstance(number, int | float) and not isinstance(number, bool)
            if is_number and (rule := self._broken_rule(number)):
                raise ValueError(f"must be {rule}, not {shortened(number)}.")
        return value

    def _broken_rule(self, number: float) -> str:
        """What a number must be and is not; empty if it is in range."""
        above, below = self.above, self.below
        if (above is not None and not number > above) or (below is not None and not number < below):
            return self._exclusive
        if self.at_least is not None and not number >= self.at_least:
            return f"{self.at_least:g} or more"
        if number != number or number in (inf, -inf):
            return "a finite number"
        if self.at_most is not None:
            return f"{self.at_most:g} at most" if number > self.at_most else ""
        if number > LARGEST:
            return f"at most {LARGEST:,}"
        return "" if number >= -LARGEST else f"at least {-LARGEST:,}"


@dataclass(frozen=True)
class Aside(Help):
    """Help on what makes no result stale: where work is done and how fast, what stood before."""


@dataclass(frozen=True)
class Reads(Help):
    """Files that are read, a path or several.

    Attributes:
        argument: whether a command takes them without a flag.
    """

    argument: bool = False


@dataclass(frozen=True)
class Writes(Help):
    """A file or folder that is written.

    Attributes:
        beside: endings of the files that are written beside it, such as `.certificate.json`.
        record: the file of the folder beside which the record stands; by default the output itself.
        stem: whether the path is the beginning of the names of the files, which end as `beside`
            says, first that of the table with the record.
        formats: of a table, the endings of which its name must have one.
    """

    beside: tuple[str, ...] = ()
    record: str = ""
    stem: bool = False
    formats: tuple[str, ...] = ()

    @property
    def endings(self) -> tuple[str, ...]:
        """Endings of all that is written, the output itself first."""
        return self.beside if self.stem else ("", *self.beside)

    @property
    def is_folder(self) -> bool:
        """True of a folder whose name may be anything."""
        return bool(self.record) or any(ending.startswith("/") for ending in self.beside)

    @property
    def range(self) -> str:
        """The endings in brackets, as help shows them; empty where it is no table."""
        return f" [{', '.join(self.formats)}]" if self.formats else ""

    def in_range(self, value: Any) -> Any:
        """The path.

        Raises:
            ValueError: its name has none of the endings.
        """
        if value is not None and self.formats:
            table_kind(value, self.formats)
        return value


@dataclass(frozen=True)
class WritesTable(Writes):
    """A table that is written; its ending says in which form."""

    formats: tuple[str, ...] = TABLE_KINDS


@dataclass(frozen=True)
class Models(Help):
    """Specifications of models, `[NAME=]SPECIFICATION`, whose files and commits count as read."""

    metavar: str = "[NAME=]MODEL"


@dataclass(frozen=True)
class Contexts(Help):
    """Contexts of a step's models, `NAME=TEXT`, which become part of the models' specifications."""

    metavar: str = "NAME=TEXT"


Seed = Annotated[
    int, Help("Decides everything that is left to chance.", at_least=0, at_most=2**63 - 1)
]
AnswerScale = Annotated[
    Scale | None,
    Help(
        "The scale of the answers, where neither their record nor the trials name it: "
        "confidence, 1 to 6, choice, 1 and 2, or slider, 0 to 100."
    ),
]


def check_ranges(settings: DataclassInstance) -> None:
    """Refuse numbers that the `Help` of their field does not allow.

    Raises:
        InputError: names the field and what it may be.
    """
    for name, hint in get_type_hints(type(settings), include_extras=True).items():
        for note in get_args(hint)[1:]:
            if isinstance(note, Help):
                try:
                    note.in_range(getattr(settings, name))
                except ValueError as error:
                    raise InputError(f"`{name}` {error}") from None
