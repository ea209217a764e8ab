"""`contstim vocabulary`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contstim.cli.options import OptionalText, Prose, Quiet, TrustRemoteCode
from contstim.cli.output import remark
from contstim.cli.progress import reading_progress
from contstim.errors import InputError
from contstim.wording import counted


def vocabulary(
    out: Annotated[Path, typer.Option(help="The vocabulary file to write.")],
    text: OptionalText = None,
    min_count: Annotated[int, typer.Option(help="How often a word must occur.")] = 5,
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
    same_token_count: Annotated[
        bool,
        typer.Option(
            "--same-token-count",
            help="Keep only words that all tokenizers cut into equally many tokens.",
        ),
    ] = False,
    table: Annotated[
        Path | None,
        typer.Option(help="Also write how many tokens each word is to each model (0: unknown)."),
    ] = None,
    prose: Prose = False,
    trust_remote_code: TrustRemoteCode = False,
    quiet: Quiet = False,
) -> None:
    """Make a vocabulary: words that may start a sentence, stand elsewhere, or occur twice.

    A word counts as sentence-initial by how often it starts a sentence, and as inner by how often
    it stands elsewhere.

    With --model, words stay that every model can score. Tokenizers that cut a word into different
    numbers of tokens confound a comparison of their models; --same-token-count leaves such words
    out.

    Example: `contstim vocabulary --text corpus.txt --model kenlm:trigram.arpa --out vocab.txt`
    """
    from contstim.corpus import read_sentences
    from contstim.experiments.reproduce.published.vocabulary import read_vocabulary
    from contstim.models.base import conventions
    from contstim.models.catalog import load_scorers
    from contstim.models.vocabularies import shared_vocabulary, tokens_of_words
    from contstim.records import write_record
    from contstim.tables import table_kind, write_table
    from contstim.vocabulary import Vocabulary

    if (text is None) == (published is None):
        raise InputError("Give either --text or --published: the words come from one of them.")
    if (same_token_count or table) and not model:
        raise InputError("--same-token-count and --table compare models: name some with --model.")
    if table is not None:
        table_kind(table)
    if text is not None:
        read = reading_progress(read_sentences(text, prose=prose), quiet=quiet)
        words = Vocabulary.from_sentences(read, min_count=min_count)
    elif published is not None:
        words = read_vocabulary(published)
    offered, models = (
        words,
        load_scorers(model or [], trust_remote_code=trust_remote_code, weights=False),
    )
    dropped: tuple[str, ...] = ()
    if models:
        words, dropped = shared_vocabulary(models, offered, same_token_count=same_token_count)
    words.save(out)
    n_known = {m.name: int(m.knows(offered.words).sum()) for m in models}
    counts = {"initial": len(words.initial), "inner": len(words.inner), "dropped": len(dropped)}
    write_record(
        out,
        min_count=min_count,
        models=conventions(models),
        same_token_count=same_token_count,
        words=counts,
        known=n_known,
    )
    remark(
        f"{out}: {counts['initial']:,} sentence-initial and {counts['inner']:,} other words"
        + (f"; {len(dropped):,} dropped." if models else "."),
        quiet=quiet,
    )
    for name, number in n_known.items():
        remark(f"  {name} knows {number:,} of {counted(len(offered.words), 'word')}", quiet=quiet)
    if table is not None:
        write_table(table, tokens_of_words(models, offered))
        remark(f"{table}: tokens of each word", quiet=quiet)
