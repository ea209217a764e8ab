"""Stimuli from before a review: all that nobody rejected stay, each in its row."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from contstim.files import checksum
from contstim.reviews import Review, read_reviews, undecided
from contstim.stimuli import Pair, Trial, Triplet, read_stimulus_table

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from contstim.reviews import ReviewedItem, Stimulus

_Item = TypeVar("_Item", Pair, Triplet, Trial)


@dataclass(frozen=True)
class EarlierStimuli:
    """Earlier tables, and what reviewers decided.

    Attributes:
        stimuli: those of the tables, in order.
        reviews: what reviewers decided, of all rounds.
        files: the checksum of each table, by its name.
    """

    stimuli: tuple[Stimulus, ...]
    reviews: Review | None
    files: dict[str, str]

    @classmethod
    def read(cls, review: Sequence[Path], earlier: Sequence[Path]) -> EarlierStimuli:
        """Read tables of pairs, triplets or trials, and reviews.

        Raises:
            InputError: a file cannot be read, or is something else.
        """
        return cls(
            tuple(stimulus for path in earlier for stimulus in read_stimulus_table(path)),
            read_reviews(review) if review else None,
            {path.as_posix(): checksum(path) for path in earlier},
        )

    def review(self, holds: Callable[[ReviewedItem], bool] = lambda _: True) -> Review | None:
        """Decisions about the earlier stimuli, with those that nobody decided about.

        Where there are earlier tables, what stood is what they hold: of reviews of rounds before
        them only the rejections count.

        Args:
            holds: whether a stimulus can still stay, for all that reviewers say.
        """
        if self.reviews is None and not self.stimuli:
            return None
        decided = Review(()) if self.reviews is None else self.reviews
        if not self.stimuli:
            return decided
        rejections = tuple(item for item in decided.decisions if decided.rejects(item))
        return Review(
            (
                *rejections,
                *(i for i in undecided(self.stimuli) if decided.rejects(i) or holds(i)),
            )
        )

    def of_kind(self, kind: type[_Item]) -> list[_Item]:
        """The pairs, the triplets or the trials."""
        return [stimulus for stimulus in self.stimuli if isinstance(stimulus, kind)]


def in_place(
    before: Sequence[_Item],
    now: Sequence[_Item],
    name: Callable[[_Item], Hashable],
    kind: Callable[[_Item], Hashable],
    placed: Callable[[_Item, _Item], _Item] = lambda now, _before: now,
) -> list[_Item]:
    """Stimuli in the rows in which they stood, and new ones in the rows of what is gone.

    Args:
        before: the earlier table.
        now: all stimuli of the new table.
        name: by which a stimulus is known again.
        kind: a new stimulus stands in the row of one of its kind; the rest is appended.
        placed: the stimulus of a row, given the one that stood there.
    """
    by_name = {name(stimulus): stimulus for stimulus in now}
    stood = {name(stimulus) for stimulus in before}
    new: dict[Hashable, deque[_Item]] = defaultdict(deque)
    for stimulus in now:
        if name(stimulus) not in stood:
            new[kind(stimulus)].append(stimulus)
    rows: list[_Item] = []
    for stimulus in before:
        if name(stimulus) in by_name:
            rows.append(placed(by_name[name(stimulus)], stimulus))
        elif waiting := new[kind(stimulus)]:
            rows.append(placed(waiting.popleft(), stimulus))
    for waiting in new.values():
        rows += waiting
    return rows


def trials_in_place(before: Sequence[Trial], now: Sequence[Trial]) -> list[Trial]:
    """Trials in their rows, see `in_place`, with the turns and sides of those that stood there."""

    def placed(trial: Trial, stood: Trial) -> Trial:
        gone = "" if trial.trial_id == stood.trial_id else stood.trial_id
        return replace(trial, instead_of=stood.instead_of or gone)

    return in_place(
        before,
        now,
        lambda trial: (trial.trial_id, trial.group),
        lambda trial: (trial.group, trial.condition, trial.model_1, trial.model_2, trial.kind_2),
        placed,
    )
