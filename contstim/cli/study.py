"""`contstim new`, `contstim run` and `contstim status`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.options import Quiet
from contstim.cli.output import INCOMPLETE, print_table, remark, results_table, warn
from contstim.cli.progress import TerminalWatcher
from contstim.wording import counted

if TYPE_CHECKING:
    from contstim.study.stage import Stage
    from contstim.study.stage_records import Examination, StageRecord

StudyFile = Annotated[Path, typer.Argument(help="The study file, or its folder.")]
_STUDY_FILE = Path("study.toml")


def new(
    name: Annotated[Path, typer.Argument(help="The folder of the study.")],
    quiet: Quiet = False,
) -> None:
    """Write a study file to begin with, which runs as it stands.

    It trains toy models on the embedded English, and is done within a minute. Change it step by
    step: `contstim run` does again only what a change concerns.

    Example: `contstim new my-study`
    """
    from contstim.study.template import new_study

    path = new_study(name)
    remark(f"{path}: a study to begin with. Do it with: contstim run {path}", quiet=quiet)


def run(
    study: StudyFile = _STUDY_FILE,
    until: Annotated[
        str | None,
        typer.Option(metavar="STAGE", help="Stop behind this stage, such as pairs or model."),
    ] = None,
    first: Annotated[
        str | None,
        typer.Option("--from", metavar="STAGE", help="Do this stage again, although it holds."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Write anew files that were changed by hand.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Do what a study file says: every stage that has not been done, or no longer holds.

    A stage holds while the content of what it read, its keys in the study file and the versions of
    what computes it are the same. An interrupted run goes on where it stopped. Everything is
    written into the folder results beside the study file, and index.html shows it.

    Files that were changed by hand are named, and used as they are.

    Example: `contstim run study.toml`
    """
    from contstim.study.running import run_study
    from contstim.study.study_file import read_study

    read = read_study(study)

    def begin(stage: Stage, why: Examination) -> None:
        reasons = f" ({'; '.join(why.reasons)})" if why.reasons else ""
        remark(f"{stage.name}: {stage.about}{reasons}", quiet=quiet)

    def end(stage: Stage, record: StageRecord) -> None:
        remark(f"{stage.name}: done in {record.seconds:,.1f} s", quiet=quiet)

    done = run_study(
        read,
        first=first,
        last=until,
        overwrite=overwrite,
        watch=TerminalWatcher(quiet=quiet),
        begin=begin,
        end=end,
    )
    for name in done.edited:
        warn(f"{name} was changed by hand; what follows is made of it as it is.")
    remark(
        f"{counted(len(done.done), 'stage')} done, {len(done.unchanged):,} unchanged.", quiet=quiet
    )
    if done.incomplete:
        warn(f"not everything was found: {', '.join(done.incomplete)}; see above.")
        raise typer.Exit(INCOMPLETE)


def status(study: StudyFile = _STUDY_FILE) -> None:
    """Say of every stage whether it has been done, when, how long it took, and what is stale.

    Example: `contstim status study.toml`
    """
    from contstim.study.status import stage_states
    from contstim.study.study_file import read_study

    table = results_table("stage", "state", "done (UTC)", "seconds", "size", "because", texts=3)
    for row in stage_states(read_study(study)):
        table.add_row(row.stage, row.state, row.date, row.seconds, row.size, row.because)
    print_table(table)
