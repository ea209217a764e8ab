"""Options that several commands share, each with its help text written once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")]
Seed = Annotated[int, typer.Option(min=0, help="Decides everything that is left to chance.")]
Folder = Annotated[Path, typer.Option(help="The folder to write.")]

# Models, and how they are loaded

_MODEL = typer.Option(
    metavar="[NAME=]MODEL",
    help="A model, such as kenlm:trigram.arpa or gpt2=hf:gpt2@chain; NAME stands for it in files, "
    "figures and tables. Repeatable.",
)
Model = Annotated[list[str], _MODEL]
Models = Annotated[list[str] | None, _MODEL]
Device = Annotated[
    Literal["auto", "cpu", "cuda"],
    typer.Option(help="Where networks run; auto: a GPU where there is one."),
]
Dtype = Annotated[
    Literal["auto", "float32", "bfloat16", "float16"],
    typer.Option(help="What transformers compute in; auto: float32. Half precision makes ties."),
]
Prompt = Annotated[
    str | None,
    typer.Option(help="What causal transformers read before a sentence; it never counts."),
]
TrustRemoteCode = Annotated[
    bool,
    typer.Option(
        "--trust-remote-code",
        help="Let transformers run Python code that comes with a checkpoint. Read it first.",
    ),
]


# Texts, words and sentences

_TEXT_HELP = "UTF-8 text, one sentence a line; - for stdin."
Text = Annotated[Path, typer.Option(help=_TEXT_HELP)]
OptionalText = Annotated[Path | None, typer.Option(help=_TEXT_HELP)]
Prose = Annotated[
    bool, typer.Option("--prose", help="The text is running prose: split it into sentences.")
]
Sentences = Annotated[
    Path, typer.Option(help="Sentences, one a line, or a table with columns of sentences.")
]
Words = Annotated[
    Path | None,
    typer.Option(help="Words to use; by default those frequent in the models' own text."),
]


# Databases in which scores and results are kept between runs

StoreInFolder = Annotated[
    Path | None,
    typer.Option(help="Where scores are kept between runs; contstim.sqlite in --out."),
]
StoreBesideTable = Annotated[
    Path | None,
    typer.Option(help="Where scores are kept between runs; contstim.sqlite beside --out."),
]

# What reviewers decided

Earlier = Annotated[
    list[Path] | None,
    typer.Option(
        help="With --review: the tables that stood before, of pairs or triplets and of trials. All "
        "that nobody rejects stays in its place, whether a review holds it or not. Repeatable.",
    ),
]

Reviews = Annotated[
    list[Path] | None,
    typer.Option(
        "--review",
        help="What `contstim review` wrote of what stood before: rejected items go, all others "
        "stay as far as they can. Repeatable; give the reviews of all rounds.",
    ),
]

# What people saw and answered

Trials = Annotated[Path, typer.Option(help="The table of trials that people saw.")]
Responses = Annotated[Path, typer.Option(help="The table of responses.")]
TrialScores = Annotated[Path, typer.Option(help="Scores of the trials' sentences, as of `score`.")]
