"""Options that several commands share, each with its help text written once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")]
Seed = Annotated[int, typer.Option(min=0, help="Decides everything that is left to chance.")]
Restarts = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Searches of a sentence, at most, each with another seed; the best result is kept. "
        "They end when five in a row gain next to nothing. By default 1; up to 20 where searching "
        "is cheap, as between n-gram models.",
    ),
]
Seconds = Annotated[
    float | None,
    typer.Option(
        help="Search a sentence again as long as another search is expected to end within so many "
        "seconds. The first always finishes. Results then depend on the machine."
    ),
]
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
AllowUnknown = Annotated[
    bool,
    typer.Option("--allow-unknown", help="Also use words that a word-level model cannot tell."),
]

Uncapped = Annotated[
    Path | None,
    typer.Option(
        help="With --word-cap: words that do not count, one a line, or a vocabulary file with "
        "a list [repeatable]; by default English articles and prepositions."
    ),
]


def uncapped_words(uncapped: Path | None, word_cap: int | None) -> frozenset[str]:
    """The words that do not count for a cap, as the file has them.

    Raises:
        InputError: there is no cap, or the file cannot be read.
    """
    from contstim.errors import InputError
    from contstim.vocabulary import REPEATABLE_ENGLISH, read_repeatable

    if uncapped is None:
        return REPEATABLE_ENGLISH
    if word_cap is None:
        raise InputError("--uncapped names the exceptions of --word-cap: give both.")
    return read_repeatable(uncapped)


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
MinCatch = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Catch trials that must be right; by default eleven of twelve, or that share; "
        "fewer where more than one in a hundred of attentive people would fail (5 of 6).",
    ),
]
Samples = Annotated[
    int, typer.Option(min=0, help="Bootstrap resamples of participants and items; 0 for none.")
]
