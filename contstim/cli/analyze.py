"""`contstim analyze`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.cli.options import Folder, Quiet, Responses, Seed, Trials, TrialScores
from contstim.cli.output import (
    names_for_tables,
    print_table,
    remark,
    remark_folder,
    results_table,
    terminal,
)
from contstim.cli.progress import ProgressBars
from contstim.options import AnswerScale
from contstim.steps.analysis import AnalysisSettings, analyze_responses

if TYPE_CHECKING:
    from contstim.experiments.analysis.run import Analysis


def analyze(
    *,
    trials: Trials,
    responses: Responses,
    scores: TrialScores,
    out: Folder,
    settings: AnalysisSettings,
    scale: AnswerScale = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Say which models people agree with, how much a model could, and how sure that is.

    Writes tables (CSV), figures (PDF and PNG), `methods.md` and `report.html`. Participants who did
    not finish or failed catch trials are left out, and named.

    Example: `contstim analyze --trials trials.csv --responses responses.csv --scores scores.csv
    --out results`
    """
    watch = ProgressBars(quiet=quiet)
    analysis = analyze_responses(
        trials, responses, scores, out, settings=settings, scale=scale, seed=seed, watch=watch
    )
    show(analysis, quiet=quiet)
    remark_folder(out / "report.html", quiet=quiet)


def show(analysis: Analysis, *, quiet: bool) -> None:
    """Print who takes part, and how consistent each model is, on standard output."""
    from contstim.experiments.analysis.outputs.drawings import shown

    remark(str(analysis.admission), quiet=quiet and not analysis.admission.excluded)
    if analysis.origin.warning:
        terminal().print(analysis.origin.warning, style="bold red", markup=False)
    results = shown(analysis)
    columns = [{row.model: row for row in result.models} for result in results]
    names = names_for_tables(analysis.ratings.models)
    headings = [
        f"{result.scope.name.lower()}\n{result.measure.name.rpartition('-')[2]}"
        for result in results
    ]
    whom = "artificial participants" if analysis.origin.simulated > 0 else "people"
    table = results_table("model", *headings, title=f"Consistency with {whom}")
    for model in analysis.ratings.models:
        # A dash where the model is not judged on these trials; a space keeps digits aligned.
        cells = [
            f"{column[model].value:.3f}{'*' if model in result.below_ceiling() else ' '}"
            if model in column
            else "–"
            for result, column in zip(results, columns, strict=True)
        ]
        table.add_row(names[model], *cells)
    print_table(table, names)
    print(_legend(analysis))


def _legend(analysis: Analysis) -> str:
    """Legend of the stars; where nothing can be tested, that a missing star says nothing."""
    from contstim.experiments.analysis.outputs.drawings import shown

    legend = "* significantly below the noise ceiling on the same trials"
    cannot: dict[str, list[str]] = {}  # why nothing can be tested, "" where it can → scopes
    for result in shown(analysis):
        text = result.detectability.cannot(str(analysis.sampling.units))
        cannot.setdefault(text, []).append(result.scope.name.lower())
    # Nowhere can anything be tested, for one reason: a legend of stars would mislead
    if "" not in cannot and len(cannot) == 1:
        return f"Differences {next(iter(cannot))}."
    limits = [f"{', '.join(scopes)}: {text}" for text, scopes in cannot.items() if text]
    return "; ".join([legend, *limits])
