"""NumPy arrays: type names, and readers of `.npy` and `.npz` files.

NumPy's readers trust the size in a file's header, and raise errors of many classes for damaged
files. The readers in this module check the size first, never unpickle objects, and raise an
`InputError` that names the file.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import IO, Any, TypeAlias
from zipfile import ZipFile, ZipInfo

import numpy as np
import numpy.typing as npt

from contstim.files.files import decoding
from contstim.wording import find_duplicates

FloatArray: TypeAlias = npt.NDArray[np.float64]
Float32Array: TypeAlias = npt.NDArray[np.float32]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

_ENDING = ".npy"


def read_npy(path: Path | str) -> npt.NDArray[Any]:
    """Read the array of an `.npy` file.

    Raises:
        InputError: if the file cannot be read, is not an array, or contains Python objects.
    """
    with decoding(path, "an .npy of a plain array"), Path(path).open("rb") as file:
        return _read_array(file, Path(path).stat().st_size)


def read_npz(path: Path | str) -> dict[str, npt.NDArray[Any]]:
    """Read the arrays of an `.npz` file, by name.

    Raises:
        InputError: if the file cannot be read, has two arrays with the same name, contains a file
            that is not an array, or contains Python objects.
    """
    with decoding(path, "an .npz of plain arrays"), ZipFile(path) as archive:
        members = archive.infolist()
        if duplicates := find_duplicates(member.filename for member in members):
            raise ValueError(f"it contains {duplicates[0]} twice")
        return {
            member.filename.removesuffix(_ENDING): _read_member(archive, member, path)
            for member in members
        }


def _read_member(archive: ZipFile, member: ZipInfo, path: Path | str) -> npt.NDArray[Any]:
    if not member.filename.endswith(_ENDING):
        raise ValueError(f"it contains {member.filename}, which is not an {_ENDING} file")
    # A member is a file in the archive. The archive states the size of a member before and after
    # compression, and both sizes may be wrong. But a compressed member is not longer than the
    # archive, and Deflate (the compression of zip files) reduces a size at most by the factor
    # 1,032. So a size above 1,100 times the compressed size is impossible
    compressed_size = min(member.compress_size, Path(path).stat().st_size)
    if member.file_size > 1_100 * compressed_size:
        raise ValueError(f"{member.filename} has an impossible size")
    with archive.open(member) as file:
        return _read_array(file, member.file_size)


def _read_array(file: IO[bytes], size: int) -> npt.NDArray[Any]:
    version = np.lib.format.read_magic(file)
    read_header = getattr(np.lib.format, "read_array_header_{}_{}".format(*version), None)
    if read_header is None:
        raise ValueError(f"its format {version} is not 1.0 or 2.0")
    shape, _, dtype = read_header(file)
    # Python's product, because NumPy's product of a huge shape could overflow to a small number
    claimed_size = math.prod(shape) * dtype.itemsize
    if dtype.hasobject:
        raise ValueError("it contains Python objects, which could run code")
    if min(shape, default=0) < 0 or claimed_size != size - file.tell():
        raise ValueError(
            f"its header claims an array {shape} of {dtype} ({claimed_size:,} bytes), but "
            f"{size - file.tell():,} bytes follow"
        )
    # `read_array` reads the header again
    file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False)
