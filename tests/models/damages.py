"""What can be wrong with a file, whoever wrote it: a dozen damages for every kind of file."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from contstim.errors import ContstimError

Damage = Callable[[Path], object]


def _replaced(by: Callable[[bytes], bytes]) -> Damage:
    def damage(path: Path) -> None:
        path.write_bytes(by(path.read_bytes()))

    return damage


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _foreign(path: Path) -> None:
    """The content of another file of the same model, or of a table."""
    files = sorted(p for p in path.parent.iterdir() if p != path and p.is_file())
    if files:
        shutil.copyfile(files[0], path)
    else:
        path.write_text('"sentence","model"\n"A dog barks.",-3.5\n')


def _flipped(content: bytes) -> bytes:
    """A byte changed near the beginning, where headers stand."""
    place = len(content) // 20
    return content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :]


DAMAGES: dict[str, Damage] = {
    "missing": Path.unlink,
    "empty": _replaced(lambda _: b""),
    "a folder": _folder,
    "its first byte": _replaced(lambda content: content[:1]),
    "cut in the middle": _replaced(lambda content: content[: len(content) // 2]),
    "cut at the end": _replaced(lambda content: content[:-5]),
    "random bytes": _replaced(lambda c: random.Random(0).randbytes(len(c) or 100)),
    "zeros": _replaced(lambda content: bytes(len(content))),
    "one byte changed": _replaced(_flipped),
    "another file": _foreign,
    "UTF-16": _replaced(lambda content: content.decode("latin-1").encode("utf-16")),
    "null": _replaced(lambda _: b"null\n"),
    "a list": _replaced(lambda _: b"[1, 2, 3]\n"),
    "deep nesting": _replaced(lambda _: b"[" * 100_000),
    "a long number": _replaced(lambda _: b"9" * 5_000),
    "carriage returns": _replaced(lambda content: content.replace(b"\n", b"\r")),
}
"""By name; each leaves something else where a file was."""


def check_refused_or_same(path: Path, damage: str, read: Callable[[], object]) -> None:
    """Damage a file, which must then be refused by its name or read as before."""
    expected = read()
    DAMAGES[damage](path)
    try:
        found = read()
    except ContstimError as error:
        assert path.name in str(error) or str(path.parent) in str(error)  # noqa: PT017
    else:
        np.testing.assert_array_equal(np.array(found), np.array(expected))
