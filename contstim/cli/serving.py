"""Commands that serve pages: `contstim collect`, and `contstim review --serve`."""

from __future__ import annotations

import csv
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from contstim.cli.output import Quiet, remark, warn
from contstim.errors import InputError, needing
from contstim.experiments.collection import participants
from contstim.options import Help
from contstim.steps.review import WriteReviewPage
from contstim.wording import quantity

_DEFAULTS = participants.StudyOptions()
_Port = Annotated[int, Help("Port; 0 for any free port.", at_least=0, at_most=65535)]


def collect(
    *,
    folder: Annotated[Path, Help("An experiment, from `export jspsych`.", argument=True)],
    database: Annotated[
        Path | None, Help("Database of answers; by default FOLDER.sqlite next to the folder.")
    ] = None,
    host: Annotated[
        str, Help("Network address of the server; 0.0.0.0 allows access from other machines.")
    ] = "127.0.0.1",
    port: _Port = 8000,
    options: participants.StudyOptions = _DEFAULTS,
    behind_proxy: Annotated[
        bool, Help("Trust the header X-Forwarded-For of a proxy on this machine.")
    ] = False,
    links: Annotated[
        Path | None,
        Help(
            "Do not serve. Read participants' IDs from this file, one per line, and print each "
            "participant's link as CSV."
        ),
    ] = None,
    url: Annotated[
        str, Help("With --links: public address of the page; by default http://HOST:PORT/.")
    ] = "",
    whose: Annotated[
        str | None,
        Help("Do not serve. Print which participant has this completion code, ID or name."),
    ] = None,
    withdraw: Annotated[
        str | None,
        Help(
            "Do not serve. Delete the answers of the participant with this ID, completion code or "
            "name."
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Serve an experiment and save every answer when it arrives, until Ctrl-C.

    The page reports an answer as saved only after it is on disk. A restarted server continues with
    the same database. To download responses, use the administrator's token (a password). The token
    is in a file next to the database, unless the environment variable CONTSTIM_ADMIN_TOKEN sets it.

    Example: `contstim collect experiment --port 8000`
    """
    with needing("collect", "Collecting"):
        from contstim.experiments.collection.server import database_of, serve
        from contstim.experiments.collection.service import read_study
    from contstim.experiments.platforms.jspsych import unfilled_warning
    from contstim.files.records import Record, record_path

    path = database or database_of(folder)
    if links is not None:
        read_study(folder.resolve())
        pairs = participants.participant_links(path, links, _public_address(url, host, port))
        csv.writer(sys.stdout, lineterminator="\n").writerows([("participant", "link"), *pairs])
    if whose is not None:
        print(participants.whose(path, whose))
    if withdraw is not None:
        message = participants.withdraw(path, withdraw, datetime.now(UTC).date().isoformat())
        print(
            f"{message} Download responses.csv and participants.csv again, and run the study "
            "again; earlier copies and archives still contain the deleted answers."
        )
    if (links, whose, withdraw) != (None, None, None):
        return
    warn(unfilled_warning(folder))

    def report_start(url: str, token_file: Path | None) -> None:
        # Only the owner may read the record (metadata file next to the database). The record
        # contains the command line, which may reveal the completion code (--code, --redirect)
        facts = {
            "folder": str(folder),
            "dropout_minutes": options.dropout,
            "participants": options.participants,
        }
        # The record lists no outputs, because a checksum of the database would soon be out of date
        Record.of(record_path(path), inputs={}, outputs=(), facts=facts).write(private=True)
        # Standard output gets only this line, so that scripts can wait for the address
        print(url, flush=True)
        token_source = token_file or "CONTSTIM_ADMIN_TOKEN"
        remark(
            f"Answers are saved in {path}. Download them with the token in {token_source}:\n  "
            f'curl -H "Authorization: Bearer TOKEN" {url}admin/responses.csv -o '
            "responses.csv\nCtrl-C stops the server; answers remain saved.",
            quiet=quiet,
        )
        if options.rehearsal:
            warn(
                "this is a rehearsal: anyone who opens the page can take part as an "
                "artificial participant. Collect answers of people in another database, "
                "without --rehearsal."
            )
        if host not in ("127.0.0.1", "localhost", "::1"):
            warn(
                "other machines can reach this server, and its data are not encrypted. Use a "
                "proxy with HTTPS."
            )

    serve(
        folder,
        path,
        options,
        host=host,
        port=port,
        behind_proxy=behind_proxy,
        opened=report_start,
    )


def _public_address(url: str, host: str, port: int) -> str:
    """Return the page's address for participants: `url`, or host and port if `url` is empty."""
    if url:
        return url
    if not port or host in ("0.0.0.0", "::"):
        raise InputError(
            f"The public address of the page is unknown for host {host} and port {port}. Set "
            "--url, such as --url https://experiment.example.org/."
        )
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def review(
    step: WriteReviewPage,
    *,
    quiet: Quiet = False,
    serve: Annotated[
        bool, Help("Serve the page and save each decision in review.csv next to it.")
    ] = False,
    port: _Port = 8001,
) -> bool:
    """If `serve` is set, serve the page until the server is stopped; return `serve`."""
    if not serve:
        return False
    with needing("collect", "Serving"):
        from contstim.experiments.collection.reviewing import ReviewFile, review_file, serve_review
    from contstim.items.reviews import read_reviews

    content = step.run()
    earlier = read_reviews(step.review) if step.review else None
    path = review_file(step.out, content.facts["reviewer"])
    file = ReviewFile.open(path, content, step.table, earlier)

    def report_start(url: str) -> None:
        # Standard output gets only this line, so that scripts can wait for the address
        print(url, flush=True)
        done = sum(bool(item.decision) for item in file.decisions.values())
        remark(
            f"{content.flagged.text} {quantity(done, 'decision')} from earlier sessions. Open "
            f"the address in a browser of this machine; each decision is saved in {path}. "
            "Ctrl-C stops the server.",
            quiet=quiet,
        )

    serve_review(file, port=port, opened=report_start)
    return True
