"""Unwritable disks: a clear error, no partial file, and a study that can be resumed.

A superuser may write everywhere, so the tests raise the operating system's error for a read-only
folder.
"""

import errno
import os
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from unittest import mock

import pytest

from contstim.errors import ContstimError
from contstim.store import Store
from tests.cli.running import run, succeed

STUDY = """\
[texts]
training = "text.txt"
natural = "text.txt"
[models]
a = { train = "ngram", order = 1 }
b = { train = "ngram", order = 2 }
[sentences]
words = "8"
exclude = []
[score]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    adjectives, nouns = ("old", "young", "small", "happy"), ("man", "woman", "dog", "cat", "horse")
    words = product(adjectives, nouns, ("saw", "met"), nouns)
    lines = (f"The {old} {man} {saw} a very old {dog}.\n" for old, man, saw, dog in words)
    (tmp_path / "text.txt").write_text("".join(lines))
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


def _os_error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize("call", ["mkdir", "open"])
def test_error_names_a_read_only_folder(folder: Path, call: str) -> None:
    if call == "open":
        (folder / "results").mkdir()
    paths = sorted(folder.rglob("*"))
    original = getattr(Path, call)

    def refuse(path: Path, *args: object, **kwargs: object) -> object:
        if path.parts[0] == "results" and (call == "mkdir" or "r" not in str(args)):
            raise _os_error(errno.EROFS)
        return original(path, *args, **kwargs)

    with mock.patch.object(Path, call, refuse):
        messages = run(folder, "run", status=2).stderr
        status = succeed(folder, "status")
    assert "error: Cannot use the lock file results/.lock: Read-only file system. Make" in messages
    assert status.count("not done") == 4
    assert sorted(folder.rglob("*")) == paths


def test_error_names_a_folder_that_cannot_be_removed(folder: Path) -> None:
    partial = folder / "results" / ".1.partial"
    partial.mkdir(parents=True)
    with mock.patch.object(shutil, "rmtree", side_effect=_os_error(errno.EACCES)):
        messages = run(folder, "run", status=2).stderr
    assert "error: Cannot remove results/.1.partial: Permission denied." in messages
    succeed(folder, "run", "--quiet")
    assert not partial.exists()


@contextmanager
def _size_limit(size: int) -> Iterator[None]:
    """Set the operating system's limit on file sizes, as `ulimit -f` does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_error_names_files_that_exceed_the_size_limit(folder: Path) -> None:
    """After failures at increasing limits, the results equal those without a limit."""
    copy = Path(shutil.copytree(folder, folder.parent / f"{folder.name}-whole"))
    succeed(copy, "run", "--quiet")
    errors = []
    for size in (100, 3_000, 6_000, 12_000, 50_000):
        with _size_limit(size):
            messages = run(folder, "run", "--quiet", status=2).stderr
        errors.append(messages.split("error: ")[-1].strip())
        assert not list(folder.rglob("*.partial"))
    assert errors[0] == "Cannot write index.html: File too large."
    assert errors[-1].startswith("results/contstim.sqlite cannot be written (disk I/O error): the ")
    succeed(folder, "run", "--quiet")
    for name in ("natural.txt", "scores.csv", "models/b.arpa"):
        assert (folder / "results" / name).read_bytes() == (copy / "results" / name).read_bytes()


def test_error_names_a_store_that_cannot_grow(tmp_path: Path) -> None:
    with _size_limit(20_000), pytest.raises(ContstimError, match=r"may be full, .* \(ulimit -f\)"):
        Store(tmp_path / "a.sqlite")
    Store(tmp_path / "a.sqlite").close()
