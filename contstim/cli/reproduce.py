"""`contstim reproduce …`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.analyze import show
from contstim.cli.commands import CommandGroup
from contstim.cli.options import Folder, Quiet, Seed
from contstim.cli.output import print_table, remark_folder, results_table, warn
from contstim.cli.progress import step_progress
from contstim.steps.analysis import Samples, analysis_facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
    from contstim.experiments.analysis.outputs.folder import write_analysis
    from contstim.experiments.reproduce.golan2023 import (
        PUBLISHED_SAMPLING,
        analyze_golan2023,
        claims,
        locate,
    )
    from contstim.records import write_record

    folder, file = locate(data, ratings)
    with step_progress("comparing", quiet=quiet) as progress:
        sampling = replace(PUBLISHED_SAMPLING, samples=bootstrap, seed=seed)
        analysis = analyze_golan2023(folder, file, sampling=sampling, progress=progress)
    compared = claims(analysis)
    title = "Golan et al. (2023), experiment 1"
    written = [*write_analysis(analysis, out, title=title), out / "tables" / "claims.csv"]
    _write_claims(compared, written[-1])
    write_record(out / "report.html", [file], written, seed=seed, **analysis_facts(analysis))
    show(analysis, quiet=quiet)
    for caution in analysis.cautions:
        warn(caution)
    _judge(compared, out / "report.html", quiet=quiet)


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
    from contstim.evaluation.acceptability_report import acceptability_findings
    from contstim.evaluation.folder import write_findings
    from contstim.experiments.reproduce.adc import claims, reproduce_adc

    reproduction = reproduce_adc(data)
    compared = claims(reproduction)
    title = "The Acceptability Delta Criterion (Vázquez Martínez 2021)"
    evaluation = reproduction.evaluation
    write_findings(acceptability_findings(evaluation, title), out, data=evaluation.files)
    _write_claims(compared, out / "claims.csv")
    show_criteria(evaluation, quiet=quiet)
    _judge(compared, out / "report.html", quiet=quiet)


def _write_claims(compared: Iterable[PublishedClaim], path: Path) -> None:
    from contstim.tables import write_table

    columns = ("about", "published", "ours", "holds")
    write_table(path, {name: [getattr(claim, name) for claim in compared] for name in columns})


def _judge(compared: Sequence[PublishedClaim], page: Path, *, quiet: bool) -> None:
    """Print the claims; status 1 if one does not hold."""
    table = results_table("", "published", "ours", "", texts=4, title="Published claims")
    table.show_lines = True  # claims are sentences of several lines
    for claim in compared:
        verdict = "holds" if claim.holds else "does not hold"
        table.add_row(claim.about, claim.published, claim.ours, verdict)
    print_table(table)
    failed = sum(not claim.holds for claim in compared)
    print(f"{len(compared) - failed} of {len(compared)} claims hold.")
    remark_folder(page, quiet=quiet)
    # After everything is written and printed: the status is for scripts
    if failed:
        raise typer.Exit(1)


app = CommandGroup("Analyse published data again, claim by claim.")
app.add("golan2023", golan2023)
app.add("adc", adc)
