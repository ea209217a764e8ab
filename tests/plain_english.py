"""Check that texts and names are plain English; `make check` runs it.

Counts phrases that are hard to read, per 1,000 words of each kind of text; functions named by a
bare participle or adjective; and variables with vague names. A count is a signal: rewrite the
sentence, do not replace the word.
"""

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

PHRASES = re.compile(
    r"\b(?:what(?:ever)? (?:is|are|was|were|has|have|a|an|the|it|each|this|that|one|they|can|may)"
    r"|stands?|stood|(?:of|by|behind|under) (?:which|whom)|told|tells?|nobody|somebody|everybody"
    r"|whoever|nowhere|whereby|thereby|anew|afresh|thereof|besides?|of (?:its|their|one's) own"
    r"|so (?:many|much|few)|let|gone|in vain|passed over|alike|scatter|seldom"
    r"|that there (?:is|are|was|were))\b",
    re.IGNORECASE,
)
BARE = re.compile(
    r"_?(?:found|told|given|wanted|lacking|alike|apart|standing|shown|known|taken|left|kept|asked"
    r"|named|gone|counted|repeated|joined|filled|marked|listed|drawn|missing|undecided|chosen"
    r"|placed|spread|written|needed|allowed|used|own|sure|near|far)"
)
VAGUE = {
    *("each", "every", "given", "told", "found", "own", "others", "other", "place", "places"),
    *("what", "before", "after", "wanted", "lacking", "apart", "standing", "shown", "known"),
    *("taken", "left", "kept", "asked", "named", "said", "made", "gone", "whole", "rest", "more"),
    *("most", "some", "any", "same"),
}
MAX_PHRASES = 2.0  # per 1,000 words of each kind of text
MAX_BARE = 5
MAX_VAGUE = 0.005  # share of bindings
ROOT = Path(__file__).parents[1]


def texts_of(path: Path) -> Iterator[tuple[str, int, str]]:
    """Yield kind, line and text of docstrings, comments, messages, or a page's lines."""
    source = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        kind = "docs" if path.suffix == ".md" else "templates"
        prose = re.sub(r"```.*?```", lambda code: "\n" * code[0].count("\n"), source, flags=re.S)
        for number, line in enumerate(prose.splitlines(), 1):
            yield kind, number, re.sub(r"`[^`]*`|\{[{%].*?[%}]\}", " X ", line)
        return
    tree, docstrings = ast.parse(source), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if ast.get_docstring(node) and isinstance(first, ast.Expr):
                docstrings.add(id(first.value))
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in docstrings and len(node.value.split()) < 4:
                continue
            kind = "docstrings" if id(node) in docstrings else "messages"
            yield kind, node.lineno, re.sub(r"`[^`]*`", " X ", node.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield "comments", token.start[0], token.string


def names_of(path: Path) -> Iterator[tuple[str, int, str]]:
    """Yield `function` or `variable`, line and name of every definition and binding."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield "function", node.lineno, node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield "variable", node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield "variable", node.lineno, node.arg


def check(paths: Iterable[Path], *, without: str = "") -> bool:
    """Print the findings of every kind above its limit, and return True if there are any.

    Args:
        paths: files whose findings are counted together.
        without: kind of text that is not counted.
    """
    words: Counter[str] = Counter()
    findings: dict[str, list[str]] = {}
    n_variables = 0
    for path in sorted(paths):
        where = path.relative_to(ROOT)
        for kind, line, text in texts_of(path):
            words[kind] += len(text.split())
            for match in PHRASES.finditer(text):
                findings.setdefault(kind, []).append(f"{where}:{line}: {match[0]}")
        for kind, line, name in names_of(path) if path.suffix == ".py" else ():
            n_variables += kind == "variable"
            is_bad = BARE.fullmatch(name) if kind == "function" else name.strip("_") in VAGUE
            if is_bad:
                findings.setdefault(kind, []).append(f"{where}:{line}: {name}")
    limits = {kind: MAX_PHRASES * n / 1000 for kind, n in words.items() if kind != without}
    limits |= {"function": MAX_BARE, "variable": MAX_VAGUE * n_variables}
    failed = False
    for kind, limit in limits.items():
        lines = findings.get(kind, [])
        if len(lines) > limit:
            failed = True
            print("\n".join(lines))
        print(f"{kind}: {len(lines)}, at most {limit:.0f}")
    return failed


def main() -> int:
    """Check the package with its pages, and the tests with the benchmarks."""
    package = ROOT / "contstim"
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    failed = check([*package.rglob("*.py"), *package.rglob("*.jinja"), *pages])
    programs = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")]
    # Their messages are mostly sentences that models read
    return int(check(programs, without="messages") or failed)


if __name__ == "__main__":
    sys.exit(main())
