"""The size of the package: lines of code in each room, and how it is cut.

    python benchmarks/house.py [ROOT]

Lines of code are neither docstrings nor blank nor comments; lines of templates count as code. These
are signs of how the package reads, not aims.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median

LONG = 50  # lines of a function without its docstring
QUESTIONS = ("What", "How", "Whether", "Which", "Where")
TEMPLATES = (".jinja", ".html", ".js", ".css")
_Definition = ast.FunctionDef | ast.AsyncFunctionDef
_Documented = ast.Module | ast.ClassDef | _Definition


@dataclass(frozen=True)
class File:
    """The counts of one file of the package."""

    room: str
    lines: int
    code: int
    classes: int
    functions: tuple[int, ...]  # lines without docstrings
    docstrings: tuple[str, ...]  # the first word of each
    imports: frozenset[str]
    name: str


def read_module(path: Path, root: Path) -> File:
    """Count a file of Python."""
    text = path.read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(text)))
    documented: set[int] = set()
    first_words: list[str] = []
    for node in nodes:
        if isinstance(node, _Documented) and (docstring := ast.get_docstring(node)):
            first_words.append(docstring.split()[0])
            documented.update(_lines(node.body[0]))
    code = {
        number
        for number, line in enumerate(text.splitlines(), 1)
        if number not in documented and line.strip() and not line.strip().startswith("#")
    }
    imports: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            imports |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return File(
        _room(path, root),
        text.count("\n"),
        len(code),
        sum(isinstance(node, ast.ClassDef) for node in nodes),
        tuple(len(_lines(n) - documented) for n in nodes if isinstance(n, _Definition)),
        tuple(first_words),
        frozenset(imports),
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"),
    )


def _lines(node: ast.stmt) -> set[int]:
    return {*range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def _room(path: Path, root: Path) -> str:
    """The folder that a file stands in, two floors deep at most."""
    return "/".join(path.relative_to(root).parts[1:-1][:2]) or "(values)"


def main() -> None:
    """Print the numbers."""
    given = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    root = Path(given[0] if given else Path(__file__).parents[1])
    files = [read_module(path, root) for path in sorted((root / "contstim").rglob("*.py"))]
    templates: Counter[str] = Counter()
    for path in (root / "contstim").rglob("*"):
        if path.suffix in TEMPLATES:
            lines = path.read_text(encoding="utf-8").splitlines()
            templates[_room(path, root)] += sum(bool(line.strip()) for line in lines)
    rooms: defaultdict[str, list[File]] = defaultdict(list)
    for file in files:
        rooms[file.room].append(file)
    print(f"{'room':32} {'files':>6} {'lines':>7} {'code':>7} {'templates':>10}")
    for room, held in [*sorted(rooms.items()), ("all", files)]:
        of_templates = templates.total() if room == "all" else templates[room]
        counts = (len(held), sum(f.lines for f in held), sum(f.code for f in held), of_templates)
        print("{:32} {:6} {:7,} {:7,} {:10,}".format(room, *counts))
    functions = [n for file in files for n in file.functions]
    docstrings = [word for file in files for word in file.docstrings]
    questions = sum(word in QUESTIONS for word in docstrings)
    importers = Counter(name for f in files for name in f.imports if name != f.name)
    pages = [*(root / "docs").rglob("*.md"), *(root / "docs").rglob("*.ipynb")]
    figures = {
        "classes": f"{sum(file.classes for file in files)}",
        "functions": f"{len(functions):,}",
        f"functions over {LONG} lines": f"{sum(n > LONG for n in functions) / len(functions):.1%}",
        "median function, lines": f"{median(functions):.0f}",
        f"docstrings that begin with {', '.join(QUESTIONS)}": f"{questions / len(docstrings):.1%}",
        "files of 50 lines of code or fewer": f"{sum(file.code <= 50 for file in files)}",
        "files with one importer": f"{sum(importers[file.name] == 1 for file in files)}",
        "words of documentation": f"{sum(len(p.read_text('utf-8').split()) for p in pages):,}",
    }
    print()
    for what, value in figures.items():
        print(f"{what:66} {value}")


if __name__ == "__main__":
    main()
