"""Interface of a platform: how trials are exported to it, how its data are read, or one of these.

    trials.csv --> Exporter.export --> a folder, and a README that says what to do
                                                 | people take part
    responses.csv <-- Reader.read  <-- their data

A platform is one module with one `Platform`, named by one line in `PLATFORMS` (or by an entry point
of a package of your own), from which `contstim export` and `contstim import` get their
commands: the page of a command is the docstring of its function, down to `Args:` or `Raises:`, and
its options are the fields of the settings that the function takes (see `contstim.options`).
`contstim.testing.platform.PlatformContract` tests what every platform guarantees.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.files.plugins import plugin, plugin_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from contstim.experiments.responses.alignment import Imported
    from contstim.items.stimuli import Trial


@dataclass(frozen=True)
class Exported:
    """Result of an export.

    Attributes:
        path: the folder, or the file that the platform takes.
        message: what it is, and what to do next.
        warning: what must be done before anybody takes part; empty for nothing.
        facts: of the record that the command writes beside `path`; None where the export wrote one.
        private: whether that record is for its owner alone, because the settings hold a secret.
    """

    path: Path
    message: str
    warning: str = ""
    facts: Mapping[str, object] | None = None
    private: bool = False


@dataclass(frozen=True)
class Exporter:
    """Exporter of trials to something that people take part in, or that others can use.

    Attributes:
        export: writes the trials into a folder, all or nothing, with a README.md that says what to
            do; raises InputError for trials that the platform cannot show, which it names, and for
            a folder that holds anything but an earlier export to the same platform.
        settings: what `export` takes, a frozen dataclass.
        out: what the help says of `--out`.
        fixed: settings that are not asked for, and what they are.
        to_edit: files of the folder that are there to be edited; exported again, they are kept.
        check: errors of a folder, and warnings; gives the command `contstim check`.
        format: what a folder without errors obeys; said after `check`.
    """

    export: Callable[[Sequence[Trial], Path, Any], Exported]
    settings: type[Any]
    out: str = "The folder to write."
    fixed: Mapping[str, object] = field(default_factory=dict)
    to_edit: tuple[str, ...] = ()
    check: Callable[[Path], tuple[list[str], list[str]]] | None = None
    format: str = ""


@dataclass(frozen=True)
class Reader:
    """Reader of the data of a platform as responses in canonical order.

    Attributes:
        read: the responses of files to trials; raises InputError for files that cannot be read.
        settings: what `read` takes beside files and trials, a frozen dataclass; None for nothing.
        files: what the help says of the files; empty where there are none to give, and no trials.
        several: whether there may be more than one file.
        builds_trials: whether `read` builds the trials itself where it is given none.
    """

    read: Callable[..., Imported]
    settings: type[Any] | None = None
    files: str = ""
    several: bool = True
    builds_trials: bool = False


@dataclass(frozen=True)
class Platform:
    """A place where people take part, a format that others can use, or published data.

    Attributes:
        name: in `contstim export NAME` and `contstim import NAME`.
        exporter: None where data are only read.
        reader: None where trials are only exported.
    """

    name: str
    exporter: Exporter | None = None
    reader: Reader | None = None


GROUP = "contstim.platforms"
"""The group of entry points by which installed packages add platforms, such as

    [project.entry-points."contstim.platforms"]
    mine = "my_package:PLATFORM"
"""

PLATFORMS = {
    "jspsych": "contstim.experiments.platforms.jspsych",
    "jatos": "contstim.experiments.platforms.jspsych.jatos",
    "pcibex": "contstim.experiments.platforms.pcibex",
    "psychopy": "contstim.experiments.platforms.psychopy",
    "gorilla": "contstim.experiments.platforms.gorilla",
    "qualtrics": "contstim.experiments.platforms.qualtrics",
    "csv": "contstim.experiments.platforms.lists",
    "psych-ds": "contstim.experiments.platforms.psych_ds",
    "r": "contstim.experiments.platforms.r",
    "collected": "contstim.experiments.collection.tables",
    "golan2023": "contstim.experiments.reproduce.golan2023_data",
}
"""Names and the modules whose `PLATFORM` they are, in the order of the help."""


def platform_names() -> list[str]:
    """Names of all platforms, those built in first; modules are not imported."""
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
