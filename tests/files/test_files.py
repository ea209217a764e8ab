import os
import stat
import threading
from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.files.files import path_inside, write_text, writing
from contstim.files.records import write_record


def test_interrupted_write_leaves_only_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    write_text(path, "old\n")

    def interrupt_write() -> None:
        with writing(path) as partial:
            partial.write_text("half of the ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt_write()
    with pytest.raises(InputError, match=r"'\\udcff' cannot be written as UTF-8"):
        write_text(path, "half a surrogate pair: \udcff\n")
    assert path.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("path", ["", "file.txt/inside.txt"])
def test_impossible_path_is_an_input_error(tmp_path: Path, path: str) -> None:
    write_text(tmp_path / "file.txt", "here\n")
    with pytest.raises(InputError, match="Cannot write"):
        write_text(tmp_path / path, "text")


def test_pipe_is_written_and_not_replaced(tmp_path: Path) -> None:
    """External witness: the bytes at the other end of the pipe."""
    pipe, received = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    write_text(pipe, "é\n")
    reader.join(timeout=10)
    assert received == ["é\n".encode()]
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_device_is_never_replaced() -> None:
    devices = [(path, Path(path).stat().st_rdev) for path in ("/dev/null", "/dev/full")]
    write_text("/dev/null", "text\n")
    write_record("/dev/null", seed=1)
    with pytest.raises(InputError, match="Cannot write /dev/full: No space left on device"):
        write_text("/dev/full", "text\n")
    with pytest.raises(InputError, match="that folder is for devices"):
        write_text("/dev/null.csv", "text\n")
    assert [(path, Path(path).stat().st_rdev) for path, _ in devices] == devices
    assert all(Path(path).is_char_device() for path, _ in devices)


def test_link_remains_and_its_target_is_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "there" / "target.txt", tmp_path / "link.txt"
    link.symlink_to(target)
    for text in ("first\n", "second\n"):  # for a missing and for an existing target
        write_text(link, text)
        assert link.is_symlink()
        assert not target.is_symlink()
        assert target.read_text() == text
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    with pytest.raises(InputError, match=r"Cannot write .*circle"):
        write_text(circle, "text")


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_new_files_have_the_default_mode_and_old_files_keep_theirs(
    tmp_path: Path, umask: int
) -> None:
    """External witness: a file that Python itself writes."""
    default, path = tmp_path / "usual", tmp_path / "new"
    old_umask = os.umask(umask)
    try:
        default.write_text("")
        with writing(path) as partial:  # like libraries that write files without access for others
            partial.unlink()
            os.close(os.open(partial, os.O_CREAT | os.O_WRONLY, 0o600))
        assert path.stat().st_mode == default.stat().st_mode
        path.chmod(0o640)
        write_text(path, "text")
    finally:
        os.umask(old_umask)
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("letter", ["x", "é"])
def test_names_may_have_the_maximum_length_of_the_file_system(tmp_path: Path, letter: str) -> None:
    longest = letter * (255 // len(letter.encode()))
    write_text(tmp_path / longest, "text")
    assert [path.name for path in tmp_path.iterdir()] == [longest]
    with pytest.raises(InputError, match="File name too long"):
        write_text(tmp_path / f"{longest}xx", "text")


def test_private_files_are_readable_only_by_their_owner(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    for _ in ("new", "old"):
        write_text(path, "secret", private=True)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        path.chmod(0o644)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/../../x", "a/..", "/etc/passwd", "//x", "a\\..\\x", "a\0b"]
)
def test_names_of_files_outside_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="must be a file in"):
        path_inside(tmp_path, name)


@pytest.mark.parametrize("name", ["out", "out/x", "in/out/x", "circle"])
def test_links_out_of_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "folder"
    (folder / "there").mkdir(parents=True)
    (folder / "in").symlink_to("there")
    for link in (folder / "out", folder / "in" / "out"):
        link.symlink_to(tmp_path)
    (folder / "circle").symlink_to("circle")
    with pytest.raises(InputError, match="a link that leads out of"):
        path_inside(folder, name)
