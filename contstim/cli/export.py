"""`contstim export …`: a command for each platform that trials are exported to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contstim.cli.commands import as_command, field_options, option, page_of, settings_from
from contstim.cli.options import Quiet
from contstim.cli.output import remark
from contstim.cli.platforms import PlatformGroup
from contstim.cli.progress import ProgressBars
from contstim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from contstim.experiments.platforms.platform import Exporter, Platform

_TRIALS = typer.Option(help="What to show: trials.csv.")


class _ExportGroup(PlatformGroup):
    @staticmethod
    def command_for(platform: Platform) -> Callable[..., None] | None:
        exporter = platform.exporter
        if exporter is None:
            return None

        def command(**given: Any) -> None:
            if given.get("check") is not None:
                _check(exporter, given["check"], quiet=given["quiet"])
            elif given["trials"] is None or given["out"] is None:
                raise InputError(
                    "Give --trials and --out to write a data set, or --check to check one."
                )
            else:
                from contstim.steps.export import export_trials

                chosen = settings_from(exporter.settings, given)
                export_trials(
                    platform,
                    given["trials"],
                    given["out"],
                    settings=exporter.settings(**exporter.fixed, **chosen),
                    watch=ProgressBars(quiet=given["quiet"]),
                )

        out = typer.Option(help=exporter.out)
        options = [
            option("trials", Annotated[Path, _TRIALS]),
            option("out", Annotated[Path, out]),
            *field_options(exporter.settings, leave_out=exporter.fixed),
            option("quiet", Quiet, False),
        ]
        # Checking needs neither trials nor a folder, so these two become optional beside --check.
        if exporter.check is not None:
            check = typer.Option(help="Write nothing: check this data set against the rules.")
            options[:2] = [
                option("trials", Annotated[Path | None, _TRIALS], None),
                option("out", Annotated[Path | None, out], None),
            ]
            options.insert(-1, option("check", Annotated[Path | None, check], None))
        return as_command(command, options, page_of(exporter.export))


app = typer.Typer(
    cls=_ExportGroup,
    help="Turn trials into an experiment that people take part in, or into a public data set.",
    no_args_is_help=True,
)


@app.callback()
def _export_group() -> None:
    """Turn trials into an experiment that people take part in, or into a public data set."""


def _check(exporter: Exporter[Any], folder: Path, *, quiet: bool) -> None:
    findings = exporter.check(folder) if exporter.check else ()
    for finding in findings:
        print(finding)
    if any(finding.error for finding in findings):
        raise typer.Exit(1)
    remark(f"{folder} obeys {exporter.format}.", quiet=quiet)
