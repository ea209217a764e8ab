"""Comparison of people's answers with the predictions of models."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from contstim.experiments.analysis import SMALLEST_EFFECT
from contstim.options import AnswerScale, Help, Seed, Writes
from contstim.steps.fields import Responses, Trials, TrialScores
from contstim.steps.step import Outcome, Step

if TYPE_CHECKING:
    from contstim.experiments.analysis.run import Analysis
    from contstim.reporter import Reporter

MinCatch = Annotated[
    int | None,
    Help(
        "Catch trials that must be right; by default eleven of twelve, or that share; "
        "fewer where more than one in a hundred of attentive people would fail (5 of 6).",
        at_least=0,
    ),
]
Samples = Annotated[
    int,
    Help("Bootstrap resamples of participants and items, for percentiles; 0: none.", at_least=0),
]


@dataclass(frozen=True, kw_only=True)
class AnalysisSettings:
    """Options of comparing responses with models."""

    contrasts: Annotated[
        Path | None,
        Help(
            "The comparisons to test: a table with the columns first and second, which name "
            "two models, or a model and 'ceiling'. By default all pairs of models and each model "
            "against the ceiling."
        ),
    ] = None
    min_catch: MinCatch = None
    units: Annotated[
        Literal["auto", "groups", "participants", "crossed"],
        Help(
            "What tests take as random: groups; participants, who saw the same trials, so that "
            "tests speak of these very items only; crossed: people and items. auto: groups, or "
            "crossed where groups are too few or share items."
        ),
    ] = "auto"
    intervals: Annotated[
        Literal["corrected", "percentile"],
        Help(
            "corrected: Student's t, new people and new items; percentile: of --bootstrap "
            "resamples, as in the 2023 study, which are too wide."
        ),
    ] = "corrected"
    correction: Annotated[
        Literal["bh", "holm"],
        Help(
            "What decides significance: bh, the false-discovery rate of Benjamini and Hochberg; "
            "holm, for a few planned contrasts, the family-wise error rate. Tables hold both."
        ),
    ] = "bh"
    smallest_effect: Annotated[
        float,
        Help(
            "The smallest difference, of accuracies or cosines, that matters: differences are "
            "also tested for being smaller."
        ),
    ] = SMALLEST_EFFECT
    bootstrap: Samples = 1000
    fdr: Annotated[
        float, Help("The error rate of significance, by --correction.", at_least=0, at_most=1)
    ] = 0.05
    unanimous: Annotated[
        float, Help("The share of people that counts as near all.", at_least=0.5, at_most=1)
    ] = 0.9
    worst: Annotated[int, Help("Failures to list for each model.", at_least=0)] = 5
    pair: Annotated[
        tuple[str, str] | None,
        Help("Two models whose sentences to draw; by default the best two rivals."),
    ] = None


class AnalyzeResponses(Step["Analysis"], name="analyze"):
    """Say which models people agree with, how much a model could, and how sure that is.

    Writes tables (CSV), figures (PDF and PNG), `methods.md` and `report.html`. Participants who did
    not finish or failed catch trials are left out, and named.

    Example: `contstim analyze --trials trials.csv --responses responses.csv --scores scores.csv
    --out results`
    """

    trials: Trials
    responses: Responses
    scores: TrialScores
    out: Annotated[Path, Writes("The folder to write.", record="report.html")]
    settings: AnalysisSettings = AnalysisSettings()
    scale: AnswerScale = None
    seed: Seed = 0

    def work(self, reporter: Reporter) -> Outcome[Analysis]:
        """Compare the models, and write tables, figures and pages."""
        settings = self.settings
        from contstim.experiments.analysis.effects import Sampling
        from contstim.experiments.analysis.families import read_contrasts
        from contstim.experiments.analysis.figures import require_rivals
        from contstim.experiments.analysis.page import write_analysis
        from contstim.experiments.analysis.run import analyze
        from contstim.experiments.responses.admission import DEFAULT_RULE, CatchRule
        from contstim.experiments.responses.table import read_responses
        from contstim.models.training_text import (
            contamination_facts,
            contamination_warnings,
            read_contamination,
        )
        from contstim.scores import ScoreTable
        from contstim.stimuli import Condition, Kind, read_trials

        design = read_trials(self.trials)
        # Before the comparison, which takes minutes
        if settings.pair:
            require_rivals(design, settings.pair)
        table = ScoreTable.read(self.scores)
        contrasts, min_catch = settings.contrasts, settings.min_catch
        analysis = analyze(
            design,
            read_responses(self.responses, design, scale=self.scale),
            table,
            contrasts=read_contrasts(contrasts, table.models) if contrasts else None,
            catch=DEFAULT_RULE if min_catch is None else CatchRule(number=min_catch),
            sampling=Sampling(
                None if settings.units == "auto" else settings.units,
                samples=settings.bootstrap,
                seed=self.seed,
                false_discovery_rate=settings.fdr,
                intervals=settings.intervals,
                correction=settings.correction,
                smallest_effect=settings.smallest_effect,
            ),
            unanimous=settings.unanimous,
            worst=settings.worst,
            progress=partial(reporter.progress, "comparing"),
        )
        reporter.warn(analysis.origin.warning)
        # Sentences of a training text say little: those of catch trials are not judged by.
        natural = [
            sentence
            for trial in design
            if trial.condition is not Condition.CATCH
            for kind, sentence in (
                (trial.kind_1, trial.sentence_1),
                (trial.kind_2, trial.sentence_2),
            )
            if kind is Kind.NATURAL
        ]
        seen = read_contamination(self.scores, table.models, natural)
        title = "Which models people agree with"
        write_analysis(analysis, self.out, title=title, pair=settings.pair, seen=seen)
        reporter.say(str(analysis.admission.report))
        for warning in (*analysis.cautions, *contamination_warnings(seen, "natural sentences")):
            reporter.warn(warning)
        facts = {"seed": self.seed, **analysis_facts(analysis), **contamination_facts(seen)}
        return Outcome(analysis, facts)


def analysis_facts(analysis: Analysis) -> dict[str, object]:
    """Facts about an analysis for its record."""
    return {
        "participants": len(analysis.ratings.participants),
        "scale": str(analysis.ratings.scale),
        "left_out": {
            exclusion.participant: exclusion.reason for exclusion in analysis.admission.excluded
        },
        "simulated_participants": analysis.origin.simulated,
        "units": analysis.sampling.units,
        "intervals": analysis.sampling.intervals,
        "correction": analysis.sampling.correction,
        "smallest_effect": analysis.sampling.smallest_effect,
        "bootstrap": analysis.sampling.samples,
        "false_discovery_rate": analysis.sampling.false_discovery_rate,
    }
