"""The program: where each of its commands is."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from contstim.cli.commands import StepCommand, group
from contstim.steps import STEPS, step_named
from contstim.version import __version__


def _of_platforms(word: str) -> dict[str, Any]:
    """A command for each platform, which is imported when it is named or all are listed."""
    from contstim.experiments.platforms.platform import platform_names

    return {name: partial(step_named, f"{word} {name}") for name in platform_names()}


def _steps(word: str) -> dict[str, str]:
    """The steps of a group of commands, by their second words."""
    return {
        name.removeprefix(f"{word} "): target
        for name, target in STEPS.items()
        if name.startswith(f"{word} ")
    }


app = group(
    "Make language models disagree, and let people decide which one is right.",
    {
        **{
            name: f"contstim.cli.study:{name}"
            for name in ("new", "plan", "run", "status", "verify", "archive")
        },
        "models": "contstim.cli.looking:models",
        "train": group("Train a model on a text.", _steps("train")),
        **{
            name: STEPS[name]
            for name in ("vocabulary", "sentences", "score", "synthesize", "triplets")
        },
        "select": group("Select the most controversial stimuli, exactly.", _steps("select")),
        "show": "contstim.cli.looking:show",
        "review": StepCommand(
            STEPS["review"], "contstim.cli.serving:REVIEW_OPTIONS", "contstim.cli.serving:review"
        ),
        "design": STEPS["design"],
        "power": STEPS["power"],
        "export": group(
            "Turn trials into an experiment that people take part in, or into a public data set.",
            partial(_of_platforms, "export"),
        ),
        "check": "contstim.cli.looking:check",
        "collect": "contstim.cli.serving:collect",
        "simulate": STEPS["simulate"],
        "import": group(
            "Make responses.csv from the data of a platform.", partial(_of_platforms, "import")
        ),
        **{name: STEPS[name] for name in ("analyze", "mixed", "compare", "controls")},
        "evaluate": group(
            "Evaluate models without people: on benchmarks, and on what scores should be like.",
            _steps("evaluate"),
        ),
        "reproduce": group("Analyse published data again, claim by claim.", _steps("reproduce")),
        "generate": group("Make test sentences from the embedded English.", _steps("generate")),
        "demo": "contstim.cli.looking:demo",
    },
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
