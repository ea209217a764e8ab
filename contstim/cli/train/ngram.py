"""`contstim train ngram`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from contstim.cli.output import Quiet, counting, remark


def ngram(
    text: Annotated[Path, typer.Option(help="UTF-8 text, one sentence a line; - for stdin.")],
    out: Annotated[Path, typer.Option(help="The ARPA file to write.")],
    order: Annotated[int, typer.Option(help="Length of the longest n-grams, 1 to 6.")] = 3,
    prose: Annotated[
        bool, typer.Option("--prose", help="The text is running prose: split it into sentences.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Train an n-gram model (interpolated modified Kneser-Ney) and write it as an ARPA file.

    Word counts and a record of the training stand beside it.

    Example: `contstim train ngram --text corpus.txt --order 3 --out trigram.arpa`
    """
    from contstim.corpus import read_sentences
    from contstim.models.ngram.estimate import DiscountWarning
    from contstim.models.ngram.training import train_ngram

    if quiet:
        warnings.simplefilter("ignore", DiscountWarning)
    sentences = counting(read_sentences(text, prose=prose), quiet=quiet)
    trained = train_ngram(sentences, order, out)
    sizes = (f"{len(table.keys):,}" for table in trained.tables.orders)
    remark(f"{out}: {' + '.join(sizes)} n-grams of order 1 to {order}.", quiet=quiet)
