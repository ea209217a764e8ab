"""`contstim sentences`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from contstim.cli.options import Prose, Quiet, Text
from contstim.cli.output import remark
from contstim.cli.progress import reading_progress
from contstim.errors import InputError
from contstim.wording import counted


def sentences(
    text: Text,
    out: Annotated[Path, typer.Option(help="The file of natural sentences to write.")],
    words: Annotated[int, typer.Option(help="Exact number of words a sentence.")] = 8,
    vocabulary: Annotated[
        Path | None, typer.Option(help="Keep sentences of these words only.")
    ] = None,
    exclude: Annotated[
        list[Path] | None,
        typer.Option(help="Leave out sentences of this text, read like --text; repeatable."),
    ] = None,
    without: Annotated[
        Path | None, typer.Option(help="Leave out sentences with one of these phrases, one a line.")
    ] = None,
    repeats: Annotated[
        bool, typer.Option("--repeats", help="Also keep sentences in which a word occurs twice.")
    ] = False,
    prose: Prose = False,
    quiet: Quiet = False,
) -> None:
    """Find natural sentences in a text: of one length, of known words, without repeated words.

    Example: `contstim sentences --text corpus.txt --vocabulary vocab.txt --out natural.txt`
    """
    from contstim.corpus import read_lines, read_sentences
    from contstim.files import write_text
    from contstim.filters import (
        DistinctWords,
        InVocabulary,
        NotIn,
        SentenceRule,
        Without,
        WordCount,
        filter_sentences,
    )
    from contstim.records import write_record
    from contstim.vocabulary import REPEATABLE_ENGLISH, Vocabulary

    rules: list[SentenceRule] = [WordCount(words)]
    allowed = None if vocabulary is None else Vocabulary.load(vocabulary)
    if not repeats:
        rules.append(DistinctWords(REPEATABLE_ENGLISH if allowed is None else allowed.repeatable))
    if allowed is not None:
        rules.append(InVocabulary(allowed))
    if without is not None:
        rules.append(Without(tuple(read_lines(without))))
    rules += [NotIn(read_sentences(path, prose=prose)) for path in exclude or []]
    left_out: Counter[str] = Counter()
    read = reading_progress(read_sentences(text, prose=prose), quiet=quiet)
    selected = list(filter_sentences(read, rules, left_out))
    if not selected:
        reasons = "; ".join(f"{count:,} because {why}" for why, count in left_out.most_common())
        raise InputError(f"No sentence of {text} is left: {reasons}.")
    write_text(out, "".join(f"{sentence.text}\n" for sentence in selected))
    write_record(out, words=words, kept=len(selected), left_out=dict(left_out))
    remark(f"{out}: {counted(len(selected), 'sentence')}.", quiet=quiet)
    for why, count in left_out.most_common():
        remark(f"  {count:>9,} left out because {why}", quiet=quiet)
