"""NumPy's files, written by NumPy and then damaged."""

import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contstim.errors import InputError
from contstim.files.arrays import read_npy, read_npz

NUMBERS = np.arange(50, dtype=np.float64)


def npy_bytes(array: np.ndarray = NUMBERS) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=True)
    return file.getvalue()


def npz_bytes(member: bytes, name: str = "m.npy", method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr(name, member)
    return file.getvalue()


def npy_header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode("latin-1")


SHAPE = "{'descr': '<f8', 'fortran_order': False, 'shape': (%s,), }"
ARRAYS: dict[str, bytes] = {
    "empty": b"",
    "random": bytes(range(256)) * 4,
    "cut": npy_bytes()[:-100],
    "cut header": npy_bytes()[:40],
    "more behind": npy_bytes() + b"more",
    "another format": npy_bytes().replace(b"NUMPY\x01", b"NUMPY\x09"),
    "huge": npy_header(SHAPE % 10**12),
    "overflowing": npy_header(SHAPE % 10**31),
    "negative": npy_header(SHAPE % -1),
    "no shape": npy_header("{'descr': '<f8'}"),
    "code": npy_header("__import__('os').system('true')"),
    "deep": npy_header("(" * 5_000),
    "long number": npy_header(SHAPE % ("7" * 5_000)),
    "unknown type": npy_header("{'descr': 'banana', 'fortran_order': False, 'shape': (1,), }"),
    "objects": npy_bytes(np.array([{}], dtype=object)),
}


@pytest.mark.parametrize("content", ARRAYS.values(), ids=ARRAYS)
def test_damaged_and_unsafe_arrays_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.npy is not an \.npy of a plain array: .+"):
        read_npy(path)
    path = tmp_path / "a.npz"
    path.write_bytes(npz_bytes(content))
    with pytest.raises(InputError, match=r"a\.npz is not an \.npz of plain arrays: .+"):
        read_npz(path)


def _patched_archive(start: int, size: int, value: bytes) -> bytes:
    """Return an archive with one changed directory field; see zipfile's structCentralDir."""
    content = npz_bytes(npy_bytes())
    offset = content.index(b"PK\x01\x02") + start
    return content[:offset] + value + content[offset + size :]


ARCHIVES: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "random": lambda: bytes(range(256)) * 4,
    "cut": lambda: npz_bytes(npy_bytes())[:-30],
    "an array": npy_bytes,
    "damaged member": lambda: npz_bytes(npy_bytes()).replace(
        npz_bytes(npy_bytes())[60:90], b"\xff" * 30, 1
    ),
    "encrypted": lambda: _patched_archive(8, 2, b"\x01\x00"),
    "unknown compression": lambda: _patched_archive(10, 2, b"\x63\x00"),
    "wrong checksum": lambda: _patched_archive(16, 4, b"\x00\x01\x02\x03"),
    "has an impossible size": lambda: _patched_archive(24, 4, struct.pack("<I", 2**31)),
    "a text": lambda: npz_bytes(b"hello", "read.txt"),
}


@pytest.mark.parametrize("build", ARCHIVES.values(), ids=ARCHIVES)
def test_damaged_archives_are_refused(tmp_path: Path, build: Callable[[], bytes]) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(build())
    with pytest.raises(InputError, match=r"a\.npz"):
        read_npz(path)


def test_repeated_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m.npy", npy_bytes())
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("m.npy", npy_bytes())
    with pytest.raises(InputError, match=r"m\.npy twice"):
        read_npz(path)


def test_arrays_written_by_numpy_are_read(tmp_path: Path) -> None:
    """External witness: NumPy's own writers."""
    arrays: dict[str, Any] = {
        "f": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "i": np.arange(3, dtype=np.int32),
        "t": np.array(["á", "bc"]),
        "none": np.zeros((0, 3)),
        "one": np.array(2.5),
        "zeros": np.zeros(200_000),
    }
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    np.savez(tmp_path / "b.npz", **arrays)
    for name in ("a.npz", "b.npz"):
        loaded = read_npz(tmp_path / name)
        assert list(loaded) == list(arrays)
        for key, array in arrays.items():
            np.testing.assert_array_equal(loaded[key], array)
    for key, array in arrays.items():
        np.save(tmp_path / f"{key}.npy", array)
        np.testing.assert_array_equal(read_npy(tmp_path / f"{key}.npy"), array)
