"""Trials as an experiment that people take part in, or as a public data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.checksums import files_of
from contstim.errors import InputError
from contstim.experiments.platforms.registry import platform_named
from contstim.records import complete_record, write_record
from contstim.steps.settings_files import files_of_settings
from contstim.steps.watching import SILENT
from contstim.stimuli import read_trials

if TYPE_CHECKING:
    from contstim.experiments.platforms.platform import Exported, Platform
    from contstim.steps.watching import Watcher


def export_trials(
    platform: Platform | str,
    trials: Path,
    out: Path,
    *,
    settings: Any = None,
    watch: Watcher = SILENT,
) -> Exported:
    """Write trials as a platform takes them, with a README that says what to do.

    Args:
        platform: the platform or its name.
        trials: of all groups.
        out: the folder, or the file that the platform takes.
        settings: what the platform's exporter takes; its defaults where None.
        watch: told what is done.

    Raises:
        InputError: nothing is exported to the platform, it cannot show the trials, or `out` holds
            anything but an earlier export to it.
    """
    place = platform_named(platform) if isinstance(platform, str) else platform
    if place is None or place.exporter is None:
        raise InputError(f"{platform} is not a platform that trials are exported to.")
    if settings is None:
        settings = place.exporter.settings(**place.exporter.fixed)
    exported = place.exporter.export(read_trials(trials), out, settings)
    read, written = files_of_settings(settings)
    inputs = [trials, *read]
    # Exports of files write their own record, which knows neither --trials nor the settings' files
    if exported.facts is None:
        files = [exported.path / name for name in files_of(exported.path)]
        complete_record(exported.path / "export", inputs, [*files, *written])
    else:
        facts = {"trials": str(trials), **exported.facts}
        if place.exporter.to_edit:
            facts["to_edit"] = list(place.exporter.to_edit)
        write_record(exported.path, inputs, written, exported.private, **facts)
    watch.warn(exported.warning)
    watch.remark(exported.message)
    return exported
