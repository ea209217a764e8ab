"""Natural sentences of a text."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from contstim.corpus import read_lines, read_sentences
from contstim.errors import InputError
from contstim.files import write_text
from contstim.filters import (
    DistinctWords,
    InVocabulary,
    NotIn,
    Without,
    WordCount,
    filter_sentences,
    gains_of_loosening,
)
from contstim.records import write_record
from contstim.steps.text_settings import SentenceSettings, language_rules
from contstim.steps.watching import SILENT
from contstim.vocabulary import REPEATABLE_ENGLISH, Vocabulary
from contstim.whole_sentences import (
    CleanWords,
    FewNames,
    HasFiniteVerb,
    nltk_tagger,
    whole_sentence_rules,
)
from contstim.word_rules import sort_words
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from contstim.experiments.design.sentence_needs import SentenceNeeds
    from contstim.filters import SentenceRule
    from contstim.sentence import Sentence
    from contstim.steps.watching import Watcher

_DEFAULTS = SentenceSettings()


@dataclass(frozen=True)
class NaturalSentences:
    """Natural sentences of a text, and how they were chosen.

    Attributes:
        sentences: in the order of the text.
        rules: what was asked of every sentence, in order.
        left_out: how many sentences were left out for each reason.
        needs: how many sentences a study needs; None where none was asked about.
    """

    sentences: tuple[Sentence, ...]
    rules: tuple[SentenceRule, ...]
    left_out: Counter[str]
    needs: SentenceNeeds | None = None

    @property
    def too_few(self) -> int:
        """Number of sentences that the study lacks."""
        return max(self.needs.in_all - len(self.sentences), 0) if self.needs else 0


def find_sentences(
    text: Path,
    out: Path,
    *,
    settings: SentenceSettings = _DEFAULTS,
    vocabulary: Path | None = None,
    exclude: Sequence[Path] = (),
    needs: SentenceNeeds | None = None,
    watch: Watcher = SILENT,
) -> NaturalSentences:
    """Write the natural sentences of a text: whole, of some lengths, without repeated words.

    Args:
        text: one sentence a line, unless the settings say that it is prose.
        out: the file of sentences.
        settings: which sentences are taken.
        vocabulary: only sentences of these words are taken.
        exclude: texts, read like `text`, whose sentences are left out.
        needs: how many sentences a study needs.
        watch: told what is done.

    Raises:
        InputError: the number of words is not a number or two, no sentence is left, or a file
            cannot be read or written.
    """
    rules: list[SentenceRule] = [WordCount(*settings.lengths())]
    allowed = None if vocabulary is None else Vocabulary.load(vocabulary)
    # A vocabulary says itself which words may stand twice; else English function words may.
    if not settings.repeats:
        rules.append(DistinctWords(REPEATABLE_ENGLISH if allowed is None else allowed.repeatable))
    if allowed is not None:
        rules.append(InVocabulary(allowed))
    if settings.without is not None:
        rules.append(Without(tuple(read_lines(settings.without))))
    rules += [NotIn(read_sentences(path, prose=settings.prose)) for path in exclude]
    if settings.finite_verb:
        # Behind the cheap rules: tagging takes longest
        rules.append(HasFiniteVerb(nltk_tagger()))

    read = watch.reading(read_sentences(text, prose=settings.prose))
    # A sentence is left out for the first rule that it breaks, so that reasons add up.
    left_out: Counter[str] = Counter()
    if not settings.every_line:
        text_rules = language_rules(settings.language, settings.blocked)
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
        rules += whole_sentence_rules(text_rules, text_words.names, most_names=settings.names)
        read = candidates
    selected = tuple(filter_sentences(read, rules, left_out))
    if not selected:
        reasons = "; ".join(f"{count:,} because {why}" for why, count in left_out.most_common())
        raise InputError(f"No sentence of {text} is left: {reasons}.")
    write_text(out, "".join(f"{sentence.text}\n" for sentence in selected))
    write_record(
        out,
        [text, vocabulary, *exclude, settings.without, settings.blocked],
        words=settings.words,
        kept=len(selected),
        left_out=dict(left_out),
        **({} if needs is None else {"needed": {row.use: row.needed for row in needs.rows}}),
    )
    watch.remark(f"{out}: {counted(len(selected), 'sentence')}.")
    _tell_left_out(len(selected), left_out, [rule.reason for rule in rules], needs, watch)
    return NaturalSentences(selected, tuple(rules), left_out, needs)


def _tell_left_out(
    n_selected: int,
    left_out: Counter[str],
    reasons: Sequence[str],
    needs: SentenceNeeds | None,
    watch: Watcher,
) -> None:
    """Say how many sentences the text has, and how many stay after each rule in turn."""

    def lacking(count: int) -> str:
        """A further column: whether so many would do."""
        if needs is None:
            return ""
        lacks = needs.in_all - count
        return f" {f'{lacks:,} too few' if lacks > 0 else 'enough':>17}"

    remaining = n_selected + left_out.total()
    watch.remark(f"  {remaining:>9,}{lacking(remaining)} in the text")
    order = {reason: place for place, reason in enumerate(reasons)}
    for why, count in sorted(left_out.items(), key=lambda item: order.get(item[0], len(order))):
        remaining -= count
        watch.remark(
            f"  {remaining:>9,}{lacking(remaining)} without those left out because {why} "
            f"({count:,})"
        )


@dataclass(frozen=True)
class RuleCost:
    """Sentences that a single rule leaves out.

    Attributes:
        gain: how many more sentences there were without it, or with a looser one.
        reason: why they are left out.
        loosened_by: the option that loosens the rule.
    """

    gain: int
    reason: str
    loosened_by: str


def costs_of_rules(text: Iterable[Sentence], rules: Sequence[SentenceRule]) -> list[RuleCost]:
    """Number of sentences of a text gained by loosening each single rule, most first."""
    options: dict[type[SentenceRule], str] = {
        DistinctWords: "--repeats",
        InVocabulary: "a larger --vocabulary",
        Without: "a shorter --without",
        NotIn: "another --exclude",
        HasFiniteVerb: "leave out --finite-verb",
        CleanWords: "a shorter list --blocked, as far as that goes",
    }
    # The place of a rule and what it is replaced by; None where it is left out
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
    costs = [
        RuleCost(gain, rules[place].reason, name)
        for gain, (place, _), name in zip(gains, loosenings, names, strict=True)
    ]
    return sorted(costs, key=lambda cost: -cost.gain)
