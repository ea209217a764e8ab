"""A step: work that reads files and writes files, declared once as a class.

    class SelectTriplets(Step[TripletSelection], name="select triplets"):
        \"\"\"Select triplets of a natural and two synthetic sentences.\"\"\"

        triplets: Annotated[Path, Reads("Triplets to choose from.")]
        out: Annotated[Path, Writes("The table to write.", beside=(".certificate.json",))]
        question: TripletQuestion = TripletQuestion()

        def work(self, reporter: Reporter) -> Outcome[TripletSelection]: ...

The class determines the command `contstim select triplets`, its options and its reference page. It
also determines the section of study files and the stage of a study. It determines the record, a
JSON file next to the output that lists inputs, options and outputs. The docstring is the help page.
The annotation of a field marks an input, an output, models or an option (see `contstim.options`).
If a field is a dataclass, the fields of this dataclass are also fields of the step.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import cache, partial
from inspect import getdoc, signature
from pathlib import Path
from time import perf_counter
from types import new_class
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    TypeAlias,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from contstim.errors import ContstimError, InputError
from contstim.files.files import is_device, reading
from contstim.options import Help, Models, Reads, Writes, note_of
from contstim.reporter import SILENT, Reporter, forwarding
from contstim.wording import grouped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

    from contstim.reporting.report import Table


Value = TypeVar("Value")
_Step = TypeVar("_Step", bound="Step[Any]")
_CLAUSE_END = re.compile(r"[,:;.](?: |$)| \(")
_SECTION = re.compile(r"\n\n(Args|Returns|Raises|Yields|Attributes):\n")


Shown: TypeAlias = "str | Table"


@dataclass(frozen=True)
class Outcome(Generic[Value]):
    """Result of a step, and additional facts for its record.

    Attributes:
        value: return value of `Step.run`.
        facts: seed, conventions, counts and other facts.
        complete: False if fewer items were found than requested.
        writes: written files that `Step.writes` does not name.
        parts: parts that a command prints on standard output.
        holds: False if a check failed, for example the check of a published claim.
        private: whether only the owner may read the record file, because it contains a secret.
    """

    value: Value
    facts: Mapping[str, Any]
    complete: bool = True
    writes: tuple[Path, ...] = ()
    parts: Sequence[Shown] = ()
    holds: bool = True
    private: bool = False


@dataclass(frozen=True)
class Field:
    """A field of a step or of a group. A group is a dataclass of settings in a field of the step.

    Attributes:
        name: name of the key in a study file. The command-line option has the same name, with
            dashes instead of underscores.
        hint: type with annotations.
        default: default value; `MISSING` if the field is required.
        group: name of the step's field that contains the group; empty if the field is in no group.
        panel: heading in the help under which the option is listed.
    """

    name: str
    hint: Any
    note: Help
    default: Any
    group: str
    panel: str

    def as_list(self, value: Any) -> Any:
        """Return the value; put a single text or path into a tuple if the field is a list."""
        is_list = get_origin(get_args(self.hint)[0]) is tuple
        return (value,) if isinstance(value, str | Path) and is_list else value

    def checked(self, value: Any) -> Any:
        """Convert a value to the type of the field: text to path, single value to tuple.

        Raises:
            InputError: if the value has another type, or is out of range.
        """
        from pydantic import ValidationError

        try:
            return adapter(self.hint).validate_python(self.as_list(value))
        except ValidationError as error:
            text = in_words(error.errors()[0])
            colon = "" if text.startswith("must") else ":"
            raise InputError(f"`{self.name}`{colon} {text}") from None


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Step(Generic[Value]):
    """Base class of all steps; see the docstring of this module."""

    name: ClassVar[str]
    version: ClassVar[int] = 1
    saved_results: ClassVar[str] = ""  # sentence about the results that an interrupted run saves
    leave_out: ClassVar[frozenset[str]] = frozenset()  # names of fields that are not options
    # A study sets some fields, such as `seed`, to the same value in all steps. The fields named
    # here do not take the value of the study in this step
    separate_fields: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, *, name: str, version: int = 0) -> None:
        """Make a dataclass of the step.

        Args:
            name: words of the command.
            version: number to increase if a change of the code changes results; by default the
                number of the base class.
        """
        cls.name, cls.version = name, version or cls.version
        dataclass(frozen=True, kw_only=True)(cls)

    def __post_init__(self) -> None:
        for group, group_fields in _by_group(type(self)).items():
            holder: Any = getattr(self, group) if group else self
            checked = {
                field.name: field.checked(getattr(holder, field.name)) for field in group_fields
            }
            for name, value in ({group: replace(holder, **checked)} if group else checked).items():
                object.__setattr__(self, name, value)
        self._move_contexts_to_models()

    def _move_contexts_to_models(self) -> None:
        # In databases and workers, a model is identified by its specification. Therefore, the
        # specification must contain the context
        contexts = getattr(self, "context", ())
        if not contexts:
            return
        from contstim.models.specifications import with_contexts

        moved = with_contexts(self._models(), contexts)
        for field, value in self.values():
            if isinstance(field.note, Models):
                new = tuple(map(moved.get, value)) if isinstance(value, tuple) else moved.get(value)
                if field.group:
                    new = replace(getattr(self, field.group), **{field.name: new})
                object.__setattr__(self, field.group or field.name, new)
        object.__setattr__(self, "context", ())

    @classmethod
    def summary(cls) -> str:
        """Return the first clause of the help, a phrase that begins with a verb."""
        clause = _CLAUSE_END.split((getdoc(cls) or cls.name).partition("\n")[0])[0]
        return f"{clause[:1].lower()}{clause[1:]}"

    def check(self) -> None:
        """Check that the settings are compatible, before anything is read or computed.

        Raises:
            InputError: if settings contradict each other; the message names them.
        """

    def work(self, reporter: Reporter) -> Outcome[Value]:
        """Do the work, and write all outputs except the record."""
        raise NotImplementedError

    def run(self, reporter: Reporter = SILENT) -> Value:
        """Do the work, and write the outputs and their record.

        Raises:
            InputError: if a file cannot be read or written, or settings contradict each other.
            ContstimError: if the work raises it.
        """
        return perform(self, reporter).value

    @classmethod
    def of(cls: type[_Step], values: Mapping[str, Any]) -> _Step:
        """Create a step from a mapping: name of a field of the step or of a group → value."""
        return cls(**arguments_of(cls, values))

    def values(self) -> Iterator[tuple[Field, Any]]:
        """Yield each field of the step and of its groups, with its value."""
        for field in fields_of(type(self)):
            holder = getattr(self, field.group) if field.group else self
            yield field, getattr(holder, field.name)

    def reads(self) -> tuple[Path, ...]:
        """Return the files and folders to read, including files of models; some may be missing."""
        from contstim.models.catalog import model_files
        from contstim.models.vocabularies import counts_path

        try:
            inside = [path for path in self.files_of_data() if path is not None]
        except InputError:  # an earlier stage has not written the folder yet
            inside = []
        input_files = [
            path
            for field, value in self.values()
            if field.note.makes_stale and not (inside and field.name == "data")
            for path in _paths(value)
        ]
        # If an input is a model that provides word frequencies, its counts are in a file next to it
        counts = [path for path in map(counts_path, input_files) if path.exists()]
        paths = (
            *inside,
            *input_files,
            *counts,
            *self.further_reads(),
            *model_files(self.specifications()),
        )
        return tuple(dict.fromkeys(path for path in paths if str(path) != "-"))

    def files_of_data(self) -> Iterable[Path | None]:
        """Return the files to read in the folder `data`; by default, the whole folder is read."""
        return ()

    def further_reads(self) -> Iterable[Path]:
        """Return files to read in addition to the values of fields, such as lists of words."""
        return ()

    def texts_to_edit(self) -> tuple[Path, ...]:
        """Return files in the output folder that users may edit; the work writes missing files."""
        return ()

    def specifications(self) -> tuple[str, ...]:
        """Return the specifications, without names, of the models that the work loads."""
        from contstim.models.specifications import parse_models

        return tuple(model.specification for model in parse_models(self._models()))

    def _models(self) -> list[str]:
        """Return the specifications of models in all fields, with the names of named models."""
        values = (value for field, value in self.values() if isinstance(field.note, Models))
        return [text for value in values for text in _each(value) if text is not None]

    def writes(self) -> tuple[Path, ...]:
        """Return the files and folders that the work writes, beginning with the main output."""
        from contstim.steps.paths import targets

        return tuple(path for _, path in targets(self))

    def store_path(self) -> Path | None:
        """Return the path of the store (the database of scores); None if the work uses none."""
        return None

    def options(self) -> dict[str, Any]:
        """Return the settings that can change results and differ from the defaults, for JSON.

        Settings with default values are left out, so that new options make no earlier result stale.
        """
        chosen = {
            field.name: value
            for field, value in self.values()
            if value != field.default and field.note.makes_stale
            # Paths are left out, because the record lists files with checksums
            if not isinstance(field.note, Reads) and not any(_paths(value))
        }
        as_json: dict[str, Any] = json.loads(json.dumps(chosen, default=str))
        return as_json

    def commits(self) -> dict[str, str]:
        """Return hub name → commit in the local cache, for the models from the hub."""
        from contstim.models.catalog import hub_commits

        return hub_commits(self.specifications())

    def record_path(self) -> Path | None:
        """Return the path of the record; None if there is no output, or the output is a device.

        The record is next to the main output. If the main output is a folder with a file named by
        `Writes.record`, the record is next to this file.
        """
        from contstim.files.records import record_path

        for field, value in self.values():
            if isinstance(field.note, Writes) and value is not None:
                inside = field.note.record
                output = value / inside if inside else self.writes()[0]
                return None if is_device(output) else record_path(output)
        return None


def perform(step: Step[Value], reporter: Reporter) -> Outcome[Value]:
    """Do the work of a step, write its record, and return the outcome; see `Step.run`."""
    from contstim.files.records import Record, checksums, path_from
    from contstim.steps.paths import check_targets, check_writable

    _check_inputs(step)
    for read in step.reads():
        if is_device(read):
            raise InputError(f"{read} is a device or a pipe. Name a file.")
    check_targets(step)
    check_writable(step)
    step.check()
    path = step.record_path()
    # Checksums are computed before the work, because files may change during the work
    inputs = {} if path is None else checksums(step.reads(), path.parent)
    started = perf_counter()
    warnings: list[str] = []

    def warn(text: str) -> None:
        if text:
            warnings.append(text)
            reporter.warn(text)

    recorded: defaultdict[str, dict[str, object]] = defaultdict(dict)

    def record(name: str, facts: Mapping[str, object]) -> None:
        recorded[name].update(facts)

    with reporter:
        outcome = step.work(forwarding(reporter, warn=warn, record=record))
        for name, convention in outcome.facts.get("models", {}).items():
            if tokens := convention.get("context_tokens"):
                reporter.say_once(f"{name} reads {' '.join(tokens)} before the first word.")
    if path is not None:
        # Compute the checksums that are missing or no longer valid. During its work, the step may
        # have downloaded models from the hub. It may also have written texts into the output
        # folder. Users can edit these texts, and the next run reads them
        new = [
            file
            for file in step.reads()
            if path_from(path.parent.resolve(), file.resolve()) not in inputs
            or not {*step.writes()}.isdisjoint(file.parents)
        ]
        Record.of(
            path,
            step=step.name,
            step_version=step.version,
            options=step.options(),
            commits=step.commits(),
            inputs=inputs | checksums(new, path.parent),
            outputs=(*step.writes(), *outcome.writes),
            seconds=round(perf_counter() - started, 2),
            warnings=warnings,
            complete=outcome.complete,
            facts={**outcome.facts, **recorded},
        ).write(private=outcome.private)
    return outcome


def _check_inputs(step: Step[Any]) -> None:
    """Check that no input file is a folder.

    If the step loads models, which takes long, also check that all input files exist.
    """
    loads_models = bool(step.specifications())
    for field, value in step.values():
        if not isinstance(field.note, Reads) or field.note.folder:
            continue
        for path in _paths(value):
            if path.is_dir():
                raise InputError(f"`{field.name}` must be a file, got the folder {path}.")
            if loads_models and str(path) != "-":
                with reading(path):
                    path.stat()


def _fields_of(kind: type[Any]) -> tuple[Field, ...]:
    hints = get_type_hints(kind, include_extras=True)
    left_out = getattr(kind, "leave_out", ())
    noted_fields: list[Field] = []
    for member in fields(kind):
        hint, default = hints[member.name], member.default
        note = note_of(hint)
        if note is not None:
            panel = note.panel or getattr(kind, "PANEL", "")
            noted_fields.append(Field(member.name, hint, note, default, "", panel))
        elif isinstance(hint, type) and is_dataclass(hint):
            for inner in fields_of(hint):
                value = inner.default if default is MISSING else getattr(default, inner.name)
                noted_fields.append(replace(inner, group=member.name, default=value))
    return tuple(field for field in noted_fields if field.name not in left_out)


# mypy refuses classes of steps as arguments of a cached function, so the function has a type here
fields_of: Callable[..., tuple[Field, ...]] = cache(_fields_of)
"""Return the fields with a note (`Help`) of a step or of a dataclass of settings."""


def arguments_of(kind: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that create a dataclass: name of a field → checked value or group.

    `values` maps names to values: names of fields of the dataclass, or of fields of its groups. A
    group is a dataclass of settings (`Field`).
    """
    arguments: dict[str, Any] = {}
    for group, group_fields in _by_group(kind).items():
        chosen = {e.name: e.checked(values[e.name]) for e in group_fields if e.name in values}
        if group:
            default = getattr(kind, group, None)
            make = get_type_hints(kind)[group] if default is None else partial(replace, default)
            chosen = {group: make(**chosen)}
        arguments |= chosen
    return arguments


def variant(
    base: type[_Step],
    name: str,
    page: str,
    leave_out: frozenset[str] = frozenset(),
    **settings: Any,
) -> type[_Step]:
    """Return a subclass of a step, such as the export to one platform.

    `page` is the help of the command. `leave_out` has the names of fields that are not options of
    this command. `settings` maps the name of a field to its new default, or to its new type. If a
    type has no required parameters, an instance of the type is the default. Otherwise, no default
    is set.
    """
    for field, kind in settings.items():
        if isinstance(kind, type) and all(
            parameter.default is not parameter.empty
            for parameter in signature(kind).parameters.values()
        ):
            settings[field] = kind()
    types = {field: v if isinstance(v, type) else type(v) for field, v in settings.items()}
    values = {field: v for field, v in settings.items() if not isinstance(v, type)}
    namespace = {"__doc__": page, "__annotations__": types, "leave_out": leave_out, **values}
    return new_class(base.__name__, (base,), {"name": name}, lambda body: body.update(namespace))


def page_of(function: Any) -> str:
    """Return the docstring of a function up to its sections about arguments and errors."""
    return _SECTION.split(getdoc(function) or "", maxsplit=1)[0]


def _by_group(kind: type[Any]) -> dict[str, list[Field]]:
    return grouped((field.group, field) for field in fields_of(kind))


def _paths(value: Any) -> Iterator[Path]:
    yield from (entry for entry in _each(value) if isinstance(entry, Path))


def _each(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


@cache
def adapter(hint: Any) -> TypeAdapter[Any]:
    """Return pydantic's converter and checker for values of a type."""
    from pydantic import TypeAdapter

    return TypeAdapter(hint)


_EXPECTED = {
    "int_type": "a whole number, such as 10, without quotes",
    "int_from_float": "a whole number, such as 10",
    "int_parsing": "a whole number, such as 10",
    "float_type": "a number, such as 0.5, without quotes",
    "float_parsing": "a number, such as 0.5",
    "bool_type": "true or false, without quotes",
    "string_type": "a text in quotes",
    "path_type": "the name of a file, in quotes",
    "tuple_type": 'a list, such as ["a", "b"]',
    "list_type": 'a list, such as ["a", "b"]',
    "none_required": "nothing",
}


def in_words(detail: ErrorDetails) -> str:
    """Return a message about an invalid value, without the terms of pydantic."""
    value, kind, context = detail["input"], detail["type"], detail.get("ctx", {})
    if isinstance(context.get("error"), ValueError | ContstimError):
        return str(context["error"])
    if kind == "missing":
        return "is missing."
    if kind in ("literal_error", "enum"):
        return f"{value!r} is not one of {context['expected']}."
    if kind in ("too_long", "too_short"):
        return f"{value!r} has the wrong length: expected {context.get('max_length')} values."
    if kind in _EXPECTED:
        return f"{value!r} is not {_EXPECTED[kind]}."
    return f"{value!r}: {detail['msg']}."
