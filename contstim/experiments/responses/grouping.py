"""Which group of the trials a platform means, and what people see of a trial."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.experiments.responses.answer import Answer
    from contstim.stimuli import Trial


def is_group_number(name: str) -> bool:
    """Whether a platform's name of a group is a number, as trials have."""
    return name.isascii() and name.isdecimal() and len(name) < 10


def regrouped(answers: Sequence[Answer], trials: Sequence[Trial]) -> tuple[list[Answer], list[str]]:
    """The answers with the trials' numbers for the groups that a platform states, and notes.

    A stated group is the one that more than half of its answers are about, as far as a trial_id or
    a pair of sentences tells; else the one of that number.

    Raises:
        InputError: a stated group is neither.
    """
    about = _groups_of(answers, trials)
    numbers = {trial.group for trial in trials}
    meant: dict[str, str] = {"": ""}
    for name in dict.fromkeys(answer.group for answer in answers if answer.group):
        counts = about[name]
        group, most = counts.most_common(1)[0] if counts else (0, 0)
        if 2 * most > counts.total():
            meant[name] = str(group)
        elif not counts and is_group_number(name) and int(name) in numbers:
            meant[name] = str(int(name))
        else:
            told = ", ".join(f"{count:,} of group {number}" for number, count in counts.items())
            raise InputError(
                f"The stated group {name!r} is not a group of the trials: of its answers "
                f"{told or 'none'} can be told. Name the column that holds the group under "
                "[columns], or none (`group = []`)."
            )
    notes = [
        f"The stated group {name!r} is group {group} of the trials, by the trials that they share."
        for name, group in meant.items()
        if name != group
    ]
    return [replace(answer, group=meant[answer.group]) for answer in answers], notes


def _groups_of(answers: Sequence[Answer], trials: Sequence[Trial]) -> dict[str, Counter[int]]:
    """For each stated group, how many answers are about a trial of each group, where that tells."""
    by_id = {trial.trial_id: {trial.group} for trial in trials}
    by_pair: dict[frozenset[str], set[int]] = defaultdict(set)
    for trial in trials:
        by_pair[frozenset(bare(texts_of(trial)))].add(trial.group)
    about: dict[str, Counter[int]] = defaultdict(Counter)
    for answer in answers:
        if answer.trial_id or not all(answer.shown):
            groups = by_id.get(answer.trial_id, set())
        else:
            groups = by_pair.get(frozenset(bare(answer.shown)), set())
        if len(groups) == 1:
            about[answer.group].update(groups)
    return about


def texts_of(trial: Trial) -> tuple[str, str]:
    """Both sentences (`Sentence.text`)."""
    return trial.sentence_1.text, trial.sentence_2.text


def bare(texts: tuple[str, str]) -> tuple[str, str]:
    """What people see."""
    return Sentence.parse(texts[0]).bare, Sentence.parse(texts[1]).bare
