"""`contstim mixed`."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from contstim.cli.options import Folder, Quiet, Responses, Trials, TrialScores
from contstim.cli.output import names_for_tables, print_table, remark_folder, results_table
from contstim.cli.progress import ProgressBars
from contstim.options import AnswerScale
from contstim.steps.mixed import MixedOptions, fit_ratings

if TYPE_CHECKING:
    from contstim.experiments.analysis.mixed.comparisons import MixedAnalysis


def mixed(
    *,
    trials: Trials,
    responses: Responses,
    scores: TrialScores,
    out: Folder,
    options: MixedOptions,
    scale: AnswerScale = None,
    quiet: Quiet = False,
) -> None:
    """Model answers with random effects of people and items, and compare models by it.

    An ordinal mixed model for each language model: people's ratings of 1 to 6 on its
    log-probability ratios; of choices a binary one.
    Writes fits.csv (log-likelihood, AIC), coefficients.csv, variances.csv, thresholds.csv,
    comparisons.csv (which model fits better, and how sure that is) and, with `--together`,
    additions.csv (what each model adds to another).

    Example: `contstim mixed --trials trials.csv --responses responses.csv --scores scores.csv
    --out mixed`
    """
    watch = ProgressBars(quiet=quiet)
    analysis = fit_ratings(
        trials, responses, scores, out, options=options, scale=scale, watch=watch
    )
    _print(analysis)
    remark_folder(out / "fits.csv", quiet=quiet)


def _print(analysis: MixedAnalysis) -> None:
    from contstim.wording import counted, p_equation, p_text

    best_first = sorted(analysis.fits, key=lambda fit: -fit.log_likelihood)
    names = names_for_tables([fit.name for fit in best_first])
    rated = analysis.empty.rated
    title = (
        f"{counted(rated.size, 'rating')}, "
        f"{counted(len(rated.participants), 'participant')}, "
        f"{counted(rated.n_trials, 'trial')}"
    )
    table = results_table(
        "model",
        "log-likelihood",
        "AIC",
        "effect of a\ntypical ratio",
        "95 %",
        "p, not\nadjusted",
        title=title,
    )
    for fit in best_first:
        (row,) = fit.coefficients
        low, high = (end * row.typical_ratio for end in (row.estimate.low, row.estimate.high))
        table.add_row(
            names[fit.name],
            f"{fit.log_likelihood:,.1f}",
            f"{fit.aic:,.0f}",
            f"{row.typical_effect:.2f}",
            f"{low:.2f} to {high:.2f}",
            p_text(row.estimate.p_value),
        )
    print_table(table, names)
    # Each model against the next best: whether the order can be relied on
    rows = {frozenset((row.first, row.second)): row for row in analysis.comparisons}
    for better, worse in pairwise(best_first):
        pair = rows[frozenset((better.name, worse.name))]
        sign = 1 if pair.first == better.name else -1
        low, high = sorted(sign * end for end in (pair.difference.low, pair.difference.high))
        print(
            f"{better.name} fits better than {worse.name} by {abs(pair.difference.value):.1f} nats "
            f"(95 %: {low:.1f} to {high:.1f}), adjusted {p_equation(pair.adjusted)}"
        )
    if analysis.comparisons:
        print(f"P-values are adjusted by Benjamini and Hochberg over {pair.family}.")
