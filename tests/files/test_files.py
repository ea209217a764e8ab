import os
import stat
import threading
from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.files.files import path_inside, write_text, writing
from contstim.files.records import write_record


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


@pytest.mark.parametrize("place", ["", "file.txt/inside.txt"])
def test_an_impossible_place_is_an_input_error(tmp_path: Path, place: str) -> None:
    write_text(tmp_path / "file.txt", "here\n")
    with pytest.raises(InputError, match="Cannot write"):
        write_text(tmp_path / place, "text")


def test_a_pipe_is_written_into_and_stays_one(tmp_path: Path) -> None:
    """Outside witness: what a reader at the other end gets."""
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_text(pipe, "é\n")
    reader.join(timeout=10)
    assert got == ["é\n".encode()]
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_device_is_never_replaced() -> None:
    devices = [(path, Path(path).stat().st_rdev) for path in ("/dev/null", "/dev/full")]
    write_text("/dev/null", "text\n")
    write_record("/dev/null", seed=1)
    with pytest.raises(InputError, match="Cannot write /dev/full: No space left on device"):
        write_text("/dev/full", "text\n")
    with pytest.raises(InputError, match="that folder is for devices"):
        write_text("/dev/null.csv", "text\n")
    assert [(path, Path(path).stat().st_rdev) for path, _ in devices] == devices
    assert all(Path(path).is_char_device() for path, _ in devices)


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "there" / "target.txt", tmp_path / "link.txt"
    link.symlink_to(target)
    for text in ("first\n", "second\n"):  # where there is none yet, and where there is one
        write_text(link, text)
        assert link.is_symlink()
        assert not target.is_symlink()
        assert target.read_text() == text
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    with pytest.raises(InputError, match=r"Cannot write .*circle"):
        write_text(circle, "text")


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_new_files_have_the_usual_mode_and_old_ones_keep_theirs(tmp_path: Path, umask: int) -> None:
    """Outside witness: a file that Python itself makes."""
    usual, path = tmp_path / "usual", tmp_path / "new"
    before = os.umask(umask)
    try:
        usual.write_text("")
        with writing(path) as partial:  # as some libraries write: readable by nobody else
            partial.unlink()
            os.close(os.open(partial, os.O_CREAT | os.O_WRONLY, 0o600))
        assert path.stat().st_mode == usual.stat().st_mode
        path.chmod(0o640)
        write_text(path, "text")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("letter", ["x", "é"])
def test_names_may_be_as_long_as_the_file_system_takes(tmp_path: Path, letter: str) -> None:
    longest = letter * (255 // len(letter.encode()))
    write_text(tmp_path / longest, "text")
    assert [path.name for path in tmp_path.iterdir()] == [longest]
    with pytest.raises(InputError, match="File name too long"):
        write_text(tmp_path / f"{longest}xx", "text")


def test_half_a_character_is_an_input_error_and_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    write_text(path, "old\n")
    with pytest.raises(InputError, match=r"'\\udcff' cannot be written as UTF-8"):
        write_text(path, "new \udcff\n")
    assert path.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [path]


def test_what_holds_a_secret_is_its_owners_alone_whatever_stood_there(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    for before in (None, 0o644):
        if before is not None:
            path.write_text("public")
            path.chmod(before)
        write_text(path, "secret", private=True)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        path.unlink()


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/../../x", "a/..", "/etc/passwd", "//x", "a\\..\\x", "a\0b"]
)
def test_a_name_that_names_no_file_of_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="must be a file in"):
        path_inside(tmp_path, name)


@pytest.mark.parametrize("name", ["out", "out/x", "in/out/x", "circle"])
def test_a_link_does_not_lead_out_of_its_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "folder"
    (folder / "there").mkdir(parents=True)
    (folder / "in").symlink_to("there")
    for out in (folder / "out", folder / "in" / "out"):
        out.symlink_to(tmp_path)
    (folder / "circle").symlink_to("circle")
    with pytest.raises(InputError, match="a link that leads out of"):
        path_inside(folder, name)
