"""Sections of a study file: a section is the command of the same name, its keys are the options."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contstim.steps import step_named, step_names
from contstim.steps.step import adapter, fields_of, in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contstim.steps.step import Step
    from contstim.study.problems import Problems
    from contstim.study.toml_lines import Key


@dataclass(frozen=True)
class Section:
    """A section of a study file, or one of several in double brackets.

    Attributes:
        name: words of the command, and the number in `[[train.ngram]]`.
        key: such as `("select", "natural")`.
        step: step of the command.
        values: values of the keys, by the names of the step's fields.
    """

    name: str
    key: Key
    step: type[Step[Any]]
    values: Mapping[str, Any]


def section_commands() -> dict[Key, str]:
    """Key of each section that a study may have → command."""
    return {tuple(name.replace("-", "_").split()): name for name in step_names()}


def read_sections(tables: Mapping[str, Any], problems: Problems) -> list[Section]:
    """Read the sections that are commands, in the order of the file.

    Args:
        tables: content of the file.
        problems: collects problems.
    """
    commands = section_commands()
    keyed_tables: list[tuple[Key, Any]] = []
    for word, table in tables.items():
        second = [key[1] for key in commands if len(key) == 2 and key[0] == word]
        if (word,) in commands:
            keyed_tables.append(((word,), table))
        elif second and problems.has_table((word,), table):
            problems.refuse_unknown((word,), table, second)
            keyed_tables += [((word, name), table[name]) for name in table if name in second]
    sections = []
    for key, table in keyed_tables:
        name = commands[key]
        step = step_named(name)
        rows = table if isinstance(table, list) and table else [table]
        if step is None or not all(isinstance(row, dict) for row in rows):
            problems.add(key, f"is not a section with options: write [{'.'.join(key)}] and keys.")
            continue
        for number, row in enumerate(rows, start=1):
            row_key, section_name = (
                (key, name) if row is table else ((*key, str(number)), f"{name} {number}")
            )
            sections.append(
                Section(section_name, row_key, step, read_values(step, row, row_key, problems))
            )
    return sections


def read_values(
    kind: type[Any],
    table: Mapping[str, Any],
    key: Key,
    problems: Problems,
    further: Iterable[str] = (),
) -> dict[str, Any]:
    """Read the values of a table's keys, without those that are wrong.

    Args:
        kind: step or settings whose fields are the keys.
        table: content of the table.
        key: key of the table.
        problems: collects problems of keys and values.
        further: keys that are read elsewhere.
    """
    from pydantic import ValidationError

    fields = {field.name: field for field in fields_of(kind)}
    problems.refuse_unknown(key, table, (*fields, *further))
    values = {}
    for name in (n for n in table if n in fields and n not in {*further}):
        value = fields[name].as_list(table[name])
        try:
            # JSON, whose strict rules are those of TOML: "10" is not a number, a list is a tuple
            text = json.dumps(value, default=str)
            values[name] = adapter(fields[name].hint).validate_json(text, strict=True)
        except ValidationError as error:
            problems.add((*key, name), in_words(error.errors()[0]))
    return values
