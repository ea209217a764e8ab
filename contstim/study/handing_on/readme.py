"""README of an archive, for those who unpack it."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from contstim.reporting.report import Bullets, Heading, Paragraph, Report, Table, code, strong
from contstim.study.handing_on.manifest import ARCHIVED_RESULTS, PSYCH_DS
from contstim.study.study import RESULTS
from contstim.version import __version__

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from contstim.reporting.report import Part
    from contstim.study.handing_on.facts import StudyFacts
    from contstim.study.handing_on.manifest import ArchivedFile, HubModel

_WHAT = {
    "datasheet.md": "how the items were made, chosen, left out and shared out (also .html)",
    "methods.md": "a methods section to paste, with references",
    "preregistration.md": "a draft with the fields of OSF's standard template",
    "index.html": "the page of the study",
    "constraints.txt": "the versions to install",
    "environment.json": "versions, system and hardware that the study was made with",
}


def readme_text(
    facts: StudyFacts,
    to_supply: Sequence[ArchivedFile],
    hub: Sequence[HubModel],
    doubts: Sequence[str],
    texts: Collection[str],
) -> str:
    """The README of an archive, in Markdown.

    Args:
        facts: of the study.
        to_supply: inputs that the receiver is to supply.
        hub: models of the hub.
        doubts: what does not hold of the results, one sentence each.
        texts: the files at the top of the archive.
    """
    study = facts.study
    rows = [
        (code(study.path.name), "the study file"),
        (code(f"{ARCHIVED_RESULTS}/"), "all results, as they were"),
        (code("archive.json"), "every file with its size and checksum"),
        *((code(name), what) for name, what in _WHAT.items() if name in texts),
    ]
    if facts.responses:
        rows.append((code(f"{PSYCH_DS}/"), "stimuli, responses and scores as a Psych-DS data set"))
    parts: list[Part] = [
        Paragraph("A study made with contstim, with everything that it takes to do it again."),
        *(Paragraph((strong(doubt),)) for doubt in doubts),
        Table(("file", "what it is"), rows, texts=2),
        Heading("Do it again"),
        Paragraph(
            f"It was made with contstim {__version__} on Python {platform.python_version()}. In a "
            "new virtual environment, with the same Python:"
        ),
        Bullets(
            [
                (code("pip install -c constraints.txt contstim"), "; or a copy of its source"),
                (
                    code(f"contstim run {study.path.name}"),
                    f" does everything anew, into {RESULTS}/, and says at the end which files "
                    f"equal those in {ARCHIVED_RESULTS}/",
                ),
            ]
        ),
        Paragraph(
            "Models on other hardware, or with other versions, may differ in the last digits of "
            "their scores, and searches then end with other sentences."
        ),
    ]
    if to_supply:
        parts += [
            Heading("To supply"),
            Paragraph("Put these files, which are not part of the archive, where they belong:"),
            Table(
                ("file", "sha256", "bytes"),
                [(code(f.name), code(f.sha256), f"{f.size:,}") for f in to_supply],
                texts=2,
            ),
        ]
    if hub:
        parts += [
            Heading("Models of the hub"),
            Paragraph(
                "They are loaded by name. If one has changed since, its fingerprint differs, and "
                "the records of scores say so."
            ),
            Table(
                ("model", "name on the hub", "commit", "fingerprint"),
                [(m.name, code(m.location), m.revision or "–", m.fingerprint or "–") for m in hub],
                texts=4,
            ),
        ]
    return Report(study.title, parts).markdown()
