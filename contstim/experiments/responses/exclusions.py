"""Rules of who is left out, stated before anybody answers, and applied one after the other."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path  # noqa: TC003 - what makes options of fields asks for it
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from contstim.errors import InputError
from contstim.experiments.responses.table import unescape_formula
from contstim.files.tables import listed, needed_columns, read_table
from contstim.options import Help
from contstim.wording import repeated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from contstim.experiments.responses.table import Response

    Answers: TypeAlias = Mapping[str, Sequence[Response]]
    Rule: TypeAlias = tuple[str, Callable[[Answers], Mapping[str, str]]]

# What is measured of a participant: the rule, with a place for its side and its limit
_MEASURES = {
    "median_rt": "a median reaction time {} {:g} ms",
    "minutes": "reaction times {} {:g} minutes in all",
    "same_button": "a share of answers by one button {} {:g}",
    "blurs": "losses of the page's focus {} {:g}",
    "away": "absences from the page {} {:g} s in all",
}
_SIDES = {"min": "below", "max": "above"}


_rule = partial(Help, panel="Who is left out")
_limit = partial(_rule, at_least=0)


@dataclass(frozen=True, kw_only=True)
class Exclusions:
    """Participants who are left out beside those who do not finish."""

    min_catch: Annotated[
        int | None, _limit("Catch trials that must be right; by default 11 of 12, or that share.")
    ] = None
    exclude: Annotated[Path | None, _rule("Whom to leave out: a table participant, reason.")] = None
    max_missing: Annotated[float, _limit("Share of trials that may be unrated.", at_most=1)] = 0.0
    min_median_rt: Annotated[float | None, _limit("Least median reaction time, ms.")] = None
    max_median_rt: Annotated[float | None, _limit("Greatest median reaction time, ms.")] = None
    min_minutes: Annotated[float | None, _limit("Least sum of reaction times, minutes.")] = None
    max_minutes: Annotated[float | None, _limit("Greatest sum of them, minutes.")] = None
    max_same_button: Annotated[
        float | None, _limit("Greatest share of answers by one button.", at_most=1)
    ] = None
    max_blurs: Annotated[int | None, _limit("How often the page may be left.")] = None
    max_away: Annotated[float | None, _limit("How long in all, seconds.")] = None
    participants: Annotated[
        Path | None, _rule("A table of them, or of their answers to questions, for --require.")
    ] = None
    require: Annotated[tuple[str, ...], _rule("COLUMN=VALUE that it must say of each.")] = ()
    partial: Annotated[bool, _rule("Keep unfinished sessions where a model allows it.")] = False

    def __post_init__(self) -> None:
        if self.participants is not None and not self.require:
            raise InputError("`participants` is a table for `require`: give both.")
        if wrong := [rule for rule in self.require if "=" not in rule]:
            raise InputError(f"`require` must be COLUMN=VALUE, not {wrong[0]!r}.")

    def rules(self) -> Iterator[Rule]:
        """Each rule as a phrase, and the function that finds who breaks it, and why."""
        if self.exclude is not None:
            yield "named in a table", partial(_named, self.exclude)
        for side, word in _SIDES.items():
            for what, phrase in _MEASURES.items():
                limit = getattr(self, f"{side}_{what}", None)
                if limit is not None:
                    yield phrase.format(word, limit), partial(_beyond, f"{side}_{what}", limit)
        for rule in self.require:
            column, _, value = (part.strip() for part in rule.partition("="))
            yield f"{column} other than {value}", partial(_other, self.participants, column, value)


def _named(path: Path, answers: Answers) -> dict[str, str]:
    """Participants of a table, each with the reason that it states."""
    table = read_table(path)
    (people,) = needed_columns(path, table, ["participant"])
    named = _of_each(path, people, table.get("reason") or [""] * len(people))
    if unknown := [name for name in named if name not in answers]:
        raise InputError(f"{path} names participants who gave no answer: {listed(unknown, 5)}.")
    return {name: reason or f"named in {path.name}" for name, reason in named.items()}


def _beyond(key: str, limit: float, answers: Answers) -> dict[str, str]:
    """Participants whose measure is beyond a limit; those without a measure are not."""
    side, _, what = key.partition("_")
    measured = {who: _measure(what, theirs) for who, theirs in answers.items()}
    if all(map(math.isnan, measured.values())):
        raise InputError(f"`{key}`: the responses do not say it of anybody. Leave the rule out.")
    return {
        who: f"{_MEASURES[what].format(_SIDES[side], limit)}: {value:.6g}"
        for who, value in measured.items()
        if (value < limit if side == "min" else value > limit)
    }


def _measure(what: str, theirs: Sequence[Response]) -> float:
    """A measure of a participant; nan where nothing was recorded."""
    values: list[float] = {
        "median_rt": [r.rt_ms for r in theirs],
        "minutes": [r.rt_ms / 60_000 for r in theirs],
        "same_button": [float(r.button) for r in theirs if r.button is not None],
        "blurs": [float(r.blurs) for r in theirs if r.blurs is not None],
        "away": [r.away_ms / 1_000 for r in theirs],
    }[what]
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return math.nan
    if what == "same_button":
        return max(Counter(known).values()) / len(known)
    return float(median(known) if what == "median_rt" else sum(known))


def _other(path: Path | None, column: str, value: str, answers: Answers) -> dict[str, str]:
    """Participants of whom a table says something else than a value, or nothing."""
    if path is None:
        raise InputError("`require` is about columns of the table `participants`: give both.")
    table = read_table(path)
    if column not in table and {"question", "answer"} <= table.keys():  # as of our own page
        cells = needed_columns(path, table, ("participant", "question", "answer"))
        rows = zip(*(map(_cell, each) for each in cells), strict=True)
        # Of several answers the last holds: a check of the instructions is asked again until right
        said = {who: answer for who, question, answer in rows if question == column}
    else:
        said = _of_each(path, *needed_columns(path, table, ("participant", column)))
    return {
        who: f"{column} is {said.get(who) or 'not stated'}, not {value}"
        for who in answers
        if said.get(who, "").casefold() != value.casefold()
    }


def _cell(cell: Any) -> str:
    return "" if cell is None else unescape_formula(str(cell).strip())


def _of_each(path: Path, people: Sequence[Any], cells: Sequence[Any]) -> dict[str, str]:
    """The cell of each participant of a table.

    Raises:
        InputError: somebody has several.
    """
    names = [*map(_cell, people)]
    if twice := repeated(names):
        raise InputError(
            f"{path} has several rows of {listed(twice, 5)}: leave one of each, so that it is "
            "clear what holds."
        )
    return dict(zip(names, map(_cell, cells), strict=True))
