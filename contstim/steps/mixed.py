"""Mixed models of people's ratings."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from contstim.errors import InputError
from contstim.options import Help
from contstim.steps.analysis import MinCatch
from contstim.steps.watching import SILENT

if TYPE_CHECKING:
    from contstim.experiments.analysis.mixed.comparisons import MixedAnalysis
    from contstim.experiments.analysis.mixed.models import MixedSettings
    from contstim.scale import Scale
    from contstim.steps.watching import Watcher
    from contstim.stimuli import Condition


@dataclass(frozen=True, kw_only=True)
class MixedOptions:
    """Options of fitting mixed models: the models, and the ratings they are fitted to."""

    together: Annotated[
        bool,
        Help(
            "Also fit models together, every two and all: what does each add to the others?",
            flag="--together",
        ),
    ] = False
    condition: Annotated[
        tuple[str, ...],
        Help(
            "Only trials of this condition, such as random-natural; by default all but catch "
            "trials. Repeatable."
        ),
    ] = ()
    people: Annotated[
        Literal["slopes", "intercept", "none"],
        Help(
            "How participants may differ: also in how much they follow a model, only in their "
            "leaning towards the side on which a sentence is shown (responses with the column "
            "left), or not at all."
        ),
    ] = "slopes"
    items: Annotated[
        Literal["intercept", "none"], Help("Whether trials may differ beyond what ratios say.")
    ] = "intercept"
    link: Annotated[
        Literal["probit", "logit"], Help("The noise in ratings: normal or logistic.")
    ] = "probit"
    thresholds: Annotated[
        Literal["symmetric", "flexible"],
        Help(
            "symmetric: it does not matter which sentence of a trial is sentence_1; flexible: as "
            "R's clmm by default, where results depend on it."
        ),
    ] = "symmetric"
    ratios: Annotated[
        Literal["nats", "ranks"],
        Help("nats: infinite ratios count as the largest finite one; ranks: signed ranks."),
    ] = "nats"
    min_catch: MinCatch = None

    @property
    def settings(self) -> MixedSettings:
        """The mixed model."""
        from contstim.experiments.analysis.mixed.models import MixedSettings

        items = self.items == "intercept"
        return MixedSettings(self.link, self.thresholds, self.people, items, self.ratios)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Those of the trials.

        Raises:
            InputError: there is no such condition.
        """
        from contstim.experiments.analysis.mixed.models import TESTING
        from contstim.stimuli import Condition

        try:
            return tuple(Condition(name) for name in self.condition) or TESTING
        except ValueError:
            raise InputError(
                f"--condition is {', '.join(self.condition)}; there are {', '.join(Condition)}."
            ) from None


def fit_ratings(
    trials: Path,
    responses: Path,
    scores: Path,
    out: Path,
    *,
    options: MixedOptions,
    scale: Scale | None = None,
    watch: Watcher = SILENT,
) -> MixedAnalysis:
    """Fit a mixed model of ratings for each language model, and compare them.

    Writes fits.csv, coefficients.csv, variances.csv, thresholds.csv, comparisons.csv and, with
    models together, additions.csv.

    Args:
        trials: the table of trials that people saw.
        responses: the table of responses.
        scores: a table of the scores of the trials' sentences, nats.
        out: the folder to write.
        options: which mixed models.
        scale: of the responses, where neither their record nor the trials name it.
        watch: told what is done.

    Raises:
        InputError: a file cannot be read or written, the tables do not fit together, or no mixed
            model can be fitted (see `fit_mixed`).
    """
    from contstim.experiments.analysis.mixed.comparisons import compare_mixed
    from contstim.experiments.analysis.ratings import gather
    from contstim.experiments.responses import CatchRule, admit, read_responses
    from contstim.experiments.responses.admission import DEFAULT_RULE
    from contstim.records import write_record
    from contstim.scores import ScoreTable
    from contstim.stimuli import read_trials
    from contstim.tables import write_table
    from contstim.wording import counted

    settings, conditions = options.settings, options.conditions
    design = read_trials(trials)
    catch = DEFAULT_RULE if options.min_catch is None else CatchRule(number=options.min_catch)
    # The same people as in `analyze`: those who finished and passed their catch trials.
    admission = admit(design, read_responses(responses, design, scale=scale), catch=catch)
    ratings = gather(design, admission.responses, ScoreTable.read(scores))
    with watch.working("fitting") as progress:
        analysis = compare_mixed(
            ratings,
            settings,
            conditions=conditions,
            together=options.together,
            progress=progress,
        )
    files = []
    for name, table in analysis.tables().items():
        if table:
            # Answers of artificial participants are said to be so in every row, as in `analyze`.
            if admission.origin.simulated:
                rows = len(next(iter(table.values())))
                table["simulated_participants"] = [admission.origin.share] * rows
            files.append(out / f"{name}.csv")
            write_table(files[-1], table)
    write_record(
        out / "fits.csv",
        [trials, responses, scores],
        files,
        settings=asdict(settings),
        scale=str(ratings.scale),
        conditions=[str(each) for each in conditions],
        models_left_out=dict(analysis.left_out),
        excluded=[asdict(exclusion) for exclusion in admission.excluded],
        simulated_participants=admission.origin.simulated,
    )
    watch.remark(str(admission))
    watch.warn(admission.origin.warning)
    rated = analysis.empty.rated
    if settings.people != "none" and rated.sided < rated.size:
        watch.warn(
            f"{counted(rated.size - rated.sided, 'rating')} of "
            f"{rated.size:,} do not say which sentence was shown left (column left of "
            f"{responses}): no leaning of participants towards a side is estimated there."
        )
    if settings.thresholds == "flexible":
        watch.warn(
            "Flexible thresholds depend on which sentence of a trial is called sentence_1, and so "
            "do all results; symmetric ones do not."
        )
    for model, reason in analysis.left_out.items():
        watch.warn(f"{model} is left out. {reason}")
    for row in analysis.coefficients_capped:
        watch.warn(
            f"{row.model}: {counted(row.capped, 'infinite ratio')} counted as {row.cap:.1f} nats, "
            "the largest finite one."
        )
    return analysis
