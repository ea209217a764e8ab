"""Selection of participants for an analysis: complete sessions with passed catch trials."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.experiments.responses.checks import CheckReport, Problem, check_responses
from contstim.experiments.responses.exclusions import Exclusions
from contstim.experiments.responses.table import UNRATED, ResponseOrigin, origin_of
from contstim.items.stimuli import Condition
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.experiments.responses.exclusions import Rule
    from contstim.experiments.responses.table import Response
    from contstim.items.stimuli import Trial


LAPSES = 0.02  # share of trials that attentive people guess, half of them correctly
_PARTIAL_SESSIONS_LABEL = "an unfinished session, kept in regressions and mixed models alone"
_MIN_HONEST_SHARE = 0.99  # share of attentive people whom the default rule must include


@dataclass(frozen=True)
class CatchRule:
    """Minimum of correct catch trials: a number, or a share of those shown.

    A catch trial is correct if the unshuffled sentence is preferred. The 2023 study required 11 of
    12.

    Attributes:
        number: minimum of correct catch trials.
        share: minimum share of the catch trials shown, rounded up.
        lenient: lowers a share that would exclude more than 1 % of the people who lapse in 2 % of
            trials, such as 5 of 6 instead of 6.

    Raises:
        InputError: if neither or both are given, the number is negative or the share not in 0..1.
    """

    number: int | None = None
    share: float | None = None
    lenient: bool = False

    def __post_init__(self) -> None:
        if (self.number is None) == (self.share is None):
            raise InputError(
                "A rule for catch trials must be either a number or a share, got both or neither."
            )
        if self.number is not None and self.number < 0:
            raise InputError(f"`number` of catch trials must be at least 0, got {self.number}.")
        if self.share is not None and not 0 <= self.share <= 1:
            raise InputError(f"A share of catch trials must be from 0 to 1, got {self.share}.")

    @classmethod
    def of(cls, min_catch: int | None) -> CatchRule:
        """Return the rule for a given number, or the default rule if it is None."""
        return DEFAULT_RULE if min_catch is None else cls(number=min_catch)

    def required(self, n_trials: int) -> int:
        """Return the number of catch trials that must be correct.

        Raises:
            InputError: if the required number is greater than `n_trials`.
        """
        if self.share is not None:
            # In floating point 0.07 * 100 is slightly more than 7
            required = math.ceil(self.share * n_trials - 1e-9)
            if not self.lenient:
                return required
            # Number of correct trials that at least 99 % of attentive people reach
            reached = max(
                right
                for right in range(n_trials + 1)
                if _probability_below(right, n_trials, LAPSES) <= 1 - _MIN_HONEST_SHARE + 1e-9
            )
            return min(required, reached)
        assert self.number is not None
        if self.number > n_trials:
            raise InputError(
                f"The number of catch trials that must be correct is {self.number}, but only "
                f"{n_trials} were shown. Set a smaller number."
            )
        return self.number

    def dropped(self, n_trials: int, lapses: float) -> float:
        """Return the expected share of excluded participants among those with a given lapse rate.

        Args:
            n_trials: number of catch trials shown.
            lapses: share of trials that they guess, half of them correctly; 1 for people who
                always guess.
        """
        return float(_probability_below(self.required(n_trials), n_trials, lapses))


def _probability_below(needed: int, n_trials: int, lapses: float) -> float:
    """Return the probability of fewer than `needed` correct trials of `n_trials`."""
    # Binomial: half of the lapses are wrong, all other trials are correct
    wrong = lapses / 2
    return sum(
        math.comb(n_trials, right) * (1 - wrong) ** right * wrong ** (n_trials - right)
        for right in range(needed)
    )


DEFAULT_RULE = CatchRule(share=11 / 12, lenient=True)


@dataclass(frozen=True)
class Admission:
    """Responses that an analysis uses, and the reasons for all exclusions.

    Attributes:
        responses: all ratings of the included participants, one for each trial of their group.
        participants: included participants, in order of their first response.
        excluded: excluded participants → reason, in order of their first response.
        report: findings of the checks before any exclusion.
        counts: rules, in the order of their application → number of excluded participants; the
            last entry counts partially used sessions, if these are included.
        partial: ratings of unfinished sessions that break no other rule, if these are included.
    """

    responses: tuple[Response, ...]
    participants: tuple[str, ...]
    excluded: dict[str, str]
    report: CheckReport
    counts: dict[str, int]
    partial: tuple[Response, ...] = ()

    @property
    def partial_note(self) -> str:
        """Sentence on sessions that only some analyses can use; empty if there are none."""
        if not self.partial:
            return ""
        people = quantity(len({r.participant for r in self.partial}), "unfinished session")
        return (
            f"{people} ({quantity(len(self.partial), 'rating')}) kept for regressions and "
            "mixed models only: accuracies, cosines, noise ceilings, their tests and "
            "controls need a rating of every trial."
        )

    @property
    def origin(self) -> ResponseOrigin:
        """Numbers of people and of artificial participants among the included ones."""
        return origin_of(self.responses)

    def __str__(self) -> str:
        participants = quantity(len(self.participants), "participant")
        head = f"{participants} kept, {len(self.excluded):,} left out"
        return "\n".join([head, *(f"  {name}: {reason}" for name, reason in self.excluded.items())])


def admit(
    trials: Sequence[Trial], responses: Sequence[Response], *, exclusions: Exclusions | None = None
) -> Admission:
    """Exclude participants who did not finish, failed the catch trials, or break another rule.

    Their rule has no effect if the design has no catch trials.

    Args:
        trials: trials of the design.
        responses: responses of all participants.
        exclusions: exclusion rules; by default `Exclusions()`. A catch trial that was shown but
            not rated is not correct.

    Raises:
        InputError: if the responses contradict the trials (`CheckReport.raise_errors`), or no
            participant is left.
    """
    exclusions = exclusions or Exclusions()
    report = check_responses(trials, responses)
    report.raise_errors()
    answers: dict[str, list[Response]] = {name: [] for name in report.participants}
    for response in responses:
        answers[response.participant].append(response)
    sizes = Counter(trial.group for trial in trials)
    unseen, unfinished, reasons = report.unseen(responses), dict[str, str](), dict[str, str]()
    for name in (finding.participant for finding in report.of(Problem.UNFINISHED)):
        rated = sum(response.rating != UNRATED for response in answers[name])
        expected = sizes[answers[name][0].group]
        if name in unseen or expected - rated > exclusions.max_missing * expected + 1e-9:
            unfinished[name] = f"rated {rated:,} of {expected:,} trials"
            if not (exclusions.partial and rated):
                reasons[name] = unfinished[name]
    counts = {"no rating at all" if exclusions.partial else "an unfinished session": len(reasons)}
    catch = CatchRule.of(exclusions.min_catch)
    failed: Rule = "too few catch trials right", partial(_find_failed_catch, trials, catch)
    for rule, find_violations in (failed, *exclusions.rules()):
        violations = {
            name: why for name, why in find_violations(answers).items() if name not in reasons
        }
        counts[rule] = len(violations)
        reasons |= violations
    remaining = [r for r in responses if r.participant not in reasons]
    if exclusions.partial:
        counts[_PARTIAL_SESSIONS_LABEL] = len(unfinished.keys() - reasons.keys())
    reasons = unfinished | reasons  # unfinished sessions are excluded from the full participants
    participants = tuple(p for p in report.participants if p not in reasons)
    excluded = {p: reasons[p] for p in report.participants if p in reasons}
    if not participants:
        why = "; ".join(f"{name}: {reason}" for name, reason in excluded.items())
        raise InputError(f"No participant remains{': ' + why if why else ': no responses'}.")
    return Admission(
        tuple(r for r in remaining if r.participant not in unfinished),
        participants,
        excluded,
        report,
        counts,
        tuple(r for r in remaining if r.participant in unfinished and r.rating != UNRATED),
    )


def _find_failed_catch(
    trials: Sequence[Trial], catch: CatchRule, answers: Mapping[str, Sequence[Response]]
) -> dict[str, str]:
    """Find participants with too few correct catch trials; unrated ones do not count as wrong."""
    n_catch_by_group = Counter(
        trial.group for trial in trials if trial.condition is Condition.CATCH
    )
    all_responses = [response for responses in answers.values() for response in responses]
    failures = {}
    for name, (right, rated) in catch_scores(trials, all_responses).items():
        n_trials = n_catch_by_group[answers[name][0].group]
        if not rated:
            continue
        wrong = n_trials - catch.required(n_trials)
        if right < rated - wrong:
            failures[name] = (
                f"{right} of {quantity(rated, 'catch trial')} right, {rated - wrong} are required"
            )
    return failures


def catch_scores(
    trials: Iterable[Trial], responses: Iterable[Response]
) -> Mapping[str, tuple[int, int]]:
    """Return the numbers of correct and of shown catch trials by participant."""
    catch = {trial.trial_id for trial in trials if trial.condition is Condition.CATCH}
    scores: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for response in responses:
        right, rated = scores[response.participant]
        if response.trial_id in catch:
            # sentence_1 of a catch trial is the unshuffled sentence
            scores[response.participant] = (right + (response.choice == 1), rated + 1)
    return dict(scores)
