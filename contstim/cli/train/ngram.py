"""`contstim train ngram`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from contstim.cli.options import Prose, Quiet, Text
from contstim.cli.output import remark
from contstim.cli.progress import reading_progress


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
    from contstim.corpus import read_sentences
    from contstim.models.ngram.estimate import DiscountWarning
    from contstim.models.ngram.training import train_ngram

    if quiet:
        warnings.simplefilter("ignore", DiscountWarning)
    sentences = reading_progress(read_sentences(text, prose=prose), quiet=quiet)
    trained = train_ngram(sentences, order, out)
    sizes = (f"{len(table.keys):,}" for table in trained.tables.orders)
    remark(f"{out}: {' + '.join(sizes)} n-grams of order 1 to {order}.", quiet=quiet)
