"""`contstim reproduce …`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.analyze import facts, show
from contstim.cli.commands import CommandGroup
from contstim.cli.options import Folder, Quiet, Samples, Seed
from contstim.cli.output import print_table, remark_folder, results_table
from contstim.cli.progress import step_progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.table import Table

    from contstim.experiments.reproduce.claims import PublishedClaim


def golan2023(
    data: Annotated[
        Path,
        typer.Option(
            help="A folder with contstimlang and contstimlang-fork/data, or a checkout of "
            "dpmlab/contstimlang."
        ),
    ],
    out: Folder,
    ratings: Annotated[
        Path | None,
        typer.Option(help="The file of ratings (`data` in LpZamora/contstimlang), if elsewhere."),
    ] = None,
    bootstrap: Samples = 1000,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Experiment 1 of Golan et al. (2023): each published claim, and what we find.

    Writes the tables, figures and page of `contstim analyze`, and `tables/claims.csv`. Exits with
    status 1 if a claim does not hold.

    Example: `contstim reproduce golan2023 --data data --out golan2023`
    """
    from contstim.experiments.analysis.effects import Sampling
    from contstim.experiments.analysis.outputs import write_analysis
    from contstim.experiments.reproduce.golan2023 import analyze_golan2023, claims, locate
    from contstim.records import write_record

    folder, file = locate(data, ratings)
    with step_progress("comparing", quiet=quiet) as progress:
        sampling = Sampling(samples=bootstrap, seed=seed)
        found = analyze_golan2023(folder, file, sampling=sampling, progress=progress)
    made = claims(found)
    write_analysis(found, out, title="Golan et al. (2023), experiment 1")
    _write_claims(made, out / "tables" / "claims.csv")
    write_record(out / "report.html", seed=seed, **facts(found))
    show(found, quiet=quiet)
    _judge(made, out / "report.html", quiet=quiet)


def adc(
    data: Annotated[
        Path, typer.Option(help="A copy of hjvm/acceptability_delta_criterion (LI-Adger).")
    ],
    out: Folder,
    quiet: Quiet = False,
) -> None:
    """The Acceptability Delta Criterion of Vázquez Martínez (2021) on its published scores.

    Writes the tables, figures and report of `contstim evaluate acceptability`, and claims.csv.
    Exits with status 1 if a claim does not hold.

    Example: `contstim reproduce adc --data li-adger --out adc`
    """
    from contstim.cli.evaluate.acceptability import show as show_criteria
    from contstim.evaluation.acceptability.acceptability_report import (
        ScoreSources,
        write_acceptability,
    )
    from contstim.experiments.reproduce.adc import claims, reproduce_adc

    found = reproduce_adc(data)
    made = claims(found)
    title = "The Acceptability Delta Criterion (Vázquez Martínez 2021)"
    write_acceptability(found.evaluation, out, ScoreSources(tables=found.tables), title=title)
    _write_claims(made, out / "claims.csv")
    show_criteria(found.evaluation, 0, quiet=quiet)
    _judge(made, out / "report.html", quiet=quiet)


def _write_claims(made: Iterable[PublishedClaim], path: Path) -> None:
    from contstim.tables import write_table

    columns = ("about", "published", "ours", "holds")
    write_table(path, {name: [getattr(claim, name) for claim in made] for name in columns})


def _judge(made: Sequence[PublishedClaim], page: Path, *, quiet: bool) -> None:
    """Print the claims; status 1 if one does not hold."""
    print_table(_claims_table(made))
    failed = sum(not claim.holds for claim in made)
    print(f"{len(made) - failed} of {len(made)} claims hold.")
    remark_folder(page, quiet=quiet)
    if failed:
        raise typer.Exit(1)


def _claims_table(made: Iterable[PublishedClaim]) -> Table:
    table = results_table("", "published", "ours", "", texts=4, title="Published claims")
    table.show_lines = True
    for claim in made:
        verdict = "holds" if claim.holds else "does not hold"
        table.add_row(claim.about, claim.published, claim.ours, verdict)
    return table


app = CommandGroup("Analyse published data again, claim by claim.")
app.add("golan2023", golan2023)
app.add("adc", adc)
