"""Files fetched from a local server and checked against pinned checksums."""

import sys
import threading
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.experiments.reproduce import published
from contstim.experiments.reproduce.published import (
    PUBLISHED,
    fetch_published,
    published_files,
    read_vocabulary,
)


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def served_folder(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder and the address of the server of its files."""
    folder = tmp_path / "served"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def small(served_folder: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str]:
    """A registry with one small file instead of the published files."""
    path = "natural_controversial_sentences/pairs.csv"
    (served_folder[0] / path).parent.mkdir()
    (served_folder[0] / path).write_text("a,b\n")
    registry = {path: f"sha256:{sha256(b'a,b' + bytes([10])).hexdigest()}"}
    monkeypatch.setattr(published, "published_files", lambda: registry)
    return served_folder[0] / path, served_folder[1]


def test_files_are_fetched_once(tmp_path: Path, small: tuple[Path, str]) -> None:
    source, address = small
    fetched: list[str] = []
    folder = fetch_published(tmp_path / "here", ["pairs"], address=address, progress=fetched.append)
    assert (folder / fetched[0]).read_text() == "a,b\n"
    source.unlink()
    fetch_published(folder, ["pairs"], address=address)


def test_changed_and_missing_files_are_refused(tmp_path: Path, small: tuple[Path, str]) -> None:
    small[0].write_text("something else")
    with pytest.raises(InputError, match="hash"):
        fetch_published(tmp_path / "here", ["pairs"], address=small[1])
    assert not [path for path in (tmp_path / "here").rglob("*") if path.is_file()]
    small[0].unlink()
    with pytest.raises(InputError, match=r"pairs\.csv: 404 .*by hand"):
        fetch_published(tmp_path / "here", ["pairs"], address=small[1])


def test_connection_errors_and_unknown_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Cannot fetch"):
        fetch_published(tmp_path, ["pairs"], address="http://127.0.0.1:9/")
    with pytest.raises(InputError, match=r"must be one of pairs, triplets.* got 'nonsense'"):
        fetch_published(tmp_path, ["nonsense"])


def test_every_file_belongs_to_a_named_part() -> None:
    all_prefixes = tuple(prefix for prefixes in PUBLISHED.values() for prefix in prefixes)
    assert all(path.startswith(all_prefixes) for path in published_files())
    for prefixes in PUBLISHED.values():
        assert all(any(p.startswith(prefix) for p in published_files()) for prefix in prefixes)


@pytest.mark.published
def test_published_files_have_the_pinned_checksums(
    published_data: Path, tmp_path: Path, served_folder: tuple[Path, str]
) -> None:
    """Witness: the copy of the published repository."""
    for path, checksum in published_files().items():
        content = (published_data / "contstimlang" / path).read_bytes()
        assert checksum == f"sha256:{sha256(content).hexdigest()}"
    served_folder[0].rmdir()
    served_folder[0].symlink_to(published_data / "contstimlang")
    folder = fetch_published(tmp_path / "here", ["vocabulary"], address=served_folder[1])
    assert len(read_vocabulary(folder).initial) == 5_977


def test_error_names_the_extra_with_pooch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(InputError, match=r"contstim\[published\]"):
        fetch_published(tmp_path)
