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

    All arguments after `trials` are those of `build_design`.

    Raises:
        VerificationError: if a rule is violated; the message names the trial, sentence or group.
    """
    per_group = {Condition.RANDOM_NATURAL: random_per_group, Condition.CATCH: catch_per_group}
    try:
        check_trials(trials)
    except InputError as error:
        raise VerificationError(f"The design failed its check. Do not use it. {error}") from error
    all_trials = trials
    # The sentences of attention trials are instructions, not stimuli
    trials = [trial for trial in all_trials if trial.kind_1 is not Kind.INSTRUCTION]
    repeated = repeated_item([*pairs, *triplets])
    failures = chain(
        [f"the item {repeated} occurs twice"] if repeated else [],
        _id_errors(all_trials, groups),
        _attention_errors(all_trials, groups),
        _comparison_errors(trials, pairs, triplets, twins=twins),
        _filler_errors(trials, {sentence.bare for sentence in natural}),
        _group_errors(trials, groups, per_group),
    )
    for failure in failures:
        raise VerificationError(f"The design failed its check, do not use it: {failure}.")


def _id_errors(trials: Iterable[Trial], groups: int) -> Iterator[str]:
    for trial_id, times in Counter(trial.trial_id for trial in trials).items():
        if times > 1:
            yield f"{times} trials have the trial_id {trial_id}"
    for trial in trials:
        if not 1 <= trial.group <= groups:
            yield f"{trial.trial_id} is in group {trial.group}, not in one from 1 to {groups}"


def _attention_errors(trials: Sequence[Trial], groups: int) -> Iterator[str]:
    """Yield an error for every attention trial that is not exactly once in each group."""
    counts = Counter(
        (trial.group, trial.displayed_texts) for trial in trials if trial.kind_1 is Kind.INSTRUCTION
    )
    for texts in {texts: None for _, texts in counts}:
        for group in range(1, groups + 1):
            if (times := counts[group, texts]) != 1:
                yield f"group {group} has the attention trial {texts[0]!r} {times} times, not 1"


def _comparison_errors(
    trials: Iterable[Trial],
    pairs: Iterable[Pair | ControversialMinimalPair],
    triplets: Iterable[Triplet],
    *,
    twins: bool,
) -> Iterator[str]:
    # Expected trials are derived without the functions that build trials. So this check finds
    # errors in these functions.
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


def _filler_errors(trials: Sequence[Trial], natural: set[str]) -> Iterator[str]:
    uses = Counter(text for trial in trials for text in trial.bare)
    sources = {trial.source.bare for trial in trials if trial.source}
    for trial in trials:
        if trial.condition not in FILLERS:
            continue
        first, second = trial.bare
        is_catch = trial.condition == Condition.CATCH
        # In a catch trial, only the first sentence is natural
        for text in (first,) if is_catch else (first, second):
            if text not in natural:
                yield f"{text!r} is not among the natural sentences"
        for text in (first, second):
            if uses[text] != 1:
                yield f"{text!r} is used {uses[text]} times"
            if text in sources:
                yield f"{text!r} is also the natural sentence of a triplet"
        words = [sorted(text.lower().split(" ")) for text in (first, second)]
        if is_catch and (words[0] != words[1] or first.lower() == second.lower()):
            yield f"{second!r} is not a reordering of the words of {first!r}"
        if is_catch and first[0].isupper() and second[0].islower():
            yield f"{second!r} does not begin with a capital letter, as {first!r} does"


def _group_errors(
    trials: Sequence[Trial], groups: int, per_group: dict[Condition, int]
) -> Iterator[str]:
    by_group = [[trial for trial in trials if trial.group == n] for n in range(1, groups + 1)]
    counts_by_group = [
        Counter((t.condition, t.model_1, t.model_2, t.kind_1, t.kind_2) for t in group_trials)
        for group_trials in by_group
    ]
    for number, counts in enumerate(counts_by_group, start=1):
        if counts != counts_by_group[0]:
            yield f"groups 1 and {number} have different numbers of trials of some kind"
        texts = Counter(text for trial in by_group[number - 1] for text in trial.bare)
        for text, times in texts.items():
            if times > 1:
                yield f"group {number} sees {text!r} {times} times"
        for condition, needs in per_group.items():
            has = sum(n for kind, n in counts.items() if kind[0] == condition)
            if has != needs:
                yield f"group {number} has {has} {condition} trials, not {needs}"
