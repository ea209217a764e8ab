"""Requests, read within limits and checked by pydantic: what is wrong is refused with a reason."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    StringConstraints,
    ValidationError,
)

from contstim.errors import InputError
from contstim.files.documents import parse_json

if TYPE_CHECKING:
    from starlette.requests import Request

LONGEST_TEXT = 16_384  # characters
_LAST_POSITION = 1_000_000
_LONGEST_TIME = 1e10  # milliseconds, about four months
_MOST_CALLERS = 50_000  # whoever was quiet longest is forgotten


class RequestRefusal(Exception):  # noqa: N818 - it is the client's error, not ours
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
class RequestLimits:
    """Limits on how large and how frequent requests may be: see `Throttle` on rates.

    Attributes:
        body: bytes of a request.
        body_seconds: how long a request's body may take to arrive.
        joining: new participants from one address; a lab may share one.
        asking: requests of one participant.
        failing: requests of one address with a wrong secret or token.
    """

    body: int = 256 * 1024
    body_seconds: float = 30.0
    joining: tuple[float, float] = (300, 10)
    asking: tuple[float, float] = (60, 10)
    failing: tuple[float, float] = (30, 0.5)


@dataclass
class Throttle:
    """A bucket of tokens for each caller: a request takes one, and they come back with time.

    Attributes:
        burst: requests at once.
        per_second: requests in the long run.
    """

    burst: float
    per_second: float
    _buckets: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def take(self, caller: str, now: float) -> None:
        """Let one request through.

        Raises:
            RequestRefusal: the caller has asked too often.
        """
        left, then = self._buckets.pop(caller, (self.burst, now))
        # what came back meanwhile, up to a full bucket; clocks may be set back
        left = min(self.burst, left + max(0.0, now - then) * self.per_second)
        self._buckets[caller] = (max(0.0, left - 1) if left >= 1 else left, now)
        if len(self._buckets) > _MOST_CALLERS:
            self._buckets.popitem(last=False)
        if left < 1:
            wait = (1 - left) / self.per_second
            raise RequestRefusal(429, "Too many requests; try again in a moment.", wait=wait)


Text = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_TEXT)]
OptionalText = Annotated[
    str,
    StringConstraints(max_length=LONGEST_TEXT),
    BeforeValidator(lambda given: "" if given is None else given),
]


Milliseconds = Annotated[float, Field(ge=0, le=_LONGEST_TIME)]


class _Body(BaseModel):
    """Strict: 3.0 and "3" are not whole numbers. Further fields are ignored."""

    model_config = ConfigDict(strict=True, frozen=True)


class JoinRequest(_Body):
    """Somebody takes part; pages that do not speak of simulation are people's.

    Attributes:
        platform: identity on a recruiting platform; what is unknown is empty or missing.
        token: of the address, which proves the identity `participant`; None: the address has none.
        nonce: a random text by which a repeated request is recognised.
        device: told by the browser's name of itself, which is not kept.
        viewport: width and height that the page has, in pixels.
    """

    group: Text | None = None
    platform: dict[Text, OptionalText] | None = None
    token: Text | None = None
    nonce: Annotated[str, StringConstraints(pattern=r"^[0-9a-z]{16,64}$")] | None = None
    simulated: bool | None = None
    device: Literal["phone", "tablet", "computer"] | None = None
    viewport: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,6}x[0-9]{1,6}$")] | None = None


class ReceivedAnswer(_Body):
    """The answer to one trial; see `Response`. None was not measured."""

    trial_id: Text
    rating: Annotated[int, Field(ge=0, le=100)] | None  # of any scale: see `Service.save`
    left: Annotated[int, Field(ge=1, le=2)]
    position: Annotated[int, Field(ge=1, le=_LAST_POSITION)]
    rt_ms: Milliseconds | None = None
    input: Literal["key", "mouse", "touch"] | None = None
    blurs: Annotated[int, Field(ge=0, le=_LAST_POSITION)] | None = None
    away_ms: Milliseconds | None = None


class ParticipantRequest(_Body):
    """A participant asks for something, and tells what is known by now.

    Attributes:
        secret: here, or in the header.
        questions: answers to questions beside the trials, by their names.
        second_tabs: how often the page was opened in a further tab.
        failed: true once the check of the instructions was wrong too often.
    """

    participant: Text
    secret: Text | None = None
    questions: Annotated[dict[Text, OptionalText], Field(max_length=200)] = {}
    second_tabs: Annotated[int, Field(ge=0, le=_LAST_POSITION)] = 0
    failed: bool = False


class SaveRequest(ParticipantRequest):
    """A participant's answers; the first that is wrong ends the check."""

    responses: Annotated[list[ReceivedAnswer], FailFast()]


class ReceivedDecision(_Body):
    """Decision of a reviewer about an item; see `ReviewedItem`. One line, as a cell should be."""

    item_id: Text
    decision: Literal["", "keep", "reject"]
    reason: Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\p{Cc}]*$")]


class DecideRequest(_Body):
    """A reviewer's decisions about the items that have this fingerprint."""

    fingerprint: Text
    decisions: Annotated[list[ReceivedDecision], FailFast(), Field(min_length=1)]


_Kind = TypeVar("_Kind", bound=_Body)


async def read_json(request: Request, limits: RequestLimits) -> Any:
    """The JSON value that a request holds.

    Raises:
        RequestRefusal: the body is too large, too slow, not said to be JSON, or not JSON in UTF-8.
    """
    # Browsers let any page send text to any server, but JSON only to its own
    media_type = request.headers.get("content-type", "").partition(";")[0]
    if media_type.strip().lower() != "application/json":
        raise RequestRefusal(415, "Content-Type must be application/json.")
    try:
        async with asyncio.timeout(limits.body_seconds):
            body = b""
            async for part in request.stream():
                body += part
                if len(body) > limits.body:
                    raise RequestRefusal(413, f"A request may hold {limits.body} bytes.")
    except TimeoutError:
        raise RequestRefusal(408, "The request took too long to arrive.") from None
    try:
        return parse_json(body, "The body")
    except InputError:
        raise RequestRefusal(400, "The body is not JSON in UTF-8.") from None


def check_fields(content: object, kind: type[_Kind]) -> _Kind:
    """Fields of a request, checked.

    Raises:
        RequestRefusal: a field is missing or wrong (names it).
    """
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        # Field and rule, never the value: it may be a secret, or say who somebody is
        mistake = error.errors(include_input=False, include_url=False, include_context=False)[0]
        field = ".".join(map(str, mistake["loc"])) or "The body"
        rule = _RULES.get(mistake["type"]) or mistake["msg"].partition(" ")[2]
        raise RequestRefusal(422, f"{field} {rule}.") from None


# What Python and pydantic call otherwise; other messages begin with "Input should" or the like.
_RULES = {
    "missing": "is missing",
    "model_type": "must be an object",
    "list_type": "must be a list",
    "string_type": "must be a text",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
}


def bearer(request: Request) -> str:
    """The secret of the header Authorization; empty where there is none."""
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret.strip() if kind.lower() == "bearer" else ""


def address(request: Request) -> str:
    """Address that a request comes from, as far as limits are concerned."""
    return request.client.host if request.client else ""
