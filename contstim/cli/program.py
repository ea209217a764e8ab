"""The program: where each of its commands is."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from contstim.cli.commands import GROUPS, CommandGroup, group
from contstim.steps import STEPS, step_named
from contstim.version import __version__


def _of_platforms(word: str) -> dict[str, Any]:
    """A command for each platform, which is imported when it is named or all are listed."""
    from contstim.experiments.platforms.platform import platform_names

    return {name: partial(step_named, f"{word} {name}") for name in platform_names()}


_GROUPS = {
    "train": "Train a model on a text.",
    "select": "Select the best stimuli, exactly.",
    "evaluate": "Evaluate models without people: on benchmarks, and on what scores should be like.",
    "reproduce": "Analyse published data again, claim by claim.",
    "generate": "Make test sentences from the embedded English.",
}
"""First words of several steps, with a summary."""

_EXPORT = "Turn trials into an experiment that people take part in, or into a public data set."
_IMPORT = "Make responses.csv from the data of a platform."
_BEHIND: dict[str, dict[str, Any]] = {
    "select": {"show": "contstim.cli.looking:show"},
    "power": {
        "export": group("export", _EXPORT, partial(_of_platforms, "export")),
        "check": "contstim.cli.looking:check",
        "collect": "contstim.cli.serving:collect",
    },
    "simulate": {"import": group("import", _IMPORT, partial(_of_platforms, "import"))},
}
"""Commands that are listed behind those of a step."""


def _targets() -> dict[str, Any]:
    """Where each command is, in the order of help: steps stand as in their catalog."""
    study = ("new", "plan", "run", "status", "verify", "archive")
    targets: dict[str, Any] = {name: f"contstim.cli.study:{name}" for name in study}
    targets["models"] = "contstim.cli.looking:models"
    for word in dict.fromkeys(name.partition(" ")[0] for name in STEPS):
        own = {n.removeprefix(f"{word} "): STEPS[n] for n in STEPS if n.startswith(f"{word} ")}
        targets[word] = group(word, _GROUPS[word], own) if own else STEPS[word]
        targets |= _BEHIND.get(word, {})
    return targets | {"demo": "contstim.cli.looking:demo"}


TARGETS = _targets()

app = typer.Typer(
    cls=CommandGroup,
    help="Make language models disagree, and let people decide which one is right.",
    pretty_exceptions_enable=False,
    **GROUPS,
)


def _show_version(wanted: bool) -> None:
    if wanted:
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
