"""`contstim import …`: a command for each platform whose data are read, to responses.csv."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from contstim.cli.commands import as_command, field_options, option, page_of, settings_from
from contstim.cli.options import Quiet
from contstim.cli.output import remark
from contstim.cli.platforms import PlatformGroup
from contstim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from contstim.experiments.platforms.platform import Platform, Reader
    from contstim.experiments.responses.alignment import Imported

_TRIALS = typer.Option(help="What was shown: trials.csv.")
_OUT = Annotated[Path, typer.Option(help="The table of responses to write.")]
_TRIALS_OUT = Annotated[Path | None, typer.Option(help="The table of trials to write.")]
_DUPLICATES = Annotated[
    Literal["all", "first", "last"],
    typer.Option(help="Of several ratings of a trial by a person: write all, the first, the last."),
]


class _ImportGroup(PlatformGroup):
    @staticmethod
    def command_for(platform: Platform) -> Callable[..., None] | None:
        reader = platform.reader
        if reader is None:
            return None

        def command(**given: Any) -> None:
            _read(reader, given)

        # Options stand in the order of the help page: files and trials, tables to write, the
        # platform's own, and what all commands have.
        options = [
            option("out", _OUT),
            *field_options(reader.settings),
            option("quiet", Quiet, False),
        ]
        if reader.builds_trials:
            options.insert(1, option("trials_out", _TRIALS_OUT, None))
        if reader.files:
            files = typer.Argument(help=reader.files)
            trials = option("trials", Annotated[Path, _TRIALS])
            # Then --trials is not needed: one of the two must be given
            if reader.builds_trials:
                trials = option("trials", Annotated[Path | None, _TRIALS], None)
            if reader.several:
                options[:0] = [option("files", Annotated[list[Path], files]), trials]
                options.insert(-1, option("duplicates", _DUPLICATES, "all"))
            else:
                options[:0] = [option("file", Annotated[Path, files]), trials]
        return as_command(command, options, page_of(reader.read))


app = typer.Typer(
    cls=_ImportGroup,
    help="Make responses.csv from the data of a platform.",
    no_args_is_help=True,
)


@app.callback()
def _import_group() -> None:
    """Make responses.csv from the data of a platform."""


def _read(reader: Reader[Any], given: dict[str, Any]) -> None:
    """Write what the files hold with its record, and print every problem."""
    from contstim.experiments.responses import origin_of, write_responses
    from contstim.experiments.responses.alignment import keep_one
    from contstim.records import write_record
    from contstim.stimuli import read_trials, write_trials

    # Readers of several files, of one, or of a database, which the settings name.
    files = given.get("files") or [path for path in (given.get("file"),) if path]
    trials, trials_out = given.get("trials"), given.get("trials_out")
    if files and (trials is None) == (trials_out is None):
        raise InputError("Give either --trials, what was shown, or --trials-out, to have it built.")
    settings = reader.settings(**settings_from(reader.settings, given))
    imported: Imported = reader.read(files, () if trials is None else read_trials(trials), settings)
    if given.get("duplicates", "all") != "all":
        imported = keep_one(imported, given["duplicates"])
    report, origin = imported.report, origin_of(imported.responses)
    facts = {
        "responses": report.responses,
        "participants": len(report.participants),
        "simulated_participants": origin.simulated,
        "notes": list(imported.notes),
        "problems": [
            {"problem": str(f.problem), "participant": f.participant, "about": list(f.about)}
            for f in report.findings
        ],
    }
    if trials_out is not None:
        write_trials(trials_out, imported.trials)
        write_record(trials_out, **facts)
    write_responses(given["out"], imported.responses)
    write_record(given["out"], **facts)
    for note in imported.notes:
        remark(note, quiet=given["quiet"])
    if origin.warning:
        remark(f"warning: {origin.warning}")
    print(report)
