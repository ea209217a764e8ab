"""The program: its commands, each of which parses its options, calls one function, and prints."""

from __future__ import annotations

import typer

from contstim.cli import (
    analyze,
    collect,
    compare,
    controls,
    demo,
    design,
    evaluate,
    export,
    generate,
    import_responses,
    models,
    reproduce,
    score,
    select,
    simulate,
    synthesize,
    text,
    train,
    triplets,
)
from contstim.version import __version__

app = typer.Typer(
    help="Make language models disagree, and let people decide which one is right.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"contstim {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Make language models disagree, and let people decide which one is right."""


app.command("models")(models.models)
app.add_typer(train.app, name="train")
app.command("vocabulary")(text.vocabulary)
app.command("sentences")(text.sentences)
app.command("score")(score.score)
app.command("synthesize")(synthesize.synthesize)
app.command("triplets")(triplets.triplets)
app.add_typer(select.app, name="select")
app.command("design")(design.design)
app.add_typer(export.app, name="export")
app.command("collect")(collect.collect)
app.command("simulate")(simulate.simulate)
app.add_typer(import_responses.app, name="import")
app.command("analyze")(analyze.analyze)
app.command("compare")(compare.compare)
app.command("controls")(controls.controls)
app.add_typer(evaluate.app, name="evaluate")
app.add_typer(reproduce.app, name="reproduce")
app.add_typer(generate.app, name="generate")
app.command("demo")(demo.demo)
