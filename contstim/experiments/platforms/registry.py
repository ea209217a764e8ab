"""All platforms: those built in, and those that installed packages add.

A package adds a platform by an entry point in the group `contstim.platforms` whose name is the
platform's and whose value is a `Platform`:

    [project.entry-points."contstim.platforms"]
    mine = "my_package:PLATFORM"

Then `contstim export mine` and `contstim import mine` work. Modules are imported, and entry points
looked up, when a platform is named or all are listed.
"""

from __future__ import annotations

from importlib import import_module

from contstim.errors import InputError
from contstim.experiments.platforms.platform import Platform
from contstim.plugins import plugin, plugin_names

GROUP = "contstim.platforms"
"""The group of entry points that name a `Platform`."""

PLATFORMS = {
    "jspsych": "contstim.experiments.platforms.jspsych",
    "jatos": "contstim.experiments.platforms.jspsych.jatos",
    "pcibex": "contstim.experiments.platforms.pcibex",
    "psychopy": "contstim.experiments.platforms.psychopy",
    "gorilla": "contstim.experiments.platforms.gorilla",
    "qualtrics": "contstim.experiments.platforms.qualtrics",
    "csv": "contstim.experiments.platforms.csv",
    "psych-ds": "contstim.experiments.platforms.psych_ds",
    "r": "contstim.experiments.platforms.r",
    "collected": "contstim.experiments.collection.tables",
    "golan2023": "contstim.experiments.reproduce.golan2023_data",
}
"""Names and the modules whose `PLATFORM` they are, in the order of the help."""


def platform_names() -> list[str]:
    """Names of all platforms, those built in first."""
    return [*PLATFORMS, *(name for name in plugin_names(GROUP) if name not in PLATFORMS)]


def platforms() -> list[Platform]:
    """All platforms, those built in first.

    Raises:
        InputError: see `platform_named`.
    """
    return [platform for name in platform_names() if (platform := platform_named(name))]


def platform_named(name: str) -> Platform | None:
    """The platform of a name; None where there is none, built in or added.

    Raises:
        InputError: two packages add this platform, or what one adds cannot be loaded.
    """
    # Names that are built in come first, so that no package can take one over.
    if name in PLATFORMS:
        platform: Platform = import_module(PLATFORMS[name]).PLATFORM
        return platform
    return plugin(GROUP, name, Platform, InputError)
