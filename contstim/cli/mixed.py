"""`contstim mixed`."""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from contstim.cli.options import Folder, MinCatch, Quiet, Responses, Trials, TrialScores
from contstim.cli.output import (
    names_for_tables,
    print_table,
    remark,
    remark_folder,
    results_table,
    warn,
)
from contstim.cli.progress import step_progress

if TYPE_CHECKING:
    from contstim.experiments.analysis.mixed import MixedAnalysis


def mixed(
    trials: Trials,
    responses: Responses,
    scores: TrialScores,
    out: Folder,
    together: Annotated[
        bool,
        typer.Option(
            "--together",
            help="Also fit models together, every two and all: what does each add to the others?",
        ),
    ] = False,
    condition: Annotated[
        list[str] | None,
        typer.Option(
            help="Only trials of this condition, such as random-natural; by default all but catch "
            "trials. Repeatable."
        ),
    ] = None,
    people: Annotated[
        Literal["slopes", "intercept", "none"],
        typer.Option(
            help="How participants may differ: also in how much they follow a model, only in their "
            "leaning towards a sentence, or not at all."
        ),
    ] = "slopes",
    items: Annotated[
        Literal["intercept", "none"],
        typer.Option(help="Whether trials may differ beyond what ratios say."),
    ] = "intercept",
    link: Annotated[
        Literal["probit", "logit"], typer.Option(help="The noise in ratings: normal or logistic.")
    ] = "probit",
    thresholds: Annotated[
        Literal["symmetric", "flexible"],
        typer.Option(
            help="symmetric: it does not matter which sentence of a trial is sentence_1; flexible: "
            "as R's clmm by default."
        ),
    ] = "symmetric",
    ratios: Annotated[
        Literal["nats", "ranks"],
        typer.Option(
            help="nats: infinite ratios count as the largest finite one; ranks: signed ranks."
        ),
    ] = "nats",
    min_catch: MinCatch = None,
    quiet: Quiet = False,
) -> None:
    """Model ratings of 1 to 6 with random effects of people and items, and compare models by it.

    An ordinal mixed model for each language model: people's ratings on its log-probability ratios.
    Writes fits.csv (log-likelihood, AIC), coefficients.csv, variances.csv, thresholds.csv,
    comparisons.csv (which model fits better, and how sure that is) and, with `--together`,
    additions.csv (what each model adds to another).

    Example: `contstim mixed --trials trials.csv --responses responses.csv --scores scores.csv
    --out mixed`
    """
    from contstim.errors import InputError
    from contstim.experiments.analysis.mixed import TESTING, MixedSettings, compare_mixed
    from contstim.experiments.analysis.ratings import gather
    from contstim.experiments.responses import CatchRule, admit, read_responses
    from contstim.experiments.responses.admission import DEFAULT_RULE
    from contstim.records import write_record
    from contstim.scores import ScoreTable
    from contstim.stimuli import Condition, read_trials
    from contstim.tables import write_table

    try:
        conditions = [Condition(name) for name in condition] if condition else TESTING
    except ValueError:
        raise InputError(
            f"--condition is {', '.join(condition or ())}; there are {', '.join(Condition)}."
        ) from None
    design = read_trials(trials)
    rule = DEFAULT_RULE if min_catch is None else CatchRule(number=min_catch)
    # The same people as in `analyze`: those who finished and passed their catch trials.
    admission = admit(design, read_responses(responses), catch=rule)
    ratings = gather(design, admission.responses, ScoreTable.read(scores))
    settings = MixedSettings(link, thresholds, people, items == "intercept", ratios)
    with step_progress("fitting", quiet=quiet) as progress:
        analysis = compare_mixed(
            ratings, settings, conditions=conditions, together=together, progress=progress
        )
    for name, table in analysis.tables().items():
        if table:
            # Answers of artificial participants are said to be so in every row, as in `analyze`.
            if admission.origin.simulated:
                rows = len(next(iter(table.values())))
                table |= {"simulated_participants": [admission.origin.share] * rows}
            write_table(out / f"{name}.csv", table)
    write_record(
        out / "fits",
        settings=asdict(settings),
        conditions=[str(each) for each in conditions],
        models_left_out=dict(analysis.left_out),
        excluded=[asdict(exclusion) for exclusion in admission.excluded],
        simulated_participants=admission.origin.simulated,
    )
    remark(str(admission), quiet=quiet)
    warn(admission.origin.warning)
    _print(analysis)
    remark_folder(out / "fits.csv", quiet=quiet)


def _print(analysis: MixedAnalysis) -> None:
    from contstim.wording import counted, p_equation, p_text

    best_first = sorted(analysis.fits, key=lambda fit: -fit.log_likelihood)
    names = names_for_tables([fit.name for fit in best_first])
    title = (
        f"{counted(analysis.empty.ratings, 'rating')}, "
        f"{counted(analysis.empty.participants, 'participant')}, "
        f"{counted(analysis.empty.trials, 'trial')}"
    )
    table = results_table(
        "model", "log-likelihood", "AIC", "effect of a\ntypical ratio", "95 %", "p", title=title
    )
    for fit in best_first:
        (row,) = fit.coefficients
        low, high = row.low * row.typical_ratio, row.high * row.typical_ratio
        table.add_row(
            names[fit.name],
            f"{fit.log_likelihood:,.1f}",
            f"{fit.aic:,.1f}",
            f"{row.typical_effect:.3f}",
            f"{low:.3f} to {high:.3f}",
            p_text(row.p_value),
        )
    print_table(table, names)
    # Each model against the next best: whether the order can be relied on
    rows = {frozenset((row.first, row.second)): row for row in analysis.comparisons}
    for better, worse in pairwise(best_first):
        pair = rows[frozenset((better.name, worse.name))]
        print(
            f"{better.name} fits better than {worse.name} by {abs(pair.difference):.1f} nats (SE "
            f"{pair.standard_error:.1f}), adjusted {p_equation(pair.adjusted)}"
        )
    for model, reason in analysis.left_out.items():
        warn(f"{model} is left out. {reason}")
    for capped in analysis.coefficients_capped:
        number = counted(capped.capped, "infinite ratio")
        warn(f"{capped.model}: {number} counted as {capped.cap:.1f} nats, the largest finite one.")
