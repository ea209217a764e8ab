"""Commands made from values: options from the fields of settings, a page from a docstring."""

from __future__ import annotations

import re
from dataclasses import fields
from inspect import Parameter, Signature, cleandoc, getdoc
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer

from contstim.options import Help

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

_SECTION = re.compile(r"\n\n(Args|Returns|Raises|Yields|Attributes):\n")


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
        text = Help(texts[field.name]) if texts and field.name in texts else None
        if get_origin(annotation) is Annotated:
            annotation, *more = get_args(annotation)
            text = next((note for note in more if isinstance(note, Help)), text)
        if text is None or field.name in leave_out:
            continue
        # Of a dataclass itself, a field without a default has no value and must be given.
        default = getattr(settings, field.name, Parameter.empty)
        if get_origin(annotation) is tuple:  # Typer repeats options that are lists
            each: Any = get_args(annotation)[0]
            annotation, default = list[each] | None, default or None
        flags = [text.flag] if text.flag else []
        chosen: Any = Annotated
        typed = chosen[annotation, typer.Option(*flags, help=text.text, min=text.at_least)]
        yield option(field.name, typed, default)


def settings_from(kind: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of those fields that were asked for, as the dataclass takes them."""
    types = get_type_hints(kind)
    values = {field.name: given[field.name] for field in fields(kind) if field.name in given}
    return {
        name: tuple(value or ()) if get_origin(types[name]) is tuple else value
        for name, value in values.items()
    }


def page_of(function: Callable[..., Any]) -> str:
    """What the docstring of a function says before it tells of arguments and errors."""
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
