"""`contstim collect`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contstim.cli.options import Quiet
from contstim.cli.output import remark, warn
from contstim.errors import WorkerError


def collect(
    folder: Annotated[Path, typer.Argument(help="An experiment, from `export jspsych`.")],
    database: Annotated[
        Path | None,
        typer.Option(help="Where answers are kept; by default beside the folder, FOLDER.sqlite."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Where to listen; 0.0.0.0 lets other machines in.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where to listen; 0 for any free one.")
    ] = 8000,
    code: Annotated[
        str | None,
        typer.Option(
            help="The completion code; by default the export's, or one for each person if there is "
            "no redirect."
        ),
    ] = None,
    redirect: Annotated[
        str | None,
        typer.Option(help="Where browsers go once everything is saved, such as Prolific's link."),
    ] = None,
    dropout: Annotated[
        float,
        typer.Option(min=0.1, help="Minutes without an answer after which a place is free again."),
    ] = 30,
    participants: Annotated[
        int, typer.Option(min=1, help="Participants in all; further ones are turned away.")
    ] = 10_000,
    behind_proxy: Annotated[
        bool,
        typer.Option("--behind-proxy", help="Believe X-Forwarded-For of a proxy on this machine."),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Hand out an experiment and keep every answer as it comes, until Ctrl-C.

    Each answer is on disk before the page hears that it is saved; started again, the server goes on
    with the same database. Responses are downloaded with the administrator's token, which stands in
    a file beside the database, or in the environment variable CONTSTIM_ADMIN_TOKEN.

    Example: `contstim collect experiment --port 8000`
    """
    try:
        from contstim.experiments.collection.participants import StudyOptions
        from contstim.experiments.collection.server import database_of, serve
    except ModuleNotFoundError as error:
        raise WorkerError(
            f"Collecting needs {error.name}, which is not installed: pip install "
            "'contstim[collect]'."
        ) from error
    from contstim.experiments.platforms.jspsych import unfilled_warning
    from contstim.records import Record, record_path

    path = database or database_of(folder)
    warn(unfilled_warning(folder))

    def opened(url: str, token_file: Path | None) -> None:
        # Readable by its owner alone, because the command may hold the completion code and link
        facts = {"folder": str(folder), "dropout_minutes": dropout, "participants": participants}
        # Answers are still to come: the database has no checksum
        record = Record.of(record_path(path), inputs={}, outputs=(), facts=facts)
        record.write(private=True)
        # Alone on standard output, for scripts that wait for the address
        print(url, flush=True)
        where = token_file or "CONTSTIM_ADMIN_TOKEN"
        remark(
            f"Answers are kept in {path}. Download them with the token in {where}:\n"
            f'  curl -H "Authorization: Bearer TOKEN" {url}admin/responses.csv '
            "-o responses.csv\nCtrl-C stops the server; nothing is lost.",
            quiet=quiet,
        )
        if host not in ("127.0.0.1", "localhost", "::1"):
            warn(
                "other machines can reach this server, and what it sends is not "
                "encrypted; put a proxy with HTTPS in front of it."
            )

    serve(
        folder,
        path,
        StudyOptions(60 * dropout, participants, code, redirect),
        host=host,
        port=port,
        behind_proxy=behind_proxy,
        opened=opened,
    )
