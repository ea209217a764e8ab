"""The commands of studies: new, plan, run, status, verify and archive."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.output import INCOMPLETE, ProgressBars, Quiet, print_rows, remark, warn
from contstim.options import Help, Models
from contstim.wording import duration_range, printable, quantity

if TYPE_CHECKING:
    from contstim.files.records import Record
    from contstim.study.amounts import NaturalSupply
    from contstim.study.planning import StagePlan, StudyPlan
    from contstim.study.states import StageState
    from contstim.study.study import StudyStage

StudyFile = Annotated[Path, Help("The study file, or its folder.", argument=True)]
_STUDY_FILE = Path("study.toml")


def new(
    *,
    name: Annotated[Path, Help("The folder of the study.", argument=True)],
    model: Annotated[tuple[str, ...], Models("A model to compare.")] = (),
    judge: Annotated[
        tuple[str, ...], Models("A model that is not compared, but chooses sensible sentences.")
    ] = (),
    text: Annotated[Path | None, Help("Text of the natural sentences, one per line.")] = None,
    quiet: Quiet = False,
) -> None:
    """Write a small study file to start from, which can be run without changes.

    Without --model, the study trains toy models on sentences that contstim generates. It then runs
    in a minute or two. Change the file step by step: `contstim run` repeats only the stages that a
    change affects.

    Example: `contstim new my-study`

    Example: `contstim new my-study --model hf:gpt2 --model hf:distilgpt2`
    """
    from contstim.study.study_file import new_study

    path = new_study(name, model, judge, text)
    remark(f"{path}: a small study to start from. Run it with: contstim run {path}", quiet=quiet)


def run(
    *,
    study: StudyFile = _STUDY_FILE,
    until: Annotated[
        str | None, Help("Stop after this stage, such as sentences.", metavar="STAGE")
    ] = None,
    first: Annotated[
        str | None,
        Help("Rerun this stage even if it is up to date.", flag="--from", metavar="STAGE"),
    ] = None,
    overwrite: Annotated[bool, Help("Overwrite files that were changed by hand.")] = False,
    quiet: Quiet = False,
) -> None:
    """Run all stages of a study, except stages that are up to date.

    A stage is up to date if its input files, its keys in the study file and the version of its code
    are unchanged. An interrupted run continues where it stopped. Results are written to the folder
    `results` next to the study file. The page index.html next to the study file shows the results.

    If you change a result by hand, later stages use the changed file, and a warning names it.

    Example: `contstim run study.toml`
    """
    from contstim.study.handing_on.manifest import check_supplied
    from contstim.study.running import run_study
    from contstim.study.study_file import read_study

    for line in check_supplied(study if study.is_dir() else study.parent):
        warn(line)
    read = read_study(study)

    def begin(stage: StudyStage, why: StageState) -> None:
        reasons = f" ({'; '.join(why.reasons)})" if why.reasons else ""
        remark(f"{stage.name}: {stage.about}{reasons}", quiet=quiet)

    def end(stage: StudyStage, record: Record) -> None:
        remark(f"{stage.name}: done in {record.seconds:,.1f} s", quiet=quiet)

    again, n_done = True, 0
    while again:
        done = run_study(
            read,
            first=first,
            last=until,
            overwrite=overwrite,
            reporter=ProgressBars(quiet=quiet),
            begin=begin,
            end=end,
        )
        n_done += len(done.done)
        # Participants are tested in waves, and earlier answers decide which items the next wave
        # needs. If a wave lacked items, `read_study` now requests more triplets
        earlier, read, first = read, read_study(study), None
        before, now = ([s.step.options() for s in planned.stages] for planned in (earlier, read))
        again = bool(done.incomplete) and until is None and before != now
    for name in done.edited:
        warn(f"{name} was changed by hand; later stages use the changed file.")
    counts = f"{quantity(n_done, 'stage')} done, {len(done.unchanged):,} unchanged."
    remark(counts, quiet=quiet)
    for name, warnings in done.incomplete.items():
        # Print the warnings again, because they may be far above or from an earlier run
        for text in warnings:
            warn(text)
        warn(f"{name} is incomplete (see above); the study continues with the existing items.")
    if done.incomplete:
        raise typer.Exit(INCOMPLETE)


def plan(
    *,
    study: StudyFile = _STUDY_FILE,
    measure: Annotated[bool, Help("Measure models and searches on this machine.")] = True,
    quiet: Quiet = False,
) -> None:
    """Print the stages of a run, whether it can succeed, its duration, and the power of its tests.

    Training, scoring and searching are measured briefly, unless an earlier plan or run measured
    them. This takes at most a minute. The command writes only the measured durations, into the
    folder `results`.

    Example: `contstim plan study.toml`
    """
    from contstim.study.planning import plan_study
    from contstim.study.study_file import read_study

    planned = plan_study(read_study(study), measure=measure, reporter=ProgressBars(quiet=quiet))
    _print_plan(planned)
    for caution in planned.cautions:
        warn(caution)


def _print_plan(planned: StudyPlan) -> None:
    rows = []
    for row in planned.stages:
        task = f"{row.what} ({row.because})" if row.because else row.what
        rows.append((row.stage, row.state, task, _time_text(row), row.basis))
    print_rows(("stage", "state", "what", "time", "basis"), rows, texts=3)
    for row in planned.stages:
        if row.reason:
            print(f"The time of {row.stage} is unknown: {row.reason}.")
    exceptions = f", not counting {', '.join(planned.unknown)}" if planned.unknown else ""
    print(f"A run takes {duration_range(planned.shortest, planned.longest)}{exceptions}.")
    if planned.longest > 2 * planned.shortest or planned.unknown:
        if any(row.stage.startswith("model ") and row.state != "done" for row in planned.stages):
            print("For a better estimate run `contstim run --until model`, and plan again.")
        else:
            print(
                "For a better estimate, plan again. If no search is finished when a plan ends, "
                "start the run: it measures each finished search, and later plans use these times."
            )
    numbers = planned.numbers
    if numbers.groups:
        print(
            f"{numbers.trials:,} trials for {quantity(numbers.groups, 'group')}: "
            f"{numbers.trials_each:,} for each participant, about {numbers.minutes:.0f} min."
        )
    needed, needed_by_use = numbers.sentence_needs
    if needed:
        print_rows(("natural sentences", "times", "each", "needed"), needed_by_use)
        if planned.supply is not None:
            _print_supply(planned.supply, planned)
    if planned.admissible:
        rivals = sorted(planned.admissible, key=lambda row: row[2])[:20]
        print_rows(("rejects", "accepts", "natural sentences"), rivals, texts=2)
    if planned.tests:
        print(planned.tests)


def _time_text(row: StagePlan) -> str:
    if row.shortest is None or row.longest is None:
        return "unknown"
    return "" if row.state == "done" else duration_range(row.shortest, row.longest)


def _print_supply(supply: NaturalSupply, planned: StudyPlan) -> None:
    enough = f"{planned.missing_sentences:,} too few" if planned.missing_sentences else "enough"
    fewer = ", or fewer if a model does not know all words" if supply.may_be_fewer else ""
    number = quantity(supply.number, "natural sentence")
    print(printable(f"{supply.path} has {number}{fewer}: {enough}."))
    if supply.found_sentences is not None:
        print("\n".join(supply.found_sentences.lines(planned.numbers.needed_sentences)))


def status(*, study: StudyFile = _STUDY_FILE) -> None:
    """Print the state of every stage, and the time and duration of its last run.

    A stage is stale if its inputs, its settings or the version of its code have changed; the
    command then also prints the reason. A stage is "interrupted" if it failed, or if a run was
    stopped during this stage. The command also updates index.html if a run was killed.

    Example: `contstim status study.toml`
    """
    from contstim.study.page import correct_page
    from contstim.study.states import stage_states
    from contstim.study.study_file import read_study

    read = read_study(study)
    states = stage_states(read)
    header = ("stage", "state", "done (UTC)", "seconds", "size", "because")
    with chdir(read.folder):
        rows = [state.row for state in states]
    print_rows(header, rows, texts=3)
    correct_page(read)


def verify(
    *,
    folder: Annotated[
        Path,
        Help("Folder of a study, folder with files of single commands, or archive.", argument=True),
    ] = Path(),
    list_all: Annotated[
        bool,
        Help("Also list unchanged files, with the inputs from which they were made.", flag="--all"),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Check whether all files of a folder are unchanged, and were made from the current inputs.

    The record of a file contains checksums of the inputs and outputs of the command that wrote it.
    `verify` lists files that are missing, that were changed by hand, or whose inputs have changed
    since. It also lists files without a record. A file is "given" if records list it as an input,
    but not as an output. A file "goes on changing" if commands add to it, for example a database.

    An archive (a folder or a zip) is also compared with its archive.json, which reveals edited,
    added and removed files. If the study was run again, `verify` compares the new results with
    the archived results. The exit status is 1 if a file is edited, added, missing, stale,
    unfinished or unreadable.

    Example: `contstim verify my-study`
    """
    from contstim.study.verification import FileState, group_files, summary, verify_folder

    check = verify_folder(folder, reporter=ProgressBars(quiet=quiet))
    unrecorded = (file for file in check.files if file.state is FileState.UNRECORDED)
    rows = check.files if list_all else group_files((*check.wrong, *unrecorded))
    if rows:
        files = ((row.path, row.state, row.sentence) for row in rows)
        print_rows(("file", "state", "why"), files, texts=3)
    remark(f"{folder}: {summary(check)}", quiet=quiet)
    if check.wrong:
        raise typer.Exit(1)


def archive(
    *,
    out: Annotated[Path, Help("A file that ends in .zip, or a new folder.", metavar="ZIP|FOLDER")],
    study: StudyFile = _STUDY_FILE,
    without: Annotated[
        tuple[str, ...],
        Help("Exclude this file or folder, and list its checksum in archive.json.", metavar="FILE"),
    ] = (),
    largest: Annotated[
        float, Help("Also exclude inputs larger than this.", at_least=0, metavar="MB")
    ] = 500,
    as_it_is: Annotated[
        bool, Help("Archive the study even if stages are stale, missing or changed by hand.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Write an archive of a study, with everything needed to reproduce and publish it.

    The zip or folder contains the study file, its inputs, all results and the installed versions.
    It also contains a datasheet of the materials, a methods section with all numbers, and a draft
    of a preregistration. If there are responses, it contains a Psych-DS data set. Questions that
    only you can answer begin with "To fill in". In the unpacked archive, `contstim run` repeats the
    study, and `contstim verify` compares the results.

    Example: `contstim archive --out study.zip`
    """
    from contstim.study.handing_on.archive import archive_study
    from contstim.study.study_file import read_study

    manifest, questions = archive_study(
        read_study(study),
        out,
        without=without,
        largest=largest,
        as_it_is=as_it_is,
        reporter=ProgressBars(quiet=quiet),
    )
    for doubt in manifest.as_it_is:
        warn(doubt)
    packed = " before packing" * (out.suffix == ".zip")
    size = sum(file.size for file in manifest.files) / 1e6
    remark(
        f"{out}: {quantity(len(manifest.files), 'file')}, {size:,.1f} MB{packed}. "
        f"{quantity(questions, 'question')} in its texts are for you to answer (To fill in).",
        quiet=quiet,
    )
