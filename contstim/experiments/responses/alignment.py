"""Answers as platforms record them, aligned with trials: which trial each is about."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from contstim.documents import shortened
from contstim.errors import InputError
from contstim.experiments.responses.checks import (
    CheckReport,
    Problem,
    ResponseFinding,
    check_responses,
)
from contstim.experiments.responses.table import (
    UNKNOWN,
    Mark,
    Position,
    Response,
    Text,
    Time,
    Whole,
    mistake,
)
from contstim.sentence import END_MARKS, Sentence
from contstim.tables import whole_number
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.stimuli import Trial


class RecordedAnswer(BaseModel):
    """A rating in the words of a platform; fields are given as its cells.

    Attributes:
        where: file and row, for messages.
        participant: the platform's name of a person.
        trial_id: empty where the platform did not carry it.
        left: the trial's sentence that stood left, 1 or 2; 0 where `shown` tells it.
        rating: on the trial's scale, from left to right; 0 where a trial was shown and not rated.
        position: order of presentation, from 1; 0 unknown.
        rt_ms: nan unknown.
        rt_s: the same in seconds, of platforms that count these.
        shown: the sentences left and right, with an end mark or without; empty texts where the
            platform did not record them.
        group: empty where the platform does not say.
        simulated: whether an artificial participant answered.
    """

    model_config = ConfigDict(frozen=True)

    where: str
    participant: Annotated[Text, Field(min_length=1)]
    trial_id: Text = ""
    left: Annotated[int, BeforeValidator(whole_number), Field(ge=1, le=2)] = 0
    rating: Annotated[Whole, Field(ge=0)] = UNKNOWN
    position: Position = UNKNOWN
    rt_ms: Time = math.nan
    rt_s: Time = math.nan
    shown: tuple[str, str] = ("", "")
    group: str = ""
    simulated: Mark = False


def recorded(where: str, **cells: object) -> RecordedAnswer:
    """An answer of these cells.

    Raises:
        InputError: a cell is something else (names it).
    """
    try:
        return RecordedAnswer.model_validate({"where": where, **cells})
    except ValidationError as error:
        raise InputError(f"{where}: {mistake(error.errors()[0])}") from None


@dataclass(frozen=True)
class Imported:
    """Responses in canonical order, the trials that they belong to, and an account of the rest.

    Attributes:
        trials: as given, or as built from published data.
        responses: in the order of the files.
        notes: what was decided and what was left aside.
        unmatched: ratings that belong to none of the trials; they are not in responses.
    """

    trials: tuple[Trial, ...]
    responses: tuple[Response, ...]
    notes: tuple[str, ...] = ()
    unmatched: tuple[ResponseFinding, ...] = ()

    @property
    def report(self) -> CheckReport:
        """The responses held against the trials, and what could not be matched with any."""
        report = check_responses(self.trials, self.responses)
        return CheckReport(report.responses, report.participants, self.unmatched + report.findings)


def import_files(
    files: Iterable[Path | str],
    trials: Sequence[Trial],
    read: Callable[[Path], Iterable[RecordedAnswer | str]],
) -> Imported:
    """Align what is read of each file: answers, and notes, which are texts; see `align`."""
    found = [each for file in files for each in read(Path(file))]
    answers = [each for each in found if not isinstance(each, str)]
    return align(answers, trials, [each for each in found if isinstance(each, str)])


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
    about = _candidates(answers, trials)
    meant = _groups_meant(answers, about, {trial.group for trial in trials})
    responses: list[Response] = []
    lost: dict[str, dict[str, None]] = defaultdict(dict)
    for answer, found in zip(answers, about, strict=True):
        group = meant[answer.group]
        one = _one_trial(answer, found, group)
        if one is None:
            shown = " / ".join(Sentence.parse(each).text for each in answer.shown if each)
            lost[answer.participant][answer.trial_id or shown] = None
        else:
            responses.append(_canonical(answer, one, group))
    unknown = [
        ResponseFinding(Problem.UNKNOWN_TRIAL, participant, tuple(trials_of))
        for participant, trials_of in lost.items()
    ]
    if not responses:
        example = f"{shortened(unknown[0].about[0])} ({answers[0].where})" if unknown else "none"
        raise InputError(
            f"No answer belongs to any of the {len(trials):,} trials; the first is {example}. Are "
            "these the trials that were shown, and their columns?"
        )
    told = [
        f"The stated group {name!r} is group {group} of the trials, by the trials that they share."
        for name, group in meant.items()
        if name != str(group or "")
    ]
    used = Counter("trial_id" if a.trial_id else "the pair of sentences shown" for a in answers)
    told += [f"Found by {way}: the trial of {counted(n, 'answer')}." for way, n in used.items()]
    return Imported(tuple(trials), tuple(responses), (*notes, *told), (*unmatched, *unknown))


def _candidates(
    answers: Sequence[RecordedAnswer], trials: Sequence[Trial]
) -> list[Sequence[Trial]]:
    """The trials that each answer may be about, by trial_id or else by the pair of sentences."""
    by_id = {trial.trial_id: (trial,) for trial in trials}
    by_pair: dict[frozenset[str], list[Trial]] = defaultdict(list)
    for trial in trials:
        by_pair[frozenset(_bare(_texts(trial)))].append(trial)
    about: list[Sequence[Trial]] = []
    for answer in answers:
        if answer.trial_id:
            about.append(by_id.get(answer.trial_id, ()))
        elif all(answer.shown):
            about.append(by_pair.get(frozenset(_bare(answer.shown)), ()))
        else:
            raise InputError(
                f"{answer.where} has neither a trial_id nor both sentences; name their columns."
            )
    return about


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


def _groups_meant(
    answers: Sequence[RecordedAnswer], about: Sequence[Sequence[Trial]], numbers: set[int]
) -> dict[str, int]:
    """The trials' numbers for the groups that a platform states; 0 for none.

    A stated group is the one that more than half of its answers are about, as far as a trial_id or
    a pair of sentences tells; else the one of that number.

    Args:
        answers: with the stated groups.
        about: the trials that each answer may be about.
        numbers: of the trials' groups.

    Raises:
        InputError: a stated group is neither.
    """
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    for answer, trials in zip(answers, about, strict=True):
        groups = {trial.group for trial in trials}
        if len(groups) == 1:  # a pair that several groups share says nothing
            counts[answer.group].update(groups)
    meant = {"": 0}
    by_name = {str(number): number for number in numbers}
    for name in dict.fromkeys(answer.group for answer in answers if answer.group):
        shared = counts[name]
        group, most = shared.most_common(1)[0] if shared else (0, 0)
        # What most answers are about outweighs a number, which may be the platform's own
        if 2 * most > shared.total():
            meant[name] = group
        elif not shared and name in by_name:
            meant[name] = by_name[name]
        else:
            spread = ", ".join(f"{count:,} of group {number}" for number, count in shared.items())
            raise InputError(
                f"The stated group {name!r} is not a group of the trials: of its answers "
                f"{spread or 'none'} can be told. Name its column, or none (`group = []`)."
            )
    return meant


def _one_trial(answer: RecordedAnswer, candidates: Sequence[Trial], group: int) -> Trial | None:
    """The trial that an answer is about; None where there is none."""
    # Several trials may show the same words: the group tells them apart, then the end marks
    if len(candidates) > 1 and group:
        candidates = [trial for trial in candidates if trial.group == group]
    if len(candidates) > 1 and _marked(answer):
        candidates = [t for t in candidates if {*_texts(t)} == {*_marked(answer)}]
    if len(candidates) > 1:
        raise InputError(
            f"{answer.where}: {' / '.join(answer.shown)} are the sentences of "
            f"{len(candidates)} trials ({', '.join(t.trial_id for t in candidates)}). Name the "
            "column that holds the trial_id, or the one that holds the number of the group."
        )
    return candidates[0] if candidates else None


def _canonical(answer: RecordedAnswer, trial: Trial, group: int) -> Response:
    left = answer.left or _left_sentence(answer, trial)
    # Three decimals: seconds times 1000 would else end in digits of rounding
    rt_ms = answer.rt_ms if math.isnan(answer.rt_s) else round(1_000 * answer.rt_s, 3)
    return Response(
        answer.participant,
        group or trial.group,
        trial.trial_id,
        # platforms count from left to right, responses from sentence_1 to sentence_2
        answer.rating if left == 1 else trial.scale.mirrored(answer.rating),
        left,
        answer.position,
        rt_ms,
        answer.simulated,
        trial.scale,
    )


def _left_sentence(answer: RecordedAnswer, trial: Trial) -> int:
    """The trial's sentence that stood on the left, 1 or 2."""
    texts, words = _texts(trial), _bare(_texts(trial))
    shown_words = _bare(answer.shown)
    if sorted(shown_words) != sorted(words):
        raise InputError(
            f"{answer.where}: the sentences shown ({' / '.join(answer.shown)}) are not those of "
            f"the trial {trial.trial_id!r} ({trial.sentence_1} / {trial.sentence_2})."
        )
    if words[0] != words[1]:
        return 1 if shown_words[0] == words[0] else 2
    # "Come here!" against "Come here.": only the marks tell left from right
    shown = _marked(answer)
    if {*texts} != {*shown}:
        raise InputError(
            f"{answer.where}: the sentences of the trial {trial.trial_id!r} differ in nothing but "
            f"end marks ({' / '.join(texts)}), which were not recorded."
        )
    return 1 if shown[0] == texts[0] else 2


def _marked(answer: RecordedAnswer) -> tuple[str, ...]:
    """Both sentences shown (`Sentence.text`), if both were recorded with an end mark."""
    if not all(shown.endswith(END_MARKS) for shown in answer.shown):
        return ()
    return tuple(Sentence.parse(shown).text for shown in answer.shown)


def _texts(trial: Trial) -> tuple[str, str]:
    return trial.sentence_1.text, trial.sentence_2.text


def _bare(texts: tuple[str, str]) -> tuple[str, str]:
    """Two texts as people see them."""
    return Sentence.parse(texts[0]).bare, Sentence.parse(texts[1]).bare
