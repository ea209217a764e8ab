"""What the pages say of installing, against the package's own description."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_extras_are_installed_by_one_and_the_same_command() -> None:
    """Witness: pyproject.toml. The name, not the folder: it works wherever one stands."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = set(settings["project"]["optional-dependencies"])
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *ROOT.glob("contstim/**/*.py")]
    texts = {
        str(path.relative_to(ROOT)): _joined(path.read_text(encoding="utf-8")) for path in pages
    }
    commands = {
        (name, command)
        for name, text in texts.items()
        for command in re.findall(r"pip install\s+(?!-c)([^`\s.]*\S*)", text)
        if "{extra}" not in command  # which `needing` fills in
    }
    needed = {extra for text in texts.values() for extra in re.findall(r'needing\("(\w+)"', text)}
    assert {"collect"} < needed <= extras
    assert len(commands) >= 6
    for page, command in sorted(commands):
        found = re.match(r"'contstim\[(\w+)\]'", command)
        assert found, f"{page}: pip install {command}"
        assert found[1] in extras


def _joined(text: str) -> str:
    """Texts of a program that go on in the next line, in one."""
    return re.sub(r'"\n\s*f?"', "", text)
