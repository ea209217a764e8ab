"""Verification that files have not changed since commands wrote them.

A command writes a record next to its output, with checksums of all inputs and outputs.
`verify_folder` compares these records with the files in a folder. This comparison finds results
that are not up to date, without running the commands again:

    natural.txt --(score)--> scores.csv --(select)--> pairs.csv
         |                       |                        |
    new content                stale                stale, because scores.csv is
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from contextlib import chdir
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from contstim.errors import ContstimError, InputError
from contstim.experiments.analysis.e_values import read_answers
from contstim.files.documents import read_json_object
from contstim.files.files import checksum, is_file, is_record, visible_files
from contstim.files.records import Record
from contstim.files.tables import join_names
from contstim.models.specifications import hub_commit
from contstim.reporter import SILENT, Reporter
from contstim.steps.waves import DesignWaves, history_of
from contstim.study.handing_on.manifest import (
    ENVIRONMENT,
    MANIFEST,
    Manifest,
    read_manifest,
    unpacked,
)
from contstim.study.states import with_local_names
from contstim.study.study import ARCHIVED, BEGUN, PAGE, RESULTS, STORE
from contstim.study.study_file import STUDY_FILE
from contstim.wording import grouped, quantity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

_MAX_COMMAND = 60  # maximum number of characters of a command in a sentence
_MAX_ROWS = 3  # if more than 3 files have the same state and sentence, one row gives their number


class FileState(StrEnum):
    """State of a file according to the records; the most urgent state is first."""

    EDITED = "edited"
    MISSING = "missing"
    ADDED = "added"  # not in the list of the archive
    UNREADABLE = "unreadable"
    UNFINISHED = "unfinished"  # a run ended before the stage was done
    STALE = "stale"
    UNRECORDED = "no record"
    CHANGING = "goes on changing"  # such as a database
    GIVEN = "given"  # an input that no command of this folder wrote
    HOLDS = "holds"  # up to date


_FINE = (FileState.HOLDS, FileState.GIVEN, FileState.CHANGING, FileState.UNRECORDED)


@dataclass(frozen=True)
class CheckedFile:
    """A file, or a folder that a command wrote as a whole.

    Attributes:
        path: path relative to the verified folder.
        sentence: reason for the state. The sentence may name the command that wrote the file, and
            the input files of this command.
    """

    path: str
    state: FileState
    sentence: str


@dataclass(frozen=True)
class FolderCheck:
    """Result of the verification of a folder.

    Attributes:
        files: all files, sorted by state (the most urgent first), then by path.
        done_again: name of a result → whether the new result equals the archived result. Empty if
            the folder is no archive, or if its study was not run again. Certificates, the proofs
            that selections are optimal, are left out, because they contain durations.
    """

    files: tuple[CheckedFile, ...]
    done_again: Mapping[str, bool] = field(default_factory=dict)

    @property
    def wrong(self) -> tuple[CheckedFile, ...]:
        """Files that are edited, missing, added to an archive, unreadable, unfinished or stale."""
        return tuple(file for file in self.files if file.state not in _FINE)


def verify_folder(folder: Path, *, reporter: Reporter = SILENT) -> FolderCheck:
    """Compare all files of a folder and its subfolders with the records in these folders.

    Files are compared by checksums, not by modification times. If the folder is an archive, all
    files are also compared with the list in its `archive.json`. In other folders, hidden files are
    ignored.

    Args:
        folder: folder of a study, output folder of single commands, or archive of a study (a folder
            or a zip). A zip is unpacked to a temporary folder.
        reporter: receives the number of computed checksums.

    Raises:
        InputError: if the path is neither a folder nor a zip of an archive, has no record, or has a
            damaged `archive.json`.
    """
    if folder.suffix.lower() == ".zip" and is_file(folder):
        with unpacked(folder) as scratch:
            return verify_folder(scratch, reporter=reporter)
    if not folder.is_dir():
        raise InputError(
            f"{folder} is neither a folder nor a zip of an archive. Name a folder or zip that "
            "contstim wrote."
        )
    with chdir(folder):
        visible = visible_files(Path())
        records, remarks = _read_records(visible)
        if not (records or remarks):
            raise InputError(
                f"{folder} has no record (….meta.json) of a command, so there is nothing to verify."
            )
        to_edit = {
            name: r.facts["to_edit"] for r in records if "to_edit" in r.facts for name in r.outputs
        }
        names = sorted({name for record in records for name in (*record.inputs, *record.outputs)})
        now: dict[str, str] = {}
        for done, name in enumerate(names, start=1):
            now[name] = checksum(name, to_edit.get(name, ())) if Path(name).exists() else ""
            reporter.progress("checking", done, len(names))
        files = [*_Chain(records, now).check_files(), *remarks, *_verdicts(records)]
        files += _unrecorded(visible, {*map(Path, now), *(Path(file.path) for file in remarks)})
        manifest = read_manifest(Path())
        if manifest is not None:
            by_path = {file.path: file for file in files}
            for file in _archived(manifest):
                state = by_path[file.path].state if file.path in by_path else FileState.UNRECORDED
                differs = file.state is not FileState.HOLDS
                # If a file matches both the list of the archive and its record, keep the sentence
                # about the record
                if state is FileState.UNRECORDED or (state in _FINE and differs):
                    by_path[file.path] = file
            files = [*by_path.values()]
        elif ARCHIVED.exists() or Path(ENVIRONMENT).exists():
            why = "the folder is an archive, which cannot be verified without this list of files."
            files.append(CheckedFile(MANIFEST, FileState.MISSING, why))
    order = list(FileState)
    files.sort(key=lambda file: (order.index(file.state), file.path))
    return FolderCheck(tuple(files), _done_again(now))


def _verdicts(records: Iterable[Record]) -> Iterator[CheckedFile]:
    """Compute the verdicts of waves again; yield tables of answers that contradict the records.

    A wave is a set of participants. The verdict after a wave says which models are beaten so far.
    """
    for record in records:
        if record.step != DesignWaves.name:
            continue
        path = record.path.with_name(record.path.name.replace(".meta.json", ".answers.csv"))
        why, facts = "", record.facts
        try:
            answers = read_answers(path, may_be_empty=True)
            history = history_of(answers, facts["compared_models"], facts["alpha"], facts["margin"])
            verdict = history[-1]["verdict"] if history else ""
            if (history, verdict) != (facts["history"], facts["verdict"]):
                why = "the verdicts computed from these answers differ from those in the record."
        except (ContstimError, KeyError, ValueError) as error:
            why = f"its verdicts cannot be computed: {error}"
        if why:
            yield CheckedFile(path.as_posix(), FileState.EDITED, why)


def _unrecorded(visible: Iterable[Path], recorded: Collection[Path]) -> Iterator[CheckedFile]:
    for path in visible:
        is_exempt = is_record(path) or path.name == STUDY_FILE or path.name.startswith(STORE.name)
        is_exempt |= path.name == PAGE.name and (path.parent / STUDY_FILE).exists()
        is_exempt |= path == Path(MANIFEST)
        if not is_exempt and {path, *path.parents}.isdisjoint(recorded):
            sentence = "no record says how it was made."
            yield CheckedFile(path.as_posix(), FileState.UNRECORDED, sentence)


def _archived(manifest: Manifest) -> Iterator[CheckedFile]:
    """Compare the files of an archive with its list of files, and yield each file with its state.

    If a run of the study has changed the study's page (index.html), the state of the page is
    CHANGING. Files that the
    receiver of the archive must supply may be absent. Outputs of a new run, and files of git and
    macOS, are ignored.
    """
    to_supply = {file.name for file in manifest.to_supply}
    listed = {file.name: f"sha256:{file.sha256}" for file in (*manifest.files, *manifest.to_supply)}
    for name, listed_checksum in listed.items():
        path = Path(name)
        if not path.is_file():
            if name not in to_supply:
                yield CheckedFile(name, FileState.MISSING, f"listed in {MANIFEST}, but removed.")
        elif checksum(path) == listed_checksum:
            yield CheckedFile(name, FileState.HOLDS, f"its checksum equals that in {MANIFEST}.")
        elif name == PAGE.name and RESULTS.is_dir():
            yield CheckedFile(name, FileState.CHANGING, "a run of the study writes it.")
        else:
            yield CheckedFile(name, FileState.EDITED, f"its checksum is not that in {MANIFEST}.")
    ignored = {MANIFEST, PAGE.name, *listed}
    for path in Path().rglob("*"):
        name = path.as_posix()
        is_ignored = name in ignored or RESULTS in path.parents
        is_ignored |= path.is_dir() and not path.is_symlink()
        is_ignored |= not {".git", ".DS_Store"}.isdisjoint(path.parts)
        if not is_ignored:
            yield CheckedFile(name, FileState.ADDED, f"{MANIFEST} does not list it.")


def _done_again(now: Mapping[str, str]) -> dict[str, bool]:
    again, archived = f"{RESULTS}/", f"{ARCHIVED}/"
    return {
        name: now[name] == archived_checksum
        for name in now
        if name.startswith(again) and not name.endswith(".certificate.json")
        if now[name] and (archived_checksum := now.get(archived + name.removeprefix(again)))
    }


def _read_records(files: Iterable[Path]) -> tuple[list[Record], list[CheckedFile]]:
    """Return the complete records among `files`, and remarks on other records.

    A remark also reports each stage that was started and did not finish. Paths in the returned
    records are relative to the current folder.
    """
    records: list[Record] = []
    remarks: list[CheckedFile] = []

    def remark(path: Path, state: FileState, sentence: str) -> None:
        remarks.append(CheckedFile(path.as_posix(), state, sentence))

    for path in files:
        if path.suffix == ".json" and path.parent.parts[-len(BEGUN.parts) :] == BEGUN.parts:
            remark(
                path,
                FileState.UNFINISHED,
                f"the stage {path.stem.replace('+', ' ')} was started and did not finish: its "
                "output may be incomplete. Run the study again.",
            )
        elif path.name.endswith(".meta.json"):
            output = path.with_name(path.name.removesuffix(".meta.json"))
            try:
                content, record = read_json_object(path), Record.from_file(path)
            except ContstimError as error:
                remark(path, FileState.UNREADABLE, f"the record cannot be read: {error}")
                continue
            if content.get("outputs") == {}:
                # There are two kinds of records without checksums. One is about a database, which
                # still changes. The other is in a folder of exported files; the checksums of these
                # files are in the record of the folder
                if output.exists():
                    remark(output, FileState.CHANGING, "its record contains no checksum.")
            elif record is None or not record.outputs:
                remark(path, FileState.UNREADABLE, "it is not a record with checksums of outputs.")
            else:
                writes = with_local_names(record, record.outputs)
                # Inputs in an output folder are texts that users may edit
                reads = {
                    name: value
                    for name, value in with_local_names(record, record.inputs).items()
                    if not any(parent.as_posix() in writes for parent in Path(name).parents)
                }
                records.append(replace(record, inputs=reads, outputs=writes))
    return records, remarks


def _outputs(records: Iterable[Record]) -> str:
    return join_names(dict.fromkeys(name for record in records for name in record.outputs), 4)


def _command(record: Record) -> str:
    command = shlex.join(record.command)
    if len(command) > _MAX_COMMAND:
        command = f"{command[: _MAX_COMMAND - 1]}…"
    return f"'{command}' ({record.date.replace('T', ' ').removesuffix('Z')} UTC)"


class _Chain:
    """Chain of commands, in which an output of one command can be an input of another command.

    Args:
        records: records with paths relative to the current folder.
        now: path → current checksum; the checksum is empty if the file does not exist.
    """

    def __init__(self, records: Sequence[Record], now: Mapping[str, str]) -> None:
        self._now = now
        by_date = sorted(records, key=lambda record: record.date)
        # Path → records of the commands that wrote or read this path
        self._writers = grouped((name, record) for record in by_date for name in record.outputs)
        self._readers = grouped((name, record) for record in by_date for name in record.inputs)
        self._stale: dict[str, str] = {}

    def check_files(self) -> list[CheckedFile]:
        states = {name: self._state(name) for name in self._now}
        # Omit an edited folder if its edited, missing or stale files are listed
        wrong = [Path(name) for name, (state, _) in states.items() if state not in _FINE]
        return [
            CheckedFile(name, state, sentence)
            for name, (state, sentence) in states.items()
            if state is not FileState.EDITED or not any(Path(name) in w.parents for w in wrong)
        ]

    def _state(self, name: str) -> tuple[FileState, str]:
        writers, outputs = self._writers.get(name), _outputs(self._readers.get(name, []))
        if not self._now[name]:
            if writers:
                return FileState.MISSING, f"{_command(writers[-1])} wrote it, but it was removed."
            return FileState.MISSING, f"it does not exist; it was used for {outputs}."
        if not writers:
            return (
                FileState.GIVEN,
                f"no command of this folder wrote it; it was used for {outputs}.",
            )
        maker = self._maker(name)
        if maker is None:
            return FileState.EDITED, self._describe_edit(name, writers[-1])
        if why := self._why_stale(name):
            return FileState.STALE, why
        of = join_names(maker.inputs, 6)
        return FileState.HOLDS, f"made{f' of {of}' if of else ''} by {_command(maker)}."

    def _maker(self, name: str) -> Record | None:
        """Return the record of the last command that wrote the current content, if any."""
        now = self._now[name]
        writers = reversed(self._writers.get(name, []))
        return next((record for record in writers if record.outputs[name] == now), None)

    def _describe_edit(self, name: str, last: Record) -> str:
        is_folder, now = Path(name).is_dir(), self._now[name]
        change = "a file in it was changed, added or removed" if is_folder else "changed"
        text = f"{change}, by hand or by another program, after {_command(last)} wrote it."
        # Two files may have been exchanged
        for other_name, writers in self._writers.items():
            if other_name != name and any(record.outputs[other_name] == now for record in writers):
                text += f" It now has the recorded content of {other_name}."
                break
        if used := [record for record in self._readers.get(name, []) if record.inputs[name] == now]:
            text += f" With its current content, it was used for {_outputs(used)}."
        return text

    def _why_stale(self, name: str) -> str:
        """Return why a file that was not edited is stale; empty if the file is up to date."""
        if name not in self._stale:
            self._stale[name] = ""  # ends the recursion if records refer to each other in a circle
            self._stale[name] = self._find_stale_input(name)
        return self._stale[name]

    def _find_stale_input(self, name: str) -> str:
        maker = self._maker(name)
        if maker is None:
            return ""
        for read, checksum_read in maker.inputs.items():
            if read == name or not self._now[read]:
                continue  # another row reports missing files
            maker_of_read = self._maker(read)
            if self._now[read] != checksum_read:
                since = f"{read} has changed since"
                if maker_of_read:
                    since = f"{_command(maker_of_read)} wrote it again"
                return f"made of an earlier {read} by {_command(maker)}; {since}."
            if maker_of_read and self._why_stale(read):
                return f"made of {read}, which is stale itself, by {_command(maker)}."
        for model, commit in maker.commits.items():
            cached = hub_commit(model)  # empty if the local cache does not have the model
            if cached not in ("", commit):
                return (
                    f"made with commit {commit} of {model} by {_command(maker)}; the local cache "
                    f"of the hub has commit {cached}."
                )
        return ""


def group_files(files: Iterable[CheckedFile]) -> list[CheckedFile]:
    """Merge more than three files with the same state and sentence into one row."""
    rows: list[CheckedFile] = []
    groups = grouped(((file.state, file.sentence), file) for file in files)
    for (state, sentence), group in groups.items():
        if len(group) <= _MAX_ROWS:
            rows += group
            continue
        folder = os.path.commonpath([file.path for file in group])
        where = f" in {Path(folder).as_posix()}" if folder else ""
        rows.append(CheckedFile(f"{len(group):,} files{where}", state, sentence))
    return rows


def summary(check: FolderCheck) -> str:
    """Return a sentence about the files.

    If the study of an archive was run again, a second sentence compares the new results with the
    archived results.
    """
    numbers = Counter(file.state for file in check.files)
    counts = ", ".join(f"{state} {number:,}" for state, number in numbers.items())
    files, again = quantity(len(check.files), "file"), check.done_again
    to_check = f"{len(check.wrong):,} of {files} must be checked"
    text = f"{to_check if check.wrong else 'all files are up to date'} ({counts})."
    if differing := [name for name, is_same in again.items() if not is_same]:
        text += (
            f" Of {quantity(len(again), 'result')} of the new run, these differ from {ARCHIVED}: "
        )
        text += f"{join_names(differing)}."
    elif again:
        text += f" {quantity(len(again), 'result')} of the new run equal those in {ARCHIVED}."
    return text
