"""Decisions of reviewers about stimuli, item by item: review.csv.

An item is a pair, a triplet or a trial. A review says itself what was reviewed: each row holds the
item's sentences, so that a review of another set, or of an item that has changed since, is noticed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from contstim.errors import InputError
from contstim.files.documents import shortened
from contstim.files.tables import columns_of, listed, read_rows, write_table
from contstim.items.stimuli import (
    CELL_READERS,
    SYNTHETIC,
    Condition,
    Pair,
    Trial,
    Triplet,
    optional_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.files.tables import Reader
    from contstim.words.sentence import Sentence

Stimulus = Pair | Triplet | Trial


class Decision(StrEnum):
    """Decision of a reviewer about an item; empty where nothing was decided."""

    NONE = ""
    KEEP = "keep"
    REJECT = "reject"


class ItemKind(StrEnum):
    """Kind of a reviewed item."""

    PAIR = "pair"
    TRIPLET = "triplet"
    TRIAL = "trial"


_KIND_OF = {Pair: ItemKind.PAIR, Triplet: ItemKind.TRIPLET, Trial: ItemKind.TRIAL}
_MADE_OF: dict[str, ItemKind] = {
    Condition.NATURAL_CONTROVERSIAL: ItemKind.PAIR,
    Condition.NATURAL_SYNTHETIC: ItemKind.TRIPLET,
    Condition.SYNTHETIC_SYNTHETIC: ItemKind.TRIPLET,
}
"""The stimuli that trials of a condition are made of."""


@dataclass(frozen=True)
class ReviewedItem:
    """An item and what a reviewer decided about it; fields are the columns of review.csv.

    Attributes:
        reviewer: who decides.
        item_id: the pair's or trial's `trial_id`, the triplet's `triplet_id`.
        kind: what the item is.
        source_id: of a trial, the pair or triplet that it was made of; of others empty.
        condition: of a trial; of others empty.
        group: of a trial, from 1; of others 0.
        model_1: empty for trials that compare no models.
        model_2: likewise.
        sentence_1: of a triplet the natural sentence.
        sentence_2: of a triplet the sentence that model_1 rejects.
        sentence_3: of a triplet the sentence that model_2 rejects; of others None.
        decision: what was decided.
        reason: why, in the reviewer's words.
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
        """Pair or triplet, which the item is or, as a trial, was made of; None of other trials."""
        return _MADE_OF.get(self.condition) if self.kind is ItemKind.TRIAL else self.kind

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        """The item's two or three sentences."""
        every = (self.sentence_1, self.sentence_2, self.sentence_3)
        return tuple(sentence for sentence in every if sentence is not None)


_READERS: dict[str, Reader] = {
    **CELL_READERS,
    "ItemKind": (ItemKind, f"kind of item ({', '.join(ItemKind)})"),
    # spreadsheets hand back what was typed, such as "Reject "
    "Decision": (
        lambda cell: Decision(optional_text(cell).strip().lower()),
        "decision (keep, reject or empty)",
    ),
}


@dataclass(frozen=True)
class Review:
    """Decisions of one or several reviewers, in the order of the files and their rows.

    Raises:
        InputError: a reviewer decided twice about an item, and differently, or two reviewers had
            different sentences before them under one identifier.
    """

    decisions: tuple[ReviewedItem, ...]

    def __post_init__(self) -> None:
        for item_id, decisions in self.by_item.items():
            # The trial of a pair has the pair's identifier, so that kinds may differ.
            if len({d.sentences for d in decisions}) > 1:
                raise InputError(
                    f"{item_id} has different sentences in two reviews, so that they are about "
                    f"different items: review the table as it stands now."
                )
            of_reviewer: dict[str, Decision] = {}
            for item in decisions:
                if not item.decision:
                    continue
                if of_reviewer.setdefault(item.reviewer, item.decision) is not item.decision:
                    raise InputError(
                        f"The reviewer {item.reviewer!r} both keeps and rejects {item_id}: leave "
                        f"one decision. If two persons decided, give each a name in the column "
                        f"reviewer."
                    )

    @cached_property
    def by_item(self) -> dict[str, list[ReviewedItem]]:
        """All decisions about each item, empty ones too, by its identifier."""
        items: dict[str, list[ReviewedItem]] = {}
        for item in self.decisions:
            items.setdefault(item.item_id, []).append(item)
        return items

    @cached_property
    def rejected(self) -> frozenset[str]:
        """Identifiers of the items that a reviewer rejects, and of what rejected trials are of."""
        rejected = [item for item in self.decisions if item.decision is Decision.REJECT]
        sources = (item.source_id for item in rejected if item.source_id)
        return frozenset((*(item.item_id for item in rejected), *sources))

    def rejects(self, item: ReviewedItem) -> bool:
        """True if a reviewer rejects the item, or the pair or triplet that it was made of."""
        return not self.rejected.isdisjoint((item.item_id, item.source_id))

    @property
    def disagreements(self) -> dict[str, list[ReviewedItem]]:
        """Decisions about the items that a reviewer keeps and another rejects."""
        decided = {
            item_id: [item for item in decisions if item.decision]
            for item_id, decisions in self.by_item.items()
        }
        return {i: items for i, items in decided.items() if len({d.decision for d in items}) > 1}

    def of_kind(self, kind: ItemKind) -> dict[str, ReviewedItem]:
        """The items of a kind, each once, with the first decision about it, by identifier."""
        items: dict[str, ReviewedItem] = {}
        for item in self.decisions:
            if item.kind is kind:
                items.setdefault(item.item_id, item)
        return items

    def about(self, stimuli: Iterable[Stimulus]) -> Review:
        """The decisions about stimuli that are as they were; of what is gone nothing is left."""
        now = {(item.kind, item.item_id, item.sentences) for item in undecided(stimuli)}
        return Review(tuple(d for d in self.decisions if (d.kind, d.item_id, d.sentences) in now))

    def require_items_of(self, stimuli: Iterable[Stimulus], table: Path | str) -> None:
        """Check that every reviewed item of the stimuli's kind is one of them, and as it was.

        Args:
            stimuli: pairs, triplets or trials, of one kind; there may be more than were reviewed.
            table: what messages call them.

        Raises:
            InputError: items are not among them, or have changed; names the first.
        """
        now = undecided(stimuli)
        if not now:
            return
        reviewed = self.of_kind(now[0].kind)
        by_id = {item.item_id: item for item in now}
        absent = [item_id for item_id in reviewed if item_id not in by_id]
        if absent:
            raise InputError(
                f"The review is of another set: {len(absent):,} of {len(reviewed):,} reviewed "
                f"{now[0].kind}s are not in {table}, such as {shortened(absent[0])}."
            )
        for item_id, item in reviewed.items():
            for old, new in zip(item.sentences, by_id[item_id].sentences, strict=True):
                if old != new:
                    raise InputError(
                        f"{item_id} has changed since the review: it had {old.text!r}, and {table} "
                        f"has {new.text!r}. Review it again."
                    )


def undecided(stimuli: Iterable[Stimulus], reviewer: str = "") -> tuple[ReviewedItem, ...]:
    """Stimuli as items about which nothing has been decided.

    Raises:
        InputError: a pair has no texts.
    """
    items = []
    for stimulus in stimuli:
        item_id, sentences = named_sentences(stimulus)
        first, second, third = (*sentences, None)[:3]
        if first is None or second is None:
            raise InputError(
                f"{item_id} has no texts, so that nobody can review it: select pairs from scores "
                "that have a column 'sentence'."
            )
        source = ("", "", 0)
        if isinstance(stimulus, Trial):
            source = (stimulus.source_id, str(stimulus.condition), stimulus.group)
        about = (item_id, _KIND_OF[type(stimulus)], *source, stimulus.model_1, stimulus.model_2)
        items.append(ReviewedItem(reviewer, *about, first, second, third, Decision.NONE, ""))
    return tuple(items)


def write_review(path: Path | str, decisions: Iterable[ReviewedItem]) -> None:
    """Write review.csv (or `.tsv`, `.parquet`, `.jsonl`): the fields of `ReviewedItem`, in order.

    Raises:
        InputError: the file cannot be written.
    """
    write_table(path, columns_of(ReviewedItem, decisions))


def read_reviews(paths: Sequence[Path | str], *, may_be_undecided: bool = False) -> Review:
    """Read what `write_review` or the page of `contstim review` wrote, of one or several reviewers.

    Where no reviewer is named, the file's name stands for the reviewer.

    Args:
        paths: the files.
        may_be_undecided: whether there may be no decision yet, as where a review goes on.

    Raises:
        InputError: a file cannot be read, lacks a column, or holds something else than a decision;
            an identifier is empty; or see `Review`.
    """
    decisions: list[ReviewedItem] = []
    for path in paths:
        # spreadsheets in many countries separate cells by semicolons
        rows = read_rows(path, ReviewedItem, _READERS)
        for row, item in enumerate(rows):
            if not item.item_id:
                raise InputError(f"{path}, row {row}: the item_id is empty.")
            if (item.sentence_3 is None) is (item.kind is ItemKind.TRIPLET):
                raise InputError(
                    f"{path}, row {row}: a triplet has three sentences, a pair or trial two."
                )
        # two downloads without a name are two reviewers: review.csv and review (1).csv
        decisions += [replace(item, reviewer=item.reviewer or Path(path).stem) for item in rows]
    if not may_be_undecided and not any(item.decision for item in decisions):
        raise InputError(f"{listed(paths)} holds no decision: nothing was kept or rejected.")
    return Review(tuple(decisions))


def differing(sentence: Sentence, other: Sentence) -> frozenset[int]:
    """Places, from 0, of the words that differ; none where the sentences differ in length."""
    if len(sentence) != len(other):
        return frozenset()
    pairs = enumerate(zip(sentence.words, other.words, strict=True))
    return frozenset(place for place, (word, before) in pairs if word != before)


def named_sentences(stimulus: Stimulus) -> tuple[str, tuple[Sentence | None, ...]]:
    """A stimulus's identifier, and its sentences; None for those of pairs without texts."""
    if isinstance(stimulus, Triplet):
        return stimulus.triplet_id, stimulus.sentences
    return stimulus.trial_id, (stimulus.sentence_1, stimulus.sentence_2)


def naturals_of(stimuli: Iterable[Stimulus]) -> dict[str, tuple[Sentence | None, ...]]:
    """The natural sentence that each sentence of each stimulus was made from, by its identifier.

    None for sentences that nobody changed, for shuffled ones, and for the two synthetic ones of a
    trial where no other trial of the same triplet has the natural one.
    """
    every = list(stimuli)
    natural = {
        trial.source_id: trial.source or trial.sentence_1
        for trial in every
        if isinstance(trial, Trial) and trial.source_id
        if trial.source or trial.condition is Condition.NATURAL_SYNTHETIC
    }
    sources: dict[str, tuple[Sentence | None, ...]] = {}
    for stimulus in every:
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
