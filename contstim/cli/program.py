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
    mixed,
    models,
    reproduce,
    review,
    score,
    select,
    sentences,
    show,
    simulate,
    study,
    synthesize,
    train,
    triplets,
    vocabulary,
)
from contstim.cli.commands import CommandGroup
from contstim.version import __version__

app = CommandGroup(
    "Make language models disagree, and let people decide which one is right.",
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
    """Options of the program itself."""


app.add("new", study.new)
app.add("plan", study.plan)
app.add("run", study.run)
app.add("status", study.status)
app.add("verify", study.verify)
app.add("archive", study.archive)
app.add("models", models.models)
app.add_typer(train.app, name="train")
app.add("vocabulary", vocabulary.vocabulary)
app.add("sentences", sentences.sentences)
app.add("score", score.score)
app.add("synthesize", synthesize.synthesize)
app.add("triplets", triplets.triplets)
app.add_typer(select.app, name="select")
app.add("show", show.show)
app.add("review", review.review)
app.add("design", design.design)
app.add_typer(export.app, name="export")
app.add("collect", collect.collect)
app.add("simulate", simulate.simulate)
app.add_typer(import_responses.app, name="import")
app.add("analyze", analyze.analyze)
app.add("mixed", mixed.mixed)
app.add("compare", compare.compare)
app.add("controls", controls.controls)
app.add_typer(evaluate.app, name="evaluate")
app.add_typer(reproduce.app, name="reproduce")
app.add_typer(generate.app, name="generate")
app.add("demo", demo.demo)
