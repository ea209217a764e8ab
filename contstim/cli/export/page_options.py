"""What the commands that export our page have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Trials = Annotated[Path, typer.Option(help="What to show: trials.csv.")]
Title = Annotated[str, typer.Option(help="Of the browser's window.")]
CompletionCode = Annotated[
    str, typer.Option(help="What participants see when all their answers are saved.")
]
Redirect = Annotated[
    str, typer.Option(help="Where they go then, such as Prolific's completion link.")
]
Language = Annotated[str, typer.Option(help="Of sentences and texts: en, de, pt-BR, …")]
Practice = Annotated[
    Path | None,
    typer.Option(help="Pairs to practise on: a table with sentence_1 and sentence_2."),
]
Vendor = Annotated[
    bool, typer.Option("--vendor", help="Copy jsPsych into the folder, from npm: works offline.")
]
VendorFrom = Annotated[
    Path | None,
    typer.Option(help="Copy jsPsych from this folder (an earlier `vendor`, or node_modules)."),
]
