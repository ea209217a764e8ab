"""An independent check of the finished trials of a design."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

from contstim.errors import InputError, VerificationError
from contstim.items.stimuli import (
    FILLERS,
    Condition,
    ControversialMinimalPair,
    Kind,
    check_trials,
    repeated_item,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from contstim.items.stimuli import Pair, Trial, Triplet
    from contstim.words.sentence import Sentence


def verify_design(
    trials: Sequence[Trial],
    pairs: Sequence[Pair | ControversialMinimalPair],
    triplets: Sequence[Triplet],
    natural: Iterable[Sentence],
    *,
    groups: int,
    random_per_group: int,
    catch_per_group: int,
    twins: bool,
) -> None:
    """Check the trials of a design against its stimuli.

    Args:
        trials: trials from `build_design`, or read from trials.csv.
        pairs: as in `build_design`.
        triplets: as in `build_design`.
        natural: as in `build_design`.
        groups: as in `build_design`.
        random_per_group: as in `build_design`.
        catch_per_group: as in `build_design`.
        twins: as in `build_design`.

    Raises:
        VerificationError: if a rule is violated; the message names the trial, sentence or group.
    """
    per_group = {Condition.RANDOM_NATURAL: random_per_group, Condition.CATCH: catch_per_group}
    try:
        check_trials(trials)
    except InputError as error:
        raise VerificationError(f"The design failed its check. Do not use it. {error}") from error
    all_trials = trials
    # Attention trials have no stimuli
    trials = [trial for trial in all_trials if trial.kind_1 is not Kind.INSTRUCTION]
    twice = repeated_item([*pairs, *triplets])
    failures = chain(
        [f"the item {twice} occurs twice"] if twice else [],
        _names(all_trials, groups),
        _instructions(all_trials, groups),
        _comparisons(trials, pairs, triplets, twins=twins),
        _fillers(trials, {sentence.bare for sentence in natural}),
        _groups(trials, groups, per_group),
    )
    for failure in failures:
        raise VerificationError(f"The design failed its check, do not use it: {failure}.")


def _names(trials: Iterable[Trial], groups: int) -> Iterator[str]:
    for trial_id, times in Counter(trial.trial_id for trial in trials).items():
        if times > 1:
            yield f"{trial_id} names {times} trials"
    for trial in trials:
        if not 1 <= trial.group <= groups:
            yield f"{trial.trial_id} is in group {trial.group}"


def _instructions(trials: Sequence[Trial], groups: int) -> Iterator[str]:
    """Yield attention trials that are not once in every group."""
    counts = Counter(
        (trial.group, trial.displayed_texts) for trial in trials if trial.kind_1 is Kind.INSTRUCTION
    )
    for instruction in {sentences: None for _, sentences in counts}:
        for group in range(1, groups + 1):
            if counts[group, instruction] != 1:
                times = counts[group, instruction]
                yield f"{instruction[0]!r} is asked {times} times in group {group}, not 1"


def _comparisons(
    trials: Iterable[Trial],
    pairs: Iterable[Pair | ControversialMinimalPair],
    triplets: Iterable[Triplet],
    *,
    twins: bool,
) -> Iterator[str]:
    """Yield comparisons that are missing, repeated or unexpected."""
    # Derived from the stimuli, not by the functions that make trials, in order to find their
    # errors. Texts keep their end marks here.
    expected: Counter[tuple[str, ...]] = Counter()
    for pair in pairs:
        fields = (pair.trial_id, pair.model_1, pair.model_2)
        if isinstance(pair, ControversialMinimalPair):
            expected["minimal-pair", *fields, pair.good.text, pair.bad.text] += 1
        else:
            texts = map(str, (pair.sentence_1, pair.sentence_2))
            expected["natural-controversial", *fields, *texts] += 1
    for triplet in triplets:
        n, s1, s2 = map(str, (triplet.natural, triplet.synthetic_1, triplet.synthetic_2))
        fields = (triplet.triplet_id, triplet.model_1, triplet.model_2)
        if twins:
            expected["natural-synthetic", *fields, n, s1] += 1
            expected["natural-synthetic", *fields, n, s2] += 1
        expected["synthetic-synthetic", *fields, s1, s2] += 1
    actual: Counter[tuple[str, ...]] = Counter(
        (t.condition.value, t.source_id, t.model_1, t.model_2, t.sentence_1.text, t.sentence_2.text)
        for t in trials
        if t.condition not in FILLERS
    )
    for comparison in set(actual) | set(expected):
        has, needs = actual[comparison], expected[comparison]
        if has != needs:
            yield f"{' | '.join(comparison)} is compared {has} times, not {needs}"
    naturals = {triplet.triplet_id: triplet.natural for triplet in triplets}
    for trial in trials:
        is_synthetic = trial.condition is Condition.SYNTHETIC_SYNTHETIC
        source = naturals.get(trial.source_id) if is_synthetic else None
        if trial.source != source:
            yield f"{trial.trial_id} names {trial.source} as its natural sentence, not {source}"


def _fillers(trials: Sequence[Trial], natural: set[str]) -> Iterator[str]:
    """Yield errors of random and catch trials: sentences that are not natural, or repeated."""
    uses = Counter(text for trial in trials for text in trial.bare)
    sources = {trial.source.bare for trial in trials if trial.source}
    for trial in trials:
        if trial.condition not in FILLERS:
            continue
        first, second = trial.bare
        is_catch = trial.condition == Condition.CATCH
        # Both sentences of a random pair are natural, but only the first of a catch trial.
        for text in (first,) if is_catch else (first, second):
            if text not in natural:
                yield f"{text!r} is not among the natural sentences"
        for text in (first, second):
            if uses[text] != 1:
                yield f"{text!r} is used {uses[text]} times"
            if text in sources:
                yield f"{text!r} is the natural sentence of two synthetic ones"
        words = [sorted(text.lower().split(" ")) for text in (first, second)]
        if is_catch and (words[0] != words[1] or first.lower() == second.lower()):
            yield f"{second!r} is not a reordering of the words of {first!r}"
        if is_catch and first[0].isupper() and second[0].islower():
            yield f"{second!r} does not begin with a capital letter, as {first!r} does"


def _groups(trials: Iterable[Trial], groups: int, per_group: dict[Condition, int]) -> Iterator[str]:
    """Yield groups that see a text twice, or whose numbers of trials are wrong."""
    shares: list[Counter[tuple[str, ...]]] = [Counter() for _ in range(groups)]
    texts_by_group: list[Counter[str]] = [Counter() for _ in range(groups)]
    for trial in trials:
        share = (trial.condition, trial.model_1, trial.model_2, trial.kind_1, trial.kind_2)
        shares[trial.group - 1][share] += 1
        texts_by_group[trial.group - 1].update(trial.bare)
    for number, (share_of, texts) in enumerate(zip(shares, texts_by_group, strict=True), start=1):
        if share_of != shares[0]:
            yield f"groups 1 and {number} have different shares of trials"
        for text, times in texts.items():
            if times > 1:
                yield f"group {number} sees {text!r} {times} times"
        for condition, needs in per_group.items():
            has = sum(n for share, n in share_of.items() if share[0] == condition)
            if has != needs:
                yield f"group {number} has {has} {condition} trials, not {needs}"
