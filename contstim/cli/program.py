"""The program with the targets of its commands."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from contstim.cli.commands import GROUPS, CommandGroup, group
from contstim.steps import STEPS, step_named
from contstim.version import __version__


def _platform_targets(word: str) -> dict[str, Any]:
    """Return a command for each platform; platforms are imported when called or listed."""
    from contstim.experiments.platforms.platform import platform_names

    return {name: partial(step_named, f"{word} {name}") for name in platform_names()}


_GROUPS = {
    "train": "Train a model on a text.",
    "select": "Select the best stimuli, exactly.",
    "evaluate": (
        "Evaluate models without participants: on benchmarks, and on desired properties of scores."
    ),
    "reproduce": "Analyse published data again, claim by claim.",
    "generate": "Make test sentences from the embedded English.",
}
"""Groups of steps, with their summaries."""

_EXPORT = "Turn trials into an experiment for participants, or into a public data set."
_IMPORT = "Make responses.csv from the data of a platform."
_LISTED_AFTER: dict[str, dict[str, Any]] = {
    "select": {"show": "contstim.cli.looking:show"},
    "power": {
        "export": group("export", _EXPORT, partial(_platform_targets, "export")),
        "check": "contstim.cli.looking:check",
        "collect": "contstim.cli.serving:collect",
    },
    "simulate": {"import": group("import", _IMPORT, partial(_platform_targets, "import"))},
}
"""Commands listed after those of a step."""


def _make_targets() -> dict[str, Any]:
    """Return the targets of all commands in the order of help, steps in the order of `STEPS`."""
    study = ("new", "plan", "run", "status", "verify", "archive")
    targets: dict[str, Any] = {name: f"contstim.cli.study:{name}" for name in study}
    targets["models"] = "contstim.cli.looking:models"
    for word in dict.fromkeys(name.partition(" ")[0] for name in STEPS):
        steps = {n.removeprefix(f"{word} "): STEPS[n] for n in STEPS if n.startswith(f"{word} ")}
        targets[word] = group(word, _GROUPS[word], steps) if steps else STEPS[word]
        targets |= _LISTED_AFTER.get(word, {})
    return targets | {"demo": "contstim.cli.looking:demo"}


TARGETS = _make_targets()

app = typer.Typer(
    cls=CommandGroup,
    help="Make language models disagree, and let people decide which one is right.",
    pretty_exceptions_enable=False,
    **GROUPS,
)


def _show_version(is_requested: bool) -> None:
    if is_requested:
        print(f"contstim {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Make language models disagree, and let people decide which one is right."""
