"""Selection of participants for an analysis.

Included participants have finished the session, passed the catch trials and satisfied all other
rules. A catch trial tests attention. For example, it shows a sentence and the same words in
shuffled order. Exclusion rules are applied one after the other. State them before data collection.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path  # noqa: TC003 - needed at run time to build options from the fields
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from contstim.errors import InputError
from contstim.experiments.responses.checks import CheckReport, Problem, check_responses
from contstim.experiments.responses.table import (
    UNRATED,
    ResponseOrigin,
    origin_of,
    unescape_formula,
)
from contstim.files.tables import join_names, needed_columns, read_table
from contstim.items.stimuli import Condition, Trial
from contstim.options import Help
from contstim.wording import find_duplicates, grouped, quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from contstim.experiments.responses.table import Response

    Answers: TypeAlias = Mapping[str, Sequence[Response]]
    Rule: TypeAlias = tuple[str, Callable[[Answers], Mapping[str, str]]]

LAPSES = 0.02  # share of trials in which attentive people guess; half of their guesses are correct
_PARTIAL_SESSIONS_LABEL = "an unfinished session, kept in regressions and mixed models alone"
_MIN_HONEST_SHARE = 0.99  # share of attentive people whom the default rule must include


def required_catch(n_trials: int, min_catch: int | None = None) -> int:
    """Return the number of catch trials that a participant must answer correctly.

    A catch trial is correct if the unshuffled sentence is preferred. The default is 11/12 of the
    trials, rounded up, as in the 2023 study (11 of 12). The number is lower if more than 1 % of
    attentive people would fail; for example, 5 of 6 trials instead of 6. Attentive people are
    assumed to guess in 2 % of trials.

    `min_catch` replaces the default.

    Raises:
        InputError: if `min_catch` is negative or greater than `n_trials`.
    """
    if min_catch is None:
        from scipy.stats import binom

        # Number of correct trials that at least 99 % of attentive people reach
        reached = binom.ppf(1 - _MIN_HONEST_SHARE + 1e-9, n_trials, 1 - LAPSES / 2)
        return min(-(-11 * n_trials // 12), int(reached))
    if not 0 <= min_catch <= n_trials:
        raise InputError(
            f"`min_catch` must be from 0 to {n_trials}, the number of catch trials that are shown, "
            f"got {min_catch}."
        )
    return min_catch


def excluded_share(n_trials: int, lapses: float) -> float:
    """Return the expected share of participants whom the default of `required_catch` excludes.

    `lapses` is the share of trials in which participants guess; half of the guesses are correct.
    """
    from scipy.stats import binom

    return float(binom.cdf(required_catch(n_trials) - 1, n_trials, 1 - lapses / 2))


@dataclass(frozen=True)
class Admission:
    """Responses that an analysis uses, and the reasons for all exclusions.

    Attributes:
        responses: responses of the included participants to every trial of their group; ratings may
            be missing if `max_missing` permits this.
        participants: included participants, in order of their first response.
        excluded: excluded participants → reason, in order of their first response.
        report: findings of the checks before any exclusion.
        counts: rule → number of participants whom this rule excludes and no earlier rule does, in
            the order of application. If unfinished sessions are included, the last entry is the
            number of these sessions.
        partial: ratings of unfinished sessions whose participants break no other rule; empty if
            unfinished sessions are not included.
    """

    responses: tuple[Response, ...]
    participants: tuple[str, ...]
    excluded: dict[str, str]
    report: CheckReport
    counts: dict[str, int]
    partial: tuple[Response, ...] = ()

    @property
    def partial_note(self) -> str:
        """Sentence about the unfinished sessions that are included; empty if there are none."""
        if not self.partial:
            return ""
        sessions = quantity(len({r.participant for r in self.partial}), "unfinished session")
        return (
            f"{sessions} ({quantity(len(self.partial), 'rating')}) kept for regressions and "
            "mixed models only. Accuracies, cosines, noise ceilings and their tests need a rating "
            "of every trial. Linguistic controls need a rating of every trial, too."
        )

    @property
    def origin(self) -> ResponseOrigin:
        """Number of included people, and number of included artificial participants."""
        return origin_of(self.responses)

    def __str__(self) -> str:
        participants = quantity(len(self.participants), "participant")
        head = f"{participants} kept, {len(self.excluded):,} left out"
        return "\n".join([head, *(f"  {name}: {reason}" for name, reason in self.excluded.items())])


def admit(
    trials: Sequence[Trial],
    responses: Sequence[Response],
    *,
    exclusions: Exclusions | None = None,
    may_be_empty: bool = False,
) -> Admission:
    """Exclude participants who did not finish, failed the catch trials, or break another rule.

    The rule for catch trials has no effect if the design has no catch trials. A catch trial that
    was shown but not rated counts as wrong.

    Raises:
        InputError: if the responses contradict the trials (`CheckReport.raise_errors`); if a rule
            cannot be applied, or its table cannot be read; or if no participant remains, unless
            `may_be_empty` is true.
    """
    exclusions = exclusions or Exclusions()
    report = check_responses(trials, responses)
    report.raise_errors()
    answers = grouped((response.participant, response) for response in responses)
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
    find_failed = partial(_find_failed_catch, trials, exclusions.min_catch)
    failed: Rule = "too few catch trials right", find_failed
    for rule, find_violations in (failed, *exclusions.rules()):
        violations = find_violations(answers)
        counts[rule] = len(violations.keys() - reasons.keys())
        reasons = {**violations, **reasons}  # the first reason counts
    remaining = [r for r in responses if r.participant not in reasons]
    if exclusions.partial:
        counts[_PARTIAL_SESSIONS_LABEL] = len(unfinished.keys() - reasons.keys())
    # Participants with unfinished sessions are excluded even if some analyses use their ratings
    reasons = unfinished | reasons
    participants = tuple(p for p in report.participants if p not in reasons)
    excluded = {p: reasons[p] for p in report.participants if p in reasons}
    if not participants and not may_be_empty:
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
    trials: Sequence[Trial], min_catch: int | None, answers: Answers
) -> dict[str, str]:
    """Find participants with too many wrong catch trials; ignore trials that were not shown."""
    catch = [trial for trial in trials if trial.condition is Condition.CATCH]
    n_catch_by_group = Counter(trial.group for trial in catch)
    catch_ids = {trial.trial_id for trial in catch}
    failures = {}
    for name, responses in answers.items():
        # sentence_1 of a catch trial is the unshuffled sentence
        choices = [response.choice for response in responses if response.trial_id in catch_ids]
        right, shown = choices.count(1), len(choices)
        n_trials = n_catch_by_group[responses[0].group]
        if not shown:
            continue
        required = shown - (n_trials - required_catch(n_trials, min_catch))
        if right < required:
            failures[name] = (
                f"{right} of {quantity(shown, 'catch trial')} right, {required} are required"
            )
    return failures


# Measure of a participant → phrase that describes the rule. The first placeholder becomes `below`
# or `above`, the second one becomes the limit.
_MEASURES = {
    "median_rt": "a median reaction time {} {:g} ms",
    "minutes": "reaction times {} {:g} minutes in all",
    "same_button": "a share of answers by one button {} {:g}",
    "blurs": "losses of the page's focus {} {:g}",
    "away": "absences from the page {} {:g} s in all",
}
_SIDES = {"min": "below", "max": "above"}


_rule = partial(Help, panel="Exclusion of participants")
_limit = partial(_rule, at_least=0)


@dataclass(frozen=True, kw_only=True)
class Exclusions:
    """Rules for excluding participants, in addition to the rule against unfinished sessions."""

    min_catch: Annotated[
        int | None,
        _limit(
            "Number of catch trials that must be correct; by default 11 of 12, and a similar share "
            "of other numbers."
        ),
    ] = None
    exclude: Annotated[
        Path | None,
        _rule("Table of participants to exclude, with the columns participant and reason."),
    ] = None
    max_missing: Annotated[
        float, _limit("Proportion of trials that may be unrated.", at_most=1)
    ] = 0.0
    min_median_rt: Annotated[float | None, _limit("Minimum median reaction time, ms.")] = None
    max_median_rt: Annotated[float | None, _limit("Maximum median reaction time, ms.")] = None
    min_minutes: Annotated[float | None, _limit("Minimum sum of reaction times, minutes.")] = None
    max_minutes: Annotated[float | None, _limit("Maximum sum of reaction times, minutes.")] = None
    max_same_button: Annotated[
        float | None, _limit("Maximum proportion of answers with the same button.", at_most=1)
    ] = None
    max_blurs: Annotated[
        int | None, _limit("Maximum number of times that a participant leaves the page.")
    ] = None
    max_away: Annotated[float | None, _limit("Maximum time away from the page, seconds.")] = None
    participants: Annotated[
        Path | None,
        _rule(
            "Table for --require: properties of participants, or their answers to questions. By "
            "default, the table of answers next to the responses."
        ),
    ] = None
    require: Annotated[
        tuple[str, ...],
        _rule("COLUMN=VALUE that each participant must have in the table of --participants."),
    ] = ()
    partial: Annotated[
        bool, _rule("Include unfinished sessions in regressions and mixed models.")
    ] = False

    def __post_init__(self) -> None:
        if self.participants is not None and not self.require:
            raise InputError("`participants` needs `require`. Set both, or neither.")
        if wrong := [rule for rule in self.require if "=" not in rule]:
            raise InputError(f"`require` must be COLUMN=VALUE, got {wrong[0]!r}.")

    def rules(self) -> Iterator[Rule]:
        """Yield the description of each rule, and a function that finds its violations.

        The function returns participant → reason.
        """
        if self.exclude is not None:
            yield "named in a table", partial(_find_listed, self.exclude)
        for side, word in _SIDES.items():
            for measure, phrase in _MEASURES.items():
                limit = getattr(self, f"{side}_{measure}", None)
                if limit is not None:
                    find = partial(_find_beyond_limit, f"{side}_{measure}", limit)
                    yield phrase.format(word, limit), find
        for rule in self.require:
            column, _, value = (part.strip() for part in rule.partition("="))
            find = partial(_find_other_value, self.participants, column, value)
            yield f"{column} other than {value}", find


def read_excluded(path: Path) -> dict[str, str]:
    """Read a table for `exclude`, and return participant → reason; a reason may be empty.

    Raises:
        InputError: if the table cannot be read, or has no column `participant`.
    """
    table = read_table(path)
    (participants,) = needed_columns(path, table, ["participant"])
    return _cell_by_participant(path, participants, table.get("reason") or [""] * len(participants))


def _find_listed(path: Path, answers: Answers) -> dict[str, str]:
    reasons = read_excluded(path)
    if unknown := [name for name in reasons if name not in answers]:
        raise InputError(
            f"{path} names participants without answers: {join_names(unknown, 5)}. Correct the "
            "names."
        )
    return {name: reason or f"named in {path.name}" for name, reason in reasons.items()}


def _find_beyond_limit(key: str, limit: float, answers: Answers) -> dict[str, str]:
    """Find participants whose measure is beyond a limit; ignore participants without a measure."""
    side, _, measure = key.partition("_")
    values = {name: _compute_measure(measure, responses) for name, responses in answers.items()}
    if all(map(math.isnan, values.values())):
        raise InputError(
            f"`{key}` cannot be applied: the responses do not contain this measure. Remove the "
            "rule."
        )
    return {
        name: f"{_MEASURES[measure].format(_SIDES[side], limit)}: {value:.6g}"
        for name, value in values.items()
        if (value < limit if side == "min" else value > limit)
    }


def _compute_measure(measure: str, responses: Sequence[Response]) -> float:
    values: list[float] = {
        "median_rt": [r.rt_ms for r in responses],
        "minutes": [r.rt_ms / 60_000 for r in responses],
        "same_button": [float(r.button) for r in responses if r.button is not None],
        "blurs": [float(r.blurs) for r in responses if r.blurs is not None],
        "away": [r.away_ms / 1_000 for r in responses],
    }[measure]
    recorded = [value for value in values if not math.isnan(value)]
    if not recorded:
        return math.nan
    if measure == "same_button":
        return max(Counter(recorded).values()) / len(recorded)
    return float(median(recorded) if measure == "median_rt" else sum(recorded))


def _find_other_value(
    path: Path | None, column: str, value: str, answers: Answers
) -> dict[str, str]:
    if path is None:
        raise InputError("`require` needs a table `participants`. Set both, or neither.")
    table = read_table(path)
    # In a table of answers to questions, `column` is the name of a question
    if column not in table and {"question", "answer"} <= table.keys():
        cells = needed_columns(path, table, ("participant", "question", "answer"))
        rows = zip(*(map(_cell, column_cells) for column_cells in cells), strict=True)
        # The last answer counts, because participants may answer a comprehension question again
        stated = {name: answer for name, question, answer in rows if question == column}
    else:
        stated = _cell_by_participant(path, *needed_columns(path, table, ("participant", column)))
    return {
        name: f"{column} is {stated.get(name) or 'not stated'}, not {value}"
        for name in answers
        if stated.get(name, "").casefold() != value.casefold()
    }


def _cell(cell: Any) -> str:
    return "" if cell is None else unescape_formula(str(cell).strip())


def _cell_by_participant(
    path: Path, participants: Sequence[Any], cells: Sequence[Any]
) -> dict[str, str]:
    """Return participant → cell; raise an error if a participant has several rows."""
    names = [*map(_cell, participants)]
    if duplicates := find_duplicates(names):
        raise InputError(
            f"{path} has several rows of {join_names(duplicates, 5)}. Keep one row of each."
        )
    return dict(zip(names, map(_cell, cells), strict=True))
