"""Read requests within limits, check their fields with pydantic, and refuse invalid ones."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    FailFast,
    Field,
    StringConstraints,
    ValidationError,
)

from contstim.errors import InputError
from contstim.files.documents import parse_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

LONGEST_TEXT = 16_384  # characters
_LAST_POSITION = 1_000_000
_LONGEST_TIME = 1e10  # milliseconds, about four months
# Maximum number of callers (participants or network addresses) whose rates are stored. If there are
# more, the least recent caller is dropped
_MAX_CALLERS = 50_000


class RequestRefusal(Exception):  # noqa: N818 - an error of the client, not of the server
    """Refusal of a request, with an HTTP status and a message, which is one sentence.

    Attributes:
        facts: further fields of the response.
        wait: seconds until a retry; None if a retry does not help.
    """

    def __init__(
        self, status: int, sentence: str, *, wait: float | None = None, **facts: object
    ) -> None:
        super().__init__(sentence)
        self.status, self.wait, self.facts = status, wait, facts


@dataclass(frozen=True)
class RequestLimits:
    """Limits on the size and the rate of requests.

    A rate is a pair: the maximum number of requests at once, and the maximum number of requests per
    second in the long run. See `throttle`.

    Attributes:
        body: maximum size of a request's body, bytes.
        body_seconds: maximum time until the whole body has arrived, seconds.
        joining: maximum rate, from each network address, of requests to take part. All computers of
            a lab may have the same address. A separate limit with the same rate applies to the
            page's requests before consent.
        asking: maximum rate of each participant's requests after joining.
        failing: maximum rate, from each network address, of requests with a wrong secret or token.
    """

    body: int = 256 * 1024
    body_seconds: float = 30.0
    joining: tuple[float, float] = (300, 10)
    asking: tuple[float, float] = (60, 10)
    failing: tuple[float, float] = (30, 0.5)


def throttle(burst: float, per_second: float) -> Callable[[str, float], None]:
    """Return a function that limits the requests of each caller (token bucket).

    The function receives the caller and the time (seconds). The function raises `RequestRefusal` if
    the caller has made too many requests.

    Args:
        burst: maximum number of requests at once.
        per_second: maximum rate in the long run.
    """
    buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(caller: str, now: float) -> None:
        tokens, last_time = buckets.pop(caller, (burst, now))
        # Refill the bucket until it is full; no tokens are lost if the clock was set back
        tokens = min(burst, tokens + max(0.0, now - last_time) * per_second)
        buckets[caller] = (max(0.0, tokens - 1) if tokens >= 1 else tokens, now)
        if len(buckets) > _MAX_CALLERS:
            buckets.popitem(last=False)
        if tokens < 1:
            wait = (1 - tokens) / per_second
            raise RequestRefusal(429, "Too many requests; try again in a moment.", wait=wait)

    return take


Text = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_TEXT)]
OptionalText = Annotated[
    str,
    StringConstraints(max_length=LONGEST_TEXT),
    BeforeValidator(lambda value: "" if value is None else value),
]


Milliseconds = Annotated[float, Field(ge=0, le=_LONGEST_TIME)]


# Values are checked strictly (3.0 and "3" are not integers), but extra keys are ignored
class JoinRequest(BaseModel, strict=True, frozen=True):
    """Request to take part.

    Attributes:
        simulated: whether the participant is artificial; None means a person.
        platform: parameters in the web address, name → value. They identify the participant, for
            example on a recruiting platform. Unknown values are empty or missing.
        token: proof that the ID `participant` in the web address was issued by the experimenter;
            None if the address has no token.
        nonce: random text, by which the server recognizes a repeated request.
        device: kind of device; the page derives it from the browser's user agent. The user agent
            itself is not stored.
        viewport: width and height of the page in pixels.
    """

    group: Text | None = None
    platform: dict[Text, OptionalText] | None = None
    token: Text | None = None
    nonce: Annotated[str, StringConstraints(pattern=r"^[0-9a-z]{16,64}$")] | None = None
    simulated: bool | None = None
    device: Literal["phone", "tablet", "computer"] | None = None
    viewport: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,6}x[0-9]{1,6}$")] | None = None


class ReceivedAnswer(BaseModel, strict=True, frozen=True):
    """The answer to one trial; see `Response`.

    If `rating` is None, the trial was not rated before the deadline. In the other fields, None
    means that the value was not measured.
    """

    trial_id: Text
    # The range covers all scales; `Service.save` checks the values of the study's scale
    rating: Annotated[int, Field(ge=0, le=100)] | None
    left: Annotated[int, Field(ge=1, le=2)]
    position: Annotated[int, Field(ge=1, le=_LAST_POSITION)]
    rt_ms: Milliseconds | None = None
    input: Literal["key", "mouse", "touch"] | None = None
    blurs: Annotated[int, Field(ge=0, le=_LAST_POSITION)] | None = None
    away_ms: Milliseconds | None = None


class ParticipantRequest(BaseModel, strict=True, frozen=True):
    """A participant's request, which also contains answers to questions and the state of the page.

    Attributes:
        secret: the participant's secret, if the header Authorization does not contain this secret.
        questions: answers to questions other than the trials, by name.
        second_tabs: number of times that the page was opened in another tab.
        failed: whether the participant failed every attempt at the questions on the instructions.
    """

    participant: Text
    secret: Text | None = None
    questions: Annotated[dict[Text, OptionalText], Field(max_length=200)] = {}
    second_tabs: Annotated[int, Field(ge=0, le=_LAST_POSITION)] = 0
    failed: bool = False


class SaveRequest(ParticipantRequest, frozen=True):
    """A participant's answers; checking stops at the first invalid answer."""

    responses: Annotated[list[ReceivedAnswer], FailFast()]


class ReceivedDecision(BaseModel, strict=True, frozen=True):
    """Decision of a reviewer about an item; see `ReviewedItem`. The reason is a single line."""

    item_id: Text
    decision: Literal["", "keep", "reject"]
    reason: Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\p{Cc}]*$")]


class DecideRequest(BaseModel, strict=True, frozen=True):
    """A reviewer's decisions; `fingerprint` identifies the items that the reviewer's page shows."""

    fingerprint: Text
    decisions: Annotated[list[ReceivedDecision], FailFast(), Field(min_length=1)]


_Kind = TypeVar("_Kind", bound=BaseModel)


async def read_json(request: Request, limits: RequestLimits) -> Any:
    """Read the JSON value of a request.

    Raises:
        RequestRefusal: if the body is too large, arrives too slowly, is not declared as JSON, or is
            invalid JSON.
    """
    # Only JSON is accepted, so that pages of other sites cannot send requests. A browser lets such
    # pages send plain text to this server. Before the browser sends JSON for such a page, it asks
    # this server for permission, and the server refuses.
    media_type = request.headers.get("content-type", "").partition(";")[0]
    if media_type.strip().lower() != "application/json":
        raise RequestRefusal(415, "Content-Type must be application/json.")
    try:
        async with asyncio.timeout(limits.body_seconds):
            body = b""
            async for part in request.stream():
                body += part
                if len(body) > limits.body:
                    raise RequestRefusal(413, f"A request may have at most {limits.body} bytes.")
    except TimeoutError:
        raise RequestRefusal(408, "The request timed out.") from None
    try:
        return parse_json(body, "The body")
    except InputError:
        raise RequestRefusal(400, "The body is not JSON in UTF-8.") from None


def check_fields(content: object, kind: type[_Kind]) -> _Kind:
    """Check the fields of a request.

    Raises:
        RequestRefusal: if a field is missing or invalid; the message names the field.
    """
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        # The message must not contain the value, which may be a secret or identify a person
        mistake = error.errors(include_input=False, include_url=False, include_context=False)[0]
        field = ".".join(map(str, mistake["loc"])) or "The body"
        rule = _RULES.get(mistake["type"]) or mistake["msg"].partition(" ")[2]
        raise RequestRefusal(422, f"{field} {rule}.") from None


# Messages by pydantic's type of error. For other types, pydantic's message is used without its
# first word: "Input should be less than 3" becomes "should be less than 3"
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
    """Return the secret in the header Authorization; empty if there is none."""
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret.strip() if kind.lower() == "bearer" else ""


def address(request: Request) -> str:
    """Return the client's address, for rate limits; empty if unknown."""
    return request.client.host if request.client else ""
