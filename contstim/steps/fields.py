"""Fields that several steps share, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from contstim.options import Aside, Help, Models, Reads

_MODEL = Models(
    "A model, such as kenlm:trigram.arpa or gpt2=hf:gpt2@chain; NAME stands for it in files, "
    "figures and tables. Repeatable.",
    flag="--model",
)
GivenModels = Annotated[tuple[str, ...], _MODEL]

Text = Annotated[Path, Reads("UTF-8 text, one sentence a line; - for stdin.")]
Prose = Annotated[bool, Help("The text is running prose: split it into sentences.", flag="--prose")]
TrustRemoteCode = Annotated[
    bool,
    Help(
        "Let transformers run Python code that comes with a checkpoint. Read it first.",
        flag="--trust-remote-code",
    ),
]
StoreBeside = Annotated[
    Path | None, Aside("Where scores are kept between runs; contstim.sqlite beside --out.")
]

# What reviewers decided
Reviews = Annotated[
    tuple[Path, ...],
    Reads(
        "What `contstim review` wrote of what stood before: rejected items go, all others "
        "stay as far as they can. Repeatable; give the reviews of all rounds.",
        flag="--review",
    ),
]
Earlier = Annotated[
    tuple[Path, ...],
    Aside(
        "With --review: the tables that stood before, of pairs or triplets and of trials. All "
        "that nobody rejects stays in its place, whether a review holds it or not. Repeatable."
    ),
]

# What people saw and answered
Trials = Annotated[Path, Reads("The table of trials that people saw.")]
Responses = Annotated[Path, Reads("The table of responses.")]
TrialScores = Annotated[Path, Reads("Scores of the trials' sentences, as of `score`.")]
