"""A reviewer's page, served to this machine only; each decision is saved in review.csv."""

from __future__ import annotations

import asyncio
import hashlib
import re
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from contstim.errors import InputError
from contstim.experiments.collection.requests import (
    DecideRequest,
    RequestLimits,
    RequestRefusal,
    check_fields,
    read_json,
)
from contstim.experiments.collection.server import listen, run, sparing_log
from contstim.experiments.collection.service import HEADERS, application_of, json_response
from contstim.items.reviews import Decision, Review, ReviewedItem, read_reviews, write_review

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from starlette.applications import Starlette
    from starlette.requests import Request

    from contstim.experiments.collection.requests import ReceivedDecision
    from contstim.reporting.review import ReviewPage

HOST = "127.0.0.1"


def review_file(page: Path, reviewer: str) -> Path:
    """Return the path of a reviewer's decisions, review.csv or review-NAME.csv next to the page."""
    name = re.sub(r"[^\w-]+", "_", reviewer)
    return page.with_name(f"review-{name}.csv" if reviewer else "review.csv")


@dataclass
class ReviewFile:
    """A reviewer's review.csv, rewritten with every decision.

    Attributes:
        content: content of the page, with all items to review.
        decisions: decided items, by identifier.
    """

    path: Path
    content: ReviewPage
    decisions: dict[str, ReviewedItem] = field(default_factory=dict)
    _written_digest: bytes | None = None

    @classmethod
    def open(
        cls, path: Path, content: ReviewPage, table: Path | str, earlier: Review | None = None
    ) -> ReviewFile:
        """Open a review file, which may not exist yet; nothing is written.

        If the file is missing, the decisions of this reviewer in `earlier` are used. `table` is the
        name of the table of stimuli in messages.

        Raises:
            InputError: if the file is by another reviewer or about other items, or if its items
                have changed.
        """
        items = content.items
        reviewer, by_id = items[0].reviewer, {item.item_id: item for item in items}
        written = _digest(path)
        if written is not None:
            try:
                earlier = read_reviews([path])
                earlier.require_items_of(content.stimuli, table)
                kinds = {item.kind for item in earlier.decisions} - {items[0].kind}
                if kinds:
                    raise InputError(f"It is a review of {', '.join(kinds)}s.")
                reviewers = {item.reviewer for item in earlier.decisions}
                # If the column `reviewer` is empty, the file's name identifies the reviewer
                if reviewers - {reviewer or path.stem}:
                    raise InputError(f"It is the review of {', '.join(sorted(reviewers))}.")
            except InputError as error:
                raise InputError(
                    f"{path} already exists and is not overwritten by this review. {error} "
                    f"Move {path.name} to another folder, or name another folder with --out."
                ) from error
            reviewer = reviewer or path.stem
        decisions = {
            item.item_id: replace(by_id[item.item_id], decision=item.decision, reason=item.reason)
            for item in (earlier.decisions if earlier else ())
            if item.decision and item.reviewer == reviewer and item.item_id in by_id
        }
        return cls(path, content, decisions, written)

    def decide(self, changes: Sequence[ReceivedDecision]) -> None:
        """Apply decisions and rewrite the whole file; after an error, the file is unchanged.

        Raises:
            RequestRefusal: if an item is not part of the review, or another program has changed
                the file.
            InputError: if the file cannot be written.
        """
        by_id = {item.item_id: item for item in self.content.items}
        for change in changes:
            if change.item_id not in by_id:
                raise RequestRefusal(422, f"The item {change.item_id!r} does not exist.")
        # Rewriting the file would discard changes by another program
        if _digest(self.path) != self._written_digest:
            raise RequestRefusal(
                409,
                f"{self.path.name} was changed by another program and is not overwritten. Stop the "
                "server and start it again; the browser keeps decisions that are not saved yet.",
            )
        decisions = self.decisions | {
            change.item_id: replace(
                by_id[change.item_id], decision=Decision(change.decision), reason=change.reason
            )
            for change in changes
        }
        write_review(self.path, [decisions.get(name, item) for name, item in by_id.items()])
        self._written_digest, self.decisions = _digest(self.path), decisions


def serve_review(file: ReviewFile, *, port: int, opened: Callable[[str], None]) -> None:
    """Serve the page to browsers of this machine and save decisions, until interrupted.

    `opened` receives the page's address when the server is ready. Port 0 means any free port.

    Raises:
        InputError: if the port cannot be used.
    """
    with closing(listen(HOST, port)) as listening:
        number = listening.getsockname()[1]
        application = review_application(file, number)
        with sparing_log(), suppress(KeyboardInterrupt):
            opened(f"http://{HOST}:{number}/")
            run(application, listening)


def review_application(file: ReviewFile, port: int) -> Starlette:
    """Create an ASGI application with the page and the address that accepts decisions."""
    hosts = {f"{HOST}:{port}", f"localhost:{port}"}
    save_lock = asyncio.Lock()

    def check_host(request: Request) -> None:
        # If a page of another site sends a request to this server, the Origin header names that
        # site. If that site's domain name now leads to this machine (DNS rebinding), the Host
        # header names that site.
        if request.headers.get("host") not in hosts:
            raise RequestRefusal(
                421, f"This server accepts requests at http://{HOST}:{port}/ only."
            )
        origin = request.headers.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in hosts}:
            raise RequestRefusal(403, "This server accepts requests from its own page only.")

    async def page(request: Request) -> Response:
        check_host(request)
        html = await asyncio.to_thread(
            file.content.html, decisions=file.decisions, file=file.path.name
        )
        # The page contains its security policy, except frame-ancestors, which must be in a header
        policy = {"Content-Security-Policy": "frame-ancestors 'none'"}
        return HTMLResponse(html, headers=HEADERS | policy)

    async def decide(request: Request) -> Response:
        check_host(request)
        body = check_fields(await read_json(request, RequestLimits()), DecideRequest)
        if body.fingerprint != file.content.fingerprint:
            raise RequestRefusal(409, "The page shows other items. Load it again.")
        async with save_lock:
            try:
                await asyncio.to_thread(file.decide, body.decisions)
            except InputError as error:
                raise RequestRefusal(503, str(error), wait=3) from error
        return json_response({"saved": len(body.decisions)})

    return application_of(Route("/", page), Route("/decisions", decide, methods=["POST"]))


def _digest(path: Path) -> bytes | None:
    return hashlib.sha256(path.read_bytes()).digest() if path.exists() else None
