"""Interface of platforms: export of trials, reading of data, or both.

    trials.csv --> Exporter.export --> a folder with a README on the next steps
                                                 | participants take part
    responses.csv <-- Reader.read  <-- their data

A platform is a module with one `Platform`, listed in `PLATFORMS` (or in an entry point of your own
package). `contstim export` and `contstim import` have a command for each platform. The help page of
a command is the docstring of its function, up to `Args:` or `Raises:`. The command's options are
the keyword-only parameters of the function, declared as in `contstim.options`.
`contstim.testing.platform.PlatformContract` tests the guarantees of every platform.
"""

from __future__ import annotations

from dataclasses import dataclass, field, make_dataclass
from importlib import import_module
from inspect import signature
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, get_type_hints

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
        path: folder, or file to upload to the platform.
        message: description of the result and the next step.
        warning: what the researcher must still do before data collection; empty if there is
            nothing.
        facts: entries for the record (a JSON file next to `path`); None if the export wrote the
            record itself.
        private: whether only the file's owner may read the record, because it contains a secret.
    """

    path: Path
    message: str
    warning: str = ""
    facts: Mapping[str, object] | None = None
    private: bool = False


@dataclass(frozen=True)
class Exporter:
    """Exporter of trials to an experiment or to a format for sharing.

    Attributes:
        export: function that writes the trials, and a README.md on the next steps, into a folder.
            The function writes nothing and raises InputError in two cases: if the platform cannot
            show the trials, or if the folder contains files but no earlier export to this platform.
        settings: frozen dataclass of all options; an instance is the third argument of `export`.
            None if the options are keyword-only parameters of `export`.
        out: help text of `--out`.
        fixed: values of settings that are not offered as options.
        to_edit: files of the folder that the researcher may edit, and that later exports keep.
        check: function that returns errors and warnings of a folder, for `contstim check`.
        format: name of the format that `check` prints if a folder has no errors.
    """

    export: Callable[..., Exported]
    settings: type[Any] | None = None
    out: str = "The output folder."
    fixed: Mapping[str, object] = field(default_factory=dict)
    to_edit: tuple[str, ...] = ()
    check: Callable[[Path], tuple[list[str], list[str]]] | None = None
    format: str = ""

    @property
    def options(self) -> type[Any]:
        """Dataclass of the options."""
        return self.settings or options_of(self.export)

    def run(self, trials: Sequence[Trial], out: Path, options: Any) -> Exported:
        """Export trials with an instance of `options`."""
        if self.settings:
            return self.export(trials, out, options)
        return self.export(trials, out, **vars(options))


@dataclass(frozen=True)
class Reader:
    """Reader that converts a platform's data to responses.

    In responses, low ratings mean a preference for sentence_1.

    Attributes:
        read: function that reads responses to trials, and raises InputError for unreadable files.
        files: help text of the command's argument for files; empty if the command reads no files
            and no trials.
        several: whether `read` accepts more than one file.
        builds_trials: whether `read` builds the trials itself if none are passed.
    """

    read: Callable[..., Imported]
    files: str = ""
    several: bool = True
    builds_trials: bool = False


@dataclass(frozen=True)
class Platform:
    """A platform for experiments, a format for sharing, or published data.

    Attributes:
        name: name in `contstim export NAME` and `contstim import NAME`.
        exporter: exporter of trials; None if the platform can only read data.
        reader: reader of data; None if the platform can only export trials.
    """

    name: str
    exporter: Exporter | None = None
    reader: Reader | None = None


def options_of(function: Callable[..., Any]) -> type[Any]:
    """Make a dataclass of the keyword-only parameters of a function."""
    parameters = [p for p in signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
    annotated = SimpleNamespace(__annotations__={p.name: p.annotation for p in parameters})
    hints = get_type_hints(annotated, function.__globals__, include_extras=True)
    members = [
        (p.name, hints[p.name], field() if p.default is p.empty else field(default=p.default))
        for p in parameters
    ]
    return make_dataclass("Options", members, frozen=True)


GROUP = "contstim.platforms"
"""Group of entry points by which installed packages add platforms. For example:

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
    "golan2023": "contstim.experiments.reproduce.published",
}
"""Names of platforms → modules that define `PLATFORM`, in the order of the help."""


def platform_names() -> list[str]:
    """Return the names of all platforms, built-in ones first; no module is imported."""
    return [*PLATFORMS, *(name for name in plugin_names(GROUP) if name not in PLATFORMS)]


def platform_named(name: str) -> Platform | None:
    """Load a platform by its name; None if no package adds a platform with this name.

    Raises:
        InputError: if packages add different platforms with this name, or the platform cannot be
            loaded.
    """
    # No package can override a built-in name
    if name in PLATFORMS:
        platform: Platform = import_module(PLATFORMS[name]).PLATFORM
        return platform
    return plugin(GROUP, name, Platform, InputError)
