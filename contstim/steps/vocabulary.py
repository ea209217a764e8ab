"""The words of a study, from a text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from contstim.corpus import read_sentences
from contstim.errors import InputError
from contstim.experiments.reproduce.published.reading import read_vocabulary
from contstim.models.base import conventions
from contstim.models.catalog import load_scorers
from contstim.models.loading import Loading
from contstim.models.origins import model_origins
from contstim.models.vocabularies import shared_vocabulary, tokens_of_words
from contstim.records import write_record
from contstim.steps.text_settings import VocabularySettings
from contstim.steps.watching import SILENT
from contstim.tables import columns_of, table_kind, write_table
from contstim.vocabulary import Vocabulary
from contstim.word_rules import DroppedWord, sort_words
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.steps.watching import Watcher
    from contstim.word_rules import TextWords

_MANY_NAMES = 0.12  # of all words inside sentences; English textbooks have half of that
_DEFAULTS = VocabularySettings()


def make_vocabulary(
    text: Path | None,
    out: Path,
    *,
    settings: VocabularySettings = _DEFAULTS,
    models: Sequence[str] = (),
    published: Path | None = None,
    table: Path | None = None,
    trust_remote_code: bool = False,
    watch: Watcher = SILENT,
) -> Vocabulary:
    """Write the words of a text that may stand in sentences; beside them the words left out.

    Args:
        text: one sentence a line, unless the settings say that it is prose; None with `published`.
        out: the vocabulary file.
        settings: which words are taken.
        models: only words that each of these models can score stay.
        published: the resources folder of the 2023 study, whose lists are taken instead.
        table: a further table to write, of how many tokens each word is to each model.
        trust_remote_code: whether checkpoints may run their own Python code.
        watch: told what is done.

    Raises:
        InputError: the words come from two places or from none, something asked for would change
            nothing, or a file cannot be read or written.
        VocabularyError: no word is left.
        ModelError: a model cannot be loaded, or has no tokenizer and no words.
    """
    if (text is None) == (published is None):
        raise InputError("Give either --text or --published: the words come from one of them.")
    if (settings.same_token_count or table) and not models:
        raise InputError("--same-token-count and --table compare models: name some with --model.")
    if table is not None:
        table_kind(table)  # a name that no table can have is refused before the text is read
    # Options that would change nothing are refused
    if published is not None and settings.word_choice != _DEFAULTS.word_choice:
        raise InputError(
            "The words of --published stay as they were: options about words are for --text."
        )
    text_words: TextWords | None = None
    if text is not None:
        read = watch.reading(read_sentences(text, prose=settings.prose))
        rules = settings.rules()
        if rules is None:
            words = Vocabulary.from_sentences(read, min_count=settings.min_count)
        else:
            text_words = sort_words(read, rules, min_count=settings.min_count)
            words = text_words.vocabulary
    elif published is not None:
        words = read_vocabulary(published)
    offered = words
    # Tokenizers and lists of words say which words a model knows; no network is needed.
    loading = Loading(trust_remote_code=trust_remote_code).without_weights
    scorers = load_scorers(models, loading)
    dropped: tuple[str, ...] = ()
    if scorers:
        words, dropped = shared_vocabulary(
            scorers, offered, same_token_count=settings.same_token_count
        )
    words.save(out)
    left_out = Path(f"{out}.dropped.csv")
    if text_words is not None:
        write_table(left_out, columns_of(DroppedWord, text_words.dropped))
    if table is not None:
        write_table(table, tokens_of_words(scorers, offered))
    # Of all words offered, not of those that stay: the smallest number tells which model costs most
    # words
    n_words = {m.name: int(m.knows(offered.words).sum()) for m in scorers}
    origins = model_origins(scorer.specification for scorer in scorers)
    counts = {"initial": len(words.initial), "inner": len(words.inner), "dropped": len(dropped)}
    write_record(
        out,
        [text, published, settings.without, settings.blocked, *origins.files],
        [*([left_out] if text_words else []), *([table] if table else [])],
        min_count=settings.min_count,
        models=conventions(scorers),
        commits=origins.commits,
        same_token_count=settings.same_token_count,
        words=counts,
        choice={name: value and str(value) for name, value in settings.word_choice.items()},
        left_out={} if text_words is None else text_words.counts(),
        known=n_words,
    )
    watch.remark(
        f"{out}: {counts['initial']:,} sentence-initial and {counts['inner']:,} other words"
        + (f"; {len(dropped):,} dropped." if scorers else "."),
    )
    if text_words is not None:
        _tell_of_dropped(text_words, left_out, watch, keeps_names=settings.keeps_names)
    for name, number in n_words.items():
        watch.remark(f"  {name} knows {number:,} of {counted(len(offered.words), 'word')}")
    if table is not None:
        watch.remark(f"{table}: tokens of each word")
    return words


def _tell_of_dropped(words: TextWords, table: Path, watch: Watcher, *, keeps_names: bool) -> None:
    """Say what of a text is not in its vocabulary."""
    watch.remark(f"{table}: {counted(len(words.dropped), 'word')} of the text left out")
    for reason, number in words.counts().items():
        watch.remark(f"  {number:>9,} {reason}")
    if words.with_address:
        sentences = counted(words.with_address, "sentence")
        watch.remark(f"  {sentences} with a web address were not read")
    if words.name_share > _MANY_NAMES and not keeps_names:
        watch.warn(
            f"{words.name_share:.0%} of the words inside sentences are always capitalised and were "
            "taken for names. In a language that capitalises nouns, use --names keep."
        )
