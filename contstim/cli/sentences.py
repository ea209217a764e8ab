"""`contstim sentences`."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.options import Blocked, Language, Prose, Quiet, Text, word_rules
from contstim.cli.output import INCOMPLETE, print_table, remark, results_table
from contstim.cli.progress import reading_progress
from contstim.errors import InputError
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from contstim.experiments.design.sentence_needs import SentenceNeeds
    from contstim.filters import SentenceRule
    from contstim.sentence import Sentence


@dataclass(frozen=True, kw_only=True)
class Study:
    """The study that sentences are counted for."""

    for_models: Annotated[
        int | None,
        typer.Option(
            metavar="M", help="Count for a study of so many models whether there are enough."
        ),
    ] = None
    triplets_per_pair: Annotated[
        int, typer.Option(help="With --for-models: as of triplets --per-pair.")
    ] = 100
    pairs_per_pair: Annotated[
        int, typer.Option(help="With --for-models: as of select natural --per-pair.")
    ] = 10
    groups: Annotated[int, typer.Option(help="With --for-models: as of design.")] = 10
    random_per_group: Annotated[int, typer.Option(help="With --for-models: as of design.")] = 9
    catch_per_group: Annotated[int, typer.Option(help="With --for-models: as of design.")] = 12

    def needs(self) -> SentenceNeeds | None:
        """How many sentences are needed for what; None where no study was asked about."""
        from contstim.experiments.design.sentence_needs import sentences_needed

        if self.for_models is None:
            if self != Study():
                raise InputError("The numbers of a study are for --for-models: give both.")
            return None
        return sentences_needed(
            self.for_models,
            triplets_per_pair=self.triplets_per_pair,
            pairs_per_pair=self.pairs_per_pair,
            groups=self.groups,
            random_per_group=self.random_per_group,
            catch_per_group=self.catch_per_group,
        )


def sentences(
    *,
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
    study: Study,
    quiet: Quiet = False,
) -> None:
    """Find natural sentences in a text: whole ones, of one length, without repeated words.

    Lines that are no sentences are left out: those that do not start and end like one, that hold
    parts of addresses, abbreviations or words on a block list, or that are capitalised like
    headings. Of sentences that differ by one word the first is kept.

    With --for-models it also says how many sentences a study of so many models needs, and, where
    too few are left, which single rule to loosen gains how many; the exit status is then 3.

    Examples: `contstim sentences --text corpus.txt --vocabulary vocab.txt --out natural.txt`

    `contstim sentences --text corpus.txt --for-models 3 --triplets-per-pair 40 --out natural.txt`
    """
    from contstim.corpus import read_lines, read_sentences
    from contstim.files import write_text
    from contstim.filters import (
        DistinctWords,
        InVocabulary,
        NotIn,
        Without,
        WordCount,
        filter_sentences,
    )
    from contstim.records import write_record
    from contstim.vocabulary import REPEATABLE_ENGLISH, Vocabulary
    from contstim.whole_sentences import HasFiniteVerb, nltk_tagger, whole_sentence_rules
    from contstim.word_rules import sort_words

    length = re.fullmatch(r"([0-9]{1,4})(?:-([0-9]{1,4}))?", words)
    if length is None:
        raise InputError(f"--words is {words!r}; expected a number or two, such as 8 or 7-9.")
    needs = study.needs()
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
        text_rules = word_rules(language, blocked)
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
        text_words = sort_words(those_of_length(read), text_rules)
        rules += whole_sentence_rules(text_rules, text_words.names, most_names=names)
        read = candidates
    selected = list(filter_sentences(read, rules, left_out))
    if not selected:
        reasons = "; ".join(f"{count:,} because {why}" for why, count in left_out.most_common())
        raise InputError(f"No sentence of {text} is left: {reasons}.")
    write_text(out, "".join(f"{sentence.text}\n" for sentence in selected))
    facts = {} if needs is None else {"needed": {row.use: row.needed for row in needs.rows}}
    write_record(out, words=words, kept=len(selected), left_out=dict(left_out), **facts)
    remark(f"{out}: {counted(len(selected), 'sentence')}.", quiet=quiet)
    if needs is not None:
        _print_needs(needs)

    def lacking(count: int) -> str:
        """A further column: whether so many would do."""
        if needs is None:
            return ""
        lacks = needs.in_all - count
        return f" {f'{lacks:,} too few' if lacks > 0 else 'enough':>17}"

    remaining = len(selected) + left_out.total()
    remark(f"  {remaining:>9,}{lacking(remaining)} in the text", quiet=quiet)
    reasons_in_order = [rule.reason for rule in rules]
    order = {reason: place for place, reason in enumerate(reasons_in_order)}
    for why, count in sorted(left_out.items(), key=lambda item: order.get(item[0], len(order))):
        remaining -= count
        remark(
            f"  {remaining:>9,}{lacking(remaining)} without those left out because {why} "
            f"({count:,})",
            quiet=quiet,
        )
    if needs is not None and len(selected) < needs.in_all:
        remark(
            f"{needs.in_all - len(selected):,} sentences too few for a study of {study.for_models} "
            f"models: give more text, ask for less, or loosen a rule."
        )
        # What was read is gone by now; a pipe cannot be read again
        if str(text) == "-":
            remark("What a rule costs is counted for files only: give --text FILE.")
        else:
            _tell_gains(read_sentences(text, prose=prose), rules)
        raise typer.Exit(INCOMPLETE)


def _print_needs(needs: SentenceNeeds) -> None:
    table = results_table("natural sentences for", "model pairs or groups", "each", "needed")
    for row in needs.rows:
        last = row is needs.rows[-1]
        numbers = ("", "") if last else (f"{row.times:,}", f"{row.each:,}")
        table.add_row(row.use, *numbers, f"{row.needed:,}")
    print_table(table)


def _tell_gains(text: Iterable[Sentence], rules: Sequence[SentenceRule]) -> None:
    """Say which single rule to loosen gains how many sentences, most first."""
    from contstim.filters import (
        DistinctWords,
        InVocabulary,
        NotIn,
        Without,
        WordCount,
        gains_of_loosening,
    )
    from contstim.whole_sentences import CleanWords, FewNames, HasFiniteVerb

    options: dict[type[SentenceRule], str] = {
        DistinctWords: "--repeats",
        InVocabulary: "a larger --vocabulary",
        Without: "a shorter --without",
        NotIn: "another --exclude",
        HasFiniteVerb: "leave out --finite-verb",
        CleanWords: "a shorter list --blocked, as far as that goes",
    }
    loosenings: list[tuple[int, SentenceRule | None]] = []
    names = []
    for place, rule in enumerate(rules):
        if isinstance(rule, WordCount):
            most = rule.most or rule.words
            ranges = [(rule.words - 1, most)] if rule.words > 1 else []
            for low, high in (*ranges, (rule.words, most + 1)):
                loosenings.append((place, WordCount(low, high)))
                names.append(f"--words {low}-{high}")
        elif isinstance(rule, FewNames):
            loosenings.append((place, FewNames(rule.names, rule.most + 1)))
            names.append(f"--names {rule.most + 1}")
        else:
            loosenings.append((place, None))
            names.append(options.get(type(rule), "--every-line, with the other rules of this kind"))
    gains = gains_of_loosening(text, rules, loosenings)
    most_first = sorted(zip(gains, loosenings, names, strict=True), key=lambda gain: -gain[0])
    for gain, (place, _), name in most_first:
        if gain > 0:
            remark(f"  {gain:>+9,} left out only because {rules[place].reason} ({name})")
    if max(gains, default=0) <= 0:
        remark("  No single rule gains any.")
