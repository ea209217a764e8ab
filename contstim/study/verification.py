"""Verification that files are still what commands wrote, made of what stands there now.

Every command and every stage of a study writes a record beside its output, with checksums of what
was read and written. Compared with the files of a folder they tell, without doing anything
again, which links of the chain hold:

    natural.txt --(score)--> scores.csv --(select)--> pairs.csv
         |                       |                        |
      edited                   stale                stale, because scores.csv is
"""

from __future__ import annotations

import os
import shlex
from collections import defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.documents import read_json_object
from contstim.errors import ContstimError, InputError
from contstim.files import checksum, is_record
from contstim.models.catalog import hub_commit
from contstim.records import path_from
from contstim.reporter import SILENT, Reporter
from contstim.study.stage_records import BEGUN
from contstim.study.study_file import STUDY_FILE
from contstim.tables import listed
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_RECORD = ".meta.json"
_LONGEST = 60  # characters of a command in a sentence
_PAGE = "index.html"
_EACH = 3  # files of which the same is to be said, and that have a row each


class FileState(StrEnum):
    """State of a file by its records; what to look at first stands first."""

    EDITED = "edited"
    MISSING = "missing"
    UNREADABLE = "unreadable"
    UNFINISHED = "unfinished"
    UNCHECKED = "no checksums"
    STALE = "stale"
    UNRECORDED = "no record"
    CHANGING = "goes on changing"
    GIVEN = "given"
    HOLDS = "holds"

    @property
    def is_wrong(self) -> bool:
        """True if somebody who relies on the folder has to know."""
        fine = (FileState.HOLDS, FileState.GIVEN, FileState.CHANGING, FileState.UNRECORDED)
        return self not in fine


@dataclass(frozen=True)
class CheckedFile:
    """A file, or a folder that was written as a whole.

    Attributes:
        path: from the folder that was verified.
        state: what records say of it.
        sentence: why, and by which command it was made of what.
    """

    path: str
    state: FileState
    sentence: str


@dataclass(frozen=True)
class FolderCheck:
    """All files of a folder.

    Attributes:
        files: by their states, causes before what follows from them, and by path.
    """

    files: tuple[CheckedFile, ...]

    @property
    def wrong(self) -> tuple[CheckedFile, ...]:
        """Files that are not what records say, or cannot be compared with them."""
        return tuple(file for file in self.files if file.state.is_wrong)

    @property
    def unrecorded(self) -> tuple[CheckedFile, ...]:
        """Files that no record tells of."""
        return tuple(file for file in self.files if file.state is FileState.UNRECORDED)

    def count(self, state: FileState) -> int:
        """Number of files in a state."""
        return sum(file.state is state for file in self.files)


@dataclass(frozen=True)
class _Making:
    """A record: what a command or a stage read and wrote, by absolute path, with checksums."""

    who: str
    date: str
    reads: Mapping[Path, str]
    writes: Mapping[Path, str]
    to_edit: frozenset[str] = frozenset()  # files of a folder that do not count in its checksum
    commits: Mapping[str, str] = field(default_factory=dict)  # of models on the hub

    @property
    def when(self) -> str:
        """Who, and in brackets when, as sentences have it."""
        return f"{self.who} ({self.date.replace('T', ' ').removesuffix('Z')} UTC)"


@dataclass
class _Records:
    """All records of a folder, and what is to be said of those that tell too little."""

    makings: list[_Making] = field(default_factory=list)
    changing: dict[Path, str] = field(default_factory=dict)
    unchecked: dict[Path, str] = field(default_factory=dict)
    remarks: list[tuple[Path, FileState, str]] = field(default_factory=list)


def verify_folder(folder: Path, *, reporter: Reporter = SILENT) -> FolderCheck:
    """Compare all files of a folder and its subfolders with the records there.

    Checksums decide, never the time of a file. Hidden files are left out.

    Args:
        folder: of a study, or of single commands.
        reporter: told how many checksums have been computed.

    Raises:
        InputError: it is not a folder, or there is not a single record in it.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder: name one with files that contstim wrote.")
    folder = folder.resolve()
    records = _read_records(folder)
    if not (records.makings or records.changing or records.unchecked or records.remarks):
        raise InputError(
            f"{folder} holds no record (….meta.json) of any command: there is nothing to verify."
        )
    paths = {path for making in records.makings for path in (*making.reads, *making.writes)}
    to_edit = {path: m.to_edit for m in records.makings for path in m.writes if m.to_edit}
    now: dict[Path, str] = {}
    for done, path in enumerate(sorted(paths), start=1):
        now[path] = checksum(path, to_edit.get(path, ())) if path.exists() else ""
        reporter.progress("checking", done, len(paths))
    chain = _Chain(folder, records.makings, now)
    files = [
        *chain.checked(),
        *(
            CheckedFile(
                chain.name(path), FileState.CHANGING, f"{who} wrote it; it has no checksum."
            )
            for path, who in records.changing.items()
        ),
        *(
            CheckedFile(
                chain.name(path),
                FileState.UNCHECKED,
                f"the record of {who} has no checksums, as those of older versions: whether the "
                "file has changed cannot be said. Make it again to have them.",
            )
            for path, who in records.unchecked.items()
            if path not in now
        ),
        *(CheckedFile(chain.name(path), state, why) for path, state, why in records.remarks),
    ]
    known = {*now, *records.changing, *records.unchecked}
    files += [
        CheckedFile(chain.name(path), FileState.UNRECORDED, "no record tells how it came about.")
        for path in _unrecorded(folder, known)
    ]
    order = list(FileState)
    files.sort(key=lambda file: (order.index(file.state), file.path))
    return FolderCheck(tuple(files))


def _read_records(folder: Path) -> _Records:
    """Every record of a folder, by what kind it is."""
    records = _Records()
    for path in _visible_files(folder):
        if _is_begun(path):
            sentence = (
                f"the stage {path.stem.replace('+', ' ')} has begun and has not ended: what it "
                "writes may be there in part. Run the study again."
            )
            records.remarks.append((path, FileState.UNFINISHED, sentence))
        elif is_record(path):
            try:
                _take_record(path, read_json_object(path), records)
            except (ContstimError, LookupError, TypeError, AttributeError) as error:
                why = str(error) if isinstance(error, ContstimError) else "it is not a record"
                why = f"the record cannot be read: {why}"
                records.remarks.append((path, FileState.UNREADABLE, why))
    return records


def _is_begun(path: Path) -> bool:
    """True if a file is the note of a stage that has begun."""
    return path.suffix == ".json" and path.parent.parts[-len(BEGUN.parts) :] == BEGUN.parts


def _take_record(path: Path, content: Mapping[str, Any], records: _Records) -> None:
    """Put a record where it belongs."""
    command = shlex.join(content.get("command", ()))
    who = f"'{command if len(command) <= _LONGEST else f'{command[: _LONGEST - 1]}…'}'"
    output = path.with_name(path.name.removesuffix(_RECORD))
    if "inputs" in content and "outputs" in content:
        writes = _absolute(path.parent, content["outputs"])
        reads = _absolute(path.parent, content["inputs"])
        # What is read of a folder that is written are texts for the user to edit
        texts = {text for text in reads if not writes.keys().isdisjoint(text.parents)}
        reads = {read: value for read, value in reads.items() if read not in texts}
        if writes:
            to_edit = frozenset(content.get("to_edit", ()))
            date, commits = content.get("date", ""), {**content.get("commits", {})}
            records.makings.append(_Making(who, date, reads, writes, to_edit, commits))
        else:
            records.changing[output] = who
    elif path.name.endswith(_RECORD):
        records.unchecked[output] = who
    else:
        records.unchecked[path.parent] = who  # training.json stands inside what it tells of


def _absolute(folder: Path, checksums: Mapping[str, str]) -> dict[Path, str]:
    return {Path(os.path.normpath(folder / name)): value for name, value in checksums.items()}


class _Chain:
    """Chain of files, each made of others, and what has changed since."""

    def __init__(self, folder: Path, makings: Sequence[_Making], now: Mapping[Path, str]) -> None:
        self._folder = folder
        self._now = now
        self._claims: dict[Path, list[_Making]] = defaultdict(list)
        self._readers: dict[Path, list[_Making]] = defaultdict(list)
        for making in sorted(makings, key=lambda making: making.date):
            for path in making.writes:
                self._claims[path].append(making)
            for path in making.reads:
                self._readers[path].append(making)
        self._stale: dict[Path, str] = {}

    def name(self, path: Path) -> str:
        """A path from the folder that is verified."""
        return path_from(self._folder, path)

    def checked(self) -> list[CheckedFile]:
        """Every file that a record names."""
        files = []
        for path in self._now:
            state, sentence = self._state(path)
            files.append((path, CheckedFile(self.name(path), state, sentence)))
        # A folder that was written as a whole says less than the file in it that is wrong
        wrong = [path for path, file in files if file.state.is_wrong]
        return [
            file
            for path, file in files
            if file.state is not FileState.EDITED or not any(path in w.parents for w in wrong)
        ]

    def _state(self, path: Path) -> tuple[FileState, str]:
        claims, readers = self._claims[path], self._readers[path]
        made = listed(dict.fromkeys(self.name(p) for r in readers for p in r.writes), 4)
        if not self._now[path]:
            if claims:
                return FileState.MISSING, f"{claims[-1].when} wrote it, and it is gone."
            return FileState.MISSING, f"not there; it was used for {made}."
        if not claims:
            return FileState.GIVEN, f"no command of this folder wrote it; used for {made}."
        if not self.makers(path):
            return FileState.EDITED, self._edited(path, claims[-1])
        why = self.stale(path)
        if why:
            return FileState.STALE, why
        maker = self.makers(path)[0]
        of = listed(map(self.name, maker.reads), 6)
        return FileState.HOLDS, f"made{f' of {of}' if of else ''} by {maker.when}."

    def makers(self, path: Path) -> list[_Making]:
        """The last command that wrote what stands there now; none where none did."""
        now = self._now[path]
        return [making for making in self._claims[path] if making.writes[path] == now][-1:]

    def _edited(self, path: Path, last: _Making) -> str:
        what = "a file in it was changed, added or removed" if path.is_dir() else "changed"
        text = f"{what} since {last.when} wrote it, by hand or by another program."
        # Two files may just have changed places
        now = self._now[path]
        other = next(
            (
                self.name(p)
                for p, claims in self._claims.items()
                if p != path and any(claim.writes[p] == now for claim in claims)
            ),
            "",
        )
        if other:
            text += f" It has the content with which {other} was written."
        used = [r for r in self._readers[path] if r.reads[path] == now]
        if used:
            made = listed(dict.fromkeys(self.name(p) for r in used for p in r.writes), 4)
            text += f" As it is now, it was used for {made}."
        return text

    def stale(self, path: Path) -> str:
        """Why a file is of the past, although it is as it was written; empty if it is not."""
        if path not in self._stale:
            self._stale[path] = ""  # records that name one another in a circle end here
            self._stale[path] = self._why_stale(path)
        return self._stale[path]

    def _why_stale(self, path: Path) -> str:
        for maker in self.makers(path):
            for read, before in maker.reads.items():
                if read == path or not self._now[read]:
                    continue  # what is missing is named for itself
                name = self.name(read)
                if self._now[read] != before:
                    makers = self.makers(read)
                    since = (
                        f"{makers[0].when} wrote it anew" if makers else "that has changed since"
                    )
                    return f"made of an earlier {name} by {maker.when}; {since}."
                if self.makers(read) and self.stale(read):
                    return f"made of {name}, which is stale itself, by {maker.when}."
            for model, commit in maker.commits.items():
                cached = hub_commit(model)  # empty where this machine does not have the model
                if cached and cached != commit:
                    return (
                        f"made with commit {commit} of {model} by {maker.when}; the local cache "
                        f"of the hub has commit {cached}."
                    )
        return ""


def _unrecorded(folder: Path, known: Iterable[Path]) -> list[Path]:
    """Files that are not records, and that no record names, nor a folder in which they are."""
    recorded = set(known)
    return [
        path
        for path in _visible_files(folder)
        if not is_record(path)
        and path.name != STUDY_FILE
        and not (path.name == _PAGE and (path.parent / STUDY_FILE).exists())
        and not _is_begun(path)
        and recorded.isdisjoint((path, *path.parents))
    ]


def _visible_files(folder: Path) -> list[Path]:
    """The files of a folder and its subfolders, in order, without hidden ones."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )


def grouped(files: Iterable[CheckedFile]) -> list[CheckedFile]:
    """The same with one row for more than three files of which the same is to be said."""
    groups: dict[tuple[FileState, str], list[CheckedFile]] = {}
    for file in files:
        groups.setdefault((file.state, file.sentence), []).append(file)
    rows: list[CheckedFile] = []
    for (state, sentence), group in groups.items():
        if len(group) <= _EACH:
            rows += group
        else:
            try:
                folder = os.path.commonpath([file.path for file in group])
            except ValueError:  # files on two drives of Windows
                folder = ""
            where = f" in {Path(folder).as_posix()}" if folder else ""
            rows.append(CheckedFile(f"{len(group):,} files{where}", state, sentence))
    return rows


def summary(check: FolderCheck) -> str:
    """The whole in a sentence."""
    counts = [f"{state} {check.count(state):,}" for state in FileState if check.count(state)]
    verdict = (
        f"{len(check.wrong):,} of {counted(len(check.files), 'file')} must be looked at"
        if check.wrong
        else "everything holds"
    )
    return f"{verdict} ({', '.join(counts)})."
