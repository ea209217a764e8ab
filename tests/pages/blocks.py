"""Code blocks of documentation pages, and the commands in them."""

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
_FENCED = re.compile(r"^( *)```([^\n`]*)\n(.*?)^\1```[ ]*$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    page: str  # path relative to the root of the repository
    line: int  # first line on the page, from 1
    language: str  # text after the opening fence; of a directive, its name in braces
    text: str  # text between the fences

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A command of a block, joined to one line."""

    block: Block  # block that contains the command
    text: str  # without prompt and comment
    output: tuple[str, ...] = ()  # printed lines, according to the page


def read_blocks(page: Path) -> list[Block]:
    """Read the fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    name = page.relative_to(ROOT).as_posix()
    return [
        Block(name, text.count("\n", 0, match.start()) + 1, match[2], textwrap.dedent(match[3]))
        for match in _FENCED.finditer(text)
    ]


def remove_blocks(page: Path) -> str:
    """Return a page without fenced blocks."""
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


def read_commands(block: Block) -> list[Command]:
    """Read the commands of a block: lines with a prompt in a console, all lines otherwise.

    A line that ends with a backslash continues on the next line.
    """
    commands: list[Command] = []
    lines = iter(block.text.splitlines())
    for line in lines:
        if block.language == "console" and not line.startswith("$ "):
            command = commands.pop()  # output without a command is an error
            commands.append(Command(block, command.text, (*command.output, line)))
            continue
        text = line.removeprefix("$ ")
        while text.endswith("\\"):
            text = text[:-1].rstrip() + " " + next(lines).strip()
        # comments follow two spaces, so that addresses with # are not cut
        text = re.sub(r"(^|\s\s+)#.*", "", text).strip()
        if text:
            commands.append(Command(block, text))
    return commands
