"""Decisions of reviewers about items: review.csv.

Each row contains a decision about an item (pair, triplet or trial) and the item's sentences. If
the item's sentences now differ from those in the row, the item has changed since the review.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from contstim.errors import InputError
from contstim.files.documents import shortened
from contstim.files.tables import columns_of, read_rows, write_table
from contstim.items.stimuli import (
    CELL_READERS,
    SYNTHETIC,
    Condition,
    Pair,
    Trial,
    Triplet,
    optional_text,
)
from contstim.wording import grouped

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.files.tables import Reader
    from contstim.words.sentence import Sentence

Stimulus = Pair | Triplet | Trial


class Decision(StrEnum):
    """Decision of a reviewer about an item; the empty text means undecided."""

    NONE = ""
    KEEP = "keep"
    REJECT = "reject"


class ItemKind(StrEnum):
    """Kind of a reviewed item, or of the item from which a reviewed trial was made."""

    PAIR = "pair"
    TRIPLET = "triplet"
    MINIMAL_PAIR = "minimal pair"
    TRIAL = "trial"


_KIND_OF = {Pair: ItemKind.PAIR, Triplet: ItemKind.TRIPLET, Trial: ItemKind.TRIAL}
# Condition of a trial → kind of its source, the item from which the trial was made
_SOURCE_KINDS: dict[str, ItemKind] = {
    Condition.NATURAL_CONTROVERSIAL: ItemKind.PAIR,
    Condition.NATURAL_SYNTHETIC: ItemKind.TRIPLET,
    Condition.SYNTHETIC_SYNTHETIC: ItemKind.TRIPLET,
    Condition.MINIMAL_PAIR: ItemKind.MINIMAL_PAIR,
}


@dataclass(frozen=True)
class ReviewedItem:
    """An item with a reviewer's decision; fields are the columns of review.csv.

    Attributes:
        item_id: `trial_id` of a pair or trial, `triplet_id` of a triplet.
        source_id: identifier of the pair or triplet from which a trial was made (the trial's
            source); empty for trials without a source, and for pairs and triplets.
        condition: condition of a trial; empty for pairs and triplets.
        group: group of participants who see a trial, from 1; 0 for pairs and triplets.
        model_1: first model; empty for trials that compare no models.
        sentence_1: first sentence; in a triplet, the natural sentence.
        sentence_2: second sentence; in a triplet, the sentence that model_1 rejects (finds less
            likely than the natural sentence).
        sentence_3: in a triplet, the sentence that model_2 rejects; None for other items.
        reason: reason for the decision, in the reviewer's words.
    """

    reviewer: str
    item_id: str
    kind: ItemKind
    source_id: str
    condition: str
    group: int
    model_1: str
    model_2: str
    sentence_1: Sentence
    sentence_2: Sentence
    sentence_3: Sentence | None
    decision: Decision
    reason: str

    TABLE: ClassVar = "decisions of a review, as the page of 'contstim review' saves them"

    @property
    def about(self) -> ItemKind | None:
        """Kind of the item. For a trial: kind of its source; None if it has no source."""
        return _SOURCE_KINDS.get(self.condition) if self.kind is ItemKind.TRIAL else self.kind

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        """The two sentences of a pair or trial, or the three sentences of a triplet."""
        all_sentences = (self.sentence_1, self.sentence_2, self.sentence_3)
        return tuple(sentence for sentence in all_sentences if sentence is not None)


_READERS: dict[str, Reader] = {
    **CELL_READERS,
    "ItemKind": (ItemKind, f"kind of item ({', '.join(ItemKind)})"),
    # Reviewers may type decisions in a spreadsheet. So a cell may contain "Reject "
    "Decision": (
        lambda cell: Decision(optional_text(cell).strip().lower()),
        "decision (keep, reject or empty)",
    ),
}


@dataclass(frozen=True)
class Review:
    """Decisions of one or several reviewers, in the order of the files and their rows.

    Later files are later rounds of review. If a reviewer has several decisions about an item, the
    last one that is not empty counts. An item is rejected if at least one reviewer rejects it.

    Attributes:
        first_rows: for each file, the index of its first row in `decisions`.

    Raises:
        InputError: if two rows with the same identifier have different sentences.
    """

    decisions: tuple[ReviewedItem, ...]
    first_rows: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        for item_id, decisions in self.by_item.items():
            # Do not compare kinds: a trial and the pair that it shows have the same identifier
            if len({d.sentences for d in decisions}) > 1:
                raise InputError(
                    f"{item_id} has different sentences in two rows of reviews. Review the item "
                    "again."
                )

    @cached_property
    def by_item(self) -> dict[str, list[ReviewedItem]]:
        """Identifier of an item → all its rows, including undecided rows."""
        return grouped((item.item_id, item) for item in self.decisions)

    @cached_property
    def last_decisions(self) -> dict[str, list[ReviewedItem]]:
        """Identifier of an item → last decision of each reviewer.

        Rows and items without a decision are omitted.
        """
        return {
            item_id: [*{item.reviewer: item for item in items if item.decision}.values()]
            for item_id, items in self.by_item.items()
            if any(item.decision for item in items)
        }

    @cached_property
    def rejected(self) -> frozenset[str]:
        """Identifiers of rejected items, and identifiers of rejected trials' sources."""
        last = (item for items in self.last_decisions.values() for item in items)
        rejected = (item for item in last if item.decision is Decision.REJECT)
        return frozenset(n for item in rejected for n in (item.item_id, item.source_id) if n)

    def rejects(self, item: ReviewedItem) -> bool:
        """Return True if a reviewer rejects the item.

        A trial is also rejected if a reviewer rejects the trial's source, or another trial from
        this source.
        """
        return not self.rejected.isdisjoint((item.item_id, item.source_id))

    @property
    def disagreements(self) -> dict[str, list[ReviewedItem]]:
        """Items that one reviewer keeps and another rejects: identifier → last decisions."""
        last = self.last_decisions
        return {i: items for i, items in last.items() if len({d.decision for d in items}) > 1}

    def of_kind(self, kind: ItemKind) -> dict[str, ReviewedItem]:
        """Return the items of a kind: identifier → last row."""
        return {item.item_id: item for item in self.decisions if item.kind is kind}

    def kept_items(self, kind: ItemKind) -> list[dict[str, ReviewedItem]]:
        """Return the items of a kind that are not rejected.

        The result is a list with one dictionary (identifier → row) for each file, the last file
        first. An item is only in the dictionary of the last file that lists it. A row about a trial
        also lists the trial's source.
        """
        files: list[dict[str, ReviewedItem]] = []
        listed_later: set[str] = set()
        for first, end in zip(self.first_rows[::-1], (None, *self.first_rows[:0:-1]), strict=True):
            rows = self.decisions[first:end]
            items = {item.source_id: item for item in rows if item.about is kind}
            items |= {item.item_id: item for item in rows if item.kind is kind}
            items.pop("", None)
            kept = items.keys() - listed_later
            files.append({i: t for i, t in items.items() if i in kept and not self.rejects(t)})
            listed_later |= items.keys()
        return files

    @cached_property
    def rejected_words(self) -> frozenset[tuple[str, ...]]:
        """The sentences of rejected items, each as a tuple of words."""
        return _words(item for item in self.decisions if self.rejects(item))

    @cached_property
    def shown_words(self) -> frozenset[tuple[str, ...]]:
        """The sentences of trials that are not rejected, each as a tuple of words."""
        trials = self.of_kind(ItemKind.TRIAL).values()
        return _words(trial for trial in trials if not self.rejects(trial))

    def about(self, stimuli: Iterable[Stimulus]) -> Review:
        """Return the decisions about stimuli whose sentences have not changed since the review."""
        current = {(item.kind, item.item_id, item.sentences) for item in undecided_items(stimuli)}
        decisions = (d for d in self.decisions if (d.kind, d.item_id, d.sentences) in current)
        return Review(tuple(decisions))

    def require_items_of(self, stimuli: Iterable[Stimulus], table: Path | str) -> None:
        """Check that no reviewed item of the stimuli's kind is missing or has changed.

        All stimuli must be of one kind. `table` is the file of the stimuli, for messages.

        Raises:
            InputError: if a reviewed item is missing or has changed; the message names the first
                such item.
        """
        current = undecided_items(stimuli)
        if not current:
            return
        reviewed = self.of_kind(current[0].kind)
        by_id = {item.item_id: item for item in current}
        absent = [item_id for item_id in reviewed if item_id not in by_id]
        if absent:
            raise InputError(
                f"The review is about other items than {table}: the table lacks {len(absent):,} of "
                f"{len(reviewed):,} reviewed {current[0].kind}s, such as {shortened(absent[0])}."
            )
        for item_id, item in reviewed.items():
            for old, new in zip(item.sentences, by_id[item_id].sentences, strict=True):
                if old != new:
                    raise InputError(
                        f"{item_id} has changed since the review: it had {old.text!r}, and {table} "
                        f"has {new.text!r}. Review the item again."
                    )


def _words(items: Iterable[ReviewedItem]) -> frozenset[tuple[str, ...]]:
    return frozenset(sentence.words for item in items for sentence in item.sentences)


def undecided_items(stimuli: Iterable[Stimulus], reviewer: str = "") -> tuple[ReviewedItem, ...]:
    """Convert stimuli to rows of a review, without decisions.

    Raises:
        InputError: if a pair has no sentences.
    """
    items = []
    for stimulus in stimuli:
        item_id, sentences = named_sentences(stimulus)
        first, second, third = (*sentences, None)[:3]
        if first is None or second is None:
            raise InputError(
                f"{item_id} has no texts. Select pairs from scores with a column 'sentence'."
            )
        source = ("", "", 0)
        if isinstance(stimulus, Trial):
            source = (stimulus.source_id, str(stimulus.condition), stimulus.group)
        fields = (item_id, _KIND_OF[type(stimulus)], *source, stimulus.model_1, stimulus.model_2)
        items.append(ReviewedItem(reviewer, *fields, first, second, third, Decision.NONE, ""))
    return tuple(items)


def write_review(path: Path | str, decisions: Iterable[ReviewedItem]) -> None:
    """Write review.csv (or `.tsv`, `.parquet`, `.jsonl`) with the fields of `ReviewedItem`.

    Raises:
        InputError: if the file cannot be written.
    """
    write_table(path, columns_of(ReviewedItem, decisions))


def read_reviews(paths: Sequence[Path | str]) -> Review:
    """Read reviews that `write_review` or the page of `contstim review` wrote.

    Files of earlier rounds of review come first. If a row names no reviewer, the file's name is
    used as the reviewer's name.

    Raises:
        InputError: if a file cannot be read, lacks a column or has an invalid row; see also
            `Review`.
    """
    decisions: list[ReviewedItem] = []
    first_rows = []
    for path in paths:
        rows = read_rows(path, ReviewedItem, _READERS)
        for row, item in enumerate(rows):
            if not item.item_id:
                raise InputError(f"{path}, row {row}: the item_id is empty.")
            if (item.sentence_3 is None) is (item.kind is ItemKind.TRIPLET):
                raise InputError(
                    f"{path}, row {row}: a triplet must have 3 sentences, a pair or trial 2."
                )
        first_rows.append(len(decisions))
        # If rows name no reviewer, `review.csv` and `review (1).csv` count as two reviewers
        decisions += [replace(item, reviewer=item.reviewer or Path(path).stem) for item in rows]
    return Review(tuple(decisions), tuple(first_rows))


def changed_positions(sentence: Sentence, counterpart: Sentence) -> frozenset[int]:
    """Return the 0-based positions of words that differ; empty if the lengths differ."""
    if len(sentence) != len(counterpart):
        return frozenset()
    pairs = enumerate(zip(sentence.words, counterpart.words, strict=True))
    return frozenset(index for index, (word, counterpart_word) in pairs if word != counterpart_word)


def named_sentences(stimulus: Stimulus) -> tuple[str, tuple[Sentence | None, ...]]:
    """Return the identifier and the sentences of a stimulus.

    The sentences of a pair without texts are None.
    """
    if isinstance(stimulus, Triplet):
        return stimulus.triplet_id, stimulus.sentences
    return stimulus.trial_id, (stimulus.sentence_1, stimulus.sentence_2)


def naturals_of(stimuli: Iterable[Stimulus]) -> dict[str, tuple[Sentence | None, ...]]:
    """Return the natural sentences from which the sentences of stimuli were made.

    Keys are identifiers of stimuli. A value has an entry for each sentence of the stimulus. The
    entry of a synthetic sentence is its natural sentence; all other entries are None. For a trial
    with two synthetic sentences, the field `source` contains the natural sentence. If this field
    is empty, the natural sentence of another trial of the same triplet is used. Without such a
    trial, the entries are None.
    """
    stimuli_list = list(stimuli)
    natural = {
        trial.source_id: trial.source or trial.sentence_1
        for trial in stimuli_list
        if isinstance(trial, Trial) and trial.source_id
        if trial.source or trial.condition is Condition.NATURAL_SYNTHETIC
    }
    sources: dict[str, tuple[Sentence | None, ...]] = {}
    for stimulus in stimuli_list:
        if isinstance(stimulus, Triplet):
            sources[stimulus.triplet_id] = (None, stimulus.natural, stimulus.natural)
        elif isinstance(stimulus, Trial) and stimulus.kind_2 in SYNTHETIC:
            if stimulus.kind_1 in SYNTHETIC:
                of_both = stimulus.source or natural.get(stimulus.source_id)
                sources[stimulus.trial_id] = (of_both, of_both)
            else:
                sources[stimulus.trial_id] = (None, stimulus.sentence_1)
        else:
            sources[stimulus.trial_id] = (None, None)
    return sources
