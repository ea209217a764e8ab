"""Decisions of the researcher about a page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from contstim.errors import InputError
from contstim.options import Help


def check_web_address(address: str) -> None:
    """Refuse what is not an address of the web, such as `javascript:…` or a bare host.

    Raises:
        InputError: it begins with neither https:// nor http://, or names no host.
    """
    try:
        parts = urlsplit(address)
        proper = parts.scheme in ("http", "https") and bool(parts.netloc)
    except ValueError:
        proper = False  # brackets that do not close, as of an IPv6 host
    if not proper:
        raise InputError(f"{address!r} is not a web address; it must begin with https://.")


class SaveTo(StrEnum):
    """Destination of answers."""

    SERVER = "server"
    DATAPIPE = "datapipe"
    JATOS = "jatos"
    DOWNLOAD = "download"


DATAPIPE = "https://pipe.jspsych.org/api/"


@dataclass(frozen=True)
class PageSettings:
    """Settings of what a page shows and does beside its trials.

    Attributes:
        save: where answers go: `contstim collect`, DataPipe (which writes to the OSF), JATOS, or a
            file that the participant downloads.
        datapipe_id: DataPipe's name of the experiment; needed there, empty elsewhere.
        datapipe_address: DataPipe's API, with a slash at the end.
        completion_code: what participants see when all is saved; empty: none, or from the server
            a code for each participant unless there is a redirect.
        redirect: where they go then, such as Prolific's completion link; empty: nowhere.
        title: of the browser's window.
        language: of the sentences and texts, as HTML names it.
        practice: a table with sentence_1 and sentence_2 to begin with; None: no practice, or that
            of an earlier export into the same folder.
        vendor: copy jsPsych into the folder, so that the page needs no other server.
        library: a folder with jsPsych's files to copy; None: they are fetched from npm.

    Raises:
        InputError: settings that do not fit together, or an address that cannot be one.
    """

    save: Annotated[
        SaveTo, Help("Where answers go: contstim collect, the OSF, JATOS, or a download.")
    ] = SaveTo.SERVER
    datapipe_id: Annotated[str, Help("With --save datapipe: the experiment's ID there.")] = ""
    datapipe_address: str = DATAPIPE
    completion_code: Annotated[
        str, Help("What participants see when all their answers are saved.")
    ] = ""
    redirect: Annotated[str, Help("Where they go then, such as Prolific's completion link.")] = ""
    title: Annotated[str, Help("Of the browser's window.")] = "Comparing sentences"
    language: Annotated[str, Help("Of sentences and texts: en, de, pt-BR, …")] = "en"
    practice: Annotated[
        Path | None, Help("Pairs to practise on: a table with sentence_1 and sentence_2.")
    ] = None
    vendor: Annotated[
        bool,
        Help("Copy jsPsych into the folder, from npm: works offline.", flag="--vendor"),
    ] = False
    library: Annotated[
        Path | None,
        Help(
            "Copy jsPsych from this folder (an earlier `vendor`, or node_modules).",
            flag="--vendor-from",
        ),
    ] = None

    @property
    def has_secret(self) -> bool:
        """True if the settings hold what participants get for taking part."""
        return bool(self.completion_code or self.redirect)

    def __post_init__(self) -> None:
        if not self.title.strip():
            raise InputError("The page needs a title.")
        if (self.save is SaveTo.DATAPIPE) != bool(self.datapipe_id):
            raise InputError(
                "Saving to DataPipe needs the experiment's ID there (--datapipe-id, from its "
                "dashboard on pipe.jspsych.org), and nothing else does."
            )
        # It becomes part of a script and of an address, where nothing needs to be escaped then.
        if not re.fullmatch(r"[A-Za-z0-9_-]*", self.datapipe_id):
            raise InputError(f"{self.datapipe_id!r} is not a DataPipe ID: letters and digits only.")
        if not re.fullmatch(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*", self.language):
            raise InputError(
                f"{self.language!r} is not the name of a language; give en, de, pt-BR or the like."
            )
        for address in filter(None, (self.redirect, self.datapipe_address)):
            check_web_address(address)
