"""Disks that cannot be written: a named error, nothing half-written, and the study goes on later.

A superuser may write everywhere: of a folder that is read only the operating system's error is
raised where it would be.
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


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize("call", ["mkdir", "open"])
def test_a_folder_that_is_read_only_is_named(folder: Path, call: str) -> None:
    if call == "open":
        (folder / "results").mkdir()
    before = sorted(folder.rglob("*"))
    real = getattr(Path, call)

    def refuse(path: Path, *given: object, **more: object) -> object:
        if path.parts[0] == "results" and (call == "mkdir" or "r" not in str(given)):
            raise _error(errno.EROFS)
        return real(path, *given, **more)

    with mock.patch.object(Path, call, refuse):
        done = run(folder, "run")
        shown = succeed(folder, "status")
    assert done.returncode == 2
    assert (
        "error: Cannot use the lock results/.lock: Read-only file system. Its folder" in done.stderr
    )
    assert shown.count("not done") == 4
    assert sorted(folder.rglob("*")) == before


def test_what_cannot_be_removed_is_named(folder: Path) -> None:
    left = folder / "results" / ".1.partial"
    left.mkdir(parents=True)
    with mock.patch.object(shutil, "rmtree", side_effect=_error(errno.EACCES)):
        done = run(folder, "run")
    assert done.returncode == 2
    assert "error: Cannot remove results/.1.partial: Permission denied." in done.stderr
    succeed(folder, "run", "--quiet")
    assert not left.exists()


@contextmanager
def _files_of(size: int) -> Iterator[None]:
    """The operating system's own limit, as `ulimit -f` sets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_files_that_may_not_be_as_large_are_named_and_the_study_goes_on(folder: Path) -> None:
    """At every limit up to that of the largest file; then the results are those without any."""
    whole = Path(shutil.copytree(folder, folder.parent / f"{folder.name}-whole"))
    succeed(whole, "run", "--quiet")
    named = []
    for size in (100, 3_000, 6_000, 12_000, 50_000):
        with _files_of(size):
            done = run(folder, "run", "--quiet")
        assert done.returncode == 2, size
        named.append(done.stderr.split("error: ")[-1].strip())
        assert not list(folder.rglob("*.partial"))
    assert named[0] == "Cannot write index.html: File too large."
    assert named[-1].startswith("results/contstim.sqlite cannot be written (disk I/O error): the ")
    succeed(folder, "run", "--quiet")
    for name in ("natural.txt", "scores.csv", "models/b.arpa"):
        assert (folder / "results" / name).read_bytes() == (whole / "results" / name).read_bytes()


def test_a_store_that_cannot_grow_is_named(tmp_path: Path) -> None:
    with _files_of(20_000), pytest.raises(ContstimError, match=r"may be full, .* \(ulimit -f\)"):
        Store(tmp_path / "a.sqlite")
    Store(tmp_path / "a.sqlite").close()
