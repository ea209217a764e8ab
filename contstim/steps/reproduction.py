"""Reproductions of published analyses from the published data, with a check of each claim."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from contstim.evaluation.criteria import acceptability_findings
from contstim.experiments.analysis.page import write_analysis
from contstim.experiments.reproduce import adc, golan2023
from contstim.files.tables import write_table
from contstim.options import Reads, Writes
from contstim.reporting.report import Table
from contstim.steps.analysis import analysis_facts, shown_of
from contstim.steps.evaluation import written_findings
from contstim.steps.step import Outcome, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.evaluation.criteria import AcceptabilityEvaluation
    from contstim.experiments.analysis.run import Analysis
    from contstim.reporter import Reporter

    Claims = Sequence[tuple[str, str, str]]  # topic, published value, our value


class ReproduceGolan2023(Step["tuple[Analysis, Claims]"], name="reproduce golan2023"):
    """Reproduce experiment 1 of Golan et al. (2023), and check each published claim.

    Writes the tables, figures and page of `contstim analyze`, and `tables/claims.csv`. The exit
    status is 1 if a claim is not confirmed.

    Example: `contstim reproduce golan2023 --data data --out golan2023`
    """

    data: Annotated[
        Path,
        Reads(
            "A folder with two folders: contstimlang, a copy of dpmlab/contstimlang, and "
            "contstimlang-fork, a copy of LpZamora/contstimlang.",
            folder=True,
        ),
    ]
    out: Annotated[Path, Writes("The folder to write.", record="report.html")]
    ratings: Annotated[Path | None, Reads("File of ratings, if in another folder.")] = None

    def files_of_data(self) -> Iterable[Path | None]:
        """Return the file of ratings."""
        return golan2023.locate(self.data, self.ratings)[1:]

    def work(self, reporter: Reporter) -> Outcome[tuple[Analysis, Claims]]:
        """Analyse the ratings, and compare claims."""
        folder, file = golan2023.locate(self.data, self.ratings)
        progress = partial(reporter.progress, "comparing")
        analysis = golan2023.analyze_golan2023(folder, file, progress=progress)
        compared = golan2023.claims(analysis)
        write_analysis(analysis, self.out, title="Golan et al. (2023), experiment 1")
        claims, holds = _claims(compared, self.out / "tables" / "claims.csv")
        for caution in analysis.cautions:
            reporter.warn(caution)
        parts, facts = [*shown_of(analysis), *claims], analysis_facts(analysis)
        return Outcome((analysis, compared), facts, parts=parts, holds=holds)


class ReproduceAdc(Step["tuple[AcceptabilityEvaluation, Claims]"], name="reproduce adc"):
    """Reproduce the Acceptability Delta Criterion of Vázquez Martínez (2021) on published scores.

    Writes the tables, figures and report of `contstim evaluate acceptability`, and claims.csv.
    The exit status is 1 if a claim is not confirmed.

    Example: `contstim reproduce adc --data li-adger --out adc`
    """

    data: Annotated[Path, Reads("A copy of hjvm/acceptability_delta_criterion.", folder=True)]
    out: Annotated[Path, Writes("The folder to write.", record="report.md")]

    def work(self, reporter: Reporter) -> Outcome[tuple[AcceptabilityEvaluation, Claims]]:
        """Evaluate the published scores, and compare claims."""
        del reporter
        evaluation, differences = adc.reproduce_adc(self.data)
        compared: Claims = tuple(adc.claims(evaluation, differences))
        title = "The Acceptability Delta Criterion (Vázquez Martínez 2021)"
        findings = acceptability_findings(evaluation, title)
        parts, holds = _claims(compared, self.out / "claims.csv")
        value, data = (evaluation, compared), evaluation.files
        return written_findings(value, findings, self.out, parts=parts, holds=holds, data=data)


def _claims(compared: Claims, path: Path) -> tuple[list[str | Table], bool]:
    """Write the claims; return the parts to print, and whether all claims hold.

    A claim holds if our value equals the published value.
    """
    about, published, ours = zip(*compared, strict=True)
    holds = [claim == our_claim for _, claim, our_claim in compared]
    write_table(path, {"about": about, "published": published, "ours": ours, "holds": holds})
    verdicts = ["holds" if held else "does not hold" for held in holds]
    rows = [*zip(about, published, ours, verdicts, strict=True)]
    table = Table(("claim", "published", "ours", ""), rows, texts=4)
    return ["Published claims:", table, f"{sum(holds)} of {len(rows)} claims hold."], all(holds)
