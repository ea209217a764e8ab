"""`contstim simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contstim.cli.options import Quiet, Seed
from contstim.cli.output import remark
from contstim.cli.progress import step_progress
from contstim.errors import InputError, WorkerError
from contstim.experiments.design.golan2023 import PUBLISHED_CEILING
from contstim.wording import counted


def simulate(
    trials: Annotated[Path, typer.Option(help="The table of trials, from `design`.")],
    scores: Annotated[Path, typer.Option(help="Scores of the trials' sentences, from `score`.")],
    model: Annotated[
        str, typer.Option(metavar="NAME", help="Whom participants follow: a column of the scores.")
    ],
    out: Annotated[Path, typer.Option(help="The table of responses to write.")],
    participants: Annotated[int, typer.Option(min=1, help="Participants in all.")] = 100,
    noise: Annotated[
        float | None,
        typer.Option(
            help="Standard deviation of what is added to log-probability ratios, nats; by default "
            "what gives --ceiling on the random natural pairs."
        ),
    ] = None,
    ceiling: Annotated[
        float,
        typer.Option(help="How often a person agrees with the majority of nine others there."),
    ] = PUBLISHED_CEILING,
    lapses: Annotated[
        float, typer.Option(min=0, max=1, help="The share of trials rated without looking.")
    ] = 0.02,
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
    from contstim.experiments.design.artificial import artificial_participants, simulate_responses
    from contstim.experiments.responses import write_responses
    from contstim.models.recorded import require_log_probabilities
    from contstim.records import write_record
    from contstim.scores import ScoreTable
    from contstim.stimuli import read_trials

    if browser and server is None:
        raise InputError("--browser opens the page of a running study: give its --server.")
    require_log_probabilities(scores, [model], "A participant with noise in nats")
    # Noise and ceiling say the same in two ways: `people.noise` is the noise that was used, in nats
    people = artificial_participants(
        read_trials(trials),
        ScoreTable.read(scores),
        model,
        noise=noise,
        ceiling=ceiling,
        lapses=lapses,
        seed=seed,
    )
    # Answers are kept here as they come; a browser keeps its own, and no server needs none.
    journal = None if browser or server is None else Path(f"{out}.journal")
    with step_progress("participants", quiet=quiet) as progress:
        if server is None:
            responses = simulate_responses(people, participants)
        elif journal is None:
            from contstim.testing.participants.browser import take_part_in_browser

            responses = take_part_in_browser(
                people, server, participants, patience=patience, progress=progress
            )
        else:
            try:
                from contstim.testing.participants.http import RunSettings, take_part
            except ModuleNotFoundError as error:
                raise WorkerError(
                    f"--server needs {error.name}, which is not installed: pip install "
                    "'contstim[collect]'."
                ) from error
            settings = RunSettings(server, participants, at_once, pause, patience, str(trials))
            responses = take_part(people, settings, journal, progress=progress)
    write_responses(out, responses)
    # Only now: before the table is written, the journal is all there is.
    if journal is not None:
        journal.unlink(missing_ok=True)
    write_record(
        out,
        model=model,
        participants=participants,
        noise_nats=people.noise,
        lapses=lapses,
        seed=seed,
        server=server,
        browser=browser,
    )
    remark(
        f"{out}: {counted(len(responses), 'response')} of "
        f"{counted(participants, 'artificial participant')} who follow {model} "
        f"with noise of {people.noise:.3g} nats.",
        quiet=quiet,
    )
