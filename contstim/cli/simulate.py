"""`contstim simulate`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.options import Quiet, Seed
from contstim.cli.progress import ProgressBars
from contstim.errors import InputError, WorkerError
from contstim.steps.simulation_settings import SimulationSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.experiments.responses import Response


def simulate(
    *,
    trials: Annotated[Path, typer.Option(help="The table of trials, from `design`.")],
    scores: Annotated[Path, typer.Option(help="Scores of the trials' sentences, from `score`.")],
    model: Annotated[
        str, typer.Option(metavar="NAME", help="Whom participants follow: a column of the scores.")
    ],
    out: Annotated[Path, typer.Option(help="The table of responses to write.")],
    settings: SimulationSettings,
    server: Annotated[
        str | None,
        typer.Option(help="Take part in the study that `collect` serves at this address."),
    ] = None,
    browser: Annotated[
        bool,
        typer.Option(
            "--browser", help="With --server: go through the page itself, in Chromium (Playwright)."
        ),
    ] = False,
    at_once: Annotated[
        int, typer.Option(min=1, help="With --server: participants at the same time.")
    ] = 50,
    pause: Annotated[
        float, typer.Option(min=0, help="With --server: seconds between two answers.")
    ] = 0.0,
    patience: Annotated[
        float, typer.Option(min=1, help="With --server: seconds of silence before giving up.")
    ] = 300.0,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Let artificial participants rate an experiment: a model, plus noise and lapses.

    What comes out should name that model. With `--server` they take part in a running study; every
    answer is kept here too until all is done, so that an interrupted run goes on where it stopped.

    Example: `contstim simulate --trials trials.csv --scores trial-scores.csv
    --model kenlm:trigram.arpa --participants 100 --out responses.csv`
    """
    from contstim.steps.responses import simulate_people
    from contstim.stimuli import read_trials

    if browser and server is None:
        raise InputError("--browser opens the page of a running study: give its --server.")
    answer: Callable[..., Sequence[Response]] | None = None
    # Answers are kept here as they come; a browser keeps its own, and no server needs none.
    journal = None if browser or server is None else Path(f"{out}.journal")
    number = 0
    if server is not None:
        number = settings.in_all(len({trial.group for trial in read_trials(trials)}))
    if server is not None and journal is not None:
        try:
            from contstim.testing.participants.http import RunSettings, take_part
        except ModuleNotFoundError as error:
            raise WorkerError(
                f"--server needs {error.name}, which is not installed: pip install "
                "'contstim[collect]'."
            ) from error
        run = RunSettings(server, number, at_once, pause, patience, str(trials))
        answer = partial(take_part, settings=run, journal=journal)
    elif server is not None:
        from contstim.testing.participants.browser import take_part_in_browser

        answer = partial(take_part_in_browser, url=server, participants=number, patience=patience)

    simulate_people(
        trials,
        scores,
        model,
        out,
        settings=settings,
        seed=seed,
        answer=answer,
        place={"server": server, "browser": browser},
        watch=ProgressBars(quiet=quiet),
    )
    # Only now: before the table is written, the journal is all there is.
    if journal is not None:
        journal.unlink(missing_ok=True)
