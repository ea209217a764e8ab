"""The server sends files of the folder and no others, also to raw requests."""

import socket
from contextlib import suppress
from pathlib import Path

import pytest

from contstim.experiments.collection.service import read_study
from tests.experiments.collection.conftest import TOKEN, Serve
from tests.experiments.collection.servers import answer, small_study

SECRET = b"nobody may read this"


def send_bytes(port: int, request: bytes, *, patience: float = 10.0) -> bytes:
    """Send bytes and return the reply up to a silence of `patience` seconds."""
    parts = []
    with socket.create_connection(("127.0.0.1", port), timeout=patience) as connection:
        connection.sendall(request)
        with suppress(OSError):
            while chunk := connection.recv(65536):
                parts.append(chunk)
    return b"".join(parts)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with secret files next to it and hidden in it, and with links to them."""
    for outside in ("secret.txt", "experiment.sqlite", "elsewhere/secret.txt"):
        (tmp_path / outside).parent.mkdir(exist_ok=True)
        (tmp_path / outside).write_bytes(SECRET)
    folder = small_study(tmp_path / "experiment")
    (folder / ".hidden").write_bytes(SECRET)
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_bytes(SECRET)
    (folder / "vendor").mkdir()
    (folder / "vendor" / "jspsych.js").write_text("'jsPsych'")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "linked").symlink_to(tmp_path / "elsewhere")
    (folder / "unhidden.txt").symlink_to(folder / ".hidden")
    (folder / "circle").symlink_to(folder / "circle")
    (folder / "inside.js").symlink_to(folder / "experiment.js")
    (folder / "odd name ü.txt").write_text("odd")
    return folder


def test_replies_have_security_headers(serve: Serve, folder: Path) -> None:
    """Pages and errors have the headers of OWASP's cheat sheet of HTTP headers."""
    served = serve(folder)
    for path in ("/", "/study.json", "/nothing", "/api/participants", "/admin/responses.csv"):
        headers = served.http.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_files_outside_the_folder_are_not_sent(serve: Serve, folder: Path) -> None:
    served = serve(folder)
    paths = (
        "/../secret.txt /vendor/../../secret.txt /%2e%2e/secret.txt /..%2fsecret.txt "
        "/%2e%2e%2fsecret.txt /%252e%252e%252fsecret.txt /..%5csecret.txt /..\\secret.txt "
        f"/vendor/..%2f..%2fsecret.txt /{folder.parent}/secret.txt //{folder.parent}/secret.txt "
        "/%2fetc%2fpasswd //etc/passwd /etc/passwd%00.html /index.html%00 /%00 /link.txt "
        "/linked/secret.txt /unhidden.txt /circle /.hidden /%2ehidden /.git/config /./.git/config "
        f"/vendor /vendor/ /C:/Windows/win.ini /{'a' * 5_000} /%ff%fe /../experiment.sqlite "
        "/admin/../../secret.txt /index.html/ /index.html/../../secret.txt"
    )
    for path in paths.split():
        reply = send_bytes(
            served.port, f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
        )
        status = reply.split(b"\r\n")[0]
        assert status.split(b" ")[1] in (b"400", b"401", b"404"), (path, status)
        assert SECRET not in reply
        assert b"root:" not in reply


def test_completion_code_is_sent_only_at_the_end(serve: Serve, tmp_path: Path) -> None:
    completion = {"code": "C0DE-1", "redirect": "https://example.org/?cc=C0DE-1"}
    folder = small_study(tmp_path / "coded", groups=1, trials=1, completion=completion)
    (folder / "copy.json").symlink_to(folder / "study.json")
    study = read_study(folder)
    served = serve(folder, code=study.code, redirect=study.redirect)
    for path in ("/study.json", "/study%2ejson", "/copy.json", "/study.json?x"):
        reply = served.http.get(path)
        assert reply.status_code == 200
        assert "C0DE" not in reply.text
        assert [*reply.json()["groups"]] == ["1"]
    joined = served.join()
    assert "C0DE" not in str(joined)
    assert "C0DE" not in served.complete(joined).text
    served.save(joined, answer("t1-0"))
    assert served.complete(joined).json() == completion


def test_removed_files_give_404_or_503(serve: Serve, folder: Path) -> None:
    served = serve(folder)
    (folder / "study.json").unlink()
    assert served.http.get("/").status_code == 200
    assert served.http.get("/study.json").status_code == 404
    served.database.rename(served.database.with_suffix(".moved"))
    reply = served.http.get("/admin/responses.csv", params={"token": TOKEN})
    assert reply.status_code == 503
    assert reply.headers["retry-after"] == "5"
