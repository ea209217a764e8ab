"""`contstim analyze`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from contstim.cli.options import (
    Folder,
    MinCatch,
    Quiet,
    Responses,
    Samples,
    Seed,
    Trials,
    TrialScores,
)
from contstim.cli.output import (
    names_for_tables,
    print_table,
    remark,
    remark_folder,
    results_table,
    terminal,
    warn,
    warn_of_training_texts,
)
from contstim.cli.progress import step_progress

if TYPE_CHECKING:
    from contstim.experiments.analysis.run import Analysis


def analyze(
    trials: Trials,
    responses: Responses,
    scores: TrialScores,
    out: Folder,
    contrasts: Annotated[
        Path | None,
        typer.Option(
            help="The comparisons to test: a table with the columns first and second, which name "
            "two models, or a model and 'ceiling'. By default all pairs of models and each model "
            "against the ceiling."
        ),
    ] = None,
    min_catch: MinCatch = None,
    units: Annotated[
        Literal["auto", "groups", "participants"],
        typer.Option(
            help="What tests compare; auto: groups, or participants where there is one group. "
            "Participants saw the same trials, so their tests speak of these very items only."
        ),
    ] = "auto",
    bootstrap: Samples = 1000,
    fdr: Annotated[
        float, typer.Option(min=0, max=1, help="The false-discovery rate of significance.")
    ] = 0.05,
    unanimous: Annotated[
        float, typer.Option(min=0.5, max=1, help="The share of people that counts as near all.")
    ] = 0.9,
    worst: Annotated[int, typer.Option(min=0, help="Failures to list for each model.")] = 5,
    pair: Annotated[
        tuple[str, str] | None,
        typer.Option(help="Two models whose sentences to draw; by default the best two rivals."),
    ] = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Say which models people agree with, how much a model could, and how sure that is.

    Writes tables (CSV), figures (PDF and PNG) and `report.html`. Participants who did not finish or
    failed catch trials are left out, and named.

    Example: `contstim analyze --trials trials.csv --responses responses.csv --scores scores.csv
    --out results`
    """
    from contstim.experiments.analysis.effects import Sampling
    from contstim.experiments.analysis.inference import read_contrasts
    from contstim.experiments.analysis.outputs.drawings import require_rivals
    from contstim.experiments.analysis.outputs.folder import write_analysis
    from contstim.experiments.analysis.run import analyze as run
    from contstim.experiments.responses import CatchRule, read_responses
    from contstim.experiments.responses.admission import DEFAULT_RULE
    from contstim.models.contamination import contamination_facts, read_contamination
    from contstim.records import write_record
    from contstim.scores import ScoreTable
    from contstim.stimuli import Condition, Kind, read_trials

    design = read_trials(trials)
    # Before the comparison, which takes minutes
    if pair:
        require_rivals(design, pair)
    table = ScoreTable.read(scores)
    with step_progress("comparing", quiet=quiet) as progress:
        analysis = run(
            design,
            read_responses(responses),
            table,
            contrasts=read_contrasts(contrasts, table.models) if contrasts else None,
            catch=DEFAULT_RULE if min_catch is None else CatchRule(number=min_catch),
            sampling=Sampling(
                None if units == "auto" else units,
                samples=bootstrap,
                seed=seed,
                false_discovery_rate=fdr,
            ),
            unanimous=unanimous,
            worst=worst,
            progress=progress,
        )
    warn(analysis.origin.warning)
    # Sentences that stood in a training text say little: those of catch trials are not judged by.
    natural = [
        sentence
        for trial in design
        if trial.condition is not Condition.CATCH
        for kind, sentence in ((trial.kind_1, trial.sentence_1), (trial.kind_2, trial.sentence_2))
        if kind is Kind.NATURAL
    ]
    seen = read_contamination(scores, table.models, natural)
    title = "Which models people agree with"
    write_analysis(analysis, out, title=title, pair=pair, seen=seen)
    write_record(out / "report.html", seed=seed, **facts(analysis), **contamination_facts(seen))
    remark(str(analysis.admission.report), quiet=quiet)
    show(analysis, quiet=quiet)
    warn_of_training_texts(seen, "natural sentences")
    remark_folder(out / "report.html", quiet=quiet)


def facts(analysis: Analysis) -> dict[str, object]:
    """What a record tells of an analysis."""
    return {
        "participants": len(analysis.ratings.participants),
        "left_out": {
            exclusion.participant: exclusion.reason for exclusion in analysis.admission.excluded
        },
        "simulated_participants": analysis.origin.simulated,
        "units": analysis.sampling.units,
        "bootstrap": analysis.sampling.samples,
        "false_discovery_rate": analysis.sampling.false_discovery_rate,
    }


def show(analysis: Analysis, *, quiet: bool) -> None:
    """Print who takes part, and how consistent each model is, on standard output."""
    from contstim.experiments.analysis.outputs.page import shown

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
    for caution in analysis.cautions:
        warn(caution)


def _legend(analysis: Analysis) -> str:
    """What a star means; where nothing can be tested, that no star says nothing."""
    from contstim.experiments.analysis.outputs.page import shown

    legend = "* significantly below the noise ceiling on the same trials"
    cannot: dict[str, list[str]] = {}  # why nothing can be tested, "" where it can → scopes
    for result in shown(analysis):
        text = result.reach.cannot(str(analysis.sampling.units))
        cannot.setdefault(text, []).append(result.scope.name.lower())
    # Nowhere can anything be tested, for one reason: a legend of stars would mislead
    if "" not in cannot and len(cannot) == 1:
        return f"Differences {next(iter(cannot))}."
    limits = [f"{', '.join(scopes)}: {text}" for text, scopes in cannot.items() if text]
    return "; ".join([legend, *limits])
