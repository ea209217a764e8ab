"""Mixed models of people's ratings, and what else models may follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from contstim.errors import InputError
from contstim.experiments.analysis.controls import (
    count_tokens,
    feature_preferences,
    feature_shares,
    mean_zipfs,
    read_features,
    token_count_control,
)
from contstim.experiments.analysis.mixed.models import (
    TESTING,
    MixedAnalysis,
    MixedSettings,
    compare_mixed,
)
from contstim.experiments.analysis.tables import Row, rows_table, with_origin
from contstim.frequencies import read_frequencies
from contstim.models.base import conventions
from contstim.models.catalog import load_scorers
from contstim.models.loading import Loading
from contstim.options import Help, Models, Reads, Writes
from contstim.steps.analysis import MinCatch, OfAnswers
from contstim.steps.fields import TrustRemoteCode
from contstim.steps.step import Outcome
from contstim.stimuli import Condition, read_stimuli
from contstim.tables import write_table
from contstim.wording import counted

if TYPE_CHECKING:
    from contstim.reporter import Reporter

Controls: TypeAlias = tuple[Sequence[Row], Sequence[Row]]


@dataclass(frozen=True, kw_only=True)
class MixedOptions:
    """Options of fitting mixed models: the models, and the ratings they are fitted to."""

    together: Annotated[bool, Help("Also fit models together: what does each add?")] = False
    condition: Annotated[
        tuple[str, ...],
        Help("Only trials of this condition; by default all but catch. Repeatable."),
    ] = ()
    people: Annotated[
        Literal["slopes", "intercept", "none"],
        Help("Whether participants differ in slopes and leaning, in leaning, or not."),
    ] = "slopes"
    items: Annotated[Literal["intercept", "none"], Help("Whether trials differ.")] = "intercept"
    link: Annotated[Literal["probit", "logit"], Help("Noise: normal or logistic.")] = "probit"
    thresholds: Annotated[
        Literal["symmetric", "flexible"],
        Help("flexible: as R's clmm, depends on which sentence is sentence_1."),
    ] = "symmetric"
    ratios: Annotated[Literal["nats", "ranks"], Help("Ratios in nats, or as signed ranks.")] = (
        "nats"
    )
    min_catch: MinCatch = None

    @property
    def settings(self) -> MixedSettings:
        """The mixed model."""
        items = self.items == "intercept"
        return MixedSettings(self.link, self.thresholds, self.people, items, self.ratios)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Those of the trials.

        Raises:
            InputError: there is no such condition.
        """
        try:
            return tuple(Condition(name) for name in self.condition) or TESTING
        except ValueError:
            raise InputError(
                f"`condition` is {', '.join(self.condition)}; there are {', '.join(Condition)}."
            ) from None


class FitMixed(OfAnswers[MixedAnalysis], name="mixed"):
    """Model answers with random effects of people and items, and compare models by it.

    An ordinal mixed model for each language model: people's ratings of 1 to 6 on its
    log-probability ratios; of choices a binary one.
    Writes fits.csv (log-likelihood, AIC), coefficients.csv, variances.csv, thresholds.csv,
    comparisons.csv (which model fits better, and how sure that is) and, with `--together`,
    additions.csv (what each model adds to another).

    Example: `contstim mixed --trials trials.csv --responses responses.csv --scores scores.csv
    --out mixed`
    """

    out: Annotated[Path, Writes("The folder to write.", record="fits.csv")]
    settings: MixedOptions = MixedOptions()

    def work(self, reporter: Reporter) -> Outcome[MixedAnalysis]:
        """Fit the models, and write the tables."""
        settings, conditions = self.settings.settings, self.settings.conditions
        admission, ratings = self.ratings(self.settings.min_catch)
        analysis = compare_mixed(
            ratings,
            settings,
            conditions=conditions,
            together=self.settings.together,
            progress=partial(reporter.progress, "fitting"),
        )
        for name, table in analysis.tables().items():
            if table:
                write_table(self.out / f"{name}.csv", with_origin(table, admission.origin))
        reporter.say(str(admission))
        reporter.warn(admission.origin.warning)
        rated = analysis.empty.rated
        if settings.people != "none" and rated.sided < rated.size:
            reporter.warn(
                f"{counted(rated.size - rated.sided, 'rating')} of {rated.size:,} do not say which "
                f"sentence was shown left (column left of {self.responses}): no leaning of "
                f"participants towards a side is estimated there."
            )
        if settings.thresholds == "flexible":
            reporter.warn(
                "Flexible thresholds depend on which sentence of a trial is called sentence_1, "
                "and so do all results; symmetric ones do not."
            )
        for model, reason in analysis.left_out.items():
            reporter.warn(f"{model} is left out. {reason}")
        for row in analysis.coefficients_capped:
            reporter.warn(
                f"{row['model']}: {counted(row['capped'], 'infinite ratio')} counted as "
                f"{row['cap']:.1f} nats, the largest finite one."
            )
        facts = {
            "settings": asdict(settings),
            "scale": str(ratings.scale),
            "conditions": [str(each) for each in conditions],
            "models_left_out": dict(analysis.left_out),
            "excluded": [
                {"participant": who, "reason": why} for who, why in admission.excluded.items()
            ],
            "simulated_participants": admission.origin.simulated,
        }
        return Outcome(analysis, facts)


class CompareControls(OfAnswers[Controls], name="controls"):
    """Ask what else models follow: numbers of tokens, word frequency, any feature of a sentence.

    Writes token_counts.csv (do models prefer the sentence with fewer tokens, a binomial test each),
    feature_preferences.csv (do they prefer more of a feature than people do, on synthetic
    controversial pairs) and feature_shares.csv (how often each person and model does).

    Example: `contstim controls --trials trials.csv --responses responses.csv --scores scores.csv
    --text corpus.txt --model hf:gpt2 --out controls`
    """

    out: Annotated[Path, Writes("The folder to write.", record="controls")]
    features: Annotated[Path | None, Reads("A table: sentence, features.")] = None
    text: Annotated[
        Path | None,
        Reads("Text, table or model of words: adds mean word frequency, zipf.", folder=True),
    ] = None
    tokens: Annotated[Path | None, Reads("A table: sentence, tokens of each model.")] = None
    models: Annotated[
        tuple[str, ...], Models("Count the tokens of this model. Repeatable.", flag="--model")
    ] = ()
    min_catch: MinCatch = None
    trust_remote_code: TrustRemoteCode = False

    def work(self, reporter: Reporter) -> Outcome[Controls]:
        """Test the controls, and write the tables."""
        if not (self.features or self.text or self.tokens or self.models):
            raise InputError(
                "Give something to control for: `features`, `text`, `tokens` or `models`."
            )
        admission, ratings = self.ratings(self.min_catch)
        sentences = read_stimuli(self.trials)
        measured = {} if self.features is None else read_features(self.features)
        if self.text is not None:
            measured["zipf"] = mean_zipfs(sentences, read_frequencies(self.text))
        counts = {} if self.tokens is None else read_features(self.tokens)
        # Tokens are counted by tokenizers alone, so the networks' weights stay where they are.
        loading = Loading(trust_remote_code=self.trust_remote_code).without_weights
        models = load_scorers(self.models, loading)
        tests = token_count_control(ratings, counts | count_tokens(models, sentences))
        preferences = feature_preferences(ratings, measured)
        for name, rows in (
            ("token_counts", tests),
            ("feature_preferences", preferences),
            ("feature_shares", feature_shares(ratings, measured)),
        ):
            if rows:
                # A control without tests writes no file, not an empty one.
                write_table(self.out / f"{name}.csv", rows_table(rows))
        reporter.say(str(admission))
        reporter.warn(admission.origin.warning)
        facts = {
            "models": conventions(models),
            "excluded": [
                {"participant": who, "reason": why} for who, why in admission.excluded.items()
            ],
            "simulated_participants": admission.origin.simulated,
        }
        return Outcome((tests, preferences), facts)
