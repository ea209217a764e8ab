"""Requests, checked field by field: what is wrong is a refusal with a reason, never an error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from contstim.documents import parse_json
from contstim.errors import InputError
from contstim.experiments.responses.table import SCALE

LONGEST_TEXT = 16_384  # characters
_LAST_POSITION = 1_000_000
_LONGEST_TIME = 1e10  # milliseconds, about four months


class Refusal(Exception):  # noqa: N818 - it is the client's error, not ours
    """A request that is answered with a 4xx status and a sentence.

    Attributes:
        status: of HTTP.
        facts: what the answer says beside the sentence.
        wait: seconds after which to try again; None: trying again does not help.
    """

    def __init__(
        self, status: int, sentence: str, *, wait: float | None = None, **facts: object
    ) -> None:
        super().__init__(sentence)
        self.status, self.wait, self.facts = status, wait, facts


@dataclass(frozen=True)
class Identity:
    """Who somebody is on a recruiting platform; what is unknown is empty."""

    prolific_pid: str
    study_id: str
    session_id: str


@dataclass(frozen=True)
class Rated:
    """One answer; see `Response`. A reaction time of None was not measured."""

    trial_id: str
    rating: int
    left: int
    position: int
    rt_ms: float | None


def parse(body: bytes) -> dict[str, Any]:
    """The object that a body holds.

    Raises:
        Refusal: it is not UTF-8, not JSON, or no object.
    """
    try:
        content = parse_json(body, "The body")
    except InputError:
        raise Refusal(400, "The body is not JSON in UTF-8.") from None
    if not isinstance(content, dict):
        raise Refusal(422, "The body must be a JSON object.")
    return content


def text(content: dict[str, Any], name: str) -> str:
    """A field that must be a text, not empty.

    Raises:
        Refusal: it is missing, no text, too long, or cannot be written as UTF-8.
    """
    value = content.get(name)
    if not isinstance(value, str) or not value or len(value) > LONGEST_TEXT:
        raise Refusal(422, f"{name} must be a text of 1 to {LONGEST_TEXT} characters.")
    try:
        value.encode()
    except UnicodeEncodeError:  # JSON can spell half a surrogate pair
        raise Refusal(422, f"{name} is not valid Unicode.") from None
    return value


def group(content: dict[str, Any]) -> str | None:
    """The group that a request asks for.

    Raises:
        Refusal: it is neither missing nor a text.
    """
    return None if content.get("group") is None else text(content, "group")


def simulated(content: dict[str, Any]) -> bool:
    """Whether an artificial participant asks; pages that do not say are people's.

    Raises:
        Refusal: it is not a truth value.
    """
    value = content.get("simulated")
    if not (value is None or isinstance(value, bool)):
        raise Refusal(422, "simulated must be true, false or null.")
    return bool(value)


def identity(content: dict[str, Any]) -> Identity | None:
    """Who a participant is on Prolific, if anybody.

    Raises:
        Refusal: the platform's values are no texts.
    """
    platform = content.get("platform")
    if platform is None:
        return None
    if not isinstance(platform, dict):
        raise Refusal(422, "platform must be an object or null.")
    known = [
        text(platform, name) if platform.get(name) not in (None, "") else ""
        for name in ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID")
    ]
    return Identity(*known) if any(known) else None


def ratings(content: dict[str, Any]) -> tuple[Rated, ...]:
    """The answers of a request.

    Raises:
        Refusal: there are none, or one has a value that cannot be.
    """
    listed = content.get("responses")
    if not isinstance(listed, list) or not listed or not all(isinstance(r, dict) for r in listed):
        raise Refusal(422, "responses must be a list of one object or more.")
    return tuple(_rated(one) for one in listed)


def _rated(one: dict[str, Any]) -> Rated:
    return Rated(
        text(one, "trial_id"),
        _whole(one, "rating", SCALE[0], SCALE[-1]),
        _whole(one, "left", 1, 2),
        _whole(one, "position", 1, _LAST_POSITION),
        _milliseconds(one.get("rt_ms")),
    )


def _whole(one: dict[str, Any], name: str, least: int, most: int) -> int:
    value = one.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise Refusal(422, f"{name} must be a whole number from {least} to {most}.")
    return value


def _milliseconds(value: object) -> float | None:
    if value is None:
        return None
    known = isinstance(value, int | float) and not isinstance(value, bool)
    if not known or not 0 <= value <= _LONGEST_TIME:  # type: ignore[operator]
        raise Refusal(422, "rt_ms must be a number of milliseconds, or null.")
    return float(value)  # type: ignore[arg-type]
