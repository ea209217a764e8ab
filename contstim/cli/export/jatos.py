"""`contstim export jatos`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contstim.cli.export.page_options import (
    CompletionCode,
    Language,
    Practice,
    Redirect,
    Title,
    Trials,
    Vendor,
    VendorFrom,
)
from contstim.cli.options import Quiet
from contstim.cli.output import remark


def jatos(
    trials: Trials,
    out: Annotated[Path, typer.Option(help="The folder to write; texts in its page are kept.")],
    completion_code: CompletionCode = "",
    redirect: Redirect = "",
    title: Title = "Comparing sentences",
    language: Language = "en",
    practice: Practice = None,
    vendor: Vendor = False,
    vendor_from: VendorFrom = None,
    quiet: Quiet = False,
) -> None:
    """Write the page of `export jspsych` as a study archive (.jzip) that JATOS imports.

    The folder holds `page`, with the texts to edit, and the archive made of it. Run the command
    again after an edit: the archive is the same study, which JATOS offers to overwrite.

    Example: `contstim export jatos --trials trials.csv --out study --vendor`
    """
    from contstim.experiments.platforms.jatos import export_jatos
    from contstim.experiments.platforms.jspsych import PageSettings, SaveTo, unfilled_warning
    from contstim.records import write_private_record, write_record
    from contstim.stimuli import read_trials

    settings = PageSettings(
        title=title,
        save=SaveTo.JATOS,
        completion_code=completion_code,
        redirect=redirect,
        language=language,
        practice=practice,
        vendor=vendor,
        library=vendor_from,
    )
    archive = export_jatos(read_trials(trials), out, settings)
    write = write_private_record if completion_code or redirect else write_record
    write(archive, trials=str(trials))
    if warning := unfilled_warning(out / "page"):
        remark(f"warning: {warning}")
    remark(
        f"{archive}: import it in JATOS. Edit the texts in {out / 'page'} and export again; "
        f"{out / 'page' / 'README.md'} says how to go on.",
        quiet=quiet,
    )
