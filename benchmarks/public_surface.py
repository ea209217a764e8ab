"""Signatures and options of commands that a checkout offers."""

from __future__ import annotations

import inspect
from typing import Any


def signatures() -> dict[str, Any]:
    """Parameters of everything public, and of its public methods."""
    import contstim

    return {name: signature(getattr(contstim, name)) for name in contstim.__all__}


def signature(thing: Any) -> Any:
    if inspect.ismodule(thing):
        return {name: signature(getattr(thing, name)) for name in getattr(thing, "__all__", ())}
    if not callable(thing):
        return sorted(thing) if isinstance(thing, dict) else type(thing).__name__
    try:
        parameters = [*inspect.signature(thing).parameters.values()]
    except ValueError:
        parameters = []
    found: dict[str, Any] = {"()": [written(each) for each in parameters]}
    if inspect.isclass(thing):
        found["is"] = [kind.__name__ for kind in thing.__mro__[1:-1]]
        for name, member in inspect.getmembers_static(thing):
            if not name.startswith("_"):
                inner = inspect.unwrap(getattr(member, "__func__", member))
                found[name] = signature(inner) if inspect.isfunction(inner) else "attribute"
    return found


def written(parameter: inspect.Parameter) -> str:
    # Objects of the package, functions and sets are told by their kind, which has no address
    default = parameter.default
    plain = (str, int, float, tuple, type(None), type)
    if default is parameter.empty or isinstance(default, plain):
        return str(parameter)
    return f"{parameter.replace(default=parameter.empty)} = {type(default).__name__}"


def options() -> dict[str, Any]:
    """What a parser of the command line takes, command by command."""
    import typer

    from contstim.cli import app

    program = app if hasattr(app, "make_context") else typer.main.get_command(app)
    return dict(commands_of(program, "contstim"))


def commands_of(command: Any, name: str) -> Any:
    # Making a context has a command that stands in for another put it in its place
    context = command.make_context(name, [], resilient_parsing=True)
    command = context.command
    yield name, {each.name: parameter_facts(each) for each in command.get_params(context)}
    for inner in command.list_commands(context) if hasattr(command, "list_commands") else ():
        yield from commands_of(command.get_command(context, inner), f"{name} {inner}")


def parameter_facts(parameter: Any) -> dict[str, Any]:
    kind = getattr(parameter, "type_descriptor", None)
    if kind is None:  # as click itself has it
        kind, limits = parameter.type.name, parameter.type
        default = None if "UNSET" in repr(parameter.default).upper() else parameter.default
    else:
        kind, limits, default = kind.annotation, parameter, parameter.default
    return {
        "flags": sorted([*parameter.opts, *parameter.secondary_opts]),
        "type": inspect.formatannotation(kind),
        "range": [getattr(limits, "min", None), getattr(limits, "max", None)],
        "default": str(default),
        "required": parameter.required,
        "values": parameter.nargs if parameter.nargs != 1 else bool(parameter.multiple),
    }
