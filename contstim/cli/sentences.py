"""`contstim sentences`."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.options import Blocked, Language, Prose, Quiet, Text
from contstim.cli.output import remark
from contstim.cli.progress import reading_progress
from contstim.errors import InputError
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from contstim.sentence import Sentence


def sentences(
    text: Text,
    out: Annotated[Path, typer.Option(help="The file of natural sentences to write.")],
    words: Annotated[
        str, typer.Option(metavar="N or N-M", help="Number of words a sentence, such as 8 or 7-9.")
    ] = "8",
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
    language: Language = "en",
    names: Annotated[int, typer.Option(min=0, help="How many names a sentence may hold.")] = 1,
    blocked: Blocked = None,
    finite_verb: Annotated[
        bool,
        typer.Option(
            "--finite-verb", help="Keep sentences with a finite verb only (English; NLTK's tagger)."
        ),
    ] = False,
    every_line: Annotated[
        bool,
        typer.Option("--every-line", help="Also keep headings, references and near-duplicates."),
    ] = False,
    prose: Prose = False,
    quiet: Quiet = False,
) -> None:
    """Find natural sentences in a text: whole ones, of one length, without repeated words.

    Lines that are no sentences are left out: those that do not start and end like one, that hold
    parts of addresses, abbreviations or words on a block list, or that are capitalised like
    headings. Of sentences that differ by one word the first is kept.

    Example: `contstim sentences --text corpus.txt --vocabulary vocab.txt --out natural.txt`
    """
    from contstim.corpus import read_lines, read_sentences
    from contstim.english.words import english_rules
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
    from contstim.whole_sentences import HasFiniteVerb, nltk_tagger, whole_sentence_rules
    from contstim.word_rules import WordRules, read_words, sort_words

    length = re.fullmatch(r"([0-9]{1,4})(?:-([0-9]{1,4}))?", words)
    if length is None:
        raise InputError(f"--words is {words!r}; expected a number or two, such as 8 or 7-9.")
    rules: list[SentenceRule] = [WordCount(int(length[1]), int(length[2]) if length[2] else None)]
    allowed = None if vocabulary is None else Vocabulary.load(vocabulary)
    # A vocabulary says itself which words may stand twice; else English function words may.
    if not repeats:
        rules.append(DistinctWords(REPEATABLE_ENGLISH if allowed is None else allowed.repeatable))
    if allowed is not None:
        rules.append(InVocabulary(allowed))
    if without is not None:
        rules.append(Without(tuple(read_lines(without))))
    rules += [NotIn(read_sentences(path, prose=prose)) for path in exclude or []]
    if finite_verb:
        # Behind the cheap rules: tagging takes longest
        rules.append(HasFiniteVerb(nltk_tagger()))

    read: Iterable[Sentence] = reading_progress(read_sentences(text, prose=prose), quiet=quiet)
    # A sentence is left out for the first rule that it breaks, so that reasons add up.
    left_out: Counter[str] = Counter()
    if not every_line:
        word_rules = english_rules(names=True) if language == "en" else WordRules()
        if blocked is not None:
            word_rules = replace(word_rules, blocked=read_words(blocked))
        candidates: list[Sentence] = []

        def those_of_length(sentences: Iterable[Sentence]) -> Iterator[Sentence]:
            """All sentences, of which those that may stay are remembered."""
            for sentence in sentences:
                if rules[0].rejects(sentence):
                    left_out[rules[0].reason] += 1
                else:
                    candidates.append(sentence)
                yield sentence

        # Which words are names is told by the whole text, also by sentences of other lengths.
        text_words = sort_words(those_of_length(read), word_rules)
        rules += whole_sentence_rules(word_rules, text_words.names, most_names=names)
        read = candidates
    selected = list(filter_sentences(read, rules, left_out))
    if not selected:
        reasons = "; ".join(f"{count:,} because {why}" for why, count in left_out.most_common())
        raise InputError(f"No sentence of {text} is left: {reasons}.")
    write_text(out, "".join(f"{sentence.text}\n" for sentence in selected))
    write_record(out, words=words, kept=len(selected), left_out=dict(left_out))
    remark(f"{out}: {counted(len(selected), 'sentence')}.", quiet=quiet)
    remaining = len(selected) + left_out.total()
    remark(f"  {remaining:>9,} in the text", quiet=quiet)
    reasons_in_order = [rule.reason for rule in rules]
    order = {reason: place for place, reason in enumerate(reasons_in_order)}
    for why, count in sorted(left_out.items(), key=lambda item: order.get(item[0], len(order))):
        remaining -= count
        remark(f"  {remaining:>9,} without those left out because {why} ({count:,})", quiet=quiet)
