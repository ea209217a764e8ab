"""The program and its commands. A command is created only when it is called.

A step is a class for one task of a study, such as scoring sentences. A step's docstring is its help
page, and its fields are its options (`contstim.steps.step`). Other commands, such as `contstim
run`, are functions. Their keyword-only parameters are declared like the fields of steps
(`contstim.options`).
"""

from __future__ import annotations

import ast
import re
import shlex
import sys
from dataclasses import MISSING, replace
from functools import cache, partial
from importlib.util import find_spec
from inspect import Parameter, Signature, cleandoc, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from contstim.cli.output import INCOMPLETE, ProgressBars, Quiet, print_parts, remark, warn
from contstim.errors import InputError
from contstim.options import Models
from contstim.steps import STEPS, import_target, step_named
from contstim.steps.step import Field, Step, arguments_of, fields_of, perform
from contstim.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from contstim.steps.step import Outcome

Targets: TypeAlias = "Mapping[str, str | TyperGroup | Callable[[], Any]]"

FURTHER = {"review": "contstim.cli.serving:review"}
"""Name of a step → function that can replace the run of the step, as `module:name`.

The function receives the step and `quiet`. The function's remaining keyword-only parameters are
further options of the command. If the function returns False, the step runs as usual.
"""

GROUPS: dict[str, Any] = {
    "no_args_is_help": True,
    "rich_markup_mode": "markdown",
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
"""Settings of all groups of commands."""

_N_FIRST = 5  # number of options that the help shows first
_NAME = re.compile(r"`([a-z][a-z0-9_]*)`")


def deferred(name: str, page: str, load: Callable[[], Any]) -> Any:
    """Return a placeholder of a command; the command is created when the placeholder is called.

    A list of commands needs only the name and the help text, `page`. When the command is called,
    `load` returns the step or function of the command.
    """
    # A list of commands shows the first clause of `page` if it fits into a line
    short = re.match(r".{1,62}?(?=[.,:;](?:\s|$))", page.partition("\n\n")[0])
    text = short and short[0]
    command: Any = TyperCommand(name, callback=lambda: None, help=cleandoc(page), short_help=text)
    command.make_context = lambda *args, **kwargs: _make_command(load(), name).make_context(
        *args, **kwargs
    )
    return command


class CommandGroup(TyperGroup):
    """A group of commands, such as `contstim train`, that imports a command when it is called.

    Args:
        targets: mapping of command names to targets, or a function that returns this mapping; by
            default `TARGETS`. A target has one of three forms. It is the text `module:name`, which
            names a step or function. Or it is another group of commands. Or it is a function that
            returns a step, or None if there is no such command.
        about: other arguments of `TyperGroup`.
    """

    def __init__(
        self, targets: Targets | Callable[[], Targets] | None = None, **about: Any
    ) -> None:
        super().__init__(**about)
        self._targets = targets

    @property
    def targets(self) -> Targets:
        """Name of a command → its target."""
        targets = self._targets or TARGETS
        return targets() if callable(targets) else targets

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands."""
        del ctx
        direct = str | TyperGroup
        return [n for n, target in self.targets.items() if isinstance(target, direct) or target()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command with a name, or None."""
        del ctx
        target = self.targets.get(cmd_name)
        if isinstance(target, str):
            return deferred(cmd_name, _read_docstring(target), partial(import_target, target))
        if target is None or isinstance(target, TyperGroup):
            return target
        step = target()
        return step and deferred(cmd_name, step.__doc__ or "", target)


def group(name: str, summary: str, targets: Targets | Callable[[], Targets]) -> CommandGroup:
    """Return a group of commands; without a command, the group prints the list of its commands."""
    return CommandGroup(targets, name=name, help=summary, short_help=summary[:-1], **GROUPS)


def _read_docstring(target: str) -> str:
    """Return the docstring of a step or a function, without an import if possible."""
    module, _, name = target.partition(":")
    return _read_docstrings(module).get(name) or import_target(target).__doc__ or ""


@cache
def _read_docstrings(module: str) -> dict[str, str]:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return {}
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    definitions = (node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef))
    return {node.name: ast.get_docstring(node) or "" for node in definitions}


def _make_command(target: Any, name: str) -> Any:
    return (command_of_step if isinstance(target, type) else command_of)(target, name)


def command_of(function: Callable[..., None], name: str) -> Any:
    """Return the command of a function: an option for each keyword-only parameter.

    If a parameter is a dataclass, the command has an option for each of its fields.
    """
    kind = _options_of(function)
    fields = fields_of(kind)
    has_quiet = "quiet" in signature(function).parameters

    def command(**options: Any) -> None:
        values = {name: value for name, value in options.items() if value is not None}
        try:
            arguments = arguments_of(kind, values)
        except InputError as error:
            raise type(error)(as_flags(str(error), fields)) from None
        if has_quiet:
            arguments["quiet"] = options["quiet"]
        function(**arguments)

    parameters = [*map(option, fields), *([_QUIET] if has_quiet else [])]
    return _typer_command(command, name, function.__doc__, parameters)


def command_of_step(step: type[Step[Any]], name: str) -> Any:
    """Return the command of a step: an option for each field, and further options."""
    instead = import_target(FURTHER[step.name]) if step.name in FURTHER else None
    further = fields_of(_options_of(instead)) if instead else ()
    name_field = partial(as_flags, fields=(*fields_of(step), *further))

    def command(*, quiet: bool, **options: Any) -> None:
        try:
            further_values = {f.name: f.checked(options.pop(f.name)) for f in further}
            # Typer passes None for an option that is not set
            instance = step.of({n: value for n, value in options.items() if value is not None})
            if instead and instead(instance, quiet=quiet, **further_values):
                return
            outcome = perform(instance, ProgressBars(quiet=quiet, name_field=name_field))
        except InputError as error:
            raise type(error)(name_field(str(error))) from None
        except KeyboardInterrupt:
            if step.saved_results:
                rerun = shlex.join(["contstim", *sys.argv[1:]])
                warn(f"Stopped. {step.saved_results} Run the same command to continue:\n  {rerun}")
            raise
        _print_outcome(outcome, instance.record_path(), quiet=quiet)

    parameters = [*map(option, (*_order_fields(step), *further)), _QUIET]
    return _typer_command(command, name, step.__doc__, parameters)


def _options_of(function: Callable[..., Any]) -> type[Any]:
    """Return a dataclass with a field for each keyword-only parameter of a function."""
    from contstim.experiments.platforms.platform import options_of

    return options_of(function)


def _typer_command(
    command: Callable[..., None], name: str, page: str | None, parameters: list[Parameter]
) -> Any:
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    command.__doc__ = cleandoc(page or "")
    program = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown"
    )
    program.command(name)(command)
    return typer.main.get_command(program)


def _order_fields(step: type[Step[Any]]) -> Iterator[Field]:
    """Yield fields in the order of the help page.

    Required fields come first, then models, then all remaining fields without a panel. Fields with
    a panel (a box of options with its own heading) come last.
    """
    main = [field for field in fields_of(step) if not field.panel]
    main.sort(key=lambda field: (field.default is not MISSING, not isinstance(field.note, Models)))
    yield from main[:_N_FIRST]
    for field in main[_N_FIRST:]:
        yield replace(field, panel="Further options")
    yield from (field for field in fields_of(step) if field.panel)


def option(field: Field) -> Parameter:
    """Return a field as an option or argument for Typer."""
    note, default = field.note, field.default
    kind: Any = get_args(field.hint)[0]
    metavar, suffix = note.metavar, note.range
    if get_origin(kind) is tuple:  # Typer needs lists for repeatable options
        suffix += " Repeatable."
        item: Any = get_args(kind)[0]
        kind, default = (list[item], default) if default is MISSING else (list[item] | None, None)
    elif number := next((n for n in (int, float) if n in (kind, *get_args(kind))), None):
        # Typer passes the number as text, so that contstim reports invalid numbers
        metavar = metavar or f"<{number.__name__}>"
        kind, default = str | None, default if default in (None, MISSING) else str(default)
    if note.argument:
        typed: Any = typer.Argument(help=note.text, metavar=metavar or None)
    else:
        # An explicit flag prevents Typer from adding a `--no-` flag
        plain = kind is bool and default is False
        flags = [note.flag or dashed(field.name)] if note.flag or plain else []
        typed = typer.Option(
            *flags,
            help=note.text + suffix,
            metavar=metavar or None,
            rich_help_panel=field.panel or None,
        )
    # mypy does not accept variables as annotations
    annotated: Any = Annotated
    default = Parameter.empty if default is MISSING else default
    return Parameter(
        field.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotated[kind, typed]
    )


_QUIET = Parameter("quiet", Parameter.KEYWORD_ONLY, default=False, annotation=Quiet)


def _print_outcome(outcome: Outcome[Any], record: Path | None, *, quiet: bool) -> None:
    """Print a step's result and the path of its page, and set the exit status."""
    print_parts(outcome.parts)
    page = record.with_name("report.html") if record else None
    if page and page.is_file():
        remark(f"The results are in {page.parent}/; open {page} in a browser.", quiet=quiet)
    if not (outcome.holds and outcome.complete):
        raise typer.Exit(INCOMPLETE if outcome.holds else 1)


def dashed(name: str) -> str:
    """Return the option for a field, such as `--per-pair` for `per_pair`."""
    return f"--{name.replace('_', '-')}"


def as_flags(message: str, fields: Iterable[Field]) -> str:
    """In a message, replace each name of a field between backticks by the option of the field."""
    flags = {field.name: field.note.flag or dashed(field.name) for field in fields}
    return _NAME.sub(lambda match: flags.get(match[1], match[0]), message)


def _platform_targets(word: str) -> dict[str, Any]:
    """Return platform → function that returns the step; `word` is `export` or `import`."""
    from contstim.experiments.platforms.platform import platform_names

    return {name: partial(step_named, f"{word} {name}") for name in platform_names()}


_GROUPS = {  # group of steps -> summary
    "train": "Train a model on a text.",
    "select": "Select the best stimuli, exactly.",
    "evaluate": "Evaluate models without participants, on benchmarks and desired properties.",
    "reproduce": "Analyse published data again, claim by claim.",
    "generate": "Make test sentences from the embedded English.",
}

_EXPORT = "Turn trials into an experiment for participants, or into a public data set."
_IMPORT = "Make responses.csv from the data of a platform."
# Name of a step or group → commands that the help lists after it
_LISTED_AFTER: dict[str, dict[str, Any]] = {
    "select": {"show": "contstim.cli.looking:show"},
    "power": {
        "export": group("export", _EXPORT, partial(_platform_targets, "export")),
        "check": "contstim.cli.looking:check",
        "collect": "contstim.cli.serving:collect",
    },
    "simulate": {"import": group("import", _IMPORT, partial(_platform_targets, "import"))},
}


def _make_targets() -> dict[str, Any]:
    study = ("new", "plan", "run", "status", "verify", "archive")
    targets: dict[str, Any] = {name: f"contstim.cli.study:{name}" for name in study}
    targets["models"] = "contstim.cli.looking:models"
    for word in dict.fromkeys(name.partition(" ")[0] for name in STEPS):
        steps = {n.removeprefix(f"{word} "): STEPS[n] for n in STEPS if n.startswith(f"{word} ")}
        targets[word] = group(word, _GROUPS[word], steps) if steps else STEPS[word]
        targets |= _LISTED_AFTER.get(word, {})
    return targets | {"demo": "contstim.cli.looking:demo"}


TARGETS = _make_targets()

app = typer.Typer(
    cls=CommandGroup,
    pretty_exceptions_enable=False,
    **GROUPS,
)


def _show_version(is_requested: bool) -> None:
    if is_requested:
        print(f"contstim {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Make language models disagree, and let people decide which one is right."""
