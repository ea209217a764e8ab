"""Review of a selection: what stood before, and what was rejected of it.

Reviews are of pairs or triplets, or of the trials that these became. Of several reviews of one
study, one after the other, an item stays that no reviewer rejects in any of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import floor
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.items.reviews import ItemKind, Review
from contstim.optimization.selection.programs import LinearRule, best_choice, priced_bound
from contstim.wording import repeated

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.files.arrays import FloatArray
    from contstim.items.reviews import ReviewedItem
    from contstim.items.scores import ScoreTable
    from contstim.items.stimuli import Triplet
    from contstim.optimization.selection.programs import Choice


def rejected_words(review: Review) -> frozenset[tuple[str, ...]]:
    """The words of every sentence of a rejected item: whatever their end marks, they look alike.

    A rejected trial rejects its triplet, and so the sentences of all trials of that triplet.
    """
    return _words(item for item in review.decisions if review.rejects(item))


def unfree_words(review: Review, *, shared: bool) -> frozenset[tuple[str, ...]]:
    """The words of sentences that no new pair may show: of rejected items, and of other trials.

    So what takes the place of a rejected pair is in the way of no trial that stays. Those of pairs
    are left out here: pairs share no sentence anyway.

    Args:
        review: what was decided.
        shared: whether sentences of other trials may be shown all the same.
    """
    trials = () if shared else review.of_kind(ItemKind.TRIAL).values()
    return rejected_words(review) | _words(
        trial for trial in trials if trial.about is not ItemKind.PAIR
    )


def _words(items: Iterable[ReviewedItem]) -> frozenset[tuple[str, ...]]:
    return frozenset(sentence.words for item in items for sentence in item.sentences)


def _reviewed(review: Review, kind: ItemKind, named: str) -> dict[str, ReviewedItem]:
    """The items that were reviewed, themselves or as trials, by their identifier."""
    trials = review.of_kind(ItemKind.TRIAL).values()
    items = {t.source_id: t for t in trials if t.about is kind} | review.of_kind(kind)
    if not items:
        raise InputError(
            f"The review holds no {named}: give the review of {kind}s or of trials made of them."
        )
    return items


def reviewed_pairs(review: Review, table: ScoreTable) -> dict[str, ReviewedItem]:
    """The pairs that were reviewed, themselves or as trials, by their identifier.

    Args:
        review: what was decided.
        table: the scores to choose from; they must hold the sentences of pairs not rejected.

    Raises:
        InputError: no pair was reviewed, one is of models that are not compared, two that were
            not rejected share a sentence, or the table lacks one of their sentences, or all texts.
    """
    if table.sentences is None:
        raise InputError(
            "A review names pairs by their sentences, and this table has scores only: add the "
            "column 'sentence'."
        )
    pairs = _reviewed(review, ItemKind.PAIR, "natural pairs")
    model_pairs = list(combinations(table.models, 2))
    for item_id, item in pairs.items():
        if (item.model_1, item.model_2) not in model_pairs:
            raise InputError(
                f"The review has a pair of {item.model_1} and {item.model_2} ({item_id}), which "
                f"the scores do not compare in this order: they are of {', '.join(table.models)}. "
                f"Give scores of the same models in the same order."
            )
    rejected = review.rejected
    stay = [s for name, item in pairs.items() if name not in rejected for s in item.sentences]
    if twice := [" ".join(words) for words in repeated(s.words for s in stay)]:
        raise InputError(
            f"{len(twice):,} sentences stand in two reviewed pairs, such as {twice[0]!r}: the "
            f"reviews are not of one study. Give those of this selection and of the ones that it "
            f"grew from."
        )
    table.rows_of(stay)  # for its error alone
    return pairs


@dataclass(frozen=True)
class ReviewedTriplets:
    """Triplets to choose from, as a review leaves them; all that follow are indices of these.

    Attributes:
        n: how many there are to choose from.
        reviewed: how many stood before.
        rejected: how many of these were rejected.
        able: those that may stay.
        removed: those that were rejected.
        shown: others, of which a sentence stands in a trial that stays.
    """

    n: int
    reviewed: int
    rejected: int
    able: tuple[int, ...]
    removed: tuple[int, ...]
    shown: tuple[int, ...]

    @classmethod
    def of(cls, review: Review, triplets: Sequence[Triplet]) -> ReviewedTriplets:
        """Look the reviewed triplets up, which were reviewed themselves or as trials.

        Raises:
            InputError: no triplet was reviewed, or one that was not rejected is absent or differs.
        """
        reviewed = _reviewed(review, ItemKind.TRIPLET, "triplets").keys()
        rejected = review.rejected
        stay = Review(tuple(item for item in review.decisions if item.item_id not in rejected))
        stay.require_items_of(triplets, "the triplets given")
        absent = sorted(reviewed - {t.triplet_id for t in triplets} - rejected)
        if absent:
            raise InputError(
                f"The review is of trials of other triplets: {len(absent):,} of {len(reviewed):,} "
                f"are not among those given, such as {absent[0]}."
            )
        trials = review.of_kind(ItemKind.TRIAL).values()
        words = _words(trial for trial in trials if not review.rejects(trial))
        names = [triplet.triplet_id for triplet in triplets]
        shown = (i for i, t in enumerate(triplets) if any(s.words in words for s in t.sentences))
        return cls(
            len(triplets),
            len(reviewed),
            len(reviewed & rejected),
            tuple(i for i, name in enumerate(names) if name in reviewed - rejected),
            tuple(i for i, name in enumerate(names) if name in rejected),
            tuple(i for i in shown if names[i] not in reviewed | rejected),
        )

    def rules(self, *, shared: bool) -> list[LinearRule]:
        """No rejected triplet is chosen, and none, unless shared, with a sentence of a trial."""
        named = {"rejected triplets": self.removed}
        if not shared:
            named["new triplets with a sentence of a trial that stays"] = self.shown
        return [LinearRule(n, members, [1] * len(members), 0, 0) for n, members in named.items()]

    def keeping(self, least: int, *, rank: int = 0) -> LinearRule:
        """The rule that so many, or more, stay."""
        most = len(self.able)
        return LinearRule("triplets that stay", self.able, [1] * most, least, most, rank)

    def keeping_most(
        self, rules: Sequence[LinearRule], seconds: float
    ) -> tuple[list[LinearRule], Choice, bool]:
        """The rules under which most stay, a choice that keeps most, and whether trials share.

        Sentences of trials that stay are shared with new triplets only where there is no set else.

        Args:
            rules: of the question.
            seconds: see `best_choice`.
        """
        for shared in (False, True) if self.shown else (False,):
            every = [*rules, *self.rules(shared=shared)]
            most_kept = best_choice(self.costs, every, seconds=seconds)
            if most_kept.chosen is not None:
                # The sets that keep most are a face of all sets: where the first program's
                # vertices are whole, so are those of the second.
                every.append(self.keeping(int(most_kept.chosen[list(self.able)].sum())))
                break
        return every, most_kept, shared

    @property
    def costs(self) -> FloatArray:
        """Less 1 for each triplet that may stay, (n,): what keeps most costs least."""
        costs = np.zeros(self.n)
        costs[list(self.able)] = -1
        return costs

    def proved(self, rules: Sequence[LinearRule], prices: Mapping[str, float]) -> int:
        """Upper bound on how many can stay under the rules, as prices prove without rounding."""
        return floor(-priced_bound(self.costs.tolist(), rules, prices))
