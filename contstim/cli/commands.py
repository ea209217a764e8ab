"""Commands from functions: the docstring is the help page, the parameters are the options.

What may be chosen about a step stands in a frozen dataclass, a group of options: a parameter
annotated with it stands for one option a field, with the field's `Help`, and the function gets the
filled dataclass. So

    def score(*, model: Model, loading: Loading, quiet: Quiet = False) -> None: ...

has the options --model, --prompt, --device, --dtype, --trust-remote-code and --quiet. A parameter
that has a `Help` itself is one option.

Commands of platforms and of networks have no parameters of their own: their options are the fields
of settings, values of a room below that know nothing of Typer (`field_options`).
"""

from __future__ import annotations

import re
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, Signature, cleandoc, getdoc, signature
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from contstim.options import Help

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

_SECTION = re.compile(r"\n\n(Args|Returns|Raises|Yields|Attributes):\n")


class CommandGroup(typer.Typer):
    """Commands under one word, such as `contstim train`; that word alone lists them."""

    def __init__(self, summary: str, **settings: Any) -> None:
        super().__init__(
            help=summary, no_args_is_help=True, pretty_exceptions_enable=False, **settings
        )
        self.callback()(lambda: None)  # without it typer takes a group of one for the command

    def add(self, name: str, function: Callable[..., None]) -> None:
        """Make a function a command of this group.

        Typer would read the options of all commands at every start, a third of the time that
        `contstim --help` takes. Lists of commands need names and summaries only, so a command
        stands in for itself until it is called.
        """

        class Deferred(TyperCommand):
            def make_context(
                self,
                info_name: str | None,
                args: list[str],
                parent: Any = None,
                **extra: Any,
            ) -> Any:
                # Only here, when the command was named, are its annotations read
                command = command_of(function, name)
                return command.make_context(info_name, args, parent, **extra)

        self.command(name, cls=Deferred, help=function.__doc__)(lambda: None)


def command_of(function: Callable[..., None], name: str) -> Any:
    """The command that typer makes of a function, with an option for each field of its groups."""
    types = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in types.items() if is_dataclass(kind)}
    options: list[Parameter] = []
    for parameter in signature(function).parameters.values():
        if parameter.name in groups:
            # Its fields have a help or are annotated for typer; without a default they are needed.
            group = groups[parameter.name]
            of_fields = get_type_hints(group, include_extras=True)
            with_help = {each.name: each for each in field_options(group)}
            for field in fields(group):
                default = Parameter.empty if field.default is MISSING else field.default
                typed = option(field.name, of_fields[field.name], default)
                options.append(with_help.get(field.name, typed))
        else:
            # Keywords only: fields of groups that must be given may follow options with defaults
            options.append(typed_option(parameter.name, types[parameter.name], parameter.default))

    def command(**given: Any) -> None:
        # What typer read under the names of fields becomes the groups that the function asks for.
        for name, group in groups.items():
            given[name] = group(**settings_from(group, given))
            for field in fields(group):
                del given[field.name]
        function(**given)

    program = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown"
    )
    program.command(name)(as_command(command, options, function.__doc__ or ""))
    return typer.main.get_command(program)


def option(name: str, annotation: Any, default: Any = Parameter.empty) -> Parameter:
    """An option (or argument) of a command, annotated as Typer wants it; needed without default."""
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def field_options(
    settings: Any,
    texts: Mapping[str, str] | None = None,
    *,
    leave_out: Collection[str] = (),
) -> Iterator[Parameter]:
    """An option for each field of settings that has a help.

    Args:
        settings: a dataclass, or a value of one, whose fields are then the defaults.
        texts: what the help says of fields that are not annotated with a `Help`.
        leave_out: names of fields that are not asked for.
    """
    kind = settings if isinstance(settings, type) else type(settings)
    types = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        annotation: Any = types[field.name]
        if texts and field.name in texts:
            # A further note: what the field says of itself comes before it
            annotation = Annotated[annotation, Help(texts[field.name])]
        if help_of(annotation) is None or field.name in leave_out:
            continue
        # Of a dataclass itself, a field without a default has no value and must be given.
        default = getattr(settings, field.name, Parameter.empty)
        yield typed_option(field.name, annotation, default)


def typed_option(name: str, annotation: Any, default: Any) -> Parameter:
    """An option as Typer wants it, of an annotation with a `Help` or with what Typer knows."""
    text = help_of(annotation)
    if text is None:
        return option(name, annotation, default)
    kind: Any = get_args(annotation)[0]
    if get_origin(kind) is tuple:  # Typer repeats options that are lists
        each: Any = get_args(kind)[0]
        kind, default = list[each] | None, default or None
    flags = [text.flag] if text.flag else []
    limits: Any = {"min": text.at_least, "max": text.at_most}
    typed = typer.Option(*flags, help=text.text, metavar=text.metavar or None, **limits)
    # mypy takes no annotation that is computed
    chosen: Any = Annotated
    return option(name, chosen[kind, typed], default)


def help_of(annotation: Any) -> Help | None:
    """The first `Help` of an annotation."""
    notes = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return next((note for note in notes if isinstance(note, Help)), None)


def settings_from(kind: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of those fields that were asked for, as the dataclass takes them."""
    types = get_type_hints(kind)
    values = {field.name: given[field.name] for field in fields(kind) if field.name in given}
    return {
        name: tuple(value or ()) if get_origin(types[name]) is tuple else value
        for name, value in values.items()
    }


def page_of(function: Callable[..., Any]) -> str:
    """Docstring of a function up to its sections about arguments and errors."""
    return _SECTION.split(getdoc(function) or "", maxsplit=1)[0]


def as_command(
    function: Callable[..., None], options: Iterable[Parameter], page: str
) -> Callable[..., None]:
    """The function with the signature and the docstring that Typer makes a command of."""
    options = list(options)
    function.__signature__ = Signature(options)  # type: ignore[attr-defined]
    function.__annotations__ = {each.name: each.annotation for each in options}
    function.__doc__ = cleandoc(page)
    return function
