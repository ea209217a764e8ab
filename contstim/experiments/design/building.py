"""From pairs and triplets to the trials of every group of participants."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InfeasibleError, InputError
from contstim.experiments.design.allocation import Item, allocate
from contstim.experiments.design.certificate import DesignCertificate
from contstim.experiments.design.fillers import filler_trials, standing_fillers
from contstim.experiments.design.reviewed_trials import not_rejected, reviewed_trials
from contstim.experiments.design.verification import verify_design, verify_review
from contstim.optimization.selection.reviewed import rejected_words
from contstim.scale import Scale
from contstim.stimuli import Condition, Kind, Trial, content_id, trial_columns
from contstim.tables import ShownAsTable, frame_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pandas import DataFrame

    from contstim.reviews import Review
    from contstim.sentence import Sentence
    from contstim.stimuli import Pair, Triplet


@dataclass(frozen=True)
class Design(ShownAsTable):
    """The trials of all groups, by group, condition and models, and how they were found."""

    trials: tuple[Trial, ...]
    certificate: DesignCertificate

    def to_frame(self) -> DataFrame:
        """The trials as a table of pandas, in the columns of trials.csv."""
        return frame_of(trial_columns(self.trials))


def build_design(
    pairs: Sequence[Pair] = (),
    triplets: Sequence[Triplet] = (),
    natural: Iterable[Sentence] = (),
    *,
    groups: int = 10,
    random_per_group: int = 9,
    catch_per_group: int = 12,
    seed: int = 0,
    seconds: float = 60.0,
    review: Review | None = None,
    scale: Scale = Scale.CONFIDENCE,
) -> Design:
    """Turn stimuli into trials, and share them out to groups of participants.

    Each pair gives one trial. Each triplet gives three: natural against synthetic_1, natural
    against synthetic_2, and synthetic_1 against synthetic_2; they go to three different groups.
    Every group has the same number of trials of every condition, model pair and role (which
    synthetic sentence), and sees no sentence twice, whatever its end mark. With the numbers of the
    2023 study this is its design. Where the sentences of every pair have equally many words, so
    have those of the random pairs that are drawn.

    After a review of an earlier design, as many trials as possible stay in their groups, and all
    random and catch trials that were not rejected do. The others are drawn anew, and not from
    sentences of anything that was rejected.

    Args:
        pairs: natural controversial pairs, with their texts.
        triplets: of a natural and two synthetic sentences.
        natural: where random pairs and catch trials are drawn from; sentences that stand in pairs
            or triplets are passed over.
        groups: how many groups of participants there are.
        random_per_group: random natural pairs for each group.
        catch_per_group: catch trials for each group, natural against shuffled.
        seed: decides what is left to chance.
        seconds: how long the search for an allocation may take, where one is needed.
        review: of an earlier design; of several the last one counts for a trial's group.
        scale: on which people answer.

    Raises:
        InputError: stimuli without texts, given twice, or negative numbers; stimuli that were
            rejected, or have changed since the review.
        InfeasibleError: there is no such design; says why.
        VerificationError: the time ended without an answer, or the design failed its check.
    """
    started = perf_counter()
    if min(random_per_group, catch_per_group) < 0:
        raise InputError("A group has 0 or more random and catch trials, not fewer.")
    natural = list(natural)
    unplaced = [*map(pair_trial, pairs), *(t for each in triplets for t in triplet_trials(each))]
    twice = [name for name, n in Counter(t.trial_id for t in unplaced).items() if n > 1]
    if twice:
        raise InputError(f"{len(twice):,} trials are given twice; the first is {twice[0]}.")
    if not unplaced and not random_per_group and not catch_per_group:
        raise InputError("There is nothing to design: give pairs, triplets, or random trials.")
    if triplets and 1 <= groups < 3:
        raise InfeasibleError(
            "A triplet gives three trials that share its sentences, for three different groups; "
            f"there are {groups}. Ask for 3 or more groups, or leave the triplets out."
        )
    reviewed = {} if review is None else reviewed_trials(review, pairs, triplets, unplaced)
    stood = {} if review is None else not_rejected(review, reviewed)
    # Trials of a condition, model pair and role are a share; random and catch trials, whose
    # sentences stand nowhere else, need no allocation.
    before = {
        place: stood[trial.trial_id].group - 1
        for place, trial in enumerate(unplaced)
        if trial.trial_id in stood and stood[trial.trial_id].group <= groups
    }
    items = [_item(trial) for trial in unplaced]
    allocation = allocate(items, groups, seed=seed, seconds=seconds, before=before)
    placed = [
        replace(t, group=g + 1) for t, g in zip(unplaced, allocation.groups.tolist(), strict=True)
    ]
    used = frozenset(text for trial in unplaced for text in shown_texts(trial))
    numbers = {
        "groups": groups,
        "random_per_group": random_per_group,
        "catch_per_group": catch_per_group,
    }
    standing = standing_fillers(stood.values(), natural, used, **numbers)
    of_pairs = [t for t in unplaced if t.condition is Condition.NATURAL_CONTROVERSIAL]
    fillers = filler_trials(
        natural,
        used,
        **numbers,
        # Pairs of one length say that longer sentences are not to lose for being long
        same_length=bool(of_pairs)
        and all(len(t.sentence_1) == len(t.sentence_2) for t in of_pairs),
        rng=np.random.default_rng([seed, 1]),  # not the stream that allocation draws from
        standing=standing,
        rejected=frozenset() if review is None else rejected_words(review),
    )
    trials = tuple(sorted([*placed, *fillers], key=_order))
    certificate = DesignCertificate(
        status="verified",  # before anybody sees it
        method=allocation.method if unplaced else "nothing to allocate",
        solver=allocation.solver,
        version=allocation.version,
        groups=groups,
        trials=len(trials),
        trials_per_group=len(trials) // groups,
        seed=seed,
        seconds=0.0,
        reviewed=len(reviewed),
        rejected=len(reviewed) - len(stood),
        kept=allocation.kept + len(standing),
        kept_bound=allocation.kept_bound + len(standing),
    )
    trials = tuple(replace(trial, scale=scale) for trial in trials)
    verify_design(trials, pairs, triplets, natural, **numbers)
    if review is not None:
        verify_review(trials, natural, review, certificate, **numbers)
    certificate = replace(certificate, seconds=perf_counter() - started)
    return Design(trials, certificate)


def triplet_trials(triplet: Triplet) -> tuple[Trial, Trial, Trial]:
    """The three trials that a triplet gives, in no group yet (0)."""
    sentences = {
        Kind.NATURAL: triplet.natural,
        Kind.SYNTHETIC_1: triplet.synthetic_1,
        Kind.SYNTHETIC_2: triplet.synthetic_2,
    }

    def trial(condition: Condition, kind_1: Kind, kind_2: Kind) -> Trial:
        return Trial(
            content_id("trial", triplet.triplet_id, kind_1, kind_2),
            0,
            condition,
            triplet.model_1,
            triplet.model_2,
            sentences[kind_1],
            sentences[kind_2],
            kind_1,
            kind_2,
            triplet.triplet_id,
        )

    # Each of the three sentences stands in two trials, so that the trials need three groups.
    return (
        trial(Condition.NATURAL_SYNTHETIC, Kind.NATURAL, Kind.SYNTHETIC_1),
        trial(Condition.NATURAL_SYNTHETIC, Kind.NATURAL, Kind.SYNTHETIC_2),
        trial(Condition.SYNTHETIC_SYNTHETIC, Kind.SYNTHETIC_1, Kind.SYNTHETIC_2),
    )


def shown_texts(trial: Trial) -> tuple[str, str]:
    """Texts of a trial that a participant sees: its sentences without their end marks."""
    return trial.sentence_1.bare, trial.sentence_2.bare


def pair_trial(pair: Pair) -> Trial:
    """The trial that a pair gives, in no group yet (0).

    Raises:
        InputError: the pair has no texts.
    """
    if pair.sentence_1 is None or pair.sentence_2 is None:
        raise InputError(
            f"{pair.trial_id} has no texts, so nobody can be shown it: select pairs from scores "
            "that have a column 'sentence'."
        )
    return Trial(
        pair.trial_id,
        0,
        Condition.NATURAL_CONTROVERSIAL,
        pair.model_1,
        pair.model_2,
        pair.sentence_1,
        pair.sentence_2,
        Kind.NATURAL,
        Kind.NATURAL,
        pair.trial_id,
    )


def _item(trial: Trial) -> Item:
    role = "" if trial.condition != Condition.NATURAL_SYNTHETIC else f" ({trial.kind_2})"
    return Item(f"{trial.condition}{role} for {trial.model_1}-{trial.model_2}", shown_texts(trial))


def _order(trial: Trial) -> tuple[object, ...]:
    conditions = list(Condition)
    place = conditions.index(trial.condition)
    return (trial.group, place, trial.model_1, trial.model_2, trial.kind_2, trial.trial_id)
