"""Damages that can occur to files of every kind."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from contstim.errors import ContstimError

Damage = Callable[[Path], object]


def _replace_content(change: Callable[[bytes], bytes]) -> Damage:
    def damage(path: Path) -> None:
        path.write_bytes(change(path.read_bytes()))

    return damage


def _replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _replace_by_other_file(path: Path) -> None:
    """Replace the file by another file of the same model, or by a table."""
    files = sorted(p for p in path.parent.iterdir() if p != path and p.is_file())
    if files:
        shutil.copyfile(files[0], path)
    else:
        path.write_text('"sentence","model"\n"A dog barks.",-3.5\n')


def _flip_byte(content: bytes) -> bytes:
    """Change a byte near the beginning, where headers are."""
    index = len(content) // 20
    return content[:index] + bytes([content[index] ^ 0xFF]) + content[index + 1 :]


DAMAGES: dict[str, Damage] = {
    "missing": Path.unlink,
    "empty": _replace_content(lambda _: b""),
    "a folder": _replace_by_folder,
    "its first byte": _replace_content(lambda content: content[:1]),
    "cut in the middle": _replace_content(lambda content: content[: len(content) // 2]),
    "cut at the end": _replace_content(lambda content: content[:-5]),
    "random bytes": _replace_content(lambda c: random.Random(0).randbytes(len(c) or 100)),
    "zeros": _replace_content(lambda content: bytes(len(content))),
    "one byte changed": _replace_content(_flip_byte),
    "another file": _replace_by_other_file,
    "UTF-16": _replace_content(lambda content: content.decode("latin-1").encode("utf-16")),
    "null": _replace_content(lambda _: b"null\n"),
    "a list": _replace_content(lambda _: b"[1, 2, 3]\n"),
    "deep nesting": _replace_content(lambda _: b"[" * 100_000),
    "a long number": _replace_content(lambda _: b"9" * 5_000),
    "carriage returns": _replace_content(lambda content: content.replace(b"\n", b"\r")),
}
"""Damages by name; each removes or changes the file at a path."""


def check_refused_or_same(path: Path, damage: str, read: Callable[[], object]) -> None:
    """Damage a file; reading must raise an error that names the file, or have the same result."""
    expected = read()
    DAMAGES[damage](path)
    try:
        result = read()
    except ContstimError as error:
        assert path.name in str(error) or str(path.parent) in str(error)  # noqa: PT017
    else:
        np.testing.assert_array_equal(np.array(result), np.array(expected))
