from __future__ import annotations

from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.files import write_text, writing


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    write_text(path, "old\n")

    def interrupted() -> None:
        with writing(path) as partial:
            partial.write_text("half of the ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [path]


def test_missing_folders_are_made(tmp_path: Path) -> None:
    write_text(tmp_path / "a" / "b" / "text.txt", "é\n")
    assert (tmp_path / "a" / "b" / "text.txt").read_bytes() == "é\n".encode()


@pytest.mark.parametrize("place", ["", "file.txt/inside.txt"])
def test_an_impossible_place_is_an_input_error(tmp_path: Path, place: str) -> None:
    write_text(tmp_path / "file.txt", "here\n")
    with pytest.raises(InputError, match="Cannot write"):
        write_text(tmp_path / place, "text")
