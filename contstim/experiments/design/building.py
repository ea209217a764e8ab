"""The trials of every group: trials of pairs and triplets, random pairs and catch trials."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import InfeasibleError, InputError
from contstim.experiments.design.assignment import Item, assign_groups
from contstim.experiments.design.verification import verify_design
from contstim.files.documents import FORMAT
from contstim.files.tables import ShownAsTable, frame_of
from contstim.items.reviews import ItemKind, Review, ReviewedItem
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
from contstim.optimization.selection.reviewed import ChangedItem
from contstim.optimization.selection.solver import SOLVER, solver_version
from contstim.wording import grouped
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pandas import DataFrame

    from contstim.items.stimuli import Pair, Triplet

_MAX_SHUFFLES = 100
# Condition → subcommand of `select` that selects the items. `select triplets` selects the items of
# all other conditions
_SELECT_COMMANDS = {
    Condition.NATURAL_CONTROVERSIAL: "natural",
    Condition.MINIMAL_PAIR: "minimal-pairs",
}


@dataclass(frozen=True)
class Design(ShownAsTable):
    """The trials of all groups.

    Attributes:
        trials: trials, sorted by group, condition and models.
        certificate: content of the JSON file about the design: solver, size of the design, seed,
            and the time of building and verification (`seconds`). The `status` is `verified`,
            because every rule of the design was checked on the finished trials.
        changed: reviewed trials that were not rejected, but are removed or in another group.
    """

    trials: tuple[Trial, ...]
    certificate: dict[str, Any]
    changed: tuple[ChangedItem, ...] = ()

    def to_frame(self) -> DataFrame:
        """Return the trials as a pandas table, with the columns of trials.csv."""
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
    """Turn stimuli into trials, and assign them to groups of participants.

    Each pair, and each minimal pair, gives one trial. Each triplet gives a trial of synthetic_1
    against synthetic_2. With `twins`, a triplet gives two more trials, which compare the natural
    sentence with each synthetic sentence. The three trials of a triplet go to different groups.

    Every group has the same number of trials of every condition, model pair and role. The role of a
    natural-synthetic trial states which synthetic sentence it shows, synthetic_1 or synthetic_2.
    The role of a minimal pair states which model prefers the acceptable (or natural) sentence. No
    group sees a sentence twice; sentences that differ only in the end mark (such as . or ?) count
    as the same. If the two sentences of each natural controversial pair have the same number of
    words, the two sentences of each random pair do, too.
    With `twins`, and with as many groups and trials as in the 2023 study, the result is the design
    of the 2023 study.

    After a review of earlier designs, as many trials as possible stay in their groups. Random and
    catch trials that were not rejected stay too, if their sentences are still available. All other
    random and catch trials are drawn again, without rejected sentences.

    `natural` are sentences for random pairs and catch trials. Sentences that are also in `pairs` or
    `triplets` are skipped. Each pair of texts in `attention`, with the correct text first, is an
    additional catch trial of every group. If several files of `review` contain a trial, the group
    in the last file has priority. `seconds` is the time limit of each search for an assignment.

    Raises:
        InputError: if there are no stimuli and no random or catch trials; if stimuli occur twice
            or were rejected; if a pair has no texts or a sentence twice; if a number is negative or
            `groups` is 0; or if an attention trial compares a sentence with itself.
        InfeasibleError: if no design fulfils these rules; the message gives the reason.
        VerificationError: if the time limit is reached without a result, or the design fails its
            check.
    """
    started = perf_counter()
    natural = list(natural)
    trials_of_triplets = [t for triplet in triplets for t in triplet_trials(triplet, twins=twins)]
    unplaced = [*map(pair_trial, pairs), *trials_of_triplets]
    unplaced.sort(key=lambda trial: trial.condition is Condition.MINIMAL_PAIR)
    numbers = {"random_per_group": random_per_group, "catch_per_group": catch_per_group}
    _check([*pairs, *triplets], numbers, groups if twins and triplets else None)
    kept_trials = [] if review is None else _kept_trials(review, unplaced)
    index_of = {trial.trial_id: index for index, trial in enumerate(unplaced)}
    earlier_groups = [
        {index_of[i]: t.group - 1 for i, t in items.items() if i in index_of and t.group <= groups}
        for items in kept_trials
    ]
    # Random and catch trials need no assignment, because no other trial contains their sentences
    assigned = assign_groups(
        [*map(_item, unplaced)], groups, seed=seed, seconds=seconds, earlier_groups=earlier_groups
    )
    placed = [replace(t, group=g + 1) for t, g in zip(unplaced, assigned.tolist(), strict=True)]
    fillers = {Condition.RANDOM_NATURAL: random_per_group, Condition.CATCH: catch_per_group}
    counts = Counter({(c, g): n for c, n in fillers.items() for g in range(1, groups + 1)})
    accepted = [item for trials in kept_trials for item in trials.values()]
    unchanged = _unchanged_fillers(accepted, natural, placed, counts)
    rng = np.random.default_rng([seed, 1])  # other random numbers than for the assignment
    rejected = frozenset() if review is None else review.rejected_words
    drawn = draw_fillers(
        natural, [*placed, *unchanged], counts - Counter(map(_slot, unchanged)), rejected, rng
    )
    all_trials = sorted(
        [*placed, *unchanged, *drawn, *_attention_trials(attention, groups)], key=_sort_key
    )
    trials = tuple(replace(trial, scale=scale) for trial in all_trials)
    verify_design(trials, pairs, triplets, natural, twins=twins, groups=groups, **numbers)
    certificate = {
        "format": FORMAT,
        "status": "verified",
        "solver": SOLVER,
        "version": solver_version(),
        "groups": groups,
        "trials": len(trials),
        "trials_per_group": len(trials) // groups,
        "seed": seed,
        "seconds": perf_counter() - started,
    }
    return Design(trials, certificate, _changed_trials(accepted, trials))


def _check(
    items: Sequence[Pair | ControversialMinimalPair | Triplet],
    numbers: Mapping[str, int],
    for_twins: int | None,
) -> None:
    """Check the items and numbers of a design.

    `for_twins` is the number of groups if the design has triplets, each with three trials (see
    `twins` of `build_design`); otherwise None.
    """
    for name, number in numbers.items():
        if number < 0:
            raise InputError(f"{name} must be at least 0, got {number}.")
    if twice := repeated_item(items):
        raise InputError(f"The item {twice} occurs twice. Remove one of the two.")
    if not items and not any(numbers.values()):
        raise InputError(
            "The design has no trials. Give pairs, triplets or minimal pairs, or set a number of "
            "random pairs or catch trials."
        )
    if for_twins is not None and 1 <= for_twins < 3:
        raise InfeasibleError(
            f"With `twins`, groups must be at least 3, got {for_twins}: the three trials of a "
            "triplet share sentences and go to different groups. Add groups, or remove `twins`."
        )


def _kept_trials(review: Review, trials: Sequence[Trial]) -> list[dict[str, ReviewedItem]]:
    """Return the trials that were not rejected: for each file of the review, trial_id → trial.

    The last file comes first. A trial is left out if the new design has other sentences for its
    trial_id.

    Raises:
        InputError: if a pair or triplet of the new design was rejected.
    """
    sources = grouped((_SELECT_COMMANDS.get(t.condition, "triplets"), t.source_id) for t in trials)
    for command, source_ids in sources.items():
        ids = dict.fromkeys(source_ids)
        if refused := [item_id for item_id in ids if item_id in review.rejected]:
            kind = command.replace("natural", "pairs").replace("-", " ")
            raise InputError(
                f"{len(refused):,} of {len(ids):,} {kind} were rejected (first: {refused[0]}). Run "
                f"'contstim select {command} --review FILE' first, and give the {kind} that it "
                f"writes."
            )
    sentences_of = {trial.trial_id: (trial.sentence_1, trial.sentence_2) for trial in trials}
    return [
        {
            i: item
            for i, item in items.items()
            if sentences_of.get(i, item.sentences) == item.sentences
        }
        for items in review.kept_items(ItemKind.TRIAL)
    ]


def _changed_trials(
    items: Iterable[ReviewedItem], trials: Sequence[Trial]
) -> tuple[ChangedItem, ...]:
    """Return the trials that were not rejected, but are removed or in another group; with reasons.

    `items` are the trials that were not rejected, in their earlier groups.
    """
    groups = {trial.trial_id: trial.group for trial in trials}
    texts = Counter(text for trial in trials for text in trial.bare)
    changed = []
    for item in items:
        group = groups.get(item.item_id)
        if group == item.group:
            continue
        if group is not None:
            change = ChangedItem(item.item_id, "no group sees a sentence twice", "groups")
        elif item.source_id:
            change = ChangedItem(item.item_id, f"{item.source_id} is not selected again")
        elif any(sentence.bare in texts for sentence in item.sentences):
            change = ChangedItem(item.item_id, "another trial shows one of its sentences")
        else:
            change = ChangedItem(item.item_id, "groups have fewer random or catch trials")
        changed.append(change)
    return tuple(changed)


def check_attention(attention: Iterable[tuple[Sentence, Sentence]], where: str) -> None:
    """Check that no attention trial compares a sentence with itself, ignoring end marks.

    Raises:
        InputError: if both sentences of a trial are equal; the message begins with `where` and
            the 0-based row.
    """
    for row, (first, second) in enumerate(attention):
        if first.bare == second.bare:
            raise InputError(f"{where}, row {row} compares {first.text!r} with itself.")


def _attention_trials(attention: Sequence[tuple[Sentence, Sentence]], groups: int) -> list[Trial]:
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
    """Return the trial of a triplet, or three trials with `twins`; see `build_design`.

    The group is 0, because the trials are not yet assigned to groups.
    """
    sentences = dict(zip((Kind.NATURAL, *SYNTHETIC), triplet.sentences, strict=True))

    def trial(condition: Condition, kind_1: Kind, kind_2: Kind) -> Trial:
        trial_id = content_id("trial", triplet.triplet_id, kind_1, kind_2)
        models, kinds = (triplet.model_1, triplet.model_2), (kind_1, kind_2)
        pair = (sentences[kind_1], sentences[kind_2])
        source = None if Kind.NATURAL in kinds else triplet.natural
        about = (trial_id, 0, condition, *models, *pair, *kinds, triplet.triplet_id)
        return Trial(*about, source=source)

    natural = Condition.NATURAL_SYNTHETIC
    return [
        *(trial(natural, Kind.NATURAL, kind) for kind in SYNTHETIC if twins),
        trial(Condition.SYNTHETIC_SYNTHETIC, *SYNTHETIC),
    ]


def pair_trial(pair: Pair | ControversialMinimalPair) -> Trial:
    """Return the trial of a pair or minimal pair.

    The group is 0, because the trial is not yet assigned to a group.

    Raises:
        InputError: if the pair has no texts.
    """
    name, models = pair.trial_id, (pair.model_1, pair.model_2)
    if isinstance(pair, ControversialMinimalPair):
        kind = Kind.NATURAL if pair.kind_bad is Kind.CHANGED else Kind.ACCEPTABLE
        fields = (pair.good, pair.bad, kind, pair.kind_bad, name)
        return Trial(*(name, 0, Condition.MINIMAL_PAIR, *models, *fields), paradigm=pair.paradigm)
    if pair.sentence_1 is None or pair.sentence_2 is None:
        raise InputError(
            f"{pair.trial_id} has no texts. Select pairs from scores with a column 'sentence'."
        )
    fields = (pair.sentence_1, pair.sentence_2, Kind.NATURAL, Kind.NATURAL, name)
    return Trial(*(name, 0, Condition.NATURAL_CONTROVERSIAL, *models, *fields))


def _item(trial: Trial) -> Item:
    """Return the name of a trial's share, and the trial's texts.

    A share is the set of trials with the same condition, role and model pair. Shares are
    distributed evenly over the groups. For roles, see `build_design`.
    """
    role = "" if trial.condition != Condition.NATURAL_SYNTHETIC else f" ({trial.kind_2})"
    return f"{trial.condition}{role} for {trial.model_1}-{trial.model_2}", trial.bare


def _sort_key(trial: Trial) -> tuple[object, ...]:
    index = list(Condition).index(trial.condition)
    return (trial.group, index, trial.model_1, trial.model_2, trial.kind_2, trial.trial_id)


def _slot(trial: Trial) -> tuple[Condition, int]:
    return trial.condition, trial.group


def used_texts(trials: Iterable[Trial]) -> set[str]:
    """Return the texts of trials and of the natural sentences of triplets, without end marks."""
    texts = {text for trial in trials for text in trial.bare}
    return texts | {trial.source.bare for trial in trials if trial.source}


def _unchanged_fillers(
    reviewed: Iterable[ReviewedItem],
    natural: Iterable[Sentence],
    placed: Sequence[Trial],
    counts: Counter[tuple[Condition, int]],
) -> list[Trial]:
    """Return the reviewed random pairs and catch trials (fillers) that stay in the new design.

    At most as many trials stay as the new design needs. A trial stays if it meets three conditions:

    * Its group still exists.
    * `natural` still contains its natural sentences.
    * No other trial of the new design contains its sentences, and no triplet has one of them as its
      natural sentence.

    `counts` is (condition, group from 1) → target number of trials.
    """
    texts = {sentence.bare for sentence in natural}
    used, vacant = used_texts(placed), Counter(counts)
    unchanged = []
    for item in reviewed:
        kind = Kind.SHUFFLED if item.condition == Condition.CATCH else Kind.NATURAL
        first, second = item.sentences
        trial = _filler(Condition(item.condition), first, second, kind, item.group)
        drawn = trial.bare[:1] if kind is Kind.SHUFFLED else trial.bare
        if vacant[_slot(trial)] > 0 and texts.issuperset(drawn) and used.isdisjoint(trial.bare):
            vacant[_slot(trial)] -= 1
            used |= {*trial.bare}
            unchanged.append(replace(trial, trial_id=item.item_id))
    return unchanged


def draw_fillers(
    natural: Sequence[Sentence],
    other_trials: Sequence[Trial],
    missing: Mapping[tuple[Condition, int], int],
    rejected: frozenset[tuple[str, ...]],
    rng: np.random.Generator,
) -> Iterator[Trial]:
    """Draw random natural pairs and catch trials for every group, from unused sentences.

    If the two sentences of each natural controversial pair have the same number of words, the two
    sentences of each random pair do, too. Without this rule, the longer sentence of a random pair
    would usually have the lower probability.

    `missing` is (condition, group from 1) → number of missing trials. Sentences in `rejected` are
    not drawn.

    Raises:
        InfeasibleError: if there are too few sentences, or a sentence cannot be shuffled.
    """
    of_pairs = [t for t in other_trials if t.condition is Condition.NATURAL_CONTROVERSIAL]
    same_length = bool(of_pairs) and all(len(t.sentence_1) == len(t.sentence_2) for t in of_pairs)
    used = used_texts(other_trials)
    free = {s.bare: s for s in natural if s.bare not in used and s.words not in rejected}
    random_groups, catch_groups = (
        [group for (condition, group), n in missing.items() if condition is kind for _ in range(n)]
        for kind in (Condition.RANDOM_NATURAL, Condition.CATCH)
    )
    # The first sentences that can be shuffled become catch trials; other sentences become random
    # pairs
    drawn = [list(free.values())[index] for index in rng.permutation(len(free))]
    n_random, n_catch = len(random_groups), len(catch_groups)
    catch = [s for s in drawn if len(set(_lower_words(s))) > 1][:n_catch]
    remaining = [sentence for sentence in drawn if sentence not in set(catch)]
    couples = list(islice(_sentence_pairs(remaining, same_length=same_length), n_random))
    if len(catch) < n_catch or len(couples) < n_random:
        length = (
            " (both sentences of a pair with the same number of words, as in natural pairs)"
            * same_length
        )
        raise InfeasibleError(
            f"Too few natural sentences: the design needs {2 * n_random:,} for random "
            f"pairs{length} and {n_catch:,} for catch trials (with at least two different words), "
            f"in total {2 * n_random + n_catch:,}. Other trials leave {len(free):,}. Use a longer "
            "text, or looser rules for natural sentences."
        )
    for (first, second), group in zip(couples, random_groups, strict=True):
        yield _filler(Condition.RANDOM_NATURAL, first, second, Kind.NATURAL, group)
    # A shuffled sentence must differ from all natural sentences and all other shuffled sentences
    texts, inside = used | free.keys(), as_inside(natural)
    for sentence, group in zip(catch, catch_groups, strict=True):
        shuffled = _shuffle(sentence, texts, inside, rng)
        texts.add(shuffled.bare)
        yield _filler(Condition.CATCH, sentence, shuffled, Kind.SHUFFLED, group)


def _sentence_pairs(
    sentences: Iterable[Sentence], *, same_length: bool
) -> Iterator[tuple[Sentence, Sentence]]:
    """Pair each sentence with the next unused sentence; leave out sentences without a partner.

    With `same_length`, partners have the same number of words.
    """
    remaining = list(sentences)[::-1]
    while remaining:
        first = remaining.pop()
        fits = (p for p in reversed(range(len(remaining))) if len(remaining[p]) == len(first))
        index = next(fits, None) if same_length else len(remaining) - 1
        if index is not None and index >= 0:
            yield first, remaining.pop(index)


def as_inside(sentences: Iterable[Sentence]) -> Callable[[str], str]:
    """Return a function that writes a sentence's first word as it is written within a sentence.

    The function returns the word in lower case, unless the word belongs to one of three kinds:
    words that occur inside `sentences` more often with a capital than without (`Paris`), words with
    a second capital (`NATO`), and forms of `I`.
    """
    counts = Counter(word for sentence in sentences for word in sentence.words[1:])

    def inside(word: str) -> str:
        lower = word[:1].lower() + word[1:]
        keeps_case = word == "I" or word.startswith(("I'", "I’")) or lower != word.lower()
        return word if keeps_case or counts[word] > counts[lower] else lower

    return inside


def _shuffle(
    sentence: Sentence, existing: set[str], inside: Callable[[str], str], rng: np.random.Generator
) -> Sentence:
    """Return the sentence's words in another order, which is not one of the existing texts.

    If the sentence begins with a capital, the new text does, too. The sentence's first word is
    written as inside a sentence (`as_inside`), so that capitals do not reveal the original order.
    """
    first, *following = sentence.words
    capital = first[0].isupper()
    words = [inside(first) if capital else first, *following]
    for _ in range(_MAX_SHUFFLES):
        start, *later = (words[index] for index in rng.permutation(len(words)).tolist())
        start = start[0].upper() + start[1:] if capital else start
        shuffled = Sentence((start, *later), sentence.end)
        # Texts that differ only in capitals would look equal to participants
        if _lower_words(shuffled) != _lower_words(sentence) and shuffled.bare not in existing:
            return shuffled
    raise InfeasibleError(
        f"{sentence.text!r} cannot be shuffled: {_MAX_SHUFFLES} random orders of its words were "
        "all sentences of the experiment. Remove this sentence from the natural sentences."
    )


def _lower_words(sentence: Sentence) -> tuple[str, ...]:
    return tuple(map(str.lower, sentence.words))


def _filler(
    condition: Condition, natural: Sentence, filler: Sentence, kind: Kind, group: int
) -> Trial:
    trial_id = content_id("trial", condition, natural, filler)
    return Trial(trial_id, group, condition, "", "", natural, filler, Kind.NATURAL, kind, "")
