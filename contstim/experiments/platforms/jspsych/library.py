"""jsPsych itself: the JavaScript files that the page loads, with fixed versions and checksums.

The files are the browser builds in the npm packages. The CDN serves the same files, so one checksum
is valid for both sources.
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
"""JavaScript files of npm packages.

The keys are `package`, `version`, `integrity`, `archive` and `name`. `integrity` is the SHA-384 of
the file, which browsers check. `archive` is the SHA-512 of the package's archive, which npm
publishes. `name` is the file's name in the folder `vendor`.
"""


def cdn_address(file: dict[str, str]) -> str:
    """Return the CDN's address of a file."""
    return f"{_CDN}/{file['package']}@{file['version']}/{_BUILD}"


def library_tags(*, vendored: bool) -> str:
    """Return script elements that load jsPsych, from the folder or from the CDN."""
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
    """Check the checksums of jsPsych's files, and write the files into a folder.

    Args:
        folder: destination; created when missing.
        source: folder with the files, in the layout of `folder` or of npm (`node_modules`). If
            `source` is None, valid files in `folder` or `earlier` are used, and all other files are
            fetched from npm over HTTPS.
        earlier: folder of an earlier export, which may contain the files.

    Raises:
        InputError: if there is no connection, or a file is missing or has another checksum.
    """
    folder = Path(folder)
    for file in LIBRARY:
        if source:
            content = _read_from(file, source)
        else:
            paths = (root / file["name"] for root in (folder, earlier) if root)
            contents = (path.read_bytes() for path in paths if path.is_file())
            valid = (data for data in contents if _has_checksum(data, file["integrity"]))
            content = next(valid, b"") or _fetch(file)
        _check(content, file["integrity"], f"{file['package']} {file['version']}")
        with writing(folder / file["name"]) as partial:
            partial.write_bytes(content)
    # The npm packages do not contain the licence, so license.txt of jsPsych's repository is added
    files = "\n".join(f"{file['package']} {file['version']}" for file in LIBRARY)
    text = Template((_VENDOR / "LICENSE.txt").read_text(encoding="utf-8")).substitute(files=files)
    write_text(folder / "LICENSE.txt", text)


def _read_from(file: dict[str, str], source: Path) -> bytes:
    name, package = file["name"], file["package"]
    for path in (source / name, source / package / _BUILD):
        if path.is_file():
            return path.read_bytes()
    raise InputError(
        f"{source} has neither {name} nor {package}/{_BUILD}. Give the folder `vendor` of an "
        f"earlier export, or `node_modules` after 'npm install {package}@{file['version']}'."
    )


def _fetch(file: dict[str, str]) -> bytes:
    package, version = file["package"], file["version"]
    address = f"{_NPM}/{package}/-/{package.split('/')[-1]}-{version}.tgz"
    try:
        with urllib.request.urlopen(address, timeout=_SECONDS) as answer:
            archive = answer.read()
    except OSError as error:
        raise InputError(
            f"Cannot fetch {address}: {error}. Give a folder with the files (`library`), or remove "
            "`vendor`, so that browsers load the files from a CDN."
        ) from error
    # The archive is checked before it is unpacked; the caller checks the unpacked file
    _check(archive, file["archive"], address)
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        member = packed.extractfile(f"package/{_BUILD}")
        if member is None:
            raise InputError(f"{address} has no {_BUILD}.")
        return member.read()


def _check(content: bytes, expected: str, name: str) -> None:
    if not _has_checksum(content, expected):
        raise InputError(
            f"{name} has an unexpected checksum. Download it again, or use another folder "
            "(`library`)."
        )


def _has_checksum(content: bytes, integrity: str) -> bool:
    # Subresource integrity: the method, a hyphen, and the digest in base64
    method, _, digest = integrity.partition("-")
    return base64.b64encode(hashlib.new(method, content).digest()).decode() == digest
