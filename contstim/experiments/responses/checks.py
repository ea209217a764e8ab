"""Responses against trials: every problem by name, nothing dropped."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.experiments.responses.table import UNKNOWN, UNRATED, Response
from contstim.items.scale import Scale
from contstim.items.stimuli import check_trials
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.items.stimuli import Trial


class Problem(StrEnum):
    """Problem of a participant's responses; the text is what the user reads."""

    UNKNOWN_TRIAL = "rated trials that are not in the table of trials"
    DUPLICATE = "rated the same trial more than once"
    OUTSIDE_SCALE = (
        "gave ratings outside the scale (confidence: 1 to 6; choice: 1 and 2; slider: 0 to 100)"
    )
    TWO_GROUPS = "is in more than one group"
    OTHER_GROUP = "rated trials of another group"
    IMPOSSIBLE_SIDE = "has a left side that is neither sentence 1 nor 2"
    NO_RATING = "has trials without a rating"
    UNFINISHED = "did not rate every trial of the group"
    ONE_RATING = "gave the same rating on every trial"
    ONE_BUTTON = "pressed the same button on every trial, whatever side sentences stood on"
    TOO_FAST = "answered in less than 500 ms, sooner than two sentences can be read"
    ABSENT = "was away from the page for more than a minute of a trial, or took five for it"


REPAIRABLE = frozenset({Problem.NO_RATING, Problem.UNFINISHED})
"""Leaving the participant out is enough; all else means that files do not belong together."""

HARMLESS = frozenset({Problem.ONE_RATING, Problem.ONE_BUTTON, Problem.TOO_FAST, Problem.ABSENT})
"""Worth knowing; such participants are analysed like all others."""


@dataclass(frozen=True)
class ResponseFinding:
    """One problem of one participant, and the trials (or groups) it is about."""

    problem: Problem
    participant: str
    about: tuple[str, ...]

    def __str__(self) -> str:
        examples = ", ".join(self.about[:5]) + (", …" if len(self.about) > 5 else "")
        return f"{self.participant} {self.problem} ({len(self.about):,}: {examples})"


@dataclass(frozen=True)
class CheckReport:
    """Findings of `check_responses`; empty when all is well.

    Attributes:
        responses: how many there are.
        participants: in order of their first response.
        findings: by problem, then by participant.
    """

    responses: int
    participants: tuple[str, ...]
    findings: tuple[ResponseFinding, ...]

    def of(self, problem: Problem) -> tuple[ResponseFinding, ...]:
        """The findings of one kind."""
        return tuple(f for f in self.findings if f.problem is problem)

    def unseen(self, responses: Iterable[Response]) -> set[str]:
        """Participants who were not even shown every trial of their group."""
        shown = {(response.participant, response.trial_id) for response in responses}
        unfinished = self.of(Problem.UNFINISHED)
        return {
            f.participant for f in unfinished for t in f.about if (f.participant, t) not in shown
        }

    @property
    def errors(self) -> tuple[ResponseFinding, ...]:
        """The findings that no exclusion of participants should paper over."""
        return tuple(f for f in self.findings if f.problem not in REPAIRABLE | HARMLESS)

    def raise_errors(self) -> None:
        """Stop where the files contradict each other or the scale.

        Raises:
            InputError: names the participants and trials.
        """
        if self.errors:
            errors = "\n".join(f"  {finding}" for finding in self.errors[:20])
            raise InputError(
                f"These responses do not fit the trials ({len(self.errors):,} problems). Correct "
                f"the table, or import it again with the right trials.\n{errors}"
            )

    def __str__(self) -> str:
        people = counted(len(self.participants), "participant")
        head = f"{counted(self.responses, 'response')} of {people}"
        if not self.findings:
            return f"{head}; every participant rated every trial of their group once."
        return "\n".join([f"{head}; {len(self.findings):,} problems:", *map(str, self.findings)])


def check_responses(trials: Iterable[Trial], responses: Sequence[Response]) -> CheckReport:
    """Hold responses against the trials that they are about.

    Raises:
        InputError: two trials have the same trial_id, or one is none of its condition
            (`check_trials`); responses are on two scales, or the trials ask for choices and the
            responses are none.
    """
    trials = tuple(trials)
    check_trials(trials)
    groups: dict[str, int] = {}
    scales = {response.scale for response in responses}
    for trial in trials:
        if trial.trial_id in groups:
            raise InputError(f"The trial {trial.trial_id!r} is in the table of trials twice.")
        groups[trial.trial_id] = trial.group
        if trial.scale is not Scale.CONFIDENCE:
            scales.add(trial.scale)  # which is also that of trials that say nothing
    if len(scales) > 1:
        told = ", others on the scale ".join(sorted(scales))
        raise InputError(f"Some trials or responses are on the scale {told}.")
    by_participant: dict[str, list[Response]] = defaultdict(list)
    for response in responses:
        by_participant[response.participant].append(response)
    findings = [
        ResponseFinding(problem, participant, tuple(about))
        for participant, theirs in by_participant.items()
        for problem, about in _problems(groups, theirs).items()
        if about
    ]
    # The order of the enum; sorting is stable, so participants stay in theirs
    order = list(Problem)  # worst first
    findings.sort(key=lambda finding: order.index(finding.problem))
    return CheckReport(len(responses), tuple(by_participant), tuple(findings))


def _problems(groups: dict[str, int], theirs: list[Response]) -> dict[Problem, list[str]]:
    """Faults in the responses of one participant, by problem.

    Args:
        groups: trial_id → group.
        theirs: the participant's responses.
    """
    stated = list(dict.fromkeys(response.group for response in theirs))
    counts = Counter(response.trial_id for response in theirs)
    # trials shown without an answer are responses too, with an unknown rating
    rated = {response.trial_id for response in theirs if response.rating != UNRATED}
    ratings = {response.rating for response in theirs if response.rating != UNRATED}
    buttons = {r.button for r in theirs if r.button is not None}
    # Of all stated groups: who is in two is told so by name, and unfinished in both
    expected = [trial_id for trial_id, group in groups.items() if group in stated]
    return {
        Problem.UNKNOWN_TRIAL: [t for t in counts if t not in groups],
        # An identifier counts once however often it was rated, also where no rating was given
        Problem.DUPLICATE: [t for t, count in counts.items() if count > 1],
        Problem.OUTSIDE_SCALE: [
            f"{r.trial_id}: {r.rating}"
            for r in theirs
            if r.rating not in (UNRATED, *r.scale.answers)
        ],
        Problem.TWO_GROUPS: [str(group) for group in stated] if len(stated) > 1 else [],
        Problem.OTHER_GROUP: [
            r.trial_id for r in theirs if groups.get(r.trial_id, r.group) != r.group
        ],
        Problem.IMPOSSIBLE_SIDE: [
            f"{r.trial_id}: {r.left}" for r in theirs if r.left not in (UNKNOWN, 1, 2)
        ],
        Problem.NO_RATING: [r.trial_id for r in theirs if r.rating == UNRATED],
        Problem.UNFINISHED: [t for t in expected if t not in rated],
        # a single rating is the same as itself
        Problem.ONE_RATING: [*map(str, ratings)] if len(ratings) == 1 and len(rated) > 1 else [],
        Problem.ONE_BUTTON: [*map(str, buttons)] if len(buttons) == 1 < len(ratings) else [],
        Problem.TOO_FAST: [f"{r.trial_id}: {r.rt_ms:.0f} ms" for r in theirs if r.rt_ms < 500],
        Problem.ABSENT: [r.trial_id for r in theirs if r.away_ms > 60_000 or r.rt_ms > 300_000],
    }
