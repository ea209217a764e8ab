"""`contstim train ngram`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from contstim.cli.options import Prose, Quiet, Text
from contstim.cli.progress import ProgressBars


def ngram(
    text: Text,
    out: Annotated[Path, typer.Option(help="The ARPA file to write.")],
    order: Annotated[int, typer.Option(help="Length of the longest n-grams, 1 to 6.")] = 3,
    prose: Prose = False,
    quiet: Quiet = False,
) -> None:
    """Train an n-gram model (interpolated modified Kneser-Ney) and write it as an ARPA file.

    Word counts and a record of the training stand beside it.

    Example: `contstim train ngram --text corpus.txt --order 3 --out trigram.arpa`
    """
    from contstim.models.ngram.estimate import DiscountWarning
    from contstim.steps.training import train_ngram_model

    if quiet:
        warnings.simplefilter("ignore", DiscountWarning)
    train_ngram_model(text, out, order=order, prose=prose, watch=ProgressBars(quiet=quiet))
