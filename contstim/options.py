"""Notes in the annotations of dataclass fields. A note describes a setting, a file or a model.

    @dataclass(frozen=True, kw_only=True)
    class TripletQuestion:
        per_pair: Annotated[int, Help("Triplets for each pair of models.", at_least=1)] = 10
        counts: Annotated[Path | None, Reads("A table model_1, model_2, per_pair.")] = None

The notes determine the options of commands, the keys of study files, and the ranges of values. They
also determine the contents of records (`.meta.json` files next to outputs). A field without a
default is a required option. A field without a note is not an option.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
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
"""Limit of the absolute value of numbers without another limit."""


@dataclass(frozen=True)
class Help:
    """Help on a setting, and its range.

    Attributes:
        text: help text that ends with a full stop.
        flag: option of a command; by default `--` with the name, and also `--no-` for booleans.
        at_least: minimum; by default -`LARGEST`.
        at_most: maximum; by default `LARGEST`.
        above: exclusive lower bound.
        below: exclusive upper bound.
        metavar: placeholder for the value, such as `LOW-HIGH`; by default its type.
        panel: heading under which the help of a command lists the option. By default, the option
            is listed with the most common options.
        folder: whether an input path may be a folder.
        content: required content of a file (`contstim.steps.paths`). It is checked before a study
            runs.
        kind: content of the value, such as `trials`. In a study, the default of an input with a
            kind comes from another section: the output or setting that has the same kind. An input
            of the kind `a|b` accepts the kinds `a` and `b`. Its section has a stage for `a` if the
            study provides `a`, and a stage for `b` if the study provides `b`.
        argument: whether a command takes the values as arguments, without a flag.
        makes_stale: whether a change of the value makes a result stale. A study computes stale
            results again.
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
    kind: str = ""
    argument: bool = False
    makes_stale: bool = True

    @property
    def kinds(self) -> tuple[str, ...]:
        """The alternatives of `kind`."""
        return tuple(self.kind.split("|")) if self.kind else ()

    def kind_of(self, choice: int) -> str:
        """Return the kind that a stage reads; `choice` is the index of the alternative in `kinds`.

        The kind may be empty.
        """
        return self.kinds[choice] if len(self.kinds) > 1 else self.kind

    @property
    def range(self) -> str:
        """Range in brackets for help texts; may be empty."""
        if self.above is not None or self.below is not None:
            return f" [{self._exclusive_range}]"
        if self.at_most is not None and self.at_most <= LARGEST:
            return f" [{self.at_least or 0:g} to {self.at_most:g}]"
        return f" [{self.at_least:g} or more]" if self.at_least else ""

    @property
    def _exclusive_range(self) -> str:
        if self.above is None:
            return f"below {self.below:g}"
        if self.below is None:
            return f"above {self.above:g}"
        return f"between {self.above:g} and {self.below:g}"

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        from pydantic_core.core_schema import no_info_after_validator_function

        return no_info_after_validator_function(self.in_range, handler(source))

    def in_range(self, value: Any) -> Any:
        """Return the value after checking its numbers.

        Raises:
            ValueError: if a number is out of range or not finite.
        """
        for number in value if isinstance(value, tuple) else (value,):
            is_number = isinstance(number, int | float) and not isinstance(number, bool)
            if is_number and (rule := self._broken_rule(number)):
                raise ValueError(f"must be {rule}, not {shortened(number)}.")
        return value

    def _broken_rule(self, number: float) -> str:
        above, below = self.above, self.below
        if (above is not None and not number > above) or (below is not None and not number < below):
            return self._exclusive_range
        if self.at_least is not None and not number >= self.at_least:
            return f"{self.at_least:g} or more"
        if number != number or number in (inf, -inf):
            return "a finite number"
        largest = LARGEST if self.at_most is None else self.at_most
        if number > largest:
            return f"at most {largest:,}"
        return "" if number >= -LARGEST else f"at least {-LARGEST:,}"


Aside = partial(Help, makes_stale=False)
"""Help on a setting that never makes a result stale when it changes, such as the device."""


@dataclass(frozen=True)
class Reads(Help):
    """One or several input files."""


def reads_kind(text: str, kind: str) -> Reads:
    """Return an input whose kind is also its required content."""
    return Reads(text, kind=kind, content=kind)


@dataclass(frozen=True)
class Writes(Help):
    """An output file or folder.

    Attributes:
        beside: endings of further files next to the output, such as `.certificate.json`.
        record: name of a file in the output folder. The record is written next to this file; by
            default, it is written next to the output.
        stem: whether the path is only the beginning of all file names. The endings of `beside` are
            added to the path. The first of these files is the main output, which has the record.
        formats: allowed endings of the file name of a table.
        name: path in the results of a study. `{}` is the last word of the command. `a|b` are two
            paths, one for each alternative of the input's kind. Without a name, the first output of
            a step has a default path, and its other outputs are optional.
        part: name of the file with the content `kind` in the output folder; empty if the output
            itself has this content.
        when: name of a Python property of the step. A study has this output only if the property is
            true.
    """

    beside: tuple[str, ...] = ()
    record: str = ""
    stem: bool = False
    formats: tuple[str, ...] = ()
    name: str = ""
    part: str = ""
    when: str = ""
    makes_stale: bool = False

    @property
    def endings(self) -> tuple[str, ...]:
        """Endings of all output files."""
        return self.beside if self.stem else ("", *self.beside)

    def path_of(self, command: str, choice: int) -> str:
        """Return the path in the results of a study.

        `choice` is the index of the alternative in the kinds of the input.
        """
        names, words = self.name.split("|"), command.split()
        name = names[choice] if len(names) > 1 else self.name
        # The default name of a folder is the command; a table also gets the ending .csv
        if name or self.record or any(ending.startswith("/") for ending in self.beside):
            return name.replace("{}", words[-1]) or "-".join(words)
        return f"{'-'.join(words)}.csv" if self.formats else ""

    @property
    def range(self) -> str:
        """Allowed endings in brackets for help texts; empty if all endings are allowed."""
        return f" [{', '.join(self.formats)}]" if self.formats else ""

    def in_range(self, value: Any) -> Any:
        """Return the path after checking its ending.

        Raises:
            ValueError: if the name has none of the endings.
        """
        if value is not None and self.formats:
            table_kind(value, self.formats)
        return value


WritesTable = partial(Writes, formats=TABLE_KINDS)
"""An output table; the ending of its name determines the format."""


@dataclass(frozen=True)
class Models(Help):
    """Specifications of models; their files and commits count as inputs."""

    metavar: str = "[NAME=]MODEL"


Judges = Annotated[
    tuple[str, ...],
    Models(
        "A language model that judges how sensible sentences are, such as hf:gpt2; use a model "
        "that is not compared.",
        kind="judge",
    ),
]


Share = partial(Help, at_least=0, at_most=1)
"""Help on a proportion, from 0 to 1."""

Seed = Annotated[int, Help("Random seed.", at_least=0, at_most=2**63 - 1)]
AnswerScale = Annotated[
    Scale | None,
    Help(
        "Scale of answers: confidence (1 to 6), choice (1 or 2) or slider (0 to 100). It is needed "
        "if neither the record of the responses nor the trials name the scale."
    ),
]


def note_of(hint: Any) -> Help | None:
    """Return the first `Help` of a field's annotation; None if it has no `Help`."""
    return next((note for note in get_args(hint)[1:] if isinstance(note, Help)), None)


def check_ranges(settings: DataclassInstance) -> None:
    """Refuse numbers that the `Help` of their field does not allow.

    Raises:
        InputError: if a number is out of range; the message names the field and the range.
    """
    for name, hint in get_type_hints(type(settings), include_extras=True).items():
        if note := note_of(hint):
            try:
                note.in_range(getattr(settings, name))
            except ValueError as error:
                raise InputError(f"`{name}` {error}") from None
