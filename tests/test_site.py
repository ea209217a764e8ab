"""The documentation describes every command and name, and only existing options."""

import ast
import importlib
import re
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

import contstim
from contstim.cli.program import app
from contstim.steps import step_named, step_names
from tests.pages.blocks import PAGES, read_blocks, read_commands

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS / "extensions"))
descriptions: Any = importlib.import_module("descriptions")
links: Any = importlib.import_module("links")


def find_directives(name: str) -> list[tuple[Path, str]]:
    """Return the page and the content of all directives with a name."""
    pattern = re.compile(rf"^```\{{{name}\}}\n(.*?)```$", re.DOTALL | re.MULTILINE)
    texts = [(page, page.read_text(encoding="utf-8")) for page in PAGES]
    return [(page, content) for page, text in texts for content in pattern.findall(text)]


def test_every_command_is_documented() -> None:
    commands = descriptions.commands()
    steps = {name for name in step_names() if step_named(name) is not None}
    assert {f"contstim {name}" for name in steps} <= {*commands}
    lines = [line for _, text in find_directives("commands") for line in text.split("\n") if line]
    for name, command in commands.items():
        sections = [line for line in lines if f"{name} ".startswith(f"contstim {line} ")]
        assert len(sections) == 1, f"{name} is on the pages {sections}"
        assert command.summary.endswith("."), name
        assert command.examples, name
        assert all("contstim" in example for example in command.examples), name
        assert all(option.text for option in command.options), name


def test_every_public_name_is_documented() -> None:
    names = [
        name
        for page, text in find_directives("public-names")
        if page.name != "rooms.md"
        for name in text.split()
    ]
    assert sorted(names) == sorted(contstim.__all__)
    for name in descriptions.public_names().values():
        assert name.summary, name


def test_exports_of_all_modules_are_documented() -> None:
    """Witness: the files that define `__all__`. Commands are described elsewhere."""
    package = Path(contstim.__file__).parent
    modules = {
        ".".join(file.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")
        for file in package.rglob("*.py")
        if "\n__all__ = " in file.read_text(encoding="utf-8") and file.parent != package
    }
    assert modules - {"contstim.cli"} == set(descriptions.ROOMS)
    page = (DOCS / "reference/python/rooms.md").read_text(encoding="utf-8")
    for module in descriptions.ROOMS:
        assert f":module: {module}\n" in page
        assert all(name.summary for name in descriptions.public_names(module).values()), module


def test_every_section_of_a_study_file_is_documented() -> None:
    page = (DOCS / "reference/study-file.md").read_text(encoding="utf-8")
    assert page == descriptions.with_study_sections(page), "run docs/extensions/descriptions.py"


def test_reference_pages_are_readable_without_a_build() -> None:
    """If a directive generates the content of a page, the page names another source."""
    for page in (DOCS / "reference").rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        if re.search(r"^```\{(commands|command-table|public-names|eval-rst)\}", text, re.MULTILINE):
            assert re.search(r"`contstim (COMMAND )?--help`|`help\(contstim", text), page


def find_commands(page: Path) -> list[str]:
    """Return the commands of contstim in the code of a page, one line each."""
    blocks = [block for block in read_blocks(page) if block.language in ("sh", "console", "bash")]
    commands = (command.text for block in blocks for command in read_commands(block))
    return [text for text in commands if text.startswith("contstim ")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS.parent)))
def test_commands_on_pages_have_existing_options(page: Path) -> None:
    """Witness: the parser of the program, which refuses unknown options."""
    for line in find_commands(page):
        words = shlex.split(line.replace("...", "").replace("…", ""), comments=True)
        command: Any = typer.main.get_command(app)
        context = command.make_context("contstim", [], resilient_parsing=True)
        ends = (i for i, word in enumerate(words) if word in ("&", "&&", "|", ";", ">"))
        words = words[1 : next(ends, None)]
        while words and hasattr(command, "get_command") and not words[0].startswith("-"):
            subcommand = command.get_command(context, words[0])
            assert subcommand is not None, f"{line}: {words[0]}"
            command, words = subcommand, words[1:]
            context = command.make_context("contstim", [], resilient_parsing=True)
        if words and not hasattr(command, "get_command"):
            context.resilient_parsing = False  # raise errors
            context.command.make_parser(context).parse_args(words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS.parent)))
def test_python_and_toml_on_pages_are_valid(page: Path) -> None:
    """Imports of contstim succeed, names after `contstim.` are public, and TOML is valid."""
    blocks = read_blocks(page)
    for block in (block for block in blocks if block.language == "toml"):
        tomllib.loads(block.text)
    for block in (block for block in blocks if block.language == "python"):
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("contstim"):
                module = importlib.import_module(str(node.module))
                assert all(hasattr(module, name.name) for name in node.names), ast.unparse(node)
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "contstim":
                assert hasattr(contstim, node.attr), node.attr


def test_dead_links_are_reported(tmp_path: Path) -> None:
    """Witness: two pages with one link of each kind."""
    (tmp_path / "a.html").write_text(
        '<p id="here"></p><a href="#here">1</a><a href="#gone">2</a><a href="b.html#there">3</a>'
        '<a href="b.html#gone">4</a><a href="c.html">5</a><a href="https://x.org/y#z">6</a>'
    )
    (tmp_path / "b.html").write_text('<img src="no.png" id="there">')
    assert links.dead_links(tmp_path) == [
        "a.html: #gone",
        "a.html: b.html#gone",
        "a.html: c.html",
        "b.html: no.png",
    ]
