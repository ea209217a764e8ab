"""What the reference says of commands, study files and the Python face, read from the code.

Nothing here needs Sphinx, so that tests can ask whether everything has a place and a summary.
"""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass
from importlib import import_module, util
from pathlib import Path
from typing import Any

import contstim

ROOMS = (
    "contstim.english",
    "contstim.english.minimal_pairs",
    "contstim.english.paradigm",
    "contstim.models.checkpoints",
    "contstim.store",
    "contstim.reporting.review",
    "contstim.jobs",
    "contstim.experiments.platforms.jspsych",
    "contstim.experiments.analysis.controls",
    "contstim.testing",
)
"""Folders and files of the package that export names of their own."""


@dataclass(frozen=True)
class Option:
    """An option or argument of a command.

    Attributes:
        name: its first flag, such as `--model`, or the name of an argument.
        form: as it is written, such as `--model [NAME=]MODEL`.
        text: what it does, and its default.
    """

    name: str
    form: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command of the program.

    Attributes:
        name: all its words, such as `contstim train gpt2`.
        summary: the first sentence of its help.
        text: the help without the examples, in Markdown.
        examples: commands as one would type them.
        options: in the order of the help page.
    """

    name: str
    summary: str
    text: str
    examples: tuple[str, ...]
    options: tuple[Option, ...]

    @property
    def anchor(self) -> str:
        """The name under which pages link to it."""
        return self.name.replace(" ", "-")


def commands() -> dict[str, Command]:
    """Every command by its name, in the order of `contstim --help`."""
    import typer

    from contstim.cli.program import app

    described: dict[str, Command] = {}

    def walk(command: Any, words: tuple[str, ...]) -> None:
        # A command reads its options only when it is called (`CommandGroup.add`), and groups of
        # platforms list their commands only when they are asked
        context = command.make_context(words[-1], [], resilient_parsing=True)
        if not hasattr(command, "list_commands"):
            described[" ".join(words)] = _described(" ".join(words), context)
            return
        for name in command.list_commands(context):
            walk(command.get_command(context, name), (*words, name))

    walk(typer.main.get_command(app), ("contstim",))
    return described


def _described(name: str, context: Any) -> Command:
    paragraphs = inspect.cleandoc(context.command.help).split("\n\n")
    examples = [part for part in paragraphs if part.startswith("Example")]
    text = [part for part in paragraphs if part not in examples]
    records = [
        (parameter, parameter.get_help_record(context))
        for parameter in context.command.params
        if not getattr(parameter, "hidden", False)
    ]
    options = [
        Option(max(parameter.opts, key=len), *(part.strip() for part in record))
        for parameter, record in records
        if record is not None
    ]
    return Command(
        name,
        " ".join(text[0].split()),
        "\n\n".join(text),
        tuple(" ".join(part.split(":", 1)[1].split()).strip("`") for part in examples),
        tuple(options),
    )


@dataclass(frozen=True)
class Name:
    """A public name of the package.

    Attributes:
        name: as one imports it, without the module.
        module: where it is imported from; of a value that is neither class nor function, where it
            is bound.
        kind: the directive of autodoc that shows it.
        summary: the first sentence of its docstring; empty if it has none.
    """

    name: str
    module: str
    kind: str
    summary: str


def public_names(module: str = "contstim") -> dict[str, Name]:
    """What a module exports, by name."""
    loaded = import_module(module)
    return {name: _name(name, module, getattr(loaded, name)) for name in loaded.__all__}


def _name(name: str, module: str, value: object) -> Name:
    if inspect.isclass(value) or inspect.isfunction(inspect.unwrap(value)):  # type: ignore[arg-type]
        kind = "autofunction"
        if inspect.isclass(value):
            kind = "autoexception" if issubclass(value, Exception) else "autoclass"
        return Name(name, module, kind, summary_of(inspect.getdoc(value) or ""))
    if inspect.ismodule(value):
        return Name(name, module, "automodule", summary_of(inspect.getdoc(value) or ""))
    # A value has its docstring below it, in the file where it is bound
    home = contstim._modules()[name] if module == "contstim" else module
    return Name(name, home, "autodata", summary_of(_docstring_of_value(name, home)))


def _docstring_of_value(name: str, module: str) -> str:
    file = util.find_spec(module).origin  # type: ignore[union-attr]
    tree = ast.parse(Path(str(file)).read_text(encoding="utf-8"))
    for statement, after in zip(tree.body, tree.body[1:], strict=False):
        bound = statement.targets if isinstance(statement, ast.Assign) else ()
        if isinstance(statement, ast.AnnAssign):
            bound = (statement.target,)
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if is_text and any(getattr(target, "id", "") == name for target in bound):
            return inspect.cleandoc(str(after.value.value))
    # Otherwise it comes from another module of the same room
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and any(a.name == name for a in statement.names):
            return _docstring_of_value(name, str(statement.module))
    return ""


def summary_of(docstring: str) -> str:
    """The first paragraph of a docstring, in one line."""
    return " ".join(docstring.split("\n\n")[0].split())


@dataclass(frozen=True)
class Section:
    """A section of a study file that is a command.

    Attributes:
        name: name in brackets.
        reads: kinds of files that it takes from other sections.
        writes: outputs in the study's results.
    """

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]


def study_sections() -> list[Section]:
    """The sections of a study file that are commands, in the order of `contstim --help`."""
    from contstim.options import Writes
    from contstim.steps import step_named, step_names
    from contstim.steps.step import fields_of

    sections = []
    for command in step_names():
        step = step_named(command)
        if step is not None:
            notes = [field.note for field in fields_of(step)]
            reads = [k for n in notes if not isinstance(n, Writes) for k in n.kinds if k]
            named = [note for note in notes if isinstance(note, Writes) and note.name]
            paths = [path for note in named for path in note.name.split("|")]
            writes = [f"results/{path.replace('{}', command.split()[-1])}" for path in paths]
            name = command.replace(" ", ".").replace("-", "_")
            sections.append(Section(name, tuple(dict.fromkeys(reads)), tuple(writes)))
    return sections


def with_study_sections(page: str) -> str:
    """Text of `reference/study-file.md` with the sections as they are now declared.

    The page is checked in, so that it can be read without a build. Run this file to update it.

    Args:
        page: the page with earlier sections, or none.
    """
    from contstim.models.loading import Loading
    from contstim.steps.step import fields_of
    from contstim.study.study import TextsSection

    parts = [page.partition("\n## ")[0].rstrip()]
    for name, kind in (("texts", TextsSection), ("loading", Loading)):
        rows = [
            (f"`{field.name}`", f"`{_toml(field.default)}`", field.note.text)
            if field.default is not None
            else (f"`{field.name}`", "", field.note.text)
            for field in fields_of(kind)
        ]
        parts += [f"## `[{name}]`", summary_of(inspect.getdoc(kind) or "")]
        parts.append(_table(("key", "default", "meaning"), rows))
    rows = [
        (f"`[{s.name}]`", ", ".join(s.reads), ", ".join(f"`{path}`" for path in s.writes))
        for s in study_sections()
    ]
    parts += ["## Commands", "What each section reads from others, and where it writes."]
    parts.append(_table(("section", "reads", "writes"), rows))
    return "\n\n".join(parts) + "\n"


def _table(header: tuple[str, str, str], rows: list[tuple[str, str, str]]) -> str:
    lines = (" | ".join(row) for row in (header, ("---",) * 3, *rows))
    return "\n".join(f"| {line} |" for line in lines)


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(part) for part in value) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)


if __name__ == "__main__":
    file = Path(__file__).parents[1] / "reference" / "study-file.md"
    file.write_text(with_study_sections(file.read_text(encoding="utf-8")), encoding="utf-8")
