"""From pairs and triplets to the trials of every group, with random pairs and catch trials."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, replace
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InfeasibleError, InputError
from contstim.experiments.design.assignment import assign_groups
from contstim.experiments.design.verification import verify_design
from contstim.files.documents import FORMAT, write_json
from contstim.files.tables import ShownAsTable, frame_of
from contstim.items.reviews import ItemKind, Review
from contstim.items.scale import Scale
from contstim.items.stimuli import (
    SYNTHETIC,
    Condition,
    ControversialMinimalPair,
    Kind,
    Trial,
    content_id,
    repeated_item,
    trial_columns,
)
from contstim.optimization.selection.reviewed import rejected_words
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pandas import DataFrame

    from contstim.experiments.design.assignment import Item
    from contstim.items.reviews import ReviewedItem
    from contstim.items.stimuli import Pair, Triplet

_SHUFFLES = 100
# Commands that select what trials of a condition are made of; of others `select triplets` does
_SELECTED = {Condition.NATURAL_CONTROVERSIAL: "natural", Condition.MINIMAL_PAIR: "minimal-pairs"}


@dataclass(frozen=True)
class DesignCertificate:
    """Certificate of how an assignment came about, and that it passed its independent check.

    Attributes:
        status: `verified`: every rule of the design was checked on the finished trials.
        method: `one kind of trial after the other`, `searched over all assignments`, `left in place
            as far as possible`, or `nothing to assign`.
        seconds: from stimuli to the verified design.
        reviewed: how many trials stood before; all 0 where there was no review.
        rejected: how many of these were rejected, or their pair or triplet.
        kept: how many of them stay in their groups.
        kept_bound: more than so many cannot.
    """

    status: str
    method: str
    solver: str
    version: str
    groups: int
    trials: int
    trials_per_group: int
    seed: int
    seconds: float
    reviewed: int = 0
    rejected: int = 0
    kept: int = 0
    kept_bound: int = 0

    def save(self, path: Path | str) -> None:
        """Write the certificate as JSON.

        Raises:
            InputError: the file cannot be written.
        """
        write_json(path, {"format": FORMAT, **asdict(self)})


@dataclass(frozen=True)
class Design(ShownAsTable):
    """The trials of all groups, by group, condition and models, and how they were found."""

    trials: tuple[Trial, ...]
    certificate: DesignCertificate

    def to_frame(self) -> DataFrame:
        """The trials as a table of pandas, in the columns of trials.csv."""
        return frame_of(trial_columns(self.trials))


def build_design(
    pairs: Sequence[Pair | ControversialMinimalPair] = (),
    triplets: Sequence[Triplet] = (),
    natural: Iterable[Sentence] = (),
    *,
    groups: int = 10,
    random_per_group: int = 3,
    catch_per_group: int = 12,
    twins: bool = False,
    seed: int = 0,
    seconds: float = 60.0,
    review: Review | None = None,
    scale: Scale = Scale.CONFIDENCE,
    attention: Sequence[tuple[Sentence, Sentence]] = (),
) -> Design:
    """Turn stimuli into trials, and share them out to groups of participants.

    Each pair gives one trial, minimal or not, and so does each triplet: synthetic_1 against
    synthetic_2. With twins it gives two more, the natural sentence against either, and they go to
    three different groups. Every group has the same number of trials of every condition, model pair
    and role (which synthetic sentence, or which model is right), and sees no sentence twice,
    whatever its end mark. With the numbers of the 2023 study, and twins, this is its design. Where
    the sentences of every pair have equally many words, so have those of the random pairs that are
    drawn.

    After a review of an earlier design, as many trials as possible stay in their groups, and all
    random and catch trials that were not rejected do. The others are drawn anew, and not from
    sentences of anything that was rejected.

    Args:
        pairs: natural controversial pairs, with their texts, and minimal pairs.
        triplets: of a natural and two synthetic sentences.
        natural: where random pairs and catch trials are drawn from; sentences that stand in pairs
            or triplets are passed over.
        groups: how many groups of participants there are.
        random_per_group: random natural pairs for each group.
        catch_per_group: catch trials for each group, natural against shuffled.
        twins: whether the natural sentence of a triplet stands against its synthetic ones.
        seed: decides what is left to chance.
        seconds: how long the search for an assignment may take, where one is needed.
        review: of an earlier design; of several the last one counts for a trial's group.
        scale: on which people answer.
        attention: further catch trials of every group that say themselves which sentence is to be
            chosen: the first of each two.

    Raises:
        InputError: stimuli without texts, given twice, or negative numbers; stimuli that were
            rejected, or have changed since the review; an attention trial of one sentence.
        InfeasibleError: there is no such design; says why.
        VerificationError: the time ended without an answer, or the design failed its check.
    """
    started = perf_counter()
    natural = list(natural)
    of_triplets = [t for each in triplets for t in triplet_trials(each, twins=twins)]
    unplaced = [*map(pair_trial, pairs), *of_triplets]
    unplaced.sort(key=lambda trial: trial.condition is Condition.MINIMAL_PAIR)
    numbers = {"random_per_group": random_per_group, "catch_per_group": catch_per_group}
    _check([*pairs, *triplets], numbers, groups if twins and triplets else None)
    reviewed = {} if review is None else _reviewed_trials(review, unplaced)
    stood = {name: item for name, item in reviewed.items() if review and not review.rejects(item)}
    # Trials of a condition, model pair and role are a share; random and catch trials, whose
    # sentences stand nowhere else, need no assignment.
    before = {
        place: stood[trial.trial_id].group - 1
        for place, trial in enumerate(unplaced)
        if trial.trial_id in stood and stood[trial.trial_id].group <= groups
    }
    items = [_item(trial) for trial in unplaced]
    found, how = assign_groups(items, groups, seed=seed, seconds=seconds, before=before)
    placed = [replace(t, group=g + 1) for t, g in zip(unplaced, found.groups.tolist(), strict=True)]
    fillers = {Condition.RANDOM_NATURAL: random_per_group, Condition.CATCH: catch_per_group}
    wanted = Counter({(c, g): n for c, n in fillers.items() for g in range(1, groups + 1)})
    standing = _standing(stood.values(), natural, placed, wanted)
    rng = np.random.default_rng([seed, 1])  # not the stream that the assignment draws from
    rejected = frozenset() if review is None else rejected_words(review)
    drawn = _fillers(
        natural, [*placed, *standing], wanted - Counter(map(_slot, standing)), rejected, rng
    )
    made = sorted([*placed, *standing, *drawn, *_attention_trials(attention, groups)], key=_order)
    trials = tuple(replace(trial, scale=scale) for trial in made)
    verify_design(trials, pairs, triplets, natural, twins=twins, groups=groups, **numbers)
    certificate = DesignCertificate(
        status="verified",
        **(how if unplaced else {**how, "method": "nothing to assign"}),
        groups=groups,
        trials=len(trials),
        trials_per_group=len(trials) // groups,
        seed=seed,
        seconds=perf_counter() - started,
        reviewed=len(reviewed),
        rejected=len(reviewed) - len(stood),
        kept=found.kept + len(standing),
        kept_bound=found.kept_bound + len(standing),
    )
    return Design(trials, certificate)


def _check(
    items: Sequence[Pair | ControversialMinimalPair | Triplet],
    numbers: Mapping[str, int],
    for_twins: int | None,
) -> None:
    """Refuse a design of nothing, and items that are given twice.

    Args:
        items: pairs and triplets.
        numbers: of random pairs and catch trials in a group.
        for_twins: groups, where there are twins.

    Raises:
        InputError: there is nothing, an item is given twice, or a number is negative.
        InfeasibleError: groups are too few for twins.
    """
    for name, number in numbers.items():
        if number < 0:
            raise InputError(f"{name} must be 0 or more, not {number}.")
    if twice := repeated_item(items):
        raise InputError(f"The item {twice} is given twice: leave it out once.")
    if not items and not any(numbers.values()):
        raise InputError(
            "There is nothing to design: give pairs, triplets, minimal pairs or random trials."
        )
    if for_twins is not None and 1 <= for_twins < 3:
        raise InfeasibleError(
            "With `twins` a triplet gives three trials that share its sentences, for three "
            f"different groups; there are {for_twins}. Ask for 3 or more, or leave twins out."
        )


def _reviewed_trials(review: Review, trials: Iterable[Trial]) -> dict[str, ReviewedItem]:
    """The trials that were reviewed, by their identifiers; of several reviews the last one counts.

    Args:
        review: of trials, and maybe of what these were made of.
        trials: that the pairs and triplets of the new design give.

    Raises:
        InputError: pairs or triplets were rejected, or a trial has changed since the review.
    """
    rejected, sources = review.rejected, defaultdict[str, dict[str, None]](dict)
    for trial in trials:
        sources[_SELECTED.get(trial.condition, "triplets")][trial.source_id] = None
    for command, ids in sources.items():
        if refused := [item_id for item_id in ids if item_id in rejected]:
            kind = command.replace("natural", "pairs").replace("-", " ")
            raise InputError(
                f"{len(refused):,} of {len(ids):,} {kind} were rejected, such as {refused[0]}. Run "
                f"'contstim select {command} --review FILE' first, and give the {kind} that it "
                f"writes."
            )
    # Later reviews come before earlier ones: a trial may have moved to another group in between,
    # and random pairs of an earlier design may stand in the way of later ones.
    reviewed = Review(review.decisions[::-1]).of_kind(ItemKind.TRIAL)
    for trial in trials:
        before = reviewed.get(trial.trial_id)
        if before is not None and before.sentences != (trial.sentence_1, trial.sentence_2):
            raise InputError(
                f"{trial.trial_id} has changed since the review: it compared "
                f"{before.sentence_1.text!r} with {before.sentence_2.text!r}. Review the trials "
                f"again."
            )
    return reviewed


def check_attention(attention: Iterable[tuple[Sentence, Sentence]], where: str) -> None:
    """Refuse an attention trial that compares a sentence with itself, whatever its end marks.

    Raises:
        InputError: there is one; says where, by its row.
    """
    for row, (first, second) in enumerate(attention):
        if first.bare == second.bare:
            raise InputError(f"{where}, row {row} compares {first.text!r} with itself.")


def _attention_trials(attention: Sequence[tuple[Sentence, Sentence]], groups: int) -> list[Trial]:
    """Catch trials of every group that say themselves which sentence is to be chosen."""
    check_attention(attention, "`attention`")
    kinds = (Kind.INSTRUCTION, Kind.INSTRUCTION)
    return [
        Trial(
            content_id("trial", Condition.CATCH, group, first, second),
            *(group, Condition.CATCH, "", "", first, second, *kinds, ""),
        )
        for group in range(1, groups + 1)
        for first, second in attention
    ]


def triplet_trials(triplet: Triplet, *, twins: bool) -> list[Trial]:
    """The trial that a triplet gives, with twins the three, in no group yet (0)."""
    sentences = dict(zip((Kind.NATURAL, *SYNTHETIC), triplet.sentences, strict=True))

    def trial(condition: Condition, kind_1: Kind, kind_2: Kind) -> Trial:
        trial_id = content_id("trial", triplet.triplet_id, kind_1, kind_2)
        models, kinds = (triplet.model_1, triplet.model_2), (kind_1, kind_2)
        shown = (sentences[kind_1], sentences[kind_2])
        source = None if Kind.NATURAL in kinds else triplet.natural
        about = (trial_id, 0, condition, *models, *shown, *kinds, triplet.triplet_id)
        return Trial(*about, source=source)

    natural = Condition.NATURAL_SYNTHETIC
    # Each of the three sentences stands in two trials, so that the trials need three groups.
    return [
        *(trial(natural, Kind.NATURAL, kind) for kind in SYNTHETIC if twins),
        trial(Condition.SYNTHETIC_SYNTHETIC, *SYNTHETIC),
    ]


def pair_trial(pair: Pair | ControversialMinimalPair) -> Trial:
    """The trial that a pair gives, minimal or not, in no group yet (0).

    Raises:
        InputError: the pair has no texts.
    """
    name, models = pair.trial_id, (pair.model_1, pair.model_2)
    if isinstance(pair, ControversialMinimalPair):
        kind = Kind.NATURAL if pair.kind_bad is Kind.CHANGED else Kind.ACCEPTABLE
        shown = (pair.good, pair.bad, kind, pair.kind_bad, name)
        return Trial(*(name, 0, Condition.MINIMAL_PAIR, *models, *shown), paradigm=pair.paradigm)
    if pair.sentence_1 is None or pair.sentence_2 is None:
        raise InputError(
            f"{pair.trial_id} has no texts, so nobody can be shown it: select pairs from scores "
            "that have a column 'sentence'."
        )
    shown = (pair.sentence_1, pair.sentence_2, Kind.NATURAL, Kind.NATURAL, name)
    return Trial(*(name, 0, Condition.NATURAL_CONTROVERSIAL, *models, *shown))


def _item(trial: Trial) -> Item:
    role = "" if trial.condition != Condition.NATURAL_SYNTHETIC else f" ({trial.kind_2})"
    return f"{trial.condition}{role} for {trial.model_1}-{trial.model_2}", trial.bare


def _order(trial: Trial) -> tuple[object, ...]:
    conditions = list(Condition)
    place = conditions.index(trial.condition)
    return (trial.group, place, trial.model_1, trial.model_2, trial.kind_2, trial.trial_id)


def _slot(trial: Trial) -> tuple[Condition, int]:
    return trial.condition, trial.group


def _used(trials: Sequence[Trial]) -> set[str]:
    """The sentences of trials, and the natural ones that synthetic ones resemble; no end marks."""
    texts = {text for trial in trials for text in trial.bare}
    return texts | {trial.source.bare for trial in trials if trial.source}


def _standing(
    reviewed: Iterable[ReviewedItem],
    natural: Iterable[Sentence],
    placed: Sequence[Trial],
    wanted: Counter[tuple[Condition, int]],
) -> list[Trial]:
    """Random pairs and catch trials that stay as they were, so many as a group is to have.

    A trial stays if its group is still there, its natural sentences are still among those to draw
    from, and neither of its sentences now stands in another trial or is a triplet's natural one.

    Args:
        reviewed: trials of any condition that were not rejected.
        natural: sentences to draw from.
        placed: all trials of pairs and triplets.
        wanted: trials of a condition that each group, from 1, is to have.
    """
    texts = {sentence.bare for sentence in natural}
    used, vacant = _used(placed), Counter(wanted)
    stay = []
    for item in reviewed:
        kind = Kind.SHUFFLED if item.condition == Condition.CATCH else Kind.NATURAL
        first, second = item.sentences
        trial = _filler(Condition(item.condition), first, second, kind, item.group)
        drawn = trial.bare[:1] if kind is Kind.SHUFFLED else trial.bare
        if vacant[_slot(trial)] > 0 and texts.issuperset(drawn) and used.isdisjoint(trial.bare):
            vacant[_slot(trial)] -= 1
            used |= {*trial.bare}
            stay.append(replace(trial, trial_id=item.item_id))
    return stay


def _fillers(
    natural: Sequence[Sentence],
    others: Sequence[Trial],
    wanted: Mapping[tuple[Condition, int], int],
    rejected: frozenset[tuple[str, ...]],
    rng: np.random.Generator,
) -> Iterator[Trial]:
    """Random natural pairs and catch trials for every group, of sentences used nowhere else.

    A catch trial sets a natural sentence against its own words in another order. Where the
    sentences of every natural pair have equally many words, so have those of random pairs: then
    longer sentences are not to lose for being long.

    Args:
        natural: where sentences are drawn from, and how words are written inside one is seen.
        others: all other trials.
        wanted: trials of a condition that each group, from 1, lacks.
        rejected: the words of sentences that are not drawn.
        rng: draws and shuffles.

    Raises:
        InfeasibleError: too few sentences are left, or one cannot be shuffled.
    """
    of_pairs = [t for t in others if t.condition is Condition.NATURAL_CONTROVERSIAL]
    alike = bool(of_pairs) and all(len(t.sentence_1) == len(t.sentence_2) for t in of_pairs)
    used = _used(others)
    free = {s.bare: s for s in natural if s.bare not in used and s.words not in rejected}
    # The group of each trial to be drawn: the first group's first
    random_groups, catch_groups = (
        [group for (condition, group), n in wanted.items() if condition is kind for _ in range(n)]
        for kind in (Condition.RANDOM_NATURAL, Condition.CATCH)
    )
    # In random order the first sentences that can be shuffled at all become catch trials, and the
    # rest, two by two, random pairs.
    drawn = [list(free.values())[place] for place in rng.permutation(len(free))]
    n_random, n_catch = len(random_groups), len(catch_groups)
    catch = [s for s in drawn if len(set(_lower(s))) > 1][:n_catch]
    rest = [sentence for sentence in drawn if sentence not in set(catch)]
    couples = list(islice(_couples(rest, same_length=alike), n_random))
    if len(catch) < n_catch or len(couples) < n_random:
        length = " (both of a pair of equally many words, as in natural pairs)" * alike
        raise InfeasibleError(
            f"Groups need {2 * n_random:,} more sentences for random pairs{length} and {n_catch:,} "
            f"of two or more different words for catch trials, {2 * n_random + n_catch:,} in all; "
            f"only {len(free):,} are used nowhere else. Give more natural sentences: a longer "
            "text, or looser rules for what is taken from it."
        )
    for (first, second), group in zip(couples, random_groups, strict=True):
        yield _filler(Condition.RANDOM_NATURAL, first, second, Kind.NATURAL, group)
    # No shuffled sentence may be another sentence of the experiment, shuffled or not.
    texts, inside = used | free.keys(), as_inside(natural)
    for sentence, group in zip(catch, catch_groups, strict=True):
        shuffled = _shuffle(sentence, texts, inside, rng)
        texts.add(shuffled.bare)
        yield _filler(Condition.CATCH, sentence, shuffled, Kind.SHUFFLED, group)


def _couples(
    sentences: Iterable[Sentence], *, same_length: bool
) -> Iterator[tuple[Sentence, Sentence]]:
    """Each sentence in turn with the next one, or the next of as many words."""
    left = list(sentences)[::-1]
    while left:
        first = left.pop()
        fits = (p for p in reversed(range(len(left))) if len(left[p]) == len(first))
        place = next(fits, None) if same_length else len(left) - 1
        if place is not None and place >= 0:
            yield first, left.pop(place)


def as_inside(sentences: Iterable[Sentence]) -> Callable[[str], str]:
    """Function that writes the first word of a sentence as it is written inside one.

    In lower case, unless the sentences have it more often with its capital inside (`Paris`, `I`);
    words that have another capital (`NATO`) or are a form of `I` keep it always.
    """
    seen = Counter(word for sentence in sentences for word in sentence.words[1:])

    def inside(word: str) -> str:
        lower = word[:1].lower() + word[1:]
        named = word == "I" or word.startswith(("I'", "I’")) or lower != word.lower()
        return word if named or seen[word] > seen[lower] else lower

    return inside


def _shuffle(
    sentence: Sentence, taken: set[str], inside: Callable[[str], str], rng: np.random.Generator
) -> Sentence:
    """The sentence's words in another order that is not among the texts taken.

    It begins with a capital as the sentence does, and the sentence's first word is written as
    inside one (`as_inside`), so that capitals do not give it away.
    """
    first, *rest = sentence.words
    capital = first[0].isupper()
    words = [inside(first) if capital else first, *rest]
    for _ in range(_SHUFFLES):
        start, *others = (words[place] for place in rng.permutation(len(words)).tolist())
        start = start[0].upper() + start[1:] if capital else start
        other = Sentence((start, *others), sentence.end)
        # In lower case: an order that only moves a capital is the same to a reader.
        if _lower(other) != _lower(sentence) and other.bare not in taken:
            return other
    raise InfeasibleError(
        f"{sentence.text!r} has no order of words that is not itself a sentence of the experiment: "
        "leave it out of the natural sentences."
    )


def _lower(sentence: Sentence) -> tuple[str, ...]:
    return tuple(map(str.lower, sentence.words))


def _filler(
    condition: Condition, natural: Sentence, other: Sentence, kind: Kind, group: int
) -> Trial:
    """A natural sentence against another of some kind; it names no models and has no source."""
    trial_id = content_id("trial", condition, natural, other)
    return Trial(trial_id, group, condition, "", "", natural, other, Kind.NATURAL, kind, "")
