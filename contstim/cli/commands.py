"""Commands of the program, made when they are named: of steps, and of functions.

A step's docstring is the help page, its fields are the options (`contstim.steps.step`). A command
that is no step, such as `contstim run`, is a function whose parameters are annotated for Typer.
"""

from __future__ import annotations

import ast
import re
import shlex
import sys
from dataclasses import MISSING, dataclass, replace
from functools import cache, partial
from importlib.util import find_spec
from inspect import Parameter, Signature, cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from contstim.cli.output import Quiet
from contstim.errors import InputError
from contstim.options import Models, Reads
from contstim.steps import found
from contstim.steps.step import Field, Step, fields_of, perform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_FIRST = 5  # options that help shows first
_NAME = re.compile(r"`([a-z][a-z0-9_]*)`")


class Deferred(TyperCommand):
    """Stand-in for a command until it is called; lists need its name and help only."""

    def __init__(self, name: str, page: str, make: Callable[[], Any]) -> None:
        # The first clause, where it fits a line of the list
        short = re.match(r".{1,62}?(?=[.,:;](?:\s|$))", page.partition("\n\n")[0])
        text = short and short[0]
        super().__init__(name, callback=lambda: None, help=cleandoc(page), short_help=text)
        self._make = make

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Context of the command itself, which is made now."""
        return self._make().make_context(info_name, args, parent, **extra)


@dataclass(frozen=True)
class StepCommand:
    """Command of a step that does something more than the step.

    Attributes:
        step: where the step is, whose docstring is the help page.
        further: where the options that the step does not have are.
        run: where the function is that is given the step, whether to be quiet, and those options.
    """

    step: str
    further: str
    run: str


class CommandGroup(TyperGroup):
    """Commands under one word, such as `contstim train`; none is imported before it is named."""

    def targets(self) -> Mapping[str, Any]:
        """Where each command is, by name.

        `module:name` of a step or a function, or of such things by name; a `StepCommand`; another
        group; or a function that gives a step, or None where there is no such command.
        """
        raise NotImplementedError

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the commands."""
        del ctx
        return [
            name
            for name, target in self.targets().items()
            if isinstance(target, str | StepCommand | typer.Typer) or target()
        ]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name; None where there is none."""
        del ctx
        target = self.targets().get(cmd_name)
        if isinstance(target, str):
            return Deferred(cmd_name, _page(target), lambda: _command(found(target), cmd_name))
        if isinstance(target, StepCommand):
            return Deferred(cmd_name, _page(target.step), lambda: _command(target, cmd_name))
        if isinstance(target, typer.Typer):
            command = typer.main.get_command(target)
            command.name, command.short_help = cmd_name, (command.help or "").rstrip(".")
            return command
        step = target and target()
        return step and Deferred(cmd_name, step.__doc__ or "", lambda: _command(step, cmd_name))


def group(
    summary: str, targets: Mapping[str, Any] | Callable[[], Mapping[str, Any]]
) -> typer.Typer:
    """A group of commands; that word alone lists them.

    Args:
        summary: help of the group.
        targets: see `CommandGroup.targets`, or a function that finds them when they are needed.
    """

    class Group(CommandGroup):
        def targets(self) -> Mapping[str, Any]:
            return targets() if callable(targets) else targets

    app = typer.Typer(
        cls=Group,
        help=summary,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(lambda: None)
    return app


def _page(target: str) -> str:
    """Docstring of a step or a function, read without importing what it needs."""
    module, _, name = target.partition(":")
    return _docstrings(module).get(name) or found(target).__doc__ or ""


@cache
def _docstrings(module: str) -> dict[str, str]:
    """Docstrings of the classes and functions of a module."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return {}
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    own = (node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef))
    return {node.name: ast.get_docstring(node) or "" for node in own}


def _command(target: Any, name: str) -> Any:
    if isinstance(target, StepCommand):
        return command_of_step(found(target.step), name, found(target.further), found(target.run))
    return (command_of_step if isinstance(target, type) else command_of)(target, name)


def command_of(function: Callable[..., None], name: str) -> Any:
    """The command that Typer makes of a function."""
    program = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown"
    )
    program.command(name)(function)
    return typer.main.get_command(program)


def command_of_step(
    step: type[Step[Any]],
    name: str,
    further: tuple[Parameter, ...] = (),
    run: Callable[..., None] | None = None,
) -> Any:
    """The command of a step, with an option for each field."""

    def command(**given: Any) -> None:
        quiet = given.pop("quiet")
        # Typer repeats options that are lists, and gives None or nothing where none was given
        values = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in given.items()
            if value is not None
        }
        more = {each.name: values.pop(each.name) for each in further}
        (run or run_step)(made(step, values), quiet=quiet, **more)

    options = [*(option(each) for each in _most_used_first(step)), *further]
    options.append(Parameter("quiet", Parameter.KEYWORD_ONLY, default=False, annotation=Quiet))
    return command_of(as_command(command, options, step.__doc__ or ""), name)


def _most_used_first(step: type[Step[Any]]) -> Iterator[Field]:
    """The fields: those that must be given, models, and the rest; of some, help is in a panel."""
    own = [field for field in fields_of(step) if not field.panel]
    own.sort(key=lambda field: (field.default is not MISSING, not isinstance(field.note, Models)))
    yield from own[:_FIRST]
    for field in own[_FIRST:]:
        yield replace(field, panel="Further options")
    yield from (field for field in fields_of(step) if field.panel)


def as_command(
    function: Callable[..., None], options: Iterable[Parameter], page: str
) -> Callable[..., None]:
    """The function with the signature and the docstring that Typer makes a command of."""
    options = list(options)
    function.__signature__ = Signature(options)  # type: ignore[attr-defined]
    function.__annotations__ = {each.name: each.annotation for each in options}
    function.__doc__ = cleandoc(page)
    return function


def option(field: Field) -> Parameter:
    """An option or argument as Typer wants it."""
    note, default = field.note, field.default
    kind: Any = get_args(field.hint)[0]
    if get_origin(kind) is tuple:  # Typer repeats options that are lists
        each: Any = get_args(kind)[0]
        kind, default = (list[each], default) if default is MISSING else (list[each] | None, None)
    if isinstance(note, Reads) and note.argument:
        typed: Any = typer.Argument(help=note.text, metavar=note.metavar or None)
    else:
        # A yes that is no by default needs no word for no
        plain = kind is bool and default is False
        flags = [note.flag or dashed(field.name)] if note.flag or plain else []
        typed = typer.Option(
            *flags,
            help=f"{note.text}{note.range}",
            metavar=note.metavar or None,
            rich_help_panel=field.panel or None,
        )
    # mypy takes no annotation that is computed
    chosen: Any = Annotated
    empty = Parameter.empty if default is MISSING else default
    annotation = chosen[kind, typed]
    return Parameter(field.name, Parameter.KEYWORD_ONLY, default=empty, annotation=annotation)


def run_step(step: Step[Any], *, quiet: bool) -> None:
    """Do a step, show its result, and say after an interrupt what is kept and what goes on."""
    from contstim.cli.output import INCOMPLETE, ProgressBars, warn
    from contstim.cli.results import show_result

    try:
        reporter = ProgressBars(quiet=quiet, named=partial(as_flags, step=type(step)))
        value, complete = perform(step, reporter)
    except InputError as error:
        raise type(error)(as_flags(str(error), type(step))) from None
    except KeyboardInterrupt:
        if step.kept:
            command = shlex.join(["contstim", *sys.argv[1:]])
            warn(f"Stopped. {step.kept} The same command goes on:\n  {command}")
        raise
    show_result(step, value, quiet=quiet)
    if not complete:
        raise typer.Exit(INCOMPLETE)


def made(step: type[Step[Any]], values: Mapping[str, Any]) -> Step[Any]:
    """A step with values of options, whose errors name options."""
    try:
        return step.of(values)
    except InputError as error:
        raise type(error)(as_flags(str(error), step)) from None


def dashed(name: str) -> str:
    """The option of a field."""
    return f"--{name.replace('_', '-')}"


def as_flags(message: str, step: type[Step[Any]]) -> str:
    """A message with the fields that it names, between backticks, as options."""
    flags = {each.name: each.note.flag or dashed(each.name) for each in fields_of(step)}
    return _NAME.sub(lambda match: flags.get(match[1], match[0]), message)
