"""`contstim vocabulary`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.options import OptionalText, Prose, Quiet, TrustRemoteCode, WordChoice
from contstim.cli.output import remark, warn
from contstim.cli.progress import reading_progress
from contstim.errors import InputError
from contstim.wording import counted

if TYPE_CHECKING:
    from contstim.word_rules import TextWords

_MANY_NAMES = 0.12  # of all words inside sentences; English textbooks have half of that


def vocabulary(
    out: Annotated[Path, typer.Option(help="The vocabulary file to write.")],
    choice: WordChoice,
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

    Of a text, only what spelling, case and use show to be words is taken: no initials, addresses,
    abbreviations, names or words on a block list, and capitals only where a sentence starts. What
    was left out, and why, is listed in a table beside the vocabulary (vocab.txt.dropped.csv).

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
    from contstim.tables import columns_of, table_kind, write_table
    from contstim.vocabulary import Vocabulary
    from contstim.word_rules import DroppedWord, sort_words

    if (text is None) == (published is None):
        raise InputError("Give either --text or --published: the words come from one of them.")
    if (same_token_count or table) and not model:
        raise InputError("--same-token-count and --table compare models: name some with --model.")
    if table is not None:
        table_kind(table)  # a name that no table can have is refused before the text is read
    # Options that would change nothing are refused
    if published is not None and choice != WordChoice():
        raise InputError(
            "The words of --published stay as they were: options about words are for --text."
        )
    text_words: TextWords | None = None
    if text is not None:
        read = reading_progress(read_sentences(text, prose=prose), quiet=quiet)
        rules = choice.rules()
        if rules is None:
            words = Vocabulary.from_sentences(read, min_count=min_count)
        else:
            text_words = sort_words(read, rules, min_count=min_count)
            words = text_words.vocabulary
    elif published is not None:
        words = read_vocabulary(published)
    offered = words
    # Tokenizers and lists of words say which words a model knows; no network is needed.
    models = load_scorers(model or [], trust_remote_code=trust_remote_code, weights=False)
    dropped: tuple[str, ...] = ()
    if models:
        words, dropped = shared_vocabulary(models, offered, same_token_count=same_token_count)
    words.save(out)
    if text_words is not None:
        write_table(f"{out}.dropped.csv", columns_of(DroppedWord, text_words.dropped))
    # Of all words offered, not of those that stay: the smallest number tells which model costs most
    # words
    n_known = {m.name: int(m.knows(offered.words).sum()) for m in models}
    counts = {"initial": len(words.initial), "inner": len(words.inner), "dropped": len(dropped)}
    write_record(
        out,
        min_count=min_count,
        models=conventions(models),
        same_token_count=same_token_count,
        words=counts,
        choice={name: value and str(value) for name, value in asdict(choice).items()},
        left_out={} if text_words is None else text_words.counts(),
        known=n_known,
    )
    remark(
        f"{out}: {counts['initial']:,} sentence-initial and {counts['inner']:,} other words"
        + (f"; {len(dropped):,} dropped." if models else "."),
        quiet=quiet,
    )
    if text_words is not None:
        _tell_of_dropped(text_words, choice, Path(f"{out}.dropped.csv"), quiet=quiet)
    for name, number in n_known.items():
        remark(f"  {name} knows {number:,} of {counted(len(offered.words), 'word')}", quiet=quiet)
    if table is not None:
        write_table(table, tokens_of_words(models, offered))
        remark(f"{table}: tokens of each word", quiet=quiet)


def _tell_of_dropped(words: TextWords, choice: WordChoice, table: Path, *, quiet: bool) -> None:
    """What of a text is not in its vocabulary."""
    remark(f"{table}: {counted(len(words.dropped), 'word')} of the text left out", quiet=quiet)
    for reason, number in words.counts().items():
        remark(f"  {number:>9,} {reason}", quiet=quiet)
    if words.with_address:
        sentences = counted(words.with_address, "sentence")
        remark(f"  {sentences} with a web address were not read", quiet=quiet)
    if words.name_share > _MANY_NAMES and not choice.keeps_names:
        warn(
            f"{words.name_share:.0%} of the words inside sentences are always capitalised and were "
            "taken for names. In a language that capitalises nouns, use --names keep."
        )
