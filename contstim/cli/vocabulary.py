"""`contstim vocabulary`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contstim.cli.options import OptionalText, Quiet, TrustRemoteCode
from contstim.cli.progress import ProgressBars
from contstim.steps.text_settings import VocabularySettings


def vocabulary(
    out: Annotated[Path, typer.Option(help="The vocabulary file to write.")],
    settings: VocabularySettings,
    text: OptionalText = None,
    published: Annotated[
        Path | None, typer.Option(help="Take the 2023 study's lists from its resources folder.")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]MODEL",
            help="Keep only words that this model knows; NAME stands for it in files. Repeatable.",
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(help="Also write how many tokens each word is to each model (0: unknown)."),
    ] = None,
    trust_remote_code: TrustRemoteCode = False,
    quiet: Quiet = False,
) -> None:
    """Make a vocabulary: words that may start a sentence, stand elsewhere, or occur twice.

    A word counts as sentence-initial by how often it starts a sentence, and as inner by how often
    it stands elsewhere.

    Of a text, only what spelling, case and use show to be words is taken: no initials, addresses,
    abbreviations, names or words on a block list, and capitals only where a sentence starts. What
    was left out, and why, is listed in a table beside the vocabulary (vocab.txt.dropped.csv).

    With --model, words stay that every model can score. Tokenizers that cut a word into different
    numbers of tokens confound a comparison of their models; --same-token-count leaves such words
    out.

    Example: `contstim vocabulary --text corpus.txt --model kenlm:trigram.arpa --out vocab.txt`
    """
    from contstim.steps.vocabulary import make_vocabulary

    make_vocabulary(
        text,
        out,
        settings=settings,
        models=model or (),
        published=published,
        table=table,
        trust_remote_code=trust_remote_code,
        watch=ProgressBars(quiet=quiet),
    )
