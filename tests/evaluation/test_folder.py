"""The folder that every evaluation writes."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from contstim.errors import InputError
from contstim.evaluation.folder import data_hash

if TYPE_CHECKING:
    from pathlib import Path


def test_the_hash_is_of_names_and_contents(tmp_path: Path) -> None:
    """Witness: hashlib on the bytes written out by hand."""
    for name, content in (("b.txt", "two"), ("a.txt", "one")):
        (tmp_path / name).write_text(content)
    expected = sha256(b"a.txt\x003\x00oneb.txt\x003\x00two").hexdigest()
    assert data_hash([tmp_path / "b.txt", tmp_path / "a.txt"]) == expected
    with pytest.raises(InputError, match="Cannot read"):
        data_hash([tmp_path / "c.txt"])
