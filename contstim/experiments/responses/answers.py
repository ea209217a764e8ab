"""What a platform recorded, side by side as it was shown, and how it finds its trial."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from contstim.documents import shortened
from contstim.errors import InputError
from contstim.experiments.responses.checks import Finding, Problem, Report, check_responses
from contstim.experiments.responses.grouping import bare, regrouped, texts_of
from contstim.experiments.responses.table import Response, mirrored
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.experiments.responses.answer import Answer
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
    unmatched: tuple[Finding, ...]

    @property
    def report(self) -> Report:
        """The responses held against the trials, and what could not be matched with any."""
        report = check_responses(self.trials, self.responses)
        return Report(report.responses, report.participants, self.unmatched + report.findings)


def align(
    answers: Sequence[Answer],
    trials: Sequence[Trial],
    notes: Iterable[str],
    unmatched: Iterable[Finding] = (),
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
    answers, renamed = regrouped(answers, trials)
    find = _Finder(trials)
    responses: list[Response] = []
    lost: dict[str, list[str]] = defaultdict(list)
    for answer in answers:
        trial = find.trial(answer)
        if trial is None:
            lost[answer.participant].append(answer.trial_id or " / ".join(answer.shown))
        else:
            responses.append(_response(answer, trial))
    if not responses:
        example = next(iter(lost.values()), ["no answers"])[0]
        where = next((f" ({answer.where})" for answer in answers), "")
        raise InputError(
            f"No answer belongs to any of the {len(trials):,} trials; the first is "
            f"{shortened(example)}{where}. "
            "Are these the trials that were shown, and the columns in which they were?"
        )
    unknown = [
        Finding(Problem.UNKNOWN_TRIAL, participant, tuple(dict.fromkeys(what)))
        for participant, what in lost.items()
    ]
    notes = (*notes, *renamed, *find.notes)
    return Imported(tuple(trials), tuple(responses), notes, (*unmatched, *unknown))


def keep_one(found: Imported, which: Literal["first", "last"]) -> Imported:
    """The same with one rating of each trial by each participant; notes say whose were left out."""
    kept: dict[tuple[str, str], Response] = {}
    more: dict[str, list[str]] = defaultdict(list)
    for response in found.responses:
        key = (response.participant, response.trial_id)
        if key in kept:
            more[response.participant].append(response.trial_id)
        if which == "last" or key not in kept:
            kept[key] = response
    left_out = [
        f"Left out, the {which} kept: {counted(len(trials), 'further rating')} by {participant}, "
        f"{', '.join(trials)}."
        for participant, trials in more.items()
    ]
    return replace(found, responses=tuple(kept.values()), notes=(*found.notes, *left_out))


class _Finder:
    def __init__(self, trials: Sequence[Trial]) -> None:
        self._by_id = {trial.trial_id: trial for trial in trials}
        self._by_pair: dict[frozenset[str], list[Trial]] = defaultdict(list)
        for trial in trials:
            self._by_pair[frozenset(bare(texts_of(trial)))].append(trial)
        self._used: Counter[str] = Counter()

    @property
    def notes(self) -> list[str]:
        """How the trials were found."""
        return [
            f"Found by {how}: the trial of {counted(count, 'answer')}."
            for how, count in self._used.items()
        ]

    def trial(self, answer: Answer) -> Trial | None:
        if answer.trial_id:
            self._used["trial_id"] += 1
            return self._by_id.get(answer.trial_id)
        if not all(answer.shown):
            raise InputError(
                f"{answer.where} has neither a trial_id nor both sentences; name the columns that "
                "hold them."
            )
        self._used["the pair of sentences shown"] += 1
        found = self._by_pair.get(frozenset(bare(answer.shown)), [])
        if len(found) > 1 and answer.group:
            found = [trial for trial in found if str(trial.group) == answer.group]
        if len(found) > 1 and answer.marked:
            found = [trial for trial in found if frozenset(texts_of(trial)) == answer.pair]
        if len(found) > 1:
            raise InputError(
                f"{answer.where}: {' / '.join(answer.shown)} are the sentences of {len(found)} "
                f"trials ({', '.join(trial.trial_id for trial in found)}). Name the column that "
                "holds the trial_id, or the one that holds the number of the group."
            )
        return found[0] if found else None


def _response(answer: Answer, trial: Trial) -> Response:
    left = _left(answer, trial)
    return Response(
        answer.participant,
        int(answer.group) if answer.group.isdecimal() else trial.group,
        trial.trial_id,
        answer.rating if left == 1 else mirrored(answer.rating),
        left,
        answer.position,
        answer.rt_ms,
        answer.simulated,
    )


def _left(answer: Answer, trial: Trial) -> int:
    """The trial's sentence that was shown left, 1 or 2."""
    texts, seen = texts_of(trial), bare(texts_of(trial))
    shown = bare(answer.shown)
    if sorted(shown) != sorted(seen):
        raise InputError(
            f"{answer.where}: the sentences shown ({' / '.join(answer.shown)}) are not those of "
            f"the trial {trial.trial_id!r} ({trial.sentence_1} / {trial.sentence_2})."
        )
    if seen[0] != seen[1]:
        return 1 if shown[0] == seen[0] else 2
    if frozenset(texts) != answer.pair or not answer.marked:
        raise InputError(
            f"{answer.where}: the sentences of the trial {trial.trial_id!r} differ in nothing but "
            f"end marks ({' / '.join(texts)}), which were not recorded."
        )
    return 1 if answer.shown[0] == texts[0] else 2
