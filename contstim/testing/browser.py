"""Artificial participants who use the exported page itself, in Chromium.

If the address of the page ends in `?simulate=data`, the page reads answers from
`window.contstimSimulation` ({trial_id: rating}). Without this ending, the page waits for the
answers of a human participant.
"""

from __future__ import annotations

import json
import math
import shutil
from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from contstim.errors import InputError, WorkerError, needing
from contstim.experiments.platforms.jspsych.study import check_web_address
from contstim.experiments.responses.table import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from contstim.experiments.design.artificial import ArtificialParticipants
    from contstim.items.scale import Scale

_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")  # the page allows simulation only on these hosts
_CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


def take_part_in_browser(
    people: ArtificialParticipants,
    url: str,
    participants: int,
    *,
    patience: float = 300.0,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> tuple[Response, ...]:
    """Let artificial participants use the page of a served study, one after another.

    `patience` is the maximum time for one participant, seconds. `progress` receives the completed
    and the total number of participants.

    Returns:
        The responses that the server has acknowledged.

    Raises:
        InputError: if the address is not a web address on this machine.
        WorkerError: if Playwright or Chromium is missing, or a page does not reach its end.
    """
    _check_address(url)
    with needing("browser", "A browser"):
        from playwright import sync_api as playwright
    # If no Chromium is installed, None selects the browser that Playwright has downloaded
    chromium = next(filter(None, map(shutil.which, _CHROMIUM)), None)
    responses: list[Response] = []
    with playwright.sync_playwright() as driver:
        try:
            browser = driver.chromium.launch(executable_path=chromium)
        except playwright.Error as error:
            raise WorkerError(
                f"Chromium does not start ({error}). Install it, or omit --browser."
            ) from error
        with closing(browser):
            for number in range(1, participants + 1):
                try:
                    responses += _visit(browser, people, url, number, patience)
                except playwright.Error as error:
                    raise WorkerError(
                        f"Artificial participant {number} did not reach the end of {url}: {error}"
                    ) from error
                progress(number, participants)
    return tuple(responses)


def _check_address(url: str) -> None:
    check_web_address(url)
    if urlsplit(url).hostname not in _THIS_MACHINE:
        raise InputError(
            f"The page of {url} does not accept artificial participants; only pages on "
            f"{', '.join(_THIS_MACHINE)} do. Start a server on this machine, or omit --browser."
        )


def _visit(
    browser: Any, people: ArtificialParticipants, url: str, number: int, patience: float
) -> list[Response]:
    joined: dict[str, Any] = {}
    answers: dict[str, dict[str, Any]] = {}

    def listen(response: Any) -> None:
        if not response.ok or response.request.method != "POST":
            return
        if response.url.endswith(("/api/participants", "/api/resume")):
            joined.update(response.json())
        elif response.url.endswith("/api/responses"):
            # As on the server, the first answer to a trial counts
            for answer in response.request.post_data_json["responses"]:
                answers.setdefault(answer["trial_id"], answer)

    # Open a new browser context, so that each participant has separate storage
    with closing(browser.new_context()) as context:
        page = context.new_page()
        # Call `JSON.parse`, because a trial id `__proto__` in an object literal would set the
        # prototype of the object
        ratings = json.dumps(json.dumps(people.ratings(number)))
        page.add_init_script(f"window.contstimSimulation = JSON.parse({ratings})")
        page.route("**/*", lambda route: _handle(route, urlsplit(url).netloc))
        page.on("response", listen)
        with page.expect_response(_is_last, timeout=1000 * patience) as last:
            page.goto(f"{url.rstrip('/')}/?simulate=data")
        if not last.value.ok:
            raise WorkerError(f"The server rejected the request: {last.value.json()['error']}")
    return [_response(joined, answer, people.scale) for answer in answers.values()]


def _is_last(response: Any) -> bool:
    """Return True for the server's last reply: the study is complete, or access is refused."""
    ends = ("/api/complete",) if response.ok else ("/api/open", "/api/participants")
    return bool((response.ok or response.status == 403) and response.url.endswith(ends))


def _response(joined: dict[str, Any], answer: dict[str, Any], scale: Scale) -> Response:
    answer_fields = {name: answer[name] for name in ("trial_id", "rating", "left", "position")}
    rt_ms = math.nan if answer.get("rt_ms") is None else float(answer["rt_ms"])
    participant, group = joined["participant"], int(joined["group"])
    return Response(participant, group, **answer_fields, rt_ms=rt_ms, simulated=True, scale=scale)


def _handle(route: Any, host: str) -> None:
    """Mark the participant as simulated, and block the link to the recruiting platform."""
    request = route.request
    if request.is_navigation_request() and urlsplit(request.url).netloc != host:
        route.abort()
    elif request.method == "POST" and request.url.endswith("/api/participants"):
        # Pages of older exports do not send this field
        route.continue_(post_data=json.dumps({**request.post_data_json, "simulated": True}))
    else:
        route.continue_()
