"""Options that several commands share, each with its help text written once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.models.base import LanguageModel, Scorer
    from contstim.models.catalog import LoadOptions

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


@dataclass(frozen=True, kw_only=True)
class Loading:
    """How the models that a command names are loaded."""

    prompt: Prompt = None
    device: Device = "auto"
    dtype: Dtype = "auto"
    trust_remote_code: TrustRemoteCode = False

    @property
    def keywords(self) -> LoadOptions:
        """The same as keyword arguments of `load_scorer`."""
        return {
            "prompt": self.prompt,
            "device": self.device,
            "dtype": self.dtype,
            "trust_remote_code": self.trust_remote_code,
        }

    def scorers(self, models: Sequence[str] | None) -> list[Scorer]:
        """Whatever the models are: language models, transforms of them, classifiers."""
        from contstim.models.catalog import load_scorers

        return load_scorers(models or (), **self.keywords)

    def language_models(self, models: Sequence[str]) -> list[LanguageModel]:
        """Models whose scores are log-probabilities; others are refused."""
        from contstim.models.catalog import load_models

        return load_models(models, **self.keywords)


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

# Databases in which scores and results are kept between runs

StoreInFolder = Annotated[
    Path | None,
    typer.Option(help="Where scores are kept between runs; contstim.sqlite in --out."),
]
StoreBesideTable = Annotated[
    Path | None,
    typer.Option(help="Where scores are kept between runs; contstim.sqlite beside --out."),
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
