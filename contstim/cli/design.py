"""`contstim design`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contstim.cli.options import Earlier, Quiet, Reviews, Seed
from contstim.cli.progress import ProgressBars
from contstim.errors import InputError
from contstim.steps.design import DesignSettings, PowerSettings, make_design


def design(
    *,
    out: Annotated[Path, typer.Option(help="The table of trials to write.")],
    pairs: Annotated[Path | None, typer.Option(help="Natural pairs, from select natural.")] = None,
    triplets: Annotated[Path | None, typer.Option(help="Triplets, from select triplets.")] = None,
    sentences: Annotated[
        Path | None, typer.Option(help="Natural sentences for random pairs and catch trials.")
    ] = None,
    settings: DesignSettings,
    seed: Seed = 0,
    power: Annotated[
        bool,
        typer.Option(
            "--power",
            help="Also simulate the experiment, with new people and items; needs --scores, and "
            "writes ….power.md, ….power.png and two tables.",
        ),
    ] = False,
    scores: Annotated[
        Path | None, typer.Option(help="With --power: scores of all sentences of the trials.")
    ] = None,
    simulation: PowerSettings,
    review: Reviews = None,
    earlier: Earlier = None,
    quiet: Quiet = False,
) -> None:
    """Turn pairs and triplets into the trials of an experiment, shared out to groups.

    No group sees a sentence twice, and every group has the same number of trials of each condition,
    model pair and role. The finished table is checked independently. Beside it stand a summary to
    read before ethics and preregistration (`….summary.md`, `….summary.png`) and a certificate.

    After a review of trials, as many as possible stay in their groups. Rejected random and catch
    trials are drawn anew; for rejected pairs and triplets run `select natural` and `select
    triplets` with the same review first.

    Examples: `contstim design --pairs pairs.csv --triplets selected.csv --sentences natural.txt
    --groups 10 --random-per-group 9 --catch-per-group 12 --out trials.csv`

    `contstim design --pairs pairs-2.csv --triplets selected-2.csv --sentences natural.txt
    --groups 10 --random-per-group 9 --catch-per-group 12 --review review.csv --earlier trials.csv
    --out trials-2.csv`
    """
    if power != (scores is not None):
        raise InputError("--power simulates participants from --scores: give both.")
    if simulation.pilot is not None and not power:
        raise InputError("--pilot says how often people agree, for --power: give both.")
    make_design(
        out,
        pairs=pairs,
        triplets=triplets,
        sentences=sentences,
        settings=settings,
        scores=scores,
        power=simulation if power else None,
        seed=seed,
        review=review or (),
        earlier=earlier or (),
        watch=ProgressBars(quiet=quiet),
    )
