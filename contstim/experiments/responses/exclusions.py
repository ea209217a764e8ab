"""Exclusion rules, stated before data collection and applied one after the other."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path  # noqa: TC003 - needed at run time to build options from the fields
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from contstim.errors import InputError
from contstim.experiments.responses.table import unescape_formula
from contstim.files.tables import join_names, needed_columns, read_table
from contstim.options import Help
from contstim.wording import find_duplicates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from contstim.experiments.responses.table import Response

    Answers: TypeAlias = Mapping[str, Sequence[Response]]
    Rule: TypeAlias = tuple[str, Callable[[Answers], Mapping[str, str]]]

# Measures of a participant → phrase of the rule, with placeholders for side and limit
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
    """Rules for excluding participants, in addition to unfinished sessions."""

    min_catch: Annotated[
        int | None,
        _limit(
            "Number of catch trials that must be correct; by default 11 of 12, or this proportion."
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
            "Table of participants, or of their answers to questions, for --require; by "
            "default the answers next to the responses."
        ),
    ] = None
    require: Annotated[
        tuple[str, ...], _rule("COLUMN=VALUE that each participant must have in this table.")
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
        """Yield each rule as a phrase and a function that finds violations with reasons."""
        if self.exclude is not None:
            yield "named in a table", partial(_find_listed, self.exclude)
        for side, word in _SIDES.items():
            for measure, phrase in _MEASURES.items():
                limit = getattr(self, f"{side}_{measure}", None)
                if limit is not None:
                    yield (
                        phrase.format(word, limit),
                        partial(_find_beyond_limit, f"{side}_{measure}", limit),
                    )
        for rule in self.require:
            column, _, value = (part.strip() for part in rule.partition("="))
            yield (
                f"{column} other than {value}",
                partial(_find_other_value, self.participants, column, value),
            )


def _find_listed(path: Path, answers: Answers) -> dict[str, str]:
    """Read the participants of a table, each with its stated reason."""
    table = read_table(path)
    (participants,) = needed_columns(path, table, ["participant"])
    reasons = _cell_by_participant(
        path, participants, table.get("reason") or [""] * len(participants)
    )
    if unknown := [name for name in reasons if name not in answers]:
        raise InputError(
            f"{path} names participants without answers: {join_names(unknown, 5)}. Correct the "
            "names."
        )
    return {name: reason or f"named in {path.name}" for name, reason in reasons.items()}


def _find_beyond_limit(key: str, limit: float, answers: Answers) -> dict[str, str]:
    """Find participants whose measure is beyond a limit; missing measures are accepted."""
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
    """Compute a measure of a participant; nan if nothing was recorded."""
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
    """Find participants whose value in a column is missing or differs from the required one."""
    if path is None:
        raise InputError("`require` needs a table `participants`. Set both, or neither.")
    table = read_table(path)
    if column not in table and {"question", "answer"} <= table.keys():  # as our own page writes it
        cells = needed_columns(path, table, ("participant", "question", "answer"))
        rows = zip(*(map(_cell, column_cells) for column_cells in cells), strict=True)
        # The last answer counts: a check of the instructions is repeated until it is correct
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
    """Return the cell of each participant of a table.

    Raises:
        InputError: if a participant has several rows.
    """
    names = [*map(_cell, participants)]
    if duplicates := find_duplicates(names):
        raise InputError(
            f"{path} has several rows of {join_names(duplicates, 5)}. Keep one row of each."
        )
    return dict(zip(names, map(_cell, cells), strict=True))
