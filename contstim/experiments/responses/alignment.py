"""Answers of a platform aligned with trials: which trial each is about, in canonical order."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from contstim.documents import shortened
from contstim.errors import InputError
from contstim.experiments.responses.checks import (
    CheckReport,
    Problem,
    ResponseFinding,
    check_responses,
)
from contstim.experiments.responses.recorded import bare, texts_of
from contstim.experiments.responses.table import Response
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.experiments.responses.recorded import RecordedAnswer
    from contstim.stimuli import Trial


@dataclass(frozen=True)
class Imported:
    """Responses in canonical order, the trials that they belong to, and an account of the rest.

    Attributes:
        trials: as given, or as built from the platform's own columns.
        responses: in the order of the files.
        notes: what was decided and what was left aside.
        unmatched: ratings that belong to none of the trials; they are not in responses.
    """

    trials: tuple[Trial, ...]
    responses: tuple[Response, ...]
    notes: tuple[str, ...]
    unmatched: tuple[ResponseFinding, ...]

    @property
    def report(self) -> CheckReport:
        """The responses held against the trials, and what could not be matched with any."""
        report = check_responses(self.trials, self.responses)
        return CheckReport(report.responses, report.participants, self.unmatched + report.findings)


def align(
    answers: Sequence[RecordedAnswer],
    trials: Sequence[Trial],
    notes: Iterable[str],
    unmatched: Iterable[ResponseFinding] = (),
) -> Imported:
    """Find the trial of every answer, and turn its rating to the trial's canonical order.

    By trial_id where the platform carried it; else by the unordered pair of sentences shown, which
    must then be that of one trial only (of the participant's group, where that is known). People
    see sentences without end marks, so these count only where they alone tell two pairs apart.

    Groups that the platform states may have names of their own: each is the group of the trials
    that most of its answers are about.

    Raises:
        InputError: a pair belongs to several trials, an answer has neither trial_id nor sentences,
            the sentences shown are not those of its trial, no answer finds a trial, or a stated
            group is not a group of the trials.
    """
    answers, renamed = _with_group_numbers(answers, trials)
    finder = _TrialFinder(trials)
    responses: list[Response] = []
    lost: dict[str, list[str]] = defaultdict(list)
    for answer in answers:
        trial = finder.trial(answer)
        if trial is None:
            lost[answer.participant].append(answer.trial_id or " / ".join(answer.shown))
            continue
        responses.append(_canonical(answer, trial))
    if not responses:
        example = next(iter(lost.values()), ["no answers"])[0]
        where = next((f" ({answer.where})" for answer in answers), "")
        raise InputError(
            f"No answer belongs to any of the {len(trials):,} trials; the first is "
            f"{shortened(example)}{where}. "
            "Are these the trials that were shown, and the columns in which they were?"
        )
    unknown = [
        ResponseFinding(Problem.UNKNOWN_TRIAL, participant, tuple(dict.fromkeys(about)))
        for participant, about in lost.items()
    ]
    notes = (*notes, *renamed, *finder.notes)
    return Imported(tuple(trials), tuple(responses), notes, (*unmatched, *unknown))


def keep_one(imported: Imported, which: Literal["first", "last"]) -> Imported:
    """The same with one rating of each trial by each participant; notes say whose were left out."""
    chosen: dict[tuple[str, str], Response] = {}
    repeated: dict[str, list[str]] = defaultdict(list)
    for response in imported.responses:
        key = (response.participant, response.trial_id)
        if key in chosen:
            repeated[response.participant].append(response.trial_id)
        # A dictionary keeps the place of the first rating, whichever of them stays
        if which == "last" or key not in chosen:
            chosen[key] = response
    left_out = [
        f"Left out, the {which} kept: {counted(len(trials), 'further rating')} by {participant}, "
        f"{', '.join(trials)}."
        for participant, trials in repeated.items()
    ]
    notes = (*imported.notes, *left_out)
    return replace(imported, responses=tuple(chosen.values()), notes=notes)


def is_group_number(name: str) -> bool:
    """True if a platform's name of a group is a number, as trials have."""
    return name.isascii() and name.isdecimal() and len(name) < 10


def _with_group_numbers(
    answers: Sequence[RecordedAnswer], trials: Sequence[Trial]
) -> tuple[list[RecordedAnswer], list[str]]:
    """The answers with the trials' numbers for the groups that a platform states, and notes.

    A stated group is the one that more than half of its answers are about, as far as a trial_id or
    a pair of sentences tells; else the one of that number.

    Raises:
        InputError: a stated group is neither.
    """
    about = _answers_by_group(answers, trials)
    # "" is the group of an answer whose platform states none, and stays so
    numbers = {trial.group for trial in trials}
    meant: dict[str, str] = {"": ""}
    for name in dict.fromkeys(answer.group for answer in answers if answer.group):
        counts = about[name]
        group, most = counts.most_common(1)[0] if counts else (0, 0)
        # What most answers are about outweighs a number, which may be the platform's own
        if 2 * most > counts.total():
            meant[name] = str(group)
        elif not counts and is_group_number(name) and int(name) in numbers:
            meant[name] = str(int(name))
        else:
            spread = ", ".join(f"{count:,} of group {number}" for number, count in counts.items())
            raise InputError(
                f"The stated group {name!r} is not a group of the trials: of its answers "
                f"{spread or 'none'} can be told. Name the column that holds the group under "
                "[columns], or none (`group = []`)."
            )
    notes = [
        f"The stated group {name!r} is group {group} of the trials, by the trials that they share."
        for name, group in meant.items()
        if name != group
    ]
    return [replace(answer, group=meant[answer.group]) for answer in answers], notes


def _answers_by_group(
    answers: Sequence[RecordedAnswer], trials: Sequence[Trial]
) -> dict[str, Counter[int]]:
    """For each stated group, how many answers are about a trial of each group of the trials."""
    by_id = {trial.trial_id: {trial.group} for trial in trials}
    by_pair: dict[frozenset[str], set[int]] = defaultdict(set)
    for trial in trials:
        by_pair[frozenset(bare(texts_of(trial)))].add(trial.group)
    about: dict[str, Counter[int]] = defaultdict(Counter)
    for answer in answers:
        # As in _TrialFinder: the trial_id where there is one, else the words of both sentences
        if answer.trial_id or not all(answer.shown):
            groups = by_id.get(answer.trial_id, set())
        else:
            groups = by_pair.get(frozenset(bare(answer.shown)), set())
        if len(groups) == 1:  # a pair that several groups share says nothing
            about[answer.group].update(groups)
    return about


class _TrialFinder:
    """Trials by identifier and by pair of sentences, with a count of how they were found."""

    def __init__(self, trials: Sequence[Trial]) -> None:
        self._by_id = {trial.trial_id: trial for trial in trials}
        self._by_pair: dict[frozenset[str], list[Trial]] = defaultdict(list)
        for trial in trials:
            self._by_pair[frozenset(bare(texts_of(trial)))].append(trial)
        self._used: Counter[str] = Counter()

    @property
    def notes(self) -> list[str]:
        """Notes on how the trials were found."""
        return [
            f"Found by {how}: the trial of {counted(count, 'answer')}."
            for how, count in self._used.items()
        ]

    def trial(self, answer: RecordedAnswer) -> Trial | None:
        """The trial that an answer is about; None where there is none."""
        if answer.trial_id:
            self._used["trial_id"] += 1
            return self._by_id.get(answer.trial_id)
        if not all(answer.shown):
            raise InputError(
                f"{answer.where} has neither a trial_id nor both sentences; name the columns that "
                "hold them."
            )
        self._used["the pair of sentences shown"] += 1
        candidates = self._by_pair.get(frozenset(bare(answer.shown)), [])
        # Several trials may show these words: the group tells them apart, then the end marks
        if len(candidates) > 1 and answer.group:
            candidates = [trial for trial in candidates if str(trial.group) == answer.group]
        if len(candidates) > 1 and answer.marked:
            candidates = [t for t in candidates if frozenset(texts_of(t)) == answer.pair]
        if len(candidates) > 1:
            raise InputError(
                f"{answer.where}: {' / '.join(answer.shown)} are the sentences of "
                f"{len(candidates)} trials ({', '.join(t.trial_id for t in candidates)}). Name the "
                "column that holds the trial_id, or the one that holds the number of the group."
            )
        return candidates[0] if candidates else None


def _canonical(answer: RecordedAnswer, trial: Trial) -> Response:
    left = _left_sentence(answer, trial)
    return Response(
        answer.participant,
        # Stated groups are numbers by now; an impossible one is left for `check_responses` to name
        int(answer.group) if answer.group.isdecimal() else trial.group,
        trial.trial_id,
        # platforms count from left to right, responses from sentence_1 to sentence_2
        answer.rating if left == 1 else trial.scale.mirrored(answer.rating),
        left,
        answer.position,
        answer.rt_ms,
        answer.simulated,
        trial.scale,
    )


def _left_sentence(answer: RecordedAnswer, trial: Trial) -> int:
    """The trial's sentence that stood on the left, 1 or 2."""
    texts, words = texts_of(trial), bare(texts_of(trial))
    shown_words = bare(answer.shown)
    if sorted(shown_words) != sorted(words):
        raise InputError(
            f"{answer.where}: the sentences shown ({' / '.join(answer.shown)}) are not those of "
            f"the trial {trial.trial_id!r} ({trial.sentence_1} / {trial.sentence_2})."
        )
    if words[0] != words[1]:
        return 1 if shown_words[0] == words[0] else 2
    # "Come here!" against "Come here.": only the marks tell left from right
    if frozenset(texts) != answer.pair or not answer.marked:
        raise InputError(
            f"{answer.where}: the sentences of the trial {trial.trial_id!r} differ in nothing but "
            f"end marks ({' / '.join(texts)}), which were not recorded."
        )
    return 1 if answer.shown[0] == texts[0] else 2
