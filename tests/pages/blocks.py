"""The blocks of code on pages of the documentation, and the commands in them."""

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

    page: str  # its page, seen from the root of the repository
    line: int  # of the page, from 1, at which it begins
    language: str  # what stands behind the fence; of a directive in braces
    text: str  # what stands between the fences

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A command of a block as a reader types it, in one line."""

    block: Block  # where it stands
    text: str  # without prompt and comment
    output: tuple[str, ...] = ()  # the lines below it that the page says it prints


def read_blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in its order."""
    text = page.read_text(encoding="utf-8")
    name = page.relative_to(ROOT).as_posix()
    return [
        Block(name, text.count("\n", 0, match.start()) + 1, match[2], textwrap.dedent(match[3]))
        for match in _FENCED.finditer(text)
    ]


def without_blocks(page: Path) -> str:
    """What stands on a page outside fenced blocks."""
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


def read_commands(block: Block) -> list[Command]:
    """The commands of a block: of a console those behind a prompt, else every line.

    A line that ends with a backslash goes on in the next one.
    """
    commands: list[Command] = []
    lines = iter(block.text.splitlines())
    for line in lines:
        if block.language == "console" and not line.startswith("$ "):
            last = commands.pop()  # a page that begins with output fails here, as it should
            commands.append(Command(block, last.text, (*last.output, line)))
            continue
        text = line.removeprefix("$ ")
        while text.endswith("\\"):
            text = text[:-1].rstrip() + " " + next(lines).strip()
        # a comment stands behind two blanks, so that no address is cut at its #
        text = re.sub(r"(^|\s\s+)#.*", "", text).strip()
        if text:
            commands.append(Command(block, text))
    return commands
