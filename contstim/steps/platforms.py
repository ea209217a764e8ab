"""Export of trials to platforms, and import of responses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from contstim.errors import InputError
from contstim.experiments.platforms.platform import (
    Exported,
    Exporter,
    Platform,
    Reader,
    options_of,
    platform_named,
)
from contstim.experiments.responses.alignment import Imported, keep_one, kept_columns
from contstim.experiments.responses.questionnaire import COLUMNS, questions_beside, write_answers
from contstim.experiments.responses.table import origin_of, scale_of, write_responses
from contstim.files.files import is_record, visible_files
from contstim.files.tables import write_table
from contstim.items.stimuli import on_scale, read_trials, trial_columns
from contstim.options import AnswerScale, Help, Reads, Writes, WritesTable
from contstim.steps.fields import SHOWN_TRIALS, TRIALS
from contstim.steps.step import Outcome, Step, page_of, variant
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contstim.reporter import Reporter

_DATA = (".csv", ".tsv", ".txt", ".json", ".jsonl")  # endings of data files in a folder
_MAX_ROWS = 20  # maximum number of unreadable rows that a warning lists


class ExportTrials(Step[Exported], name="export", version=2):
    """Write trials in the format of a platform, with a README that explains the next steps."""

    exporter: ClassVar[Exporter]

    separate_fields = frozenset({"seed"})  # the seed of a study does not set this field
    trials: Annotated[Path, TRIALS]
    out: Annotated[Path, Writes("Output folder, or file for the platform.", name="export/{}")]
    settings: Any

    def texts_to_edit(self) -> tuple[Path, ...]:
        """Return the texts in the output folder that users may edit."""
        return tuple(self.out / name for name in self.exporter.to_edit)

    def further_reads(self) -> list[Path]:
        """Return the existing texts in the output folder, which users may have edited."""
        return [text for text in self.texts_to_edit() if text.is_file()]

    def work(self, reporter: Reporter) -> Outcome[Exported]:
        """Write the folder, or the file."""
        exported = self.exporter.run(read_trials(self.trials), self.out, self.settings)
        facts = {"to_edit": list(self.exporter.to_edit), **(exported.facts or {})}
        reporter.warn(exported.warning)
        reporter.say(exported.message)
        return Outcome(exported, facts, private=exported.private)


class WriteQuestions(Step[None], name="questions"):
    """Write the questions of a study file as a table for experiment pages."""

    questions: Annotated[tuple[dict[str, str], ...], Help("Content of each row.")]
    out: Annotated[Path, WritesTable("The table to write.")]

    def work(self, reporter: Reporter) -> Outcome[None]:
        """Write a row for each question."""
        columns = dict.fromkeys((*COLUMNS, *(name for row in self.questions for name in row)))
        cells = {name: [row.get(name, "") for row in self.questions] for name in columns}
        write_table(self.out, cells)
        reporter.say(f"{quantity(len(self.questions), 'question')} in {self.out}.")
        return Outcome(None, {"questions_asked": len(self.questions)})


def export_step(platform: Platform | str) -> type[ExportTrials] | None:
    """Return the step that exports trials to a platform; None if there is no such export."""
    known_platform = platform_named(platform) if isinstance(platform, str) else platform
    if known_platform is None or known_platform.exporter is None:
        return None
    exporter = known_platform.exporter
    step = variant(
        ExportTrials,
        f"export {known_platform.name}",
        page_of(exporter.export),
        leave_out=frozenset(exporter.fixed),
        settings=exporter.options(**exporter.fixed) if exporter.fixed else exporter.options,
    )
    step.exporter = exporter
    return step


class ImportResponses(Step[Imported], name="import", version=2):
    """Write the data of a platform as a table of responses.

    Answers to questions, and the columns named by `keep`, are written to `….questions.csv`.
    """

    platform: ClassVar[str]
    reader: ClassVar[Reader]

    files: Annotated[
        tuple[Path, ...], Reads("Data files of the platform.", argument=True, folder=True)
    ] = ()
    trials: Annotated[Path | None, SHOWN_TRIALS] = None
    out: Annotated[Path, WritesTable("The table to write.", kind="responses", name="responses.csv")]
    trials_out: Annotated[Path | None, WritesTable("The table of trials to write.")] = None
    settings: Any
    duplicates: Annotated[
        Literal["all", "first", "last"],
        Help("Which ratings to use if a participant rated a trial several times."),
    ] = "all"
    scale: AnswerScale = None
    keep: Annotated[tuple[str, ...], Help("Columns about participants to keep, such as age.")] = ()

    def writes(self) -> tuple[Path, ...]:
        """Return the tables. The table of answers to questions is included only if it exists."""
        beside = questions_beside(self.out)
        return (*super().writes(), *([beside] if beside.is_file() else []))

    def work(self, reporter: Reporter) -> Outcome[Imported]:
        """Read the data, and write the responses."""
        reader = self.reader
        if reader.files and not self.files:
            raise InputError(f"`files` must not be empty. Name {reader.files}")
        files = data_files(self.files)
        if len(files) > 1 and not reader.several:
            raise InputError(f"`files` must name one file, got {len(files)}.")
        if reader.files and (self.trials is None) == (self.trials_out is None):
            raise InputError("Set either `trials` (the trials that were shown) or `trials_out`.")
        trials = () if self.trials is None else read_trials(self.trials)
        scale = self.scale
        if scale is not None:
            if self.trials is None:
                raise InputError(
                    "`scale` needs `trials`, the trials that were shown. Set both, or neither."
                )
            trials = on_scale(trials, scale)
        imported = reader.read(files, trials, **vars(self.settings))
        if self.keep:
            about = (*imported.questions, *kept_columns(imported, self.keep))
            imported = replace(imported, questions=about)
        if self.duplicates != "all":
            imported = keep_one(imported, self.duplicates)
        if scale is None:
            # Infer the scale from ratings from left to right, as participants gave them. For
            # example, on the scale from 1 to 6, a rating of 2 becomes 5 if `sentence_2` was on the
            # left
            ratings = (
                r.scale.mirrored(r.rating) if r.left == 2 else r.rating for r in imported.responses
            )
            scale = scale_of(f"{self.platform}, from left to right,", imported.trials, ratings)
        report, origin = imported.report, origin_of(imported.responses)
        facts = {
            "responses": report.responses,
            "participants": len(report.participants),
            "simulated_participants": origin.simulated,
            "scale": str(scale),
            "notes": list(imported.notes),
            "unreadable_rows": [str(row) for row in imported.unreadable],
            "problems": [
                {"problem": str(f.problem), "participant": f.participant, "about": list(f.about)}
                for f in report.findings
            ],
        }
        if self.trials_out is not None:
            write_table(self.trials_out, trial_columns(imported.trials))
        write_responses(self.out, imported.responses)
        if imported.questions:
            write_answers(questions_beside(self.out), imported.questions)
        else:  # remove the answers of an earlier import, which do not belong to these responses
            questions_beside(self.out).unlink(missing_ok=True)
        for note in imported.notes:
            reporter.say(note)
        if rows := imported.unreadable:
            lines = [
                f"{quantity(len(rows), 'unreadable row')} skipped:",
                *map(str, rows[:_MAX_ROWS]),
            ]
            if len(rows) > _MAX_ROWS:
                lines.append(f"… and {len(rows) - _MAX_ROWS:,} more (see the record)")
            reporter.warn("\n  ".join(lines))
        reporter.warn(origin.warning)
        return Outcome(imported, facts, parts=[str(report)])


def data_files(paths: Iterable[Path]) -> list[Path]:
    """Return the paths; replace each folder by its data files."""
    files: list[Path] = []
    for path in paths:
        inside = visible_files(path) if path.is_dir() else [path]
        data = [f for f in inside if f == path or (f.suffix.lower() in _DATA and not is_record(f))]
        if not data:
            raise InputError(f"{path} contains no data: no file ends in {', '.join(_DATA)}.")
        files += data
    return files


def import_step(platform: Platform | str) -> type[ImportResponses] | None:
    """Return the step that reads the data of a platform; None if there is no such import."""
    known_platform = platform_named(platform) if isinstance(platform, str) else platform
    if known_platform is None or known_platform.reader is None:
        return None
    reader = known_platform.reader
    unused_fields = {
        "files": not reader.files,
        "trials": not reader.files,
        "trials_out": not reader.builds_trials,
        "duplicates": not (reader.files and reader.several),
        "keep": reader.builds_trials or not reader.files,
    }
    step = variant(
        ImportResponses,
        f"import {known_platform.name}",
        page_of(reader.read),
        leave_out=frozenset(name for name, lacks in unused_fields.items() if lacks),
        settings=options_of(reader.read),
    )
    step.platform, step.reader = known_platform.name, reader
    return step
