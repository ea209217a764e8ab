"""jsPsych itself: which files the page needs, pinned by the checksum of their content.

The files are the builds for browsers inside the npm packages, which the CDN serves under the same
paths; so one checksum holds for both.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import tarfile
import urllib.request
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

from contstim.errors import InputError
from contstim.files.files import write_text, writing

_CDN = "https://unpkg.com"
_NPM = os.environ.get("NPM_CONFIG_REGISTRY", "https://registry.npmjs.org").rstrip("/")
_BUILD = "dist/index.browser.min.js"
_SECONDS = 60
_VENDOR = resources.files("contstim.experiments.platforms.jspsych") / "vendor"
LIBRARY: tuple[dict[str, str], ...] = tuple(
    json.loads((_VENDOR / "library.json").read_text(encoding="utf-8"))
)
"""JavaScript files of npm packages: package and exact version; `integrity`, the SHA-384 of the file
as browsers check it; `archive`, the SHA-512 of the package's archive as npm states it; and the name
of the file in a folder.
"""


def cdn_address(file: dict[str, str]) -> str:
    """Address at which the CDN serves a file."""
    return f"{_CDN}/{file['package']}@{file['version']}/{_BUILD}"


def npm_address(file: dict[str, str]) -> str:
    """Address at which npm keeps a file's package."""
    package = file["package"]
    return f"{_NPM}/{package}/-/{package.split('/')[-1]}-{file['version']}.tgz"


def library_tags(*, vendored: bool) -> str:
    """Script elements that load jsPsych, from the folder or from the CDN."""
    if vendored:
        return "\n".join(f'  <script src="vendor/{file["name"]}"></script>' for file in LIBRARY)
    return "\n".join(
        f'  <script src="{escape(cdn_address(file))}"\n'
        f'    integrity="{file["integrity"]}" crossorigin="anonymous"></script>'
        for file in LIBRARY
    )


def fetch_library(
    folder: Path | str, source: Path | None = None, *, earlier: Path | None = None
) -> None:
    """Put jsPsych's files into a folder, each checked against the content known here.

    Args:
        folder: where they go; made if need be.
        source: a folder that has them: as `folder` would, or as npm installs packages
            (`node_modules`). None: the packages are fetched from npm over HTTPS; files that are
            already in `folder` are not fetched again.
        earlier: a folder that may have them from an earlier export.

    Raises:
        InputError: no connection, a file is missing, or its content is not what it should be.
    """
    folder = Path(folder)
    for file in LIBRARY:
        if source:
            content = _given(file, source)
        else:
            kept = (each / file["name"] for each in (folder, earlier) if each)
            contents = (path.read_bytes() for path in kept if path.is_file())
            good = (each for each in contents if _is(each, file["integrity"]))
            content = next(good, b"") or _fetched(file)
        _check(content, file["integrity"], f"{file['package']} {file['version']}")
        with writing(folder / file["name"]) as partial:
            partial.write_bytes(content)
    # The npm packages do not hold it: from license.txt of the project's repository
    files = "\n".join(f"{file['package']} {file['version']}" for file in LIBRARY)
    text = Template((_VENDOR / "LICENSE.txt").read_text(encoding="utf-8")).substitute(files=files)
    write_text(folder / "LICENSE.txt", text)


def _given(file: dict[str, str], source: Path) -> bytes:
    """A file as an earlier export has it, or as npm installs it."""
    name, package = file["name"], file["package"]
    for path in (source / name, source / package / _BUILD):
        if path.is_file():
            return path.read_bytes()
    raise InputError(
        f"{source} has neither {name} nor {package}/{_BUILD}. Give a folder `vendor` of an earlier "
        f"export, or `node_modules` after npm install {package}@{file['version']}."
    )


def _fetched(file: dict[str, str]) -> bytes:
    address = npm_address(file)
    try:
        with urllib.request.urlopen(address, timeout=_SECONDS) as answer:
            archive = answer.read()
    except OSError as error:
        raise InputError(
            f"Cannot fetch {address}: {error}. Give a folder with the files (`library`), or leave "
            "`vendor` out: then browsers load them from a CDN."
        ) from error
    # The archive is checked before anything unpacks it; the file inside is checked by the caller.
    _check(archive, file["archive"], address)
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        member = packed.extractfile(f"package/{_BUILD}")
        if member is None:
            raise InputError(f"{address} has no {_BUILD}.")
        return member.read()


def _check(content: bytes, expected: str, what: str) -> None:
    if not _is(content, expected):
        raise InputError(f"{what} is not the file that it should be: its checksum is another.")


def _is(content: bytes, integrity: str) -> bool:
    # Subresource integrity: the method, a hyphen, and the digest in base64.
    method, _, digest = integrity.partition("-")
    return base64.b64encode(hashlib.new(method, content).digest()).decode() == digest
