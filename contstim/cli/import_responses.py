"""`contstim import …`: a command for each platform whose data are read, to responses.csv."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from contstim.cli.commands import (
    as_command,
    field_options,
    option,
    page_of,
    settings_from,
    typed_option,
)
from contstim.cli.options import Quiet
from contstim.cli.platforms import PlatformGroup
from contstim.cli.progress import ProgressBars
from contstim.options import AnswerScale

if TYPE_CHECKING:
    from collections.abc import Callable

    from contstim.experiments.platforms.platform import Platform

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
            from contstim.steps.responses import import_responses

            # Readers of several files, of one, or of a database, which the settings name.
            imported = import_responses(
                platform,
                given.get("files") or [path for path in (given.get("file"),) if path],
                given.get("trials"),
                given["out"],
                settings=reader.settings(**settings_from(reader.settings, given)),
                trials_out=given.get("trials_out"),
                duplicates=given.get("duplicates", "all"),
                scale=given["scale"],
                watch=ProgressBars(quiet=given["quiet"]),
            )
            print(imported.report)

        # Options stand in the order of the help page: files and trials, tables to write, the
        # platform's own, and what all commands have.
        options = [
            option("out", _OUT),
            *field_options(reader.settings),
            typed_option("scale", AnswerScale, None),
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
