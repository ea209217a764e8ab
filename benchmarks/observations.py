"""Record signatures, options and files of a checkout, and compare two records.

Parts of files that differ between repeated runs, such as dates, are masked.
"""

from __future__ import annotations

import difflib
import hashlib
import inspect
import json
import re
from pathlib import Path
from typing import Any

MOST_LINES, MOST_JSON = 400, 200_000
TABLES = (".csv", ".md", ".txt", ".toml", ".tsv", ".R", ".yaml")
COPIES = "archived-results"  # folder of an archive with copies of the results next to it
UNSTABLE = (".sqlite", ".lock")
MASKS = {
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00| UTC)?)?": "DATE",
    # Not a number, whose decimals are compared
    r"(sha256:)?\b(?!\d+\b)[0-9a-f]{16,64}\b": "CHECKSUM",
    r"DATE</td>\s*<td[^>]*>[\d.,]+": "DATE</td><td>AMOUNT",  # duration of a stage
    r"\d+ % in (networks|everything)": "SHARE in networks",
    r"\d[\d,.]* (s|ms|B|kB|MB)\b": "AMOUNT",
}
MASKED_KEYS = re.compile(r"date|environment|size|sha256|(\w+_)?seconds|\w+_per_second")
PROGRESS = re.compile(r"%\||of [\d,]+ \(\d+ %\)")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def files_of(folder: Path) -> dict[str, Any]:
    """Return the path of each file in a folder → its masked content."""
    return {
        mask_text(path.relative_to(folder).as_posix(), folder): content_of(path, folder)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix not in UNSTABLE and COPIES not in path.parts
    }


def content_of(path: Path, folder: Path) -> Any:
    """Return JSON as a value, texts as lines, pages as lines and checksum, others as checksum."""
    content = path.read_bytes()
    if path.suffix in (".json", ".jsonld") and len(content) < MOST_JSON:
        return mask_json(json.loads(content), folder)
    if path.suffix in TABLES or path.suffix == ".arpa":
        return shorten_lines(mask_text(content.decode(), folder).splitlines())
    if path.suffix in (".html", ".js", ".css", ".svg"):
        text = mask_text(content.decode(), folder)
        visible = re.sub(r"(?s)<(script|style|svg)\b.*?</\1>", "", text)
        lines = [line.strip() for line in re.sub(r"<[^>]*>", "\n", visible).splitlines()]
        text_lines = (
            shorten_lines([line for line in lines if line]) if path.suffix == ".html" else []
        )
        return {"checksum": checksum(text.encode()), "text": text_lines}
    return checksum(content)


def shorten_lines(lines: list[str]) -> list[str]:
    tail = lines[MOST_LINES:]
    return lines[:MOST_LINES] + ([f"rest: {checksum(chr(10).join(tail).encode())}"] if tail else [])


def checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:20]


def mask_text(text: str, folder: Path) -> str:
    text = text.replace(str(folder.parent), "FOLDER")
    for pattern, name in MASKS.items():
        text = re.sub(pattern, name, text)
    return text


def mask_lines(printed: str, folder: Path) -> list[str]:
    """Return the printed lines of a command, without frames of tables and progress bars."""
    lines = [re.sub(r"[\s━┏┳┓┡╇┩│┃└┴┘─]+", " ", line) for line in printed.splitlines()]
    return [
        mask_text(line.strip(), folder)
        for line in lines
        if line.strip() and not PROGRESS.search(line)
    ]


def mask_json(value: Any, folder: Path, key: str = "") -> Any:
    if isinstance(value, dict):
        inner = {"versions": "VERSION"}.get(key)
        return {
            mask_text(name, folder): inner or mask_json(item, folder, name)
            for name, item in value.items()
        }
    if MASKED_KEYS.fullmatch(key):
        return "MASKED"
    if isinstance(value, list):
        return [mask_json(item, folder) for item in value]
    return mask_text(value, folder) if isinstance(value, str) else value


def differences(old: Any, new: Any, path: str = "") -> Any:
    """Yield a line for each difference between facts."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            if key not in new or key not in old:
                yield f"{path}/{key}: {'only new' if key in new else 'gone'}"
            else:
                yield from differences(old[key], new[key], f"{path}/{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, pair in enumerate(zip(old, new, strict=True)):
            yield from differences(*pair, f"{path}/{number}")
    elif isinstance(old, list) and isinstance(new, list):
        old_lines, new_lines = (
            [json.dumps(entry, ensure_ascii=False) for entry in x] for x in (old, new)
        )
        changes = [line for line in difflib.ndiff(old_lines, new_lines) if line[0] in "+-"]
        yield f"{path}: {len(old)} → {len(new)} entries: " + "; ".join(changes[:8])
    elif not is_same(old, new):
        yield f"{path}: {old!r} → {new!r}"


def is_same(old: Any, new: Any) -> bool:
    """Return True if values are equal; numbers, also in texts, may differ by 1e-6."""
    if type(old) is not type(new) or isinstance(old, bool):
        return bool(old == new and isinstance(old, bool) == isinstance(new, bool))
    if isinstance(old, float):
        return bool(old == new or abs(old - new) <= 1e-6 * max(1, abs(old)))
    if not isinstance(old, str) or old == new:
        return bool(old == new)
    if NUMBER.sub("#", old) != NUMBER.sub("#", new):
        return False
    pairs = zip(NUMBER.findall(old), NUMBER.findall(new), strict=True)
    return all(a == b or ("." in a + b and is_same(float(a), float(b))) for a, b in pairs)


def signatures() -> dict[str, Any]:
    """Return the parameters of all public names and of their public methods."""
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
    facts: dict[str, Any] = {"()": [parameter_text(parameter) for parameter in parameters]}
    if inspect.isclass(thing):
        facts["is"] = [kind.__name__ for kind in thing.__mro__[1:-1]]
        for name, member in inspect.getmembers_static(thing):
            if not name.startswith("_"):
                function = inspect.unwrap(getattr(member, "__func__", member))
                facts[name] = signature(function) if inspect.isfunction(function) else "attribute"
    return facts


def parameter_text(parameter: inspect.Parameter) -> str:
    # For other defaults, only the type is recorded, because texts of objects contain addresses
    default = parameter.default
    plain_types = (str, int, float, tuple, type(None), type)
    if default is parameter.empty or isinstance(default, plain_types):
        return str(parameter)
    return f"{parameter.replace(default=parameter.empty)} = {type(default).__name__}"


def options() -> dict[str, Any]:
    """Return command → its parameters."""
    import typer

    from contstim.cli.program import app

    program = app if hasattr(app, "make_context") else typer.main.get_command(app)
    return dict(commands_of(program, "contstim"))


def commands_of(command: Any, name: str) -> Any:
    # A context replaces a placeholder by the real command
    context = command.make_context(name, [], resilient_parsing=True)
    command = context.command
    yield (name, {p.name: parameter_facts(p) for p in command.get_params(context)})
    for subcommand in command.list_commands(context) if hasattr(command, "list_commands") else ():
        yield from commands_of(command.get_command(context, subcommand), f"{name} {subcommand}")


def parameter_facts(parameter: Any) -> dict[str, Any]:
    kind = getattr(parameter, "type_descriptor", None)
    if kind is None:  # a parameter of click
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
