"""Settings of a search for one sentence, or of the searches of a study."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal, Self

from contstim.english.words import indefinite_article, tag_table, verb_uses
from contstim.errors import InputError
from contstim.items.matching import ENOUGH, ENOUGH_SDS
from contstim.optimization.search import constraints
from contstim.optimization.search.few_changes import JUDGE_DROP, MAX_SCORED, FewChanges
from contstim.optimization.search.restarts import SearchBudget
from contstim.options import Help, Judges, check_ranges

if TYPE_CHECKING:
    from contstim.optimization.search.constraints import Constraint
    from contstim.words.sentence import Sentence
    from contstim.words.vocabulary import Vocabulary

# Default maximum differences from the natural sentence, in characters and on the Zipf scale
_LENGTH, _FREQUENCY = 7, 0.25


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """Settings of a search: words, recipe, and restarts.

    Attributes:
        fix: words that must not change. Upper and lower case do not matter. A number is a 0-based
            position. If the sentence contains this number as a word, as in "The 2 men", the number
            means the word.
        exclude: forbidden new words. Upper and lower case do not matter.

    Raises:
        InputError: if a number is out of range, or two settings contradict each other.
    """

    judge: Judges = ()
    judge_drop: Annotated[
        float,
        Help(
            "With --judge: maximum of log p(natural sentence) - log p(new sentence) under the "
            "judge, nats. With several judges, their mean counts."
        ),
    ] = JUDGE_DROP
    fix: Annotated[tuple[str, ...], Help("A word to keep unchanged, or its position from 0.")] = ()
    max_changes: Annotated[int | None, Help("Maximum number of new words.", at_least=1)] = None
    exclude: Annotated[
        tuple[str, ...], Help("A word that must not be a new word, or a file of such words.")
    ] = ()
    frame: Annotated[
        Literal["words", "none"] | None,
        Help(
            "With `words`, a new word must have the part of speech of the word that it replaces. "
            "With `none`, it may have any part of speech. By default `words` with the recipe "
            "default, and `none` with other recipes."
        ),
    ] = None
    same_length: Annotated[
        int | None,
        Help(
            "Maximum difference in length from the natural sentence, in characters. By default 7 "
            "with --frame words.",
            at_least=0,
        ),
    ] = None
    same_frequency: Annotated[
        float | None,
        Help(
            "Maximum difference in mean word frequency (Zipf scale) from the natural sentence. By "
            "default 0.25 with --frame words.",
            at_least=0.0,
        ),
    ] = None
    tags: Annotated[
        str | None,
        Help(
            "For a language other than English: file with parts of speech and frequencies of "
            "words. It is a treebank (.conllu), or a table with the columns word, tag and count.",
            content="tags",
            kind="tags of triplets",
        ),
    ] = None
    enough: Annotated[
        float | None,
        Help(
            "Find a sentence with few new words. Under the model that rejects it, it must be less "
            "likely than the natural sentence by at least this number of nats. With 0, the "
            "difference is as large as possible. By default 5 with --frame words and the recipe "
            "default, otherwise 0. If the unit of a model is not nats, the number is in standard "
            "deviations of its scores of natural sentences, by default 0.5.",
            at_least=0,
            kind="enough nats",
        ),
    ] = None
    max_scored: Annotated[
        int,
        Help("With --enough: maximum number of sentences for the largest network.", at_least=1),
    ] = MAX_SCORED

    recipe: Annotated[str, Help("How to search: default or golan2023.")] = "default"
    allow_unknown: Annotated[bool, Help("Also use words that a word-level model lacks.")] = False
    restarts: Annotated[
        int | None,
        Help(
            "Maximum number of searches of a sentence, each with another seed; the best result "
            "counts. The searches end early if five in a row gain almost nothing. By default 1. "
            "For two small networks, searches are cheap, and the default is 20.",
            at_least=1,
        ),
    ] = None

    def __post_init__(self) -> None:
        check_ranges(self)
        limits = [name for name in ("restarts", "seconds") if getattr(self, name, None)]
        if self.nats and limits:
            raise InputError(
                f"A search for {self.nats:g} nats is a single search: leave out `{limits[0]}`, or "
                "set `enough` to 0 for as many nats as possible."
            )
        if self.nats and self.recipe != "default":
            raise InputError(
                f"`enough` needs the recipe default, got {self.recipe}. Set `enough` to 0."
            )
        if self.judge and not self.nats:
            raise InputError(
                "`judge` needs `enough`, because judges choose among sentences with enough nats: "
                "set `enough`, or leave out `judge`."
            )
        if self.tags is not None and not self._needs_table:
            raise InputError('`tags` has no effect without a frame: set `frame` to "words".')

    @property
    def framed(self) -> bool:
        """True if new words must have the part of speech of the replaced words."""
        return self.recipe == "default" if self.frame is None else self.frame == "words"

    @property
    def nats(self) -> float:
        """Required drop in log-probability under the reject model, nats.

        0 means that the drop is as large as possible.
        """
        if self.enough is not None:
            return self.enough
        return ENOUGH if self.framed and self.recipe == "default" else 0.0

    @property
    def _needs_table(self) -> bool:
        return self.framed or self.same_frequency is not None

    @property
    def resolved(self) -> Self:
        """A copy in which defaults replace None in `frame`, `same_length` and `same_frequency`.

        The default of `frame` depends on the recipe. `same_length` and `same_frequency` have
        defaults only if the frame is `words`. `enough` may still be None.
        """
        length, frequency = self.same_length, self.same_frequency
        return replace(
            self,
            frame="words" if self.framed else "none",
            same_length=_LENGTH if self.framed and length is None else length,
            same_frequency=_FREQUENCY if self.framed and frequency is None else frequency,
        )

    @property
    def budget(self) -> SearchBudget | None:
        """Budget of the searches; None for the default of the recipe."""
        return None if self.restarts is None else SearchBudget(self.restarts)

    def few_changes(self, *, in_sds: bool = False) -> FewChanges | None:
        """Return the goal of a search for few new words; None if `nats` is 0.

        `in_sds` is True if the models are compared in standard deviations instead of nats.
        """
        if not self.nats:
            return None
        enough = self.sds if in_sds else self.nats
        return FewChanges(enough, self.max_changes, self.judge_drop, self.max_scored)

    @property
    def sds(self) -> float:
        """Required drop in standard deviations, if the unit of a score is not nats."""
        return ENOUGH_SDS if self.enough is None else self.enough

    def constraints(self, natural: Sentence, *, every_fix: bool) -> tuple[Constraint, ...]:
        """Return the constraints of a search that starts from a natural sentence.

        If `every_fix`, the sentence must have every word and position of `fix`.

        Raises:
            InputError: if a required word or position is missing, or the table of tags cannot be
                read.
        """
        fixed: list[int] = []
        for text in self.fix:
            positions = fixed_positions(text, natural)
            if every_fix and not positions:
                raise InputError(
                    f"fix: {natural.text!r} has no word {text!r}, and positions go from 0 to "
                    f"{len(natural) - 1}."
                )
            fixed += positions
        chosen = [constraints.fixed(fixed)] * bool(fixed)
        if self.max_changes is not None and not self.nats:
            chosen.append(constraints.max_changes(self.max_changes))
        if self.exclude:
            chosen.append(constraints.without_words(map(str.lower, self.exclude)))
        margins = self.resolved
        if margins.same_length is not None:
            chosen.append(constraints.same_length(margins.same_length))
        if margins.same_frequency is not None:
            frequencies = tag_table(self.tags).frequencies
            chosen.append(constraints.same_frequency(frequencies, margins.same_frequency))
        if self.framed:
            uses = verb_uses if self.tags is None else None
            chosen.append(constraints.same_tags(natural, tag_table(self.tags), uses))
            if self.tags is None:
                chosen.append(constraints.articles(indefinite_article))
        return tuple(chosen)

    def check_words(self, vocabulary: Vocabulary) -> None:
        """Check that the table of tags (parts of speech) is for the language of the vocabulary.

        Nothing is checked if the settings do not need the table.

        Raises:
            InputError: if the table lists less than half of the words.
        """
        if not self._needs_table:
            return
        table, words = tag_table(self.tags), vocabulary.words
        if not table.fits(words):
            raise InputError(
                f"Parts of speech: {table.name} lists {table.share_listed(words):.0%} of the "
                f"{len(words):,} words of the vocabulary. Set `tags` to a table for the language "
                "of these words, or set `frame` to none and leave out `same_frequency`."
            )


@dataclass(frozen=True, kw_only=True)
class SentenceSearchSettings(SearchSettings):
    """Settings of the search for one sentence, with a list of new words and a time limit.

    Attributes:
        allow: the only allowed new words; empty for all words of the vocabulary. Upper and lower
            case do not matter.

    Raises:
        InputError: if a number is out of range, or two settings contradict each other.
    """

    allow: Annotated[
        tuple[str, ...], Help("The only words that may be new words: a word, or a file of words.")
    ] = ()
    seconds: Annotated[
        float | None,
        Help(
            "Time limit for the searches of a sentence: another search begins only if it should "
            "end in time. The first search always finishes. Results depend on the machine.",
            above=0,
        ),
    ] = None

    @property
    def budget(self) -> SearchBudget | None:
        """Budget of the searches, with the time limit; None for the default of the recipe."""
        if self.seconds is None:
            return super().budget
        return SearchBudget(self.restarts, self.seconds)

    def constraints(self, natural: Sentence, *, every_fix: bool) -> tuple[Constraint, ...]:
        """See `SearchSettings.constraints`; `allow` adds a constraint."""
        chosen = super().constraints(natural, every_fix=every_fix)
        if not self.allow:
            return chosen
        return (constraints.only_words(map(str.lower, self.allow)), *chosen)


def fixed_positions(text: str, natural: Sentence) -> list[int]:
    """Return the 0-based positions at which one text of `SearchSettings.fix` forbids new words."""
    positions = [p for p, word in enumerate(natural.words) if word.lower() == text.lower()]
    if not positions and text in map(str, range(len(natural))):
        positions = [int(text)]
    return positions
