"""Checks that compare responses with trials. They report all problems and exclude no response."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.experiments.responses.table import UNKNOWN, UNRATED, Response
from contstim.items.scale import Scale
from contstim.items.stimuli import Trial, check_trials
from contstim.wording import find_duplicates, grouped, quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Problem(StrEnum):
    """Problem of a participant's responses.

    Each member's text follows the participant's name in messages.
    """

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
    ONE_BUTTON = (
        "pressed the same button on every trial, although the sides of the sentences varied"
    )
    TOO_FAST = "answered in less than 500 ms, which is too fast to read two sentences"
    ABSENT = (
        "left the page for more than a minute during a trial, or needed more than five "
        "minutes for it"
    )


REPAIRABLE = frozenset({Problem.NO_RATING, Problem.UNFINISHED})
"""Problems that are solved by excluding the participant.

Any problem that is neither in this set nor in `HARMLESS` means that the responses do not match the
trials.
"""

HARMLESS = frozenset({Problem.ONE_RATING, Problem.ONE_BUTTON, Problem.TOO_FAST, Problem.ABSENT})
"""Problems that are only reported; the participants are analysed."""


@dataclass(frozen=True)
class ResponseFinding:
    """A participant's problem; `about` lists the trials, groups or values that cause it."""

    problem: Problem
    participant: str
    about: tuple[str, ...]

    def __str__(self) -> str:
        examples = ", ".join(self.about[:5]) + (", …" if len(self.about) > 5 else "")
        return f"{self.participant} {self.problem} ({len(self.about):,}: {examples})"


@dataclass(frozen=True)
class CheckReport:
    """Findings of `check_responses`; empty if there is no problem.

    Attributes:
        responses: number of responses.
        participants: participants in order of their first response.
        findings: problems, sorted by kind, then by participant.
    """

    responses: int
    participants: tuple[str, ...]
    findings: tuple[ResponseFinding, ...]

    def of(self, problem: Problem) -> tuple[ResponseFinding, ...]:
        """Return the findings about a problem."""
        return tuple(f for f in self.findings if f.problem is problem)

    def unseen(self, responses: Iterable[Response]) -> set[str]:
        """Return participants who were not shown every trial of their group."""
        shown = {(response.participant, response.trial_id) for response in responses}
        trials = ((f.participant, t) for f in self.of(Problem.UNFINISHED) for t in f.about)
        return {participant for participant, _ in {*trials} - shown}

    @property
    def errors(self) -> tuple[ResponseFinding, ...]:
        """Findings which show that the responses do not match the trials."""
        return tuple(f for f in self.findings if f.problem not in REPAIRABLE | HARMLESS)

    def raise_errors(self) -> None:
        """Raise an error if the responses do not match the trials.

        Raises:
            InputError: if there are `errors`; the message names participants and trials.
        """
        if self.errors:
            errors = "\n".join(f"  {finding}" for finding in self.errors[:20])
            raise InputError(
                f"The responses do not match the trials ({quantity(len(self.errors), 'problem')}). "
                f"Correct the table, or import it again with the right trials.\n{errors}"
            )

    def __str__(self) -> str:
        participants = quantity(len(self.participants), "participant")
        head = f"{quantity(self.responses, 'response')} of {participants}"
        if not self.findings:
            return f"{head}; every participant rated every trial of their group once."
        problems = quantity(len(self.findings), "problem")
        return "\n".join([f"{head}; {problems}:", *map(str, self.findings)])


def check_responses(trials: Iterable[Trial], responses: Sequence[Response]) -> CheckReport:
    """Compare responses with the trials that they belong to.

    Raises:
        InputError: if two trials have the same trial_id, a trial does not fit its condition
            (`check_trials`), or responses and trials have different scales.
    """
    trials = tuple(trials)
    check_trials(trials)
    if repeated := find_duplicates(trial.trial_id for trial in trials):
        raise InputError(f"The trial {repeated[0]!r} is in the table of trials twice.")
    groups = {trial.trial_id: trial.group for trial in trials}
    # Ignore trials with the scale CONFIDENCE, because it is also the default of trials without a
    # scale
    scales = {r.scale for r in responses} | ({t.scale for t in trials} - {Scale.CONFIDENCE})
    if len(scales) > 1:
        listed_scales = " and ".join(sorted(scales))
        raise InputError(f"All trials and responses must have one scale, got {listed_scales}.")
    by_participant = grouped((response.participant, response) for response in responses)
    findings = [
        ResponseFinding(problem, participant, tuple(about))
        for participant, own_responses in by_participant.items()
        for problem, about in _find_problems(groups, own_responses).items()
        if about
    ]
    # Sorting is stable: within a problem, participants stay in order of their first response
    order = list(Problem)  # most serious first
    findings.sort(key=lambda finding: order.index(finding.problem))
    return CheckReport(len(responses), tuple(by_participant), tuple(findings))


def _find_problems(groups: dict[str, int], responses: list[Response]) -> dict[Problem, list[str]]:
    """Find the problems in one participant's responses; `groups` is trial_id → group."""
    own_groups = list(dict.fromkeys(response.group for response in responses))
    counts = Counter(response.trial_id for response in responses)
    # Trials shown without an answer are responses too, with the rating UNRATED
    rated = {response.trial_id for response in responses if response.rating != UNRATED}
    ratings = {response.rating for response in responses if response.rating != UNRATED}
    buttons = {r.button for r in responses if r.button is not None}
    # A participant in two groups is expected to rate the trials of both groups
    expected = [trial_id for trial_id, group in groups.items() if group in own_groups]
    return {
        Problem.UNKNOWN_TRIAL: [t for t in counts if t not in groups],
        # A repeated trial_id is listed once. Occurrences without a rating count too
        Problem.DUPLICATE: [t for t, count in counts.items() if count > 1],
        Problem.OUTSIDE_SCALE: [
            f"{r.trial_id}: {r.rating}"
            for r in responses
            if r.rating not in (UNRATED, *r.scale.answers)
        ],
        Problem.TWO_GROUPS: [str(group) for group in own_groups] if len(own_groups) > 1 else [],
        Problem.OTHER_GROUP: [
            r.trial_id for r in responses if groups.get(r.trial_id, r.group) != r.group
        ],
        Problem.IMPOSSIBLE_SIDE: [
            f"{r.trial_id}: {r.left}" for r in responses if r.left not in (UNKNOWN, 1, 2)
        ],
        Problem.NO_RATING: [r.trial_id for r in responses if r.rating == UNRATED],
        Problem.UNFINISHED: [t for t in expected if t not in rated],
        # A single rating does not show that a participant always gives the same rating
        Problem.ONE_RATING: [*map(str, ratings)] if len(ratings) == 1 and len(rated) > 1 else [],
        Problem.ONE_BUTTON: [*map(str, buttons)] if len(buttons) == 1 < len(ratings) else [],
        Problem.TOO_FAST: [f"{r.trial_id}: {r.rt_ms:.0f} ms" for r in responses if r.rt_ms < 500],
        Problem.ABSENT: [r.trial_id for r in responses if r.away_ms > 60_000 or r.rt_ms > 300_000],
    }
