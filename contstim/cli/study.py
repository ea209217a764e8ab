"""`contstim new`, `contstim run`, `contstim status` and `contstim archive`."""

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

    In an unpacked archive all results are compared with the archived ones at the end; the exit
    status is 1 if a table differs.

    Example: `contstim run study.toml`
    """
    from contstim.study.handing_on.comparison import compare_with_archive
    from contstim.study.handing_on.manifest import check_supplied
    from contstim.study.running import run_study
    from contstim.study.study_file import read_study

    for line in check_supplied(study if study.is_dir() else study.parent):
        warn(line)
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
    comparison = None if until is not None else compare_with_archive(read)
    if comparison is not None:
        table = results_table("result", "compared with the archived one", "in what", texts=3)
        for file in comparison.differing:
            table.add_row(file.name, file.outcome, file.difference)
        if comparison.differing:
            print_table(table)
        print(comparison)
    if done.incomplete:
        warn(f"not everything was found: {', '.join(done.incomplete)}; see above.")
    if comparison is not None and comparison.tables_differ:
        raise typer.Exit(1)
    if done.incomplete:
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


def archive(
    out: Annotated[
        Path, typer.Option(help="A file that ends in .zip, or a new folder.", metavar="ZIP|FOLDER")
    ],
    study: StudyFile = _STUDY_FILE,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Name this file or folder with its checksum and leave it out; repeatable.",
        ),
    ] = None,
    largest: Annotated[
        float, typer.Option(min=0, metavar="MB", help="Leave out larger inputs, too.")
    ] = 500,
    as_it_is: Annotated[
        bool,
        typer.Option("--as-it-is", help="Although stages are stale, missing or changed by hand."),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Write a study with all that it takes to do it again, and what a publication needs.

    The zip or folder holds the study file, its inputs, all results, the installed versions, a
    datasheet of the materials, a methods section with every number filled in, the draft of a
    preregistration, and a Psych-DS data set where there are responses. Questions that only you
    can answer begin with "To fill in". `contstim run` in the unpacked archive does the study
    again and compares.

    Example: `contstim archive --out study.zip`
    """
    from contstim.study.handing_on.archive import archive_study
    from contstim.study.study_file import read_study

    written = archive_study(
        read_study(study),
        out,
        without=without or (),
        largest=largest,
        as_it_is=as_it_is,
        watch=TerminalWatcher(quiet=quiet),
    )
    manifest = written.manifest
    for doubt in manifest.as_it_is:
        warn(doubt)
    size = sum(file.size for file in manifest.files) / 1e6
    remark(
        f"{out}: {counted(len(manifest.files), 'file')}, {size:,.1f} MB before packing. "
        f"{counted(written.questions, 'question')} in its texts are left to you (To fill in).",
        quiet=quiet,
    )
