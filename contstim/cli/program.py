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


def _steps(word: str, summary: str) -> CommandGroup:
    """A group of the steps whose names begin with a word."""
    names = (name for name in STEPS if name.startswith(f"{word} "))
    return group(word, summary, {name.removeprefix(f"{word} "): STEPS[name] for name in names})


_EXPORT = "Turn trials into an experiment that people take part in, or into a public data set."
_IMPORT = "Make responses.csv from the data of a platform."
_EVALUATE = "Evaluate models without people: on benchmarks, and on what scores should be like."

_STUDY = ("new", "plan", "run", "status", "verify", "archive")
_TEXTS = ("vocabulary", "sentences", "score", "synthesize", "triplets")
TARGETS: dict[str, Any] = {
    **{name: f"contstim.cli.study:{name}" for name in _STUDY},
    "models": "contstim.cli.looking:models",
    "train": _steps("train", "Train a model on a text."),
    **{name: STEPS[name] for name in _TEXTS},
    "select": _steps("select", "Select the most controversial stimuli, exactly."),
    "show": "contstim.cli.looking:show",
    **{name: STEPS[name] for name in ("review", "design", "power")},
    "export": group("export", _EXPORT, partial(_of_platforms, "export")),
    "check": "contstim.cli.looking:check",
    "collect": "contstim.cli.serving:collect",
    "simulate": STEPS["simulate"],
    "import": group("import", _IMPORT, partial(_of_platforms, "import")),
    **{name: STEPS[name] for name in ("analyze", "mixed", "compare", "controls")},
    "evaluate": _steps("evaluate", _EVALUATE),
    "reproduce": _steps("reproduce", "Analyse published data again, claim by claim."),
    "generate": _steps("generate", "Make test sentences from the embedded English."),
    "demo": "contstim.cli.looking:demo",
    # Further steps of one word come last
    **{name: target for name, target in STEPS.items() if " " not in name},
}

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
