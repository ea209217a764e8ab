"""Who takes part in an analysis: those who finished and passed the catch trials."""

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
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.experiments.responses.exclusions import Rule
    from contstim.experiments.responses.table import Response
    from contstim.items.stimuli import Trial


LAPSES = 0.02  # share of trials that honest people answer without looking, rightly in half of them
_KEPT_IN_PART = "an unfinished session, kept in regressions and mixed models alone"
_HONEST_KEPT = 0.99  # share of honest people whom the default rule keeps


@dataclass(frozen=True)
class CatchRule:
    """Rule of how many catch trials must be right: a number, or a share of those shown.

    A catch trial is right when the unshuffled sentence is preferred. The 2023 study asked for 11 of
    12.

    Attributes:
        number: how many.
        share: of those shown, rounded up.
        lenient: a share asks for fewer where it would drop more than one in a hundred of people who
            lapse in 2 % of trials: 5 of 6 instead of 6.

    Raises:
        InputError: neither or both are given, the number is negative, the share not in 0..1.
    """

    number: int | None = None
    share: float | None = None
    lenient: bool = False

    def __post_init__(self) -> None:
        if (self.number is None) == (self.share is None):
            raise InputError("A rule for catch trials is either a number or a share.")
        if self.number is not None and self.number < 0:
            raise InputError(f"`number` of catch trials must be 0 or more, not {self.number}.")
        if self.share is not None and not 0 <= self.share <= 1:
            raise InputError(f"A share of catch trials is between 0 and 1, not {self.share}.")

    @classmethod
    def of(cls, min_catch: int | None) -> CatchRule:
        """The rule of a stated number, or else the default one."""
        return DEFAULT_RULE if min_catch is None else cls(number=min_catch)

    def required(self, n_trials: int) -> int:
        """Number of catch trials that must be right of so many.

        Raises:
            InputError: more are asked for than there are.
        """
        if self.share is not None:
            # in floating point 0.07 of 100 is a little more than 7
            required = math.ceil(self.share * n_trials - 1e-9)
            if not self.lenient:
                return required
            # what at least 99 % of honest people reach
            reached = max(
                right
                for right in range(n_trials + 1)
                if _fewer_right(right, n_trials, LAPSES) <= 1 - _HONEST_KEPT + 1e-9
            )
            return min(required, reached)
        assert self.number is not None
        if self.number > n_trials:
            raise InputError(
                f"{self.number} catch trials must be right, but only {n_trials} were shown."
            )
        return self.number

    def dropped(self, n_trials: int, lapses: float) -> float:
        """The share of people who lapse in a share of trials that the rule is expected to drop.

        Args:
            n_trials: how many catch trials they see.
            lapses: share of trials that they answer without looking, rightly in half of them; 1 for
                people who always guess.
        """
        # Dropped is who has fewer right than required
        return float(_fewer_right(self.required(n_trials), n_trials, lapses))


def _fewer_right(needed: int, n_trials: int, lapses: float) -> float:
    """Probability that somebody has fewer than `needed` of so many trials right."""
    # Binomial: a lapse is wrong in half of all cases, and nothing else is
    wrong = lapses / 2
    return sum(
        math.comb(n_trials, right) * (1 - wrong) ** right * wrong ** (n_trials - right)
        for right in range(needed)
    )


DEFAULT_RULE = CatchRule(share=11 / 12, lenient=True)


@dataclass(frozen=True)
class Admission:
    """The responses that an analysis uses, and an account of all the others.

    Attributes:
        responses: every trial of their group once, for each participant who is kept.
        participants: who is kept, in order of their first response.
        excluded: who is not → why; in order of their first response.
        report: all that was found before anyone was left out.
        counts: for each rule, in the order in which they apply, how many it left out; where
            unfinished sessions are kept in part, these are the last.
        partial: ratings of those who did not finish and broke no other rule, where they are kept.
    """

    responses: tuple[Response, ...]
    participants: tuple[str, ...]
    excluded: dict[str, str]
    report: CheckReport
    counts: dict[str, int]
    partial: tuple[Response, ...] = ()

    @property
    def partial_note(self) -> str:
        """Sentence on the sessions that only some analyses can use; empty where none are kept."""
        if not self.partial:
            return ""
        people = counted(len({r.participant for r in self.partial}), "unfinished session")
        return (
            f"{people} ({counted(len(self.partial), 'rating')}) kept for regressions and mixed "
            "models alone: accuracies, cosines, noise ceilings, their tests and controls need a "
            "rating of every trial."
        )

    @property
    def origin(self) -> ResponseOrigin:
        """Numbers of people and of artificial participants among those who are kept."""
        return origin_of(self.responses)

    def __str__(self) -> str:
        participants = counted(len(self.participants), "participant")
        head = f"{participants} kept, {len(self.excluded):,} left out"
        return "\n".join([head, *(f"  {who}: {why}" for who, why in self.excluded.items())])


def admit(
    trials: Sequence[Trial],
    responses: Sequence[Response],
    *,
    exclusions: Exclusions | None = None,
) -> Admission:
    """Leave out participants who did not finish, failed the catch trials, or break another rule.

    A design without catch trials excludes nobody by them.

    Args:
        trials: a design's.
        responses: of any participants.
        exclusions: rules; by default those of `Exclusions()`. A catch trial that was shown and not
            rated is not right.

    Raises:
        InputError: the responses contradict the trials (`CheckReport.raise_errors`), or nobody is
            left.
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
    failed: Rule = "too few catch trials right", partial(_failed, trials, catch)
    for rule, broken in (failed, *exclusions.rules()):
        found = {who: why for who, why in broken(answers).items() if who not in reasons}
        counts[rule] = len(found)
        reasons |= found
    kept = [r for r in responses if r.participant not in reasons]
    if exclusions.partial:
        counts[_KEPT_IN_PART] = len(unfinished.keys() - reasons.keys())
    reasons = unfinished | reasons  # who did not finish is no full participant anyhow
    participants = tuple(p for p in report.participants if p not in reasons)
    excluded = {p: reasons[p] for p in report.participants if p in reasons}
    if not participants:
        why = "; ".join(f"{who}: {what}" for who, what in excluded.items())
        raise InputError(f"No participant is left{': ' + why if why else ': no responses'}.")
    return Admission(
        tuple(r for r in kept if r.participant not in unfinished),
        participants,
        excluded,
        report,
        counts,
        tuple(r for r in kept if r.participant in unfinished and r.rating != UNRATED),
    )


def _failed(
    trials: Sequence[Trial], catch: CatchRule, answers: Mapping[str, Sequence[Response]]
) -> dict[str, str]:
    """Participants with too few catch trials right; those left unseen are not failed."""
    shown = Counter(trial.group for trial in trials if trial.condition is Condition.CATCH)
    everything = [response for theirs in answers.values() for response in theirs]
    found = {}
    for who, (right, rated) in catch_scores(trials, everything).items():
        n_trials = shown[answers[who][0].group]
        if not rated:
            continue
        wrong = n_trials - catch.required(n_trials)
        if right < rated - wrong:
            found[who] = (
                f"{right} of {counted(rated, 'catch trial')} right, {rated - wrong} are required"
            )
    return found


def catch_scores(
    trials: Iterable[Trial], responses: Iterable[Response]
) -> Mapping[str, tuple[int, int]]:
    """For each participant, how many catch trials were right, and how many were shown."""
    catch = {trial.trial_id for trial in trials if trial.condition is Condition.CATCH}
    scores: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for response in responses:
        right, rated = scores[response.participant]
        if response.trial_id in catch:
            # sentence_1 of a catch trial is the unshuffled one
            scores[response.participant] = (right + (response.choice == 1), rated + 1)
    return dict(scores)
