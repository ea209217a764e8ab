"""`contstim review`, which can serve the page that its step writes."""

from __future__ import annotations

from inspect import Parameter
from typing import Annotated

import typer

from contstim.cli.commands import StepCommand, run_step
from contstim.cli.output import remark
from contstim.errors import WorkerError
from contstim.steps.review import WriteReviewPage, flagged
from contstim.wording import counted

_SERVE = Annotated[
    bool,
    typer.Option("--serve", help="Serve the page and save each decision in review.csv beside it."),
]
_PORT = Annotated[int, typer.Option(min=0, max=65535, help="Where to serve; 0 for any free port.")]


def _review(step: WriteReviewPage, *, quiet: bool, serve: bool, port: int) -> None:
    """Write the page, and serve it where this is asked for."""
    if not serve:
        run_step(step, quiet=quiet)
        return
    try:
        from contstim.experiments.collection.reviewing import (
            ReviewFile,
            review_file,
            serve_review,
        )
    except ModuleNotFoundError as error:
        raise WorkerError(
            f"Serving needs {error.name}, which is not installed: pip install "
            "'contstim[collect]'. Without --serve the page keeps decisions in the browser."
        ) from error
    from contstim.reviews import read_reviews
    from contstim.stimuli import read_stimulus_table

    content = step.run()
    earlier = read_reviews(step.review) if step.review else None
    path = review_file(step.out, content.facts["reviewer"])
    stimuli = read_stimulus_table(step.table)
    file = ReviewFile.open(path, content.items, stimuli, step.table, earlier)

    def opened(url: str) -> None:
        # Alone on standard output, for scripts that wait for the address
        print(url, flush=True)
        done = sum(bool(item.decision) for item in file.decisions.values())
        remark(
            f"{flagged(content)}; {counted(done, 'decision')} from before. Open the address in a "
            f"browser of this machine; each decision is saved in {path}. Ctrl-C stops the "
            "server.",
            quiet=quiet,
        )

    serve_review(content, file, port=port, opened=opened)


def _option(name: str, default: object, annotation: object) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


REVIEW = StepCommand(
    WriteReviewPage,
    (_option("serve", False, _SERVE), _option("port", 8001, _PORT)),
    _review,
)
