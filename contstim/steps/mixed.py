"""Mixed models of people's ratings, and what else models may follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from contstim.errors import InputError
from contstim.evaluation.folder import page_table
from contstim.experiments.analysis.controls import (
    count_tokens,
    feature_preferences,
    read_features,
    token_count_control,
)
from contstim.experiments.analysis.mixed.comparison import MixedAnalysis, compare_mixed
from contstim.experiments.analysis.mixed.models import MixedSettings
from contstim.experiments.analysis.ratings import TESTING
from contstim.experiments.analysis.tables import Row, rows_table, with_origin
from contstim.experiments.responses.admission import Exclusions
from contstim.files.tables import write_table
from contstim.items.stimuli import Condition, read_stimuli
from contstim.models.base import conventions
from contstim.models.catalog import load_scorers
from contstim.models.loading import Loading
from contstim.options import Help, Models, Reads, Writes
from contstim.steps.analysis import OfAnswers
from contstim.steps.fields import ModelContexts, TrustRemoteCode
from contstim.steps.step import Outcome
from contstim.wording import quantity
from contstim.words.frequencies import read_frequencies

if TYPE_CHECKING:
    from contstim.experiments.responses.admission import Admission
    from contstim.reporter import Reporter
    from contstim.reporting.report import Table

# Columns that a terminal shows of tables
_FITS = {"models": "model", "log_likelihood": "log-likelihood", "aic": "AIC", "gain": "gain"}
_COMPARISONS = {"first": "model", "second": "against", "difference": "difference"}
_COMPARISONS |= {"low": "95 % from", "high": "to", "adjusted": "p"}
_TESTS = {"model": "model", "errors_only": "errors only", "pairs": "trials"}
_TESTS |= {"fewer": "fewer tokens", "low": "95 % from", "high": "to", "adjusted": "p"}
_PREFERENCES = {"model": "model", "feature": "prefers more", "model_share": "share"}
_PREFERENCES |= {"people_share": "people's", "trials": "trials", "difference": "difference"}
_PREFERENCES |= {"low": "95 % from", "high": "to", "adjusted": "p"}

Controls: TypeAlias = tuple[Sequence[Row], Sequence[Row]]


class FitMixed(OfAnswers[MixedAnalysis], name="mixed", version=2):
    """Fit mixed models of answers with random effects of people and items, and compare models.

    Fits an ordinal mixed model for each language model: ratings of 1 to 6 are predicted by its
    log-probability ratios; for choices, the mixed model is binary.
    Writes fits.csv (log-likelihood, AIC), coefficients.csv, variances.csv, thresholds.csv,
    comparisons.csv (which model fits better, with p-values) and, with `--together`, additions.csv
    (the contribution of each model in addition to another).

    Example: `contstim mixed --trials trials.csv --responses responses.csv --scores scores.csv
    --out mixed`
    """

    out: Annotated[Path, Writes("The folder to write.", record="fits.csv")]
    together: Annotated[
        bool, Help("Also fit models together, to estimate the contribution of each.")
    ] = False
    condition: Annotated[
        tuple[Condition, ...], Help("Conditions to analyse; by default all except catch.")
    ] = ()
    settings: MixedSettings = MixedSettings()
    items: Annotated[
        Literal["intercept", "none"], Help("Whether to include random effects of trials.")
    ] = "intercept"
    exclusions: Exclusions = Exclusions()

    def work(self, reporter: Reporter) -> Outcome[MixedAnalysis]:
        """Fit the models, and write the tables."""
        settings = replace(self.settings, items=self.items == "intercept")
        conditions = self.condition or TESTING
        admission, ratings = self.ratings_of(self.exclusions, reporter, unfinished=True)
        analysis = compare_mixed(
            ratings,
            settings,
            conditions=conditions,
            together=self.together,
            progress=partial(reporter.progress, "fitting"),
        )
        tables = analysis.tables()
        for name, table in tables.items():
            if table:
                write_table(self.out / f"{name}.csv", with_origin(table, admission.origin))
        rated = analysis.empty.rated
        if settings.people != "none" and rated.sided < rated.size:
            reporter.warn(
                f"{quantity(rated.size - rated.sided, 'rating')} of {rated.size:,} have no "
                f"position of sentences (column left of {self.responses}): the preference of "
                "participants for a side cannot be estimated from them."
            )
        if settings.thresholds == "flexible":
            reporter.warn(
                "Flexible thresholds, and all results with them, depend on which sentence of "
                "a trial is sentence_1; symmetric thresholds do not."
            )
        for model, reason in analysis.left_out.items():
            reporter.warn(f"{model} is excluded. {reason}")
        for row in (row for fit in analysis.fits for row in fit.coefficients if row["capped"]):
            reporter.warn(
                f"{row['model']}: {quantity(row['capped'], 'infinite ratio')} counted as "
                f"{row['cap']:.1f} nats, the largest finite one."
            )
        facts = {
            "settings": asdict(settings),
            "scale": str(ratings.scale),
            "conditions": [str(condition) for condition in conditions],
            "models_left_out": dict(analysis.left_out),
            **_facts_of_people(admission, unfinished=True),
        }
        parts: list[str | Table] = [
            f"{quantity(rated.size, 'rating')}, "
            f"{quantity(len(rated.participants), 'participant')}, "
            f"{quantity(rated.n_trials, 'trial')}; differences of log-likelihoods in nats, "
            "and p-values adjusted over all of them (Benjamini & Hochberg 1995):",
            page_table(tables["fits"], _FITS),
            *([page_table(tables["comparisons"], _COMPARISONS)] if tables["comparisons"] else []),
        ]
        return Outcome(analysis, facts, parts=parts)


class CompareControls(OfAnswers[Controls], name="controls", version=2):
    """Test whether token counts or other features of sentences predict preferences of models.

    Writes token_counts.csv (whether models prefer the sentence with fewer tokens, a binomial test
    each) and feature_preferences.csv (whether models prefer more of a feature than people do, on
    synthetic controversial pairs).

    Example: `contstim controls --trials trials.csv --responses responses.csv --scores scores.csv
    --text corpus.txt --model hf:gpt2 --out controls`
    """

    out: Annotated[Path, Writes("The folder to write.", record="controls")]
    features: Annotated[
        Path | None, Reads("A table with the column sentence, and a column for each feature.")
    ] = None
    text: Annotated[
        Path | None, Reads("Text or counts, which add the mean word frequency (zipf).", folder=True)
    ] = None
    tokens: Annotated[
        Path | None,
        Reads("A table with the column sentence, and the number of tokens under each model."),
    ] = None
    models: Annotated[
        tuple[str, ...], Models("Model whose tokens are counted.", flag="--model")
    ] = ()
    context: ModelContexts = ()
    exclusions: Exclusions = Exclusions()
    trust_remote_code: TrustRemoteCode = False

    def work(self, reporter: Reporter) -> Outcome[Controls]:
        """Test the controls, and write the tables."""
        if not (self.features or self.text or self.tokens or self.models):
            raise InputError(
                "There are no control variables. Set `features`, `text`, `tokens` or `models`."
            )
        admission, ratings = self.ratings_of(self.exclusions, reporter)
        sentences = read_stimuli(self.trials)
        measured = {} if self.features is None else read_features(self.features)
        if self.text is not None:
            zipf = read_frequencies(self.text).mean_zipf
            measured["zipf"] = {sentence.text: zipf(sentence) for sentence in sentences}
        counts = {} if self.tokens is None else read_features(self.tokens)
        # Tokens are counted by tokenizers alone, so the networks' weights stay where they are.
        loading = Loading(trust_remote_code=self.trust_remote_code).without_weights
        models = load_scorers(self.models, loading)
        tests = token_count_control(ratings, counts | count_tokens(models, sentences))
        preferences = feature_preferences(ratings, measured)
        parts: list[str | Table] = []
        for name, rows, columns in (
            ("token_counts", tests, _TESTS),
            ("feature_preferences", preferences, _PREFERENCES),
        ):
            if rows:  # a control without tests writes no file, not an empty one
                table = rows_table(rows)
                write_table(self.out / f"{name}.csv", table)
                title = (
                    f"P-values are adjusted over {rows[0]['family']} (Benjamini & Hochberg 1995):"
                )
                parts += [title, page_table(table, columns)]
        facts = {"models": conventions(models), **_facts_of_people(admission)}
        return Outcome((tests, preferences), facts, parts=parts)


def _facts_of_people(admission: Admission, *, unfinished: bool = False) -> dict[str, object]:
    """Facts about who was left out, and who is no person, for a record.

    Args:
        admission: who is kept.
        unfinished: whether sessions that are kept in part take part.
    """
    unfinished_participants = {response.participant for response in admission.partial if unfinished}
    excluded = [
        {"participant": who, "reason": why}
        for who, why in admission.excluded.items()
        if who not in unfinished_participants
    ]
    return {"excluded": excluded, "simulated_participants": admission.origin.simulated}
