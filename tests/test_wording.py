"""Formats of quantities and p-values, and errors about optional dependencies."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from contstim.errors import WorkerError, needing
from contstim.wording import p_text, quantity


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((1, "group"), "1 group"),
        ((0, "group"), "0 groups"),
        ((2, "natural pair"), "2 natural pairs"),
        ((1_200, "matrix", "matrices"), "1,200 matrices"),
        ((1, "matrix", "matrices"), "1 matrix"),
    ],
)
def test_only_one_is_singular(arguments: tuple[int, str], text: str) -> None:
    assert quantity(*arguments) == text


@pytest.mark.parametrize(
    ("p_value", "text"),
    [
        (0.0, "< .001"),
        (0.00099, "< .001"),
        (0.001, ".001"),
        (0.0483, ".048"),
        (1.0, "1.000"),
        (float("nan"), "–"),
    ],
)
def test_p_values_are_never_zero(p_value: float, text: str) -> None:
    assert p_text(p_value) == text


def test_error_names_the_command_that_installs_an_extra() -> None:
    message = r"Collecting needs nothing_of_this_name, .*: pip install 'contstim\[collect\]'\."
    with pytest.raises(WorkerError, match=message), needing("collect", "Collecting"):
        importlib.import_module("nothing_of_this_name")


ROOT = Path(__file__).parents[1]


def test_extras_are_installed_by_the_same_command() -> None:
    """Witness: pyproject.toml. The command names the package, so it works in every folder."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = set(settings["project"]["optional-dependencies"])
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *ROOT.glob("contstim/**/*.py")]
    texts = {  # string literals that continue in the next line are joined
        str(path.relative_to(ROOT)): re.sub(r'"\n\s*f?"', "", path.read_text(encoding="utf-8"))
        for path in pages
    }
    commands = {
        (name, command)
        for name, text in texts.items()
        for command in re.findall(r"pip install\s+(?!-c)([^`\s.]*\S*)", text)
        if "{extra}" not in command  # `needing` inserts the extra
    }
    needed = {extra for text in texts.values() for extra in re.findall(r'needing\("(\w+)"', text)}
    assert {"collect"} < needed <= extras
    assert len(commands) >= 6
    for page, command in sorted(commands):
        match = re.match(r"'contstim\[(\w+)\]'", command)
        assert match, f"{page}: pip install {command}"
        assert match[1] in extras
