"""Comparison of participants' answers with the predictions of models; mixed models of answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from contstim.english.words import tag_table
from contstim.errors import InputError
from contstim.evaluation.folder import page_table
from contstim.experiments.analysis import SMALLEST_EFFECT
from contstim.experiments.analysis.controls import (
    count_tokens,
    feature_preferences,
    read_features,
    token_count_control,
)
from contstim.experiments.analysis.effects import Sampling
from contstim.experiments.analysis.families import Correction, read_contrasts
from contstim.experiments.analysis.figures import require_rivals, results_with_figures
from contstim.experiments.analysis.measures import MEASURES
from contstim.experiments.analysis.mixed.comparison import MixedAnalysis, compare_mixed
from contstim.experiments.analysis.mixed.models import MixedSettings
from contstim.experiments.analysis.page import verdict_texts, write_analysis
from contstim.experiments.analysis.ratings import TESTING, Ratings, gather
from contstim.experiments.analysis.run import Analysis, analyze
from contstim.experiments.analysis.tables import Row, rows_table, with_origin
from contstim.experiments.analysis.trivial_rivals import against_rivals, trivial_rivals
from contstim.experiments.responses.admission import Admission, Exclusions, admit
from contstim.experiments.responses.questionnaire import questions_beside
from contstim.experiments.responses.table import Response, read_responses
from contstim.files.tables import write_table
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Condition, Kind, Trial, read_stimuli, read_trials
from contstim.models.base import conventions
from contstim.models.catalog import load_scorers
from contstim.models.loading import Loading, TrustRemoteCode
from contstim.models.training_text import read_contamination, tell_contamination
from contstim.options import AnswerScale, Help, Models, Reads, Share, Writes, reads_kind
from contstim.reporting.report import Table
from contstim.steps.fields import SHOWN_TRIALS, ModelContexts, TrialScores
from contstim.steps.step import Outcome, Step, Value
from contstim.wording import quantity
from contstim.words.frequencies import read_frequencies

if TYPE_CHECKING:
    from contstim.reporter import Reporter


class OfAnswers(Step[Value], name=""):
    """Base of steps that compare participants' answers with models' scores of the sentences."""

    trials: Annotated[Path, SHOWN_TRIALS]
    responses: Annotated[Path, reads_kind("The table of responses.", "responses")]
    scores: TrialScores
    scale: AnswerScale = None
    exclusions: Exclusions = Exclusions()

    @property
    def applied_exclusions(self) -> Exclusions:
        """The exclusions, with the path of the table of answers to questions.

        Only `exclusions.require` needs this table: it excludes participants by their answers to
        questions. By default, the table is next to the responses.
        """
        if not self.exclusions.require or self.exclusions.participants is not None:
            return self.exclusions
        return replace(self.exclusions, participants=questions_beside(self.responses))

    def further_reads(self) -> list[Path]:
        """Return the table of answers to questions, if `require` needs it."""
        return [*filter(None, [self.applied_exclusions.participants])]

    def read_inputs(self) -> tuple[Sequence[Trial], Sequence[Response], ScoreTable]:
        """Read trials, responses and scores."""
        design = read_trials(self.trials)
        responses = read_responses(self.responses, design, scale=self.scale)
        return design, responses, ScoreTable.from_file(self.scores)

    def ratings_of(
        self, reporter: Reporter, *, unfinished: bool = False
    ) -> tuple[Admission, Ratings]:
        """Return the admitted participants, and their ratings.

        If `unfinished` is set, the ratings of participants who did not finish are included.
        """
        design, responses, table = self.read_inputs()
        admission = admit(design, responses, exclusions=self.applied_exclusions)
        reporter.say(str(admission))
        reporter.warn(admission.origin.warning)
        if admission.partial:
            reporter.say(admission.partial_note)
        answers = admission.responses + (admission.partial if unfinished else ())
        return admission, gather(design, answers, table, partial=unfinished)


STOPPED = (
    "Data were collected in waves, and the answers decided when to stop. The shares, p-values and "
    "intervals of this analysis ignore this. Use the verdict of the waves instead."
)


class AnalyzeResponses(OfAnswers[Analysis], name="analyze", version=8):
    """Compare models by their agreement with people, with noise ceilings, intervals and tests.

    Writes tables (CSV), figures (PDF and PNG), `methods.md` and `report.html`. Participants who did
    not finish, or who failed catch trials, are excluded and named.

    Example: `contstim analyze --trials trials.csv --responses responses.csv --scores scores.csv
    --out results`
    """

    out: Annotated[Path, Writes("The folder to write.", record="report.html", name="analysis")]
    contrasts: Annotated[
        Path | None,
        Help(
            "Planned contrasts: a table with the columns first and second. A row names two models, "
            "or a model and `ceiling`. By default, the contrasts are all pairs of models, and each "
            "model against the ceiling.",
            content="contrasts",
        ),
    ] = None
    units: Annotated[
        Literal["auto", "groups", "participants", "crossed"],
        Help(
            "Random factor of tests: groups, participants, or participants and items (crossed). "
            "auto uses groups, or crossed if there are too few groups or groups share items."
        ),
    ] = "auto"
    correction: Annotated[
        Correction,
        Help("Correction of p-values: false discovery rate (bh) or family-wise error rate (holm)."),
    ] = "bh"
    smallest_effect: Annotated[
        float, Share("Smallest difference between models that is of interest.")
    ] = SMALLEST_EFFECT
    primary: Annotated[
        Literal["accuracy", "signed-rank-cosine"] | None,
        Help(
            "Measure on which the verdict is based, over all trials. By default, it is "
            "signed-rank-cosine, or accuracy if answers are choices."
        ),
    ] = None
    fdr: Annotated[float, Share("False discovery rate, or family-wise error rate (holm).")] = 0.05
    unanimous: Annotated[
        float,
        Help(
            "A trial is near-unanimous if at least this proportion of participants agrees.",
            at_least=0.5,
            at_most=1,
        ),
    ] = 0.9
    worst: Annotated[
        int, Help("Number of the worst failures (trials) to list for each model.", at_least=0)
    ] = 5
    pair: Annotated[
        tuple[str, str] | None,
        Help(
            "Two models for the figure of ranks; by default the best two models that trials "
            "compare.",
            content="model names",
        ),
    ] = None
    tags: Annotated[
        Path | None,
        Help(
            "Table or treebank with parts of speech, if the sentences are not English. Trivial "
            "rivals (rules such as word frequency) need parts of speech.",
            content="tags",
        ),
    ] = None
    text: Annotated[
        Path | None,
        Help("Source of word frequencies for trivial rivals; by default the table of --tags."),
    ] = None

    def work(self, reporter: Reporter) -> Outcome[Analysis]:
        """Compare the models, and write tables, figures and pages."""
        design, responses, table = self.read_inputs()
        if self.pair:  # check this before the comparison, which takes minutes
            require_rivals(design, self.pair)
        analysis = analyze(
            design,
            responses,
            table,
            contrasts=read_contrasts(self.contrasts, table.models) if self.contrasts else None,
            exclusions=self.applied_exclusions,
            sampling=Sampling(
                None if self.units == "auto" else self.units,
                false_discovery_rate=self.fdr,
                correction=self.correction,
                smallest_effect=self.smallest_effect,
            ),
            unanimous=self.unanimous,
            worst=self.worst,
            rivals=trivial_rivals(
                design,
                tag_table(self.tags),
                None if self.text is None else read_frequencies(self.text),
            ),
            primary=next((measure for measure in MEASURES if measure.name == self.primary), None),
            progress=partial(reporter.progress, "comparing"),
        )
        if Path(f"{self.trials}.waves.csv").is_file():
            analysis = replace(analysis, limits=(STOPPED,))
        reporter.warn(analysis.origin.warning)
        # A natural sentence in a model's training text may bias the comparison
        testing = (trial for trial in design if trial.condition in TESTING)
        sides = (s for t in testing for s in ((t.kind_1, t.sentence_1), (t.kind_2, t.sentence_2)))
        natural = [sentence for kind, sentence in sides if kind is Kind.NATURAL]
        seen = read_contamination(self.scores, table.models, natural)
        title = "Which models people agree with"
        write_analysis(analysis, self.out, title=title, pair=self.pair, seen=seen)
        admission = analysis.admission
        reporter.say(f"{admission.report}\n{admission}")
        for caution in analysis.cautions:
            reporter.warn(caution)
        contamination = tell_contamination(seen, reporter, "natural sentences")
        facts = {**analysis_facts(analysis), **contamination}
        return Outcome(analysis, facts, parts=shown_of(analysis))


def shown_of(analysis: Analysis) -> list[str | Table]:
    """Return each model's agreement with the participants, and the verdict, for printing."""
    results = results_with_figures(analysis)
    columns = []
    for result in results:
        below = result.below_ceiling()
        # A value without an asterisk ends in a space, so that digits stay aligned
        columns.append(
            {r.model: f"{r.value:.2f}{'*' if r.model in below else ' '}" for r in result.models}
        )
    # The cell of a model that a result does not include is a dash
    rows = [
        (model, *(column.get(model, "–") for column in columns))
        for model in analysis.ratings.models
    ]
    headings = [f"{r.scope.name.lower()}\n{r.measure.name.rpartition('-')[2]}" for r in results]
    whom = "artificial participants" if analysis.origin.simulated > 0 else "people"
    return [
        *filter(None, [analysis.origin.warning]),
        f"Agreement with {whom}:",
        Table(("model", *headings), rows),
        "* significantly below the noise ceiling on the same trials",
        *(
            f"{r.scope.name.lower()}: {against_rivals(rivals, analysis.sampling.units)}"
            for r in results
            if (rivals := analysis.rivals_of(r))
        ),
        " ".join(verdict_texts(analysis)),
    ]


def analysis_facts(analysis: Analysis) -> dict[str, object]:
    """Return facts for the record."""
    return {
        "verdict": " ".join(verdict_texts(analysis)),
        "participants": len(analysis.ratings.participants),
        "scale": str(analysis.ratings.scale),
        "left_out": analysis.admission.excluded,
        "left_out_by_rule": analysis.admission.counts,
        "simulated_participants": analysis.origin.simulated,
        "units": analysis.sampling.units,
        "correction": analysis.sampling.correction,
        "smallest_effect": analysis.sampling.smallest_effect,
        "false_discovery_rate": analysis.sampling.false_discovery_rate,
    }


# Columns of tables that the commands print, with their headings
_FITS = {"models": "model", "log_likelihood": "log-likelihood", "aic": "AIC", "gain": "gain"}
_INTERVAL = {"low": "95 % from", "high": "to", "adjusted": "p"}
_COMPARISONS = {"first": "model", "second": "against", "difference": "difference", **_INTERVAL}
_TESTS = {"model": "model", "errors_only": "errors only", "pairs": "trials"}
_TESTS |= {"fewer": "fewer tokens", **_INTERVAL}
_PREFERENCES = {"model": "model", "feature": "prefers more", "model_share": "share"}
_PREFERENCES |= {"people_share": "people's", "trials": "trials", "difference": "difference"}
_PREFERENCES |= _INTERVAL

Controls: TypeAlias = tuple[Sequence[Row], Sequence[Row]]


class FitMixed(OfAnswers[MixedAnalysis], name="mixed", version=2):
    """Fit mixed models of answers, with random effects of people and items, to compare models.

    For each language model, an ordinal mixed model predicts the ratings of 1 to 6. Its predictor is
    the log-probability ratio of the two sentences under the language model. For choices, the mixed
    model is binary.

    Writes fits.csv (log-likelihood, AIC), coefficients.csv, variances.csv, thresholds.csv, and
    comparisons.csv (which model fits better, with p-values). With `--together`, additions.csv has
    the gain in fit when a second model is added.

    Example: `contstim mixed --trials trials.csv --responses responses.csv --scores scores.csv
    --out mixed`
    """

    out: Annotated[Path, Writes("The folder to write.", record="fits.csv")]
    together: Annotated[
        bool, Help("Also fit every two models together, and all models together.")
    ] = False
    condition: Annotated[
        tuple[Condition, ...], Help("Conditions to analyse; by default all except catch.")
    ] = ()
    settings: MixedSettings = MixedSettings()
    items: Annotated[
        Literal["intercept", "none"], Help("Random effects of trials: an intercept, or none.")
    ] = "intercept"

    def work(self, reporter: Reporter) -> Outcome[MixedAnalysis]:
        """Fit the models, and write the tables."""
        settings = replace(self.settings, items=self.items == "intercept")
        conditions = self.condition or TESTING
        admission, ratings = self.ratings_of(reporter, unfinished=True)
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
                f"{quantity(rated.size - rated.sided, 'rating')} of {rated.size:,} are without the "
                f"positions of the sentences (column `left` of {self.responses}). The preference "
                "of participants for a side cannot be estimated from these ratings."
            )
        if settings.thresholds == "flexible":
            reporter.warn(
                "With flexible thresholds, all results depend on which sentence of a trial is "
                "sentence_1. With symmetric thresholds, they do not."
            )
        for model, reason in analysis.left_out.items():
            reporter.warn(f"{model} is excluded. {reason}")
        for row in (row for fit in analysis.fits for row in fit.coefficients if row["capped"]):
            reporter.warn(
                f"{row['model']}: {quantity(row['capped'], 'infinite ratio')} counted as "
                f"{row['cap']:.1f} nats, the largest finite ratio."
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
            "and p-values adjusted over all differences (Benjamini & Hochberg 1995):",
            page_table(tables["fits"], _FITS),
            *([page_table(tables["comparisons"], _COMPARISONS)] if tables["comparisons"] else []),
        ]
        return Outcome(analysis, facts, parts=parts)


class CompareControls(OfAnswers[Controls], name="controls", version=2):
    """Test whether token counts or other features of sentences predict preferences of models.

    Writes token_counts.csv and feature_preferences.csv. The first table has a binomial test for
    each model: whether the model prefers the sentence with fewer tokens. The second table is about
    features, for example word frequency, in pairs of synthetic sentences. A t-test compares the
    sentences that a model prefers with the sentences that participants prefer.

    Example: `contstim controls --trials trials.csv --responses responses.csv --scores scores.csv
    --text corpus.txt --model hf:gpt2 --out controls`
    """

    out: Annotated[Path, Writes("The folder to write.", record="controls")]
    features: Annotated[
        Path | None, Reads("A table with the column sentence, and a column for each feature.")
    ] = None
    text: Annotated[
        Path | None,
        Reads("Text or counts, to add the feature mean word frequency (zipf).", folder=True),
    ] = None
    tokens: Annotated[
        Path | None,
        Reads("A table with the column sentence, and the number of tokens under each model."),
    ] = None
    models: Annotated[tuple[str, ...], Models("Model whose tokens to count.", flag="--model")] = ()
    context: ModelContexts = ()
    trust_remote_code: TrustRemoteCode = False

    def work(self, reporter: Reporter) -> Outcome[Controls]:
        """Test the controls, and write the tables."""
        if not (self.features or self.text or self.tokens or self.models):
            raise InputError(
                "There are no control variables. Set `features`, `text`, `tokens` or `models`."
            )
        admission, ratings = self.ratings_of(reporter)
        sentences = read_stimuli(self.trials)
        measured = {} if self.features is None else read_features(self.features)
        if self.text is not None:
            zipf = read_frequencies(self.text).mean_zipf
            measured["zipf"] = {sentence.text: zipf(sentence) for sentence in sentences}
        counts = {} if self.tokens is None else read_features(self.tokens)
        # Counting tokens needs only the tokenizers
        loading = Loading(trust_remote_code=self.trust_remote_code, weights=False)
        models = load_scorers(self.models, loading)
        tests = token_count_control(ratings, counts | count_tokens(models, sentences))
        preferences = feature_preferences(ratings, measured)
        parts: list[str | Table] = []
        for name, rows, columns in (
            ("token_counts", tests, _TESTS),
            ("feature_preferences", preferences, _PREFERENCES),
        ):
            if rows:  # a control without tests writes no file
                table = rows_table(rows)
                write_table(self.out / f"{name}.csv", table)
                title = f"P-values adjusted over {rows[0]['family']} (Benjamini & Hochberg 1995):"
                parts += [title, page_table(table, columns)]
        facts = {"models": conventions(models), **_facts_of_people(admission)}
        return Outcome((tests, preferences), facts, parts=parts)


def _facts_of_people(admission: Admission, *, unfinished: bool = False) -> dict[str, object]:
    """Return the excluded participants and the number of artificial participants, for a record."""
    unfinished_participants = {response.participant for response in admission.partial if unfinished}
    excluded = [
        {"participant": who, "reason": why}
        for who, why in admission.excluded.items()
        if who not in unfinished_participants
    ]
    return {"excluded": excluded, "simulated_participants": admission.origin.simulated}
