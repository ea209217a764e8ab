"""What a review says of a selection: what stood before, and what was rejected of it.

Reviews are of pairs or triplets, or of the trials that these became. Of several reviews of one
study, one after the other, an item stays that no reviewer rejects in any of them.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.reviews import ItemKind, Review
from contstim.stimuli import Condition
from contstim.tables import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.reviews import ReviewedItem
    from contstim.scores import ScoreTable
    from contstim.stimuli import Triplet

_OF_TRIPLETS = (Condition.NATURAL_SYNTHETIC, Condition.SYNTHETIC_SYNTHETIC)


def rejected_words(review: Review) -> frozenset[tuple[str, ...]]:
    """The words of every sentence of a rejected item: whatever their end marks, they look alike."""
    rejected = review.rejected
    return frozenset(
        sentence.words
        for item in review.decisions
        if item.item_id in rejected
        for sentence in item.sentences
    )


def reviewed_pairs(review: Review, table: ScoreTable) -> dict[str, ReviewedItem]:
    """The pairs that were reviewed, themselves or as trials, by their identifier.

    Args:
        review: what was decided.
        table: the scores to choose from; they must hold the sentences of pairs not rejected.

    Raises:
        InputError: no pair was reviewed, one is of models that are not compared, two that were
            not rejected share a sentence, or the table lacks one of their sentences.
    """
    trials = review.of_kind(ItemKind.TRIAL).values()
    pairs = {t.source_id: t for t in trials if t.condition == Condition.NATURAL_CONTROVERSIAL}
    pairs |= review.of_kind(ItemKind.PAIR)
    if not pairs:
        raise InputError(
            "The review holds no natural pairs: give the review of pairs or of trials made of them."
        )
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
    twice = [" ".join(w) for w, n in Counter(s.words for s in stay).items() if n > 1]
    if twice:
        raise InputError(
            f"{len(twice):,} sentences stand in two reviewed pairs, such as {twice[0]!r}: the "
            f"reviews are not of one study. Give those of this selection and of the ones that it "
            f"grew from."
        )
    table.rows_of(stay)  # for its error alone
    return pairs


def reviewed_triplets(review: Review, triplets: Sequence[Triplet]) -> frozenset[str]:
    """Identifiers of the triplets that were reviewed, themselves or as trials.

    Args:
        review: what was decided.
        triplets: those to choose from; they must hold the reviewed ones that were not rejected.

    Raises:
        InputError: no triplet was reviewed, or one that was not rejected is absent or has changed.
    """
    trials = review.of_kind(ItemKind.TRIAL).values()
    of_trials = {t.source_id for t in trials if t.condition in _OF_TRIPLETS}
    reviewed = of_trials | review.of_kind(ItemKind.TRIPLET).keys()
    if not reviewed:
        raise InputError(
            "The review holds no triplets: give the review of triplets or of trials made of them."
        )
    rejected = review.rejected
    stay = Review(tuple(item for item in review.decisions if item.item_id not in rejected))
    stay.require_items_of(triplets, "the triplets given")
    present = {triplet.triplet_id for triplet in triplets}
    absent = sorted(of_trials - present - rejected)
    if absent:
        raise InputError(
            f"The review is of trials of other triplets: {len(absent):,} of {len(of_trials):,} are "
            f"not among those given, such as {listed(absent, 1)}."
        )
    return frozenset(reviewed)
