"""Mixed models of people's ratings."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from contstim.errors import InputError
from contstim.options import AnswerScale, Help, Writes
from contstim.steps.analysis import MinCatch
from contstim.steps.fields import Responses, Trials, TrialScores
from contstim.steps.step import Outcome, Step

if TYPE_CHECKING:
    from contstim.experiments.analysis.mixed.comparisons import MixedAnalysis
    from contstim.experiments.analysis.mixed.models import MixedSettings
    from contstim.reporter import Reporter
    from contstim.stimuli import Condition


@dataclass(frozen=True, kw_only=True)
class MixedOptions:
    """Options of fitting mixed models: the models, and the ratings they are fitted to."""

    together: Annotated[
        bool,
        Help(
            "Also fit models together, every two and all: what does each add to the others?",
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
                f"`condition` is {', '.join(self.condition)}; there are {', '.join(Condition)}."
            ) from None


class FitMixed(Step["MixedAnalysis"], name="mixed"):
    """Model answers with random effects of people and items, and compare models by it.

    An ordinal mixed model for each language model: people's ratings of 1 to 6 on its
    log-probability ratios; of choices a binary one.
    Writes fits.csv (log-likelihood, AIC), coefficients.csv, variances.csv, thresholds.csv,
    comparisons.csv (which model fits better, and how sure that is) and, with `--together`,
    additions.csv (what each model adds to another).

    Example: `contstim mixed --trials trials.csv --responses responses.csv --scores scores.csv
    --out mixed`
    """

    trials: Trials
    responses: Responses
    scores: TrialScores
    out: Annotated[Path, Writes("The folder to write.", record="fits.csv")]
    settings: MixedOptions = MixedOptions()
    scale: AnswerScale = None

    def work(self, reporter: Reporter) -> Outcome[MixedAnalysis]:
        """Fit the models, and write the tables."""
        from contstim.experiments.analysis.mixed.comparisons import compare_mixed
        from contstim.experiments.analysis.ratings import gather
        from contstim.experiments.responses.admission import DEFAULT_RULE, CatchRule, admit
        from contstim.experiments.responses.table import read_responses
        from contstim.scores import ScoreTable
        from contstim.stimuli import read_trials
        from contstim.tables import write_table
        from contstim.wording import counted

        settings, conditions = self.settings.settings, self.settings.conditions
        design = read_trials(self.trials)
        catch = (
            DEFAULT_RULE
            if self.settings.min_catch is None
            else CatchRule(number=self.settings.min_catch)
        )
        # The same people as in `analyze`: those who finished and passed their catch trials.
        admission = admit(
            design, read_responses(self.responses, design, scale=self.scale), catch=catch
        )
        ratings = gather(design, admission.responses, ScoreTable.read(self.scores))
        analysis = compare_mixed(
            ratings,
            settings,
            conditions=conditions,
            together=self.settings.together,
            progress=partial(reporter.progress, "fitting"),
        )
        for name, table in analysis.tables().items():
            if table:
                # Answers of artificial participants are said to be so in every row
                if admission.origin.simulated:
                    rows = len(next(iter(table.values())))
                    table["simulated_participants"] = [admission.origin.share] * rows
                write_table(self.out / f"{name}.csv", table)
        reporter.say(str(admission))
        reporter.warn(admission.origin.warning)
        rated = analysis.empty.rated
        if settings.people != "none" and rated.sided < rated.size:
            reporter.warn(
                f"{counted(rated.size - rated.sided, 'rating')} of "
                f"{rated.size:,} do not say which sentence was shown left (column "
                f"left of "
                f"{self.responses}): no leaning of participants towards a side is estimated there."
            )
        if settings.thresholds == "flexible":
            reporter.warn(
                "Flexible thresholds depend on which sentence of a trial is called sentence_1, "
                "and so "
                "do all results; symmetric ones do not."
            )
        for model, reason in analysis.left_out.items():
            reporter.warn(f"{model} is left out. {reason}")
        for row in analysis.coefficients_capped:
            reporter.warn(
                f"{row.model}: {counted(row.capped, 'infinite ratio')} counted as {row.cap:.1f} "
                f"nats, "
                "the largest finite one."
            )
        facts = {
            "settings": asdict(settings),
            "scale": str(ratings.scale),
            "conditions": [str(each) for each in conditions],
            "models_left_out": dict(analysis.left_out),
            "excluded": [asdict(exclusion) for exclusion in admission.excluded],
            "simulated_participants": admission.origin.simulated,
        }
        return Outcome(analysis, facts)
