"""Natural sentences of a text."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from contstim.english.words import english_tags
from contstim.errors import InputError
from contstim.experiments.design.summary import sentences_needed
from contstim.files.files import write_text
from contstim.models.catalog import load_models
from contstim.models.loading import DEFAULT_LOADING, Loading
from contstim.models.scoring import mean_word_log_probs
from contstim.options import Help, Judges, Reads, Writes, reads_kind
from contstim.reporting.report import Table
from contstim.steps.execution import LOCAL_SCORING
from contstim.steps.fields import TEXT, Blocked, Language, Prose, language_rules, read_text
from contstim.steps.step import Outcome, Step, fields_of
from contstim.wording import quantity
from contstim.words.corpus import read_lines, read_sentences
from contstim.words.filters import (
    SentenceRule,
    costs_of_rules,
    distinct_words,
    filter_sentences,
    in_vocabulary,
    not_in,
    whole_sentence_rules,
    without,
    word_count,
)
from contstim.words.vocabulary import REPEATABLE_ENGLISH, Vocabulary
from contstim.words.word_rules import sort_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from contstim.reporter import Reporter
    from contstim.words.sentence import Sentence


@dataclass(frozen=True, kw_only=True)
class SentenceSettings:
    """Options for finding the natural sentences of a study in a text."""

    words: Annotated[str, Help("Words per sentence, such as 8 or 7-9.", metavar="N or N-M")] = "8"
    without: Annotated[
        Path | None, Help("File of phrases, one per line. Sentences with a phrase are excluded.")
    ] = None
    repeats: Annotated[bool, Help("Include sentences in which a word occurs twice.")] = False
    language: Language = "en"
    names: Annotated[int, Help("Maximum number of names in a sentence.", at_least=0)] = 1
    blocked: Blocked = None
    every_line: Annotated[bool, Help("Include headings, references and near-duplicates.")] = False
    prose: Prose = False

    def lengths(self) -> tuple[int, int | None]:
        """Return the minimum and the maximum number of words.

        If `words` is a single number, the maximum is None.

        Raises:
            InputError: if `words` is not a number or a range.
        """
        length = re.fullmatch(r"([1-9][0-9]{0,3})(?:-([0-9]{1,4}))?", self.words)
        if length is None or (length[2] and int(length[2]) < int(length[1])):
            raise InputError(
                f"`words` must be a number or a range, such as 8 or 7-9, got {self.words!r}."
            )
        return int(length[1]), int(length[2]) if length[2] else None

    def find(
        self,
        sentences: Iterable[Sentence],
        vocabulary: Vocabulary | None = None,
        exclude: Iterable[Iterable[Sentence]] = (),
    ) -> FoundSentences:
        """Find the natural sentences of a text.

        Args:
            sentences: all sentences of the text; they also determine which words are names.
            vocabulary: allowed words; None for any word.
            exclude: texts whose sentences are excluded.

        Raises:
            InputError: if `words` is not a number or a range, or a file cannot be read.
        """
        rules: list[SentenceRule] = [word_count(*self.lengths())]
        # A vocabulary lists the words that may repeat. If there is no vocabulary, English function
        # words may repeat.
        if not self.repeats:
            repeatable = REPEATABLE_ENGLISH if vocabulary is None else vocabulary.repeatable
            rules.append(distinct_words(repeatable))
        if vocabulary is not None:
            rules.append(in_vocabulary(vocabulary))
        if self.without is not None:
            rules.append(without(read_lines(self.without)))
        rules += map(not_in, exclude)

        # Each sentence is counted once, for the first rule that it violates
        left_out: Counter[str] = Counter()
        if not self.every_line:
            text_rules = language_rules(self.language, self.blocked)
            candidates: list[Sentence] = []

            def collect_candidates(sentences: Iterable[Sentence]) -> Iterator[Sentence]:
                for sentence in sentences:
                    if rules[0].rejects(sentence):
                        left_out[rules[0].reason] += 1
                    else:
                        candidates.append(sentence)
                    yield sentence

            # Names are recognised in the whole text, including sentences of other lengths.
            text_words = sort_words(collect_candidates(sentences), text_rules)
            rules += whole_sentence_rules(
                text_rules,
                text_words.names,
                most_names=self.names,
                tags=english_tags() if self.language == "en" else None,
            )
            sentences = candidates
        selected = tuple(filter_sentences(sentences, rules, left_out))
        return FoundSentences(selected, left_out, tuple(rules))


@dataclass(frozen=True)
class FoundSentences:
    """The natural sentences of a text, and the numbers of excluded sentences.

    Attributes:
        sentences: distinct natural sentences.
        left_out: reason → number of sentences that were excluded for this reason.
        rules: rules in the order in which they were applied.
    """

    sentences: tuple[Sentence, ...]
    left_out: Counter[str]
    rules: tuple[SentenceRule, ...]

    def without_unlikely(
        self, judges: Sequence[str], loading: Loading, reporter: Reporter
    ) -> FoundSentences:
        """Return the result without the sentences that judges (language models) find unlikely.

        A sentence is unlikely in two cases. Its mean log-probability per word is below the median
        of all sentences, or the log-probability of one of its words is in the lowest hundredth of
        all words.
        """
        progress = LOCAL_SCORING.progress(reporter, len(self.sentences))
        words = mean_word_log_probs(load_models(judges, loading), self.sentences, progress)
        means = np.array([values.mean() for values in words.values()])
        lowest = np.array([values.min() for values in words.values()])
        percentile = np.quantile(np.concatenate([*words.values()]), _ODD_WORDS, method="lower")
        likely = (lowest >= percentile) & (means >= np.median(means))
        return self._judged(tuple(compress(self.sentences, likely)))

    def with_half(self) -> FoundSentences:
        """Return a result with every second sentence, to estimate numbers without loading a model.

        `without_unlikely` returns about the same number of sentences, but loads the judges.
        """
        return self._judged(self.sentences[::2])

    def _judged(self, selected: tuple[Sentence, ...]) -> FoundSentences:
        left_out = self.left_out + Counter({_UNLIKELY: len(self.sentences) - len(selected)})
        return replace(self, sentences=selected, left_out=left_out)

    @property
    def in_text(self) -> int:
        """Number of sentences in the text, including excluded ones."""
        return len(self.sentences) + self.left_out.total()

    def lines(self, needed: int | None) -> Iterator[str]:
        """Yield a line for the whole text, and a line for each rule that excludes sentences.

        Each line has the number of remaining sentences. With `needed`, the number of sentences that
        a study needs, the line also states whether the remaining sentences are enough.
        """

        def shortage(count: int) -> str:
            if needed is None:
                return ""
            lacks = needed - count
            return f": {lacks:,} too few" if lacks > 0 else ": enough"

        remaining = self.in_text
        yield f"  {remaining:>9,} in the text{shortage(remaining)}"
        for why in dict.fromkeys((*(rule.reason for rule in self.rules), *self.left_out)):
            if number := self.left_out[why]:
                remaining -= number
                yield (
                    f"  {remaining:>9,} after excluding {number:,} because "
                    f"{why}{shortage(remaining)}"
                )


_STUDY = "Sentences that a study needs"
_StudyNumber = partial(Help, at_least=0, panel=_STUDY)
_UNLIKELY = "the judge finds half of the sentences likelier, or one of its words very unlikely"
_ODD_WORDS = 0.01  # proportion of all words that are called very unlikely


class FindSentences(Step["tuple[Sentence, ...]"], name="sentences", version=6):
    """Find natural sentences in a text: complete sentences of one length, without repeated words.

    The command excludes headings in capitals, and lines that do not start and end like a sentence.
    It excludes lines with abbreviations, blocked words or parts of addresses. In English, it also
    excludes lines without a finite verb or a main clause. Of sentences that differ by one word, it
    keeps the first. With --judge (a language model), it also excludes the half of the sentences
    that the judge finds less likely, and sentences with a very unlikely word.

    With --for-models M, the command prints the number of sentences that a study of M models needs.
    If the text has too few, the exit status is 3. For each rule, the command then prints the number
    of sentences that only this rule excludes. It cannot print this if the text is from stdin.

    Examples: `contstim sentences --text corpus.txt --vocabulary vocab.txt --out natural.txt`

    `contstim sentences --text corpus.txt --for-models 3 --triplets-per-pair 40 --out natural.txt`
    """

    text: Annotated[Path, replace(TEXT, kind="natural text")]
    out: Annotated[Path, Writes("The text to write.", kind="sentences", name="natural.txt")]
    vocabulary: Annotated[
        Path | None,
        reads_kind("Vocabulary; sentences with other words are excluded.", "vocabulary"),
    ] = None
    exclude: Annotated[
        tuple[Path, ...],
        Reads("Exclude the sentences of this text.", content="text", kind="training texts"),
    ] = ()
    settings: SentenceSettings = SentenceSettings()
    judge: Judges = ()
    loading: Loading = DEFAULT_LOADING
    for_models: Annotated[
        int | None, _StudyNumber("Number of models in the study.", at_least=2, metavar="M")
    ] = None
    triplets_per_pair: Annotated[int, _StudyNumber("Value of --per-pair in triplets.")] = 100
    pairs_per_pair: Annotated[int, _StudyNumber("Value of --per-pair in select natural.")] = 10
    groups: Annotated[int, _StudyNumber("Value of --groups in design.")] = 10
    random_per_group: Annotated[int, _StudyNumber("Value of --random-per-group in design.")] = 3
    catch_per_group: Annotated[int, _StudyNumber("Value of --catch-per-group in design.")] = 12

    def check(self) -> None:
        """Check `words`, and that the numbers of a study are set only if `for_models` is set."""
        self.settings.lengths()
        self._sentences_needed()

    def _sentences_needed(self) -> tuple[int | None, list[tuple[str, int, int, int]]]:
        """Return the results of `sentences_needed`; None and no rows without `for_models`."""
        names = (field.name for field in fields_of(type(self)) if field.panel == _STUDY)
        numbers = {name: getattr(self, name) for name in names}
        models = numbers.pop("for_models")
        if models is not None:
            return sentences_needed(models, **numbers)
        if any(number != getattr(type(self), name) for name, number in numbers.items()):
            raise InputError("Numbers of a study need `for_models`. Set it, or remove the numbers.")
        return None, []

    def work(self, reporter: Reporter) -> Outcome[tuple[Sentence, ...]]:
        """Find the sentences, and write them."""
        needed, needed_by_use = self._sentences_needed()
        result = self.settings.find(
            read_text(self.text, reporter, prose=self.settings.prose),
            None if self.vocabulary is None else Vocabulary.load(self.vocabulary),
            (read_sentences(path, prose=self.settings.prose) for path in self.exclude),
        )
        if self.judge and result.sentences:
            result = result.without_unlikely(self.judge, self.loading, reporter)
        selected, left_out = result.sentences, result.left_out
        if not selected:
            reasons = "; ".join(f"{count:,} because {why}" for why, count in left_out.most_common())
            raise InputError(f"No sentence of {self.text} remains: {reasons}.")
        write_text(self.out, "".join(f"{sentence.text}\n" for sentence in selected))
        reporter.say(f"{self.out}: {quantity(len(selected), 'sentence')}.")
        for line in result.lines(needed):
            reporter.say(line)
        facts: dict[str, object] = {"kept": len(selected), "left_out": dict(left_out)}
        if needed is None:
            return Outcome(selected, facts)
        facts["needed"] = {use: number for use, *_, number in needed_by_use}
        header = ("natural sentences for", "model pairs or groups", "each", "needed")
        table = Table(header, needed_by_use)
        too_few = needed - len(selected)
        if too_few > 0:
            reporter.say(
                f"{too_few:,} sentences are missing for a study of {self.for_models} models: "
                "use a longer text, request fewer items, or loosen a rule."
            )
            # To count the effect of each rule, the text is read again. A pipe cannot be read twice
            piped = str(self.text) == "-"
            again = () if piped else read_sentences(self.text, prose=self.settings.prose)
            for gain, reason, loosened_by in costs_of_rules(again, result.rules):
                if gain > 0:
                    reporter.say(f"  {gain:>+9,} excluded only because {reason} ({loosened_by})")
        return Outcome(selected, facts, complete=too_few <= 0, parts=[table])
