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
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

from contstim.errors import InputError
from contstim.files import write_text, writing

_CDN = "https://unpkg.com"
_NPM = os.environ.get("NPM_CONFIG_REGISTRY", "https://registry.npmjs.org").rstrip("/")
_BUILD = "dist/index.browser.min.js"
_SECONDS = 60


@dataclass(frozen=True)
class LibraryFile:
    """A JavaScript file of an npm package.

    Attributes:
        package: its name on npm.
        version: the exact one.
        integrity: SHA-384 of the file, as browsers check it.
        archive: SHA-512 of the package's archive, as npm states it.
        name: the file's name in the folder.
    """

    package: str
    version: str
    integrity: str
    archive: str
    name: str

    @property
    def address(self) -> str:
        """Address at which the CDN serves it."""
        return f"{_CDN}/{self.package}@{self.version}/{_BUILD}"

    @property
    def archive_address(self) -> str:
        """Address at which npm keeps the package."""
        return f"{_NPM}/{self.package}/-/{self.package.split('/')[-1]}-{self.version}.tgz"


_VENDOR = resources.files("contstim.experiments.platforms.jspsych") / "vendor"
LIBRARY = tuple(
    LibraryFile(**pinned)
    for pinned in json.loads((_VENDOR / "library.json").read_text(encoding="utf-8"))
)


def library_tags(*, vendored: bool) -> str:
    """Script elements that load jsPsych, from the folder or from the CDN."""
    if vendored:
        return "\n".join(f'  <script src="vendor/{file.name}"></script>' for file in LIBRARY)
    return "\n".join(
        f'  <script src="{escape(file.address)}"\n'
        f'    integrity="{file.integrity}" crossorigin="anonymous"></script>'
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
        content = _given(file, source) if source else _kept(file, folder, earlier) or _fetch(file)
        _check(content, file.integrity, f"{file.package} {file.version}")
        with writing(folder / file.name) as partial:
            partial.write_bytes(content)
    # The npm packages do not hold it: from license.txt of the project's repository
    files = "\n".join(f"{file.package} {file.version}" for file in LIBRARY)
    text = Template((_VENDOR / "LICENSE.txt").read_text(encoding="utf-8")).substitute(files=files)
    write_text(folder / "LICENSE.txt", text)


def _given(file: LibraryFile, source: Path) -> bytes:
    """A file as an earlier export has it, or as npm installs it."""
    for place in (source / file.name, source / file.package / _BUILD):
        if place.is_file():
            return place.read_bytes()
    raise InputError(
        f"{source} has neither {file.name} nor {file.package}/{_BUILD}. Give a folder `vendor` of "
        f"an earlier export, or `node_modules` after npm install {file.package}@{file.version}."
    )


def _kept(file: LibraryFile, *folders: Path | None) -> bytes | None:
    """A file that was fetched before, if it is still the pinned one."""
    kept = (folder / file.name for folder in folders if folder)
    contents = (place.read_bytes() for place in kept if place.is_file())
    return next((content for content in contents if _is(content, file.integrity)), None)


def _fetch(file: LibraryFile) -> bytes:
    address = file.archive_address
    try:
        with urllib.request.urlopen(address, timeout=_SECONDS) as answer:
            archive = answer.read()
    except OSError as error:
        raise InputError(
            f"Cannot fetch {address}: {error}. Give a folder with the files (`library`), or leave "
            "`vendor` out: then browsers load them from a CDN."
        ) from error
    # The archive is checked before anything unpacks it; the file inside is checked by the caller.
    _check(archive, file.archive, address)
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
