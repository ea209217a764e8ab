"""`contstim check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contstim.cli.options import Quiet
from contstim.cli.output import remark
from contstim.errors import InputError


def check(
    platform: Annotated[str, typer.Argument(help="Whose rules, such as psych-ds.")],
    folder: Annotated[Path, typer.Argument(help="The folder to check.")],
    quiet: Quiet = False,
) -> None:
    """Check a folder against the rules of a format; the exit status is 1 if it breaks one.

    Example: `contstim check psych-ds dataset`
    """
    from contstim.experiments.platforms.platform import platform_named

    place = platform_named(platform)
    exporter = None if place is None else place.exporter
    if exporter is None or exporter.check is None:
        raise InputError(f"{platform} has no rules that a folder is checked against.")
    findings = exporter.check(folder)
    for finding in findings:
        print(finding)
    if any(finding.error for finding in findings):
        raise typer.Exit(1)
    remark(f"{folder} obeys {exporter.format}.", quiet=quiet)
