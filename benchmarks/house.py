"""The state of the code in numbers: how much there is in each room, and how it is cut.

    python benchmarks/house.py [ROOT]

Lines of code are lines with a token other than a comment or a docstring. A private function whose
name is read once in its file is called once. These are signs of how the package reads, not aims.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

VAGUE = ("one", "found", "known")
LONG = 50  # lines of a function
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


@dataclass
class Module:
    """What is counted in one file."""

    name: str
    lines: int
    code: int
    comments: int
    lengths: list[int] = field(default_factory=list)  # of functions, in lines
    private: list[str] = field(default_factory=list)  # functions whose names begin with _
    names: Counter[str] = field(default_factory=Counter)  # every name and attribute read
    bound: Counter[str] = field(default_factory=Counter)
    classes: list[str] = field(default_factory=list)  # public ones
    imports: set[str] = field(default_factory=set)


def read_module(path: Path, root: Path) -> Module:
    """Count one file."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    documented = _docstring_lines(tree)
    code: set[int] = set()
    comments: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        span = range(token.start[0], token.end[0] + 1)
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in _LAYOUT:
            code.update(set(span) - documented)
    name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
    module = Module(name, text.count("\n"), len(code), len(comments))
    for node in ast.walk(tree):
        _count(node, module)
    return module


def _docstring_lines(tree: ast.Module) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            continue
        if isinstance(node.value.value, str):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def _count(node: ast.AST, module: Module) -> None:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        module.lengths.append((node.end_lineno or node.lineno) - node.lineno + 1)
        if node.name.startswith("_") and not node.name.startswith("__"):
            module.private.append(node.name)
    elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
        module.classes.append(node.name)
    elif isinstance(node, ast.Name):
        (module.bound if isinstance(node.ctx, ast.Store) else module.names)[node.id] += 1
    elif isinstance(node, ast.Attribute):
        module.names[node.attr] += 1
    elif isinstance(node, ast.arg):
        module.bound[node.arg] += 1
    elif isinstance(node, ast.ImportFrom) and node.module:
        module.imports.add(node.module)
        module.imports.update(f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Import):
        module.imports.update(alias.name for alias in node.names)


def room_of(name: str) -> str:
    """The folder that a module stands in, two floors deep at most."""
    parts = name.split(".")
    return ".".join(
        parts[1:3] if len(parts) > 3 else parts[1:2] if len(parts) > 2 else ["(values)"]
    )


def main() -> None:
    """Print the numbers."""
    given = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    root = Path(given[0] if given else Path(__file__).parents[1])
    modules = [read_module(path, root) for path in sorted((root / "contstim").rglob("*.py"))]
    rooms: defaultdict[str, list[Module]] = defaultdict(list)
    for module in modules:
        rooms[room_of(module.name)].append(module)
    print(f"{'room':32} {'files':>6} {'lines':>7} {'code':>7}")
    for room, held in sorted(rooms.items()):
        lines, code = sum(m.lines for m in held), sum(m.code for m in held)
        print(f"{room:32} {len(held):6} {lines:7,} {code:7,}")
    lines, lengths = sum(m.lines for m in modules), [n for m in modules for n in m.lengths]
    print(f"{'all':32} {len(modules):6} {lines:7,} {sum(m.code for m in modules):7,}\n")
    once = sum(m.names[name] == 1 for m in modules for name in m.private)
    importers = Counter(x for m in modules for x in m.imports if x != m.name)
    names = {m.name for m in modules}
    classes = Counter(name for m in modules for name in m.classes)
    bound = sum((m.bound for m in modules), Counter[str]())
    files = [m.lines for m in modules]
    shares = {
        "median file, lines": f"{median(files):.0f}",
        "files under 100 lines": f"{sum(n < 100 for n in files)}",
        f"functions over {LONG} lines": f"{sum(n > LONG for n in lengths) / len(lengths):.1%}",
        "median function, lines": f"{median(lengths):.0f}",
        "private functions called once, of all functions": f"{once / len(lengths):.1%}",
        "lines with a comment": f"{sum(m.comments for m in modules) / lines:.1%}",
        "modules with one importer": f"{sum(importers[name] == 1 for name in names)}",
        "public classes that share a name": ", ".join(n for n, k in classes.items() if k > 1),
        **{f"bindings of '{name}'": f"{bound[name]}" for name in VAGUE},
    }
    for what, value in shares.items():
        print(f"{what:50} {value}")


if __name__ == "__main__":
    main()
