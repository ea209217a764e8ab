"""Commands of the program, made when they are named: of steps, and of functions.

A step's docstring is the help page, its fields are the options (`contstim.steps.step`). A command
that is no step, such as `contstim run`, is a function whose parameters are annotated for Typer.
"""

from __future__ import annotations

import ast
import re
import shlex
import sys
from dataclasses import MISSING, replace
from functools import cache, partial
from importlib.util import find_spec
from inspect import Parameter, Signature, cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from contstim.cli.output import (
    INCOMPLETE,
    ProgressBars,
    Quiet,
    print_rows,
    print_sentences,
    remark,
    warn,
)
from contstim.errors import InputError
from contstim.options import Contexts, Models, Reads
from contstim.steps import found
from contstim.steps.step import ChangedSentences, Field, Step, fields_of, perform
from contstim.wording import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from contstim.steps.step import Outcome

Targets: TypeAlias = "Mapping[str, str | TyperGroup | Callable[[], Any]]"

FURTHER = {"review": ("contstim.cli.serving:REVIEW_OPTIONS", "contstim.cli.serving:review")}
"""Options that the command of a step has further, and a function that is given the step and them,
and is true where it has done all that was asked for; both as `module:name`."""

GROUPS: dict[str, Any] = {
    "no_args_is_help": True,
    "rich_markup_mode": "markdown",
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
"""What all groups have in common."""

_FIRST = 5  # options that help shows first
_NAME = re.compile(r"`([a-z][a-z0-9_]*)`")


def deferred(name: str, page: str, make: Callable[[], Any]) -> Any:
    """Stand-in for a command until it is called; lists need its name and help only."""
    # The first clause, where it fits a line of the list
    short = re.match(r".{1,62}?(?=[.,:;](?:\s|$))", page.partition("\n\n")[0])
    text = short and short[0]
    command: Any = TyperCommand(name, callback=lambda: None, help=cleandoc(page), short_help=text)
    command.make_context = lambda *given, **more: make().make_context(*given, **more)
    return command


class CommandGroup(TyperGroup):
    """Commands under one word, such as `contstim train`; none is imported before it is named.

    Args:
        targets: where each command is, by name: `module:name` of a step or a function; another
            group; or a function that gives a step, or None where there is no such command. Or a
            function that finds all this when it is needed. By default those of the program.
        about: as for Typer's groups.
    """

    def __init__(
        self, targets: Targets | Callable[[], Targets] | None = None, **about: Any
    ) -> None:
        super().__init__(**about)
        self._targets = targets

    @property
    def targets(self) -> Targets:
        """Where each command is, by name."""
        targets = self._targets or found("contstim.cli.program:TARGETS")
        return targets() if callable(targets) else targets

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the commands."""
        del ctx
        there = str | TyperGroup
        return [n for n, target in self.targets.items() if isinstance(target, there) or target()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name; None where there is none."""
        del ctx
        target = self.targets.get(cmd_name)
        if isinstance(target, str):
            return deferred(cmd_name, _page(target), lambda: _command(found(target), cmd_name))
        if target is None or isinstance(target, TyperGroup):
            return target
        step = target()
        return step and deferred(cmd_name, step.__doc__ or "", lambda: _command(step, cmd_name))


def group(name: str, summary: str, targets: Targets | Callable[[], Targets]) -> CommandGroup:
    """A group of commands; that word alone lists them."""
    return CommandGroup(targets, name=name, help=summary, short_help=summary[:-1], **GROUPS)


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
    return (command_of_step if isinstance(target, type) else command_of)(target, name)


def command_of(function: Callable[..., None], name: str) -> Any:
    """The command that Typer makes of a function."""
    program = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown"
    )
    program.command(name)(function)
    return typer.main.get_command(program)


def command_of_step(step: type[Step[Any]], name: str) -> Any:
    """The command of a step, with an option for each field, and those that it has further."""
    further, instead = map(found, FURTHER[step.name]) if step.name in FURTHER else ((), None)

    def command(*, quiet: bool, **given: Any) -> None:
        if given.pop("prompt", None) is not None:
            raise InputError(
                "--prompt must be replaced by --context NAME=TEXT, which is for one model."
            )
        more = {option.name: given.pop(option.name) for option in further}
        # Typer repeats options that are lists, and gives None or nothing where none was given
        values = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in given.items()
            if value is not None
        }
        try:
            made = step.of(values)
            if instead and instead(made, quiet=quiet, **more):
                return
            outcome = perform(made, ProgressBars(quiet=quiet, named=partial(as_flags, step=step)))
        except InputError as error:
            raise type(error)(as_flags(str(error), step)) from None
        except KeyboardInterrupt:
            if step.kept:
                command = shlex.join(["contstim", *sys.argv[1:]])
                warn(f"Stopped. {step.kept} The same command goes on:\n  {command}")
            raise
        _show(outcome, made.record_path(), quiet=quiet)

    options = [*map(option, _most_used_first(step)), *further, parameter("quiet", Quiet, False)]
    if any(isinstance(field.note, Contexts) for field in fields_of(step)):
        options.append(parameter("prompt", Annotated[str | None, typer.Option(hidden=True)], None))
    command.__signature__ = Signature(options)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in options}
    command.__doc__ = cleandoc(step.__doc__ or "")
    return command_of(command, name)


def _most_used_first(step: type[Step[Any]]) -> Iterator[Field]:
    """The fields: those that must be given, models, and the rest; of some, help is in a panel."""
    own = [field for field in fields_of(step) if not field.panel]
    own.sort(key=lambda field: (field.default is not MISSING, not isinstance(field.note, Models)))
    yield from own[:_FIRST]
    for field in own[_FIRST:]:
        yield replace(field, panel="Further options")
    yield from (field for field in fields_of(step) if field.panel)


def option(field: Field) -> Parameter:
    """An option or argument as Typer wants it."""
    note, default = field.note, field.default
    kind: Any = get_args(field.hint)[0]
    metavar, after = note.metavar, note.range
    if get_origin(kind) is tuple:  # Typer repeats options that are lists
        after += " Repeatable."
        each: Any = get_args(kind)[0]
        kind, default = (list[each], default) if default is MISSING else (list[each] | None, None)
    elif number := next((each for each in (int, float) if each in (kind, *get_args(kind))), None):
        # Taken as text, so that what is no number is told as everywhere
        metavar = metavar or f"<{number.__name__}>"
        kind, default = str | None, default if default in (None, MISSING) else str(default)
    if isinstance(note, Reads) and note.argument:
        typed: Any = typer.Argument(help=note.text, metavar=metavar or None)
    else:
        # A yes that is no by default needs no word for no
        plain = kind is bool and default is False
        flags = [note.flag or dashed(field.name)] if note.flag or plain else []
        typed = typer.Option(
            *flags,
            help=note.text + after,
            metavar=metavar or None,
            rich_help_panel=field.panel or None,
        )
    # mypy takes no annotation that is computed
    chosen: Any = Annotated
    return parameter(field.name, chosen[kind, typed], default)


def parameter(name: str, annotation: object, default: object = MISSING) -> Parameter:
    """A parameter of a function that Typer makes a command of."""
    empty = Parameter.empty if default is MISSING else default
    return Parameter(name, Parameter.KEYWORD_ONLY, default=empty, annotation=annotation)


def _show(outcome: Outcome[Any], record: Path | None, *, quiet: bool) -> None:
    """Print a step's result, name the page beside its record, and end the status that it means."""
    for part in outcome.shown:
        if isinstance(part, str):
            print(printable(part))
        elif isinstance(part, ChangedSentences):
            print_sentences(part)
        else:
            print_rows(part.header, part.rows, texts=part.texts)
    page = record.with_name("report.html") if record else None
    if page and page.is_file():
        remark(f"Everything is in {page.parent}/; open {page} in a browser.", quiet=quiet)
    # After everything is written and printed: the status is for scripts
    if not (outcome.holds and outcome.complete):
        raise typer.Exit(INCOMPLETE if outcome.holds else 1)


def dashed(name: str) -> str:
    """The option of a field."""
    return f"--{name.replace('_', '-')}"


def as_flags(message: str, step: type[Step[Any]]) -> str:
    """A message with the fields that it names, between backticks, as options."""
    flags = {each.name: each.note.flag or dashed(each.name) for each in fields_of(step)}
    return _NAME.sub(lambda match: flags.get(match[1], match[0]), message)
