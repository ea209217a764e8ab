"""`contstim export jspsych`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

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
from contstim.wording import counted


def jspsych(
    trials: Trials,
    out: Annotated[Path, typer.Option(help="The folder to write; texts in it are kept.")],
    save: Annotated[
        Literal["server", "datapipe", "jatos", "download"],
        typer.Option(help="Where answers go: contstim collect, the OSF, JATOS, or a download."),
    ] = "server",
    datapipe_id: Annotated[
        str, typer.Option(help="With --save datapipe: the experiment's ID there.")
    ] = "",
    completion_code: CompletionCode = "",
    redirect: Redirect = "",
    title: Title = "Comparing sentences",
    language: Language = "en",
    practice: Practice = None,
    vendor: Vendor = False,
    vendor_from: VendorFrom = None,
    quiet: Quiet = False,
) -> None:
    """Write a page on which people compare the sentences of each trial, and say how sure they are.

    The folder holds everything: the page, consent, instructions, examples and debriefing to edit,
    and a README that says what to do. Exported again, it keeps the texts.

    Example: `contstim export jspsych --trials trials.csv --out experiment --vendor`
    """
    from contstim.experiments.platforms.jspsych import (
        PageSettings,
        SaveTo,
        export_jspsych,
        unfilled_warning,
    )
    from contstim.records import write_private_record, write_record
    from contstim.stimuli import read_trials

    settings = PageSettings(
        title=title,
        save=SaveTo(save),
        datapipe_id=datapipe_id,
        completion_code=completion_code,
        redirect=redirect,
        language=language,
        practice=practice,
        vendor=vendor,
        library=vendor_from,
    )
    study = export_jspsych(read_trials(trials), out, settings)
    write = write_private_record if completion_code or redirect else write_record
    write(out, trials=str(trials), study=study["id"])
    groups = study["groups"]
    if warning := unfilled_warning(out):
        remark(f"warning: {warning}")
    remark(
        f"{out}: {counted(sum(map(len, groups.values())), 'pair')} in "
        f"{counted(len(groups), 'group')}. "
        f"Edit the texts there; {out / 'README.md'} says how to go on.",
        quiet=quiet,
    )
