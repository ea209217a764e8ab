"""How functions become commands: the docstring is the help page, the parameters are the options.

Options that several commands share stand in a frozen dataclass, a group of options: a parameter
annotated with it stands for one option a field, and the function gets the filled dataclass. So

    def score(*, model: Model, loading: Loading, quiet: Quiet = False) -> None: ...

has the options --model, --prompt, --device, --dtype, --trust-remote-code and --quiet.
"""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, get_type_hints

import typer
from typer.core import TyperCommand

from contstim.cli.fields import as_command, option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


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
                command = command_of(function, name)
                return command.make_context(info_name, args, parent, **extra)

        self.command(name, cls=Deferred, help=function.__doc__)(lambda: None)


def command_of(function: Callable[..., None], name: str) -> Any:
    """The command that typer makes of a function, with the options of its groups."""
    program = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown"
    )
    program.command(name)(_with_groups_written_out(function))
    return typer.main.get_command(program)


def _with_groups_written_out(function: Callable[..., None]) -> Callable[..., None]:
    """The same function with a keyword for each field of its groups of options."""
    types = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in types.items() if is_dataclass(kind)}
    parameters: list[Parameter] = []
    for parameter in signature(function).parameters.values():
        if parameter.name in groups:
            parameters += _options_of(groups[parameter.name])
        else:
            annotated = parameter.replace(annotation=types[parameter.name])
            parameters.append(annotated.replace(kind=Parameter.KEYWORD_ONLY))

    def command(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        function(**given)

    return as_command(command, parameters, function.__doc__ or "")


def _options_of(group: Any) -> Iterator[Parameter]:
    types = get_type_hints(group, include_extras=True)
    for field in fields(group):
        default = Parameter.empty if field.default is MISSING else field.default
        yield option(field.name, types[field.name], default)
