"""Further things that models may follow: numbers of tokens, word frequency, any feature."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from contstim.errors import InputError
from contstim.options import AnswerScale, Models, Reads, Writes
from contstim.steps.analysis import MinCatch
from contstim.steps.fields import Responses, Trials, TrialScores, TrustRemoteCode
from contstim.steps.step import Outcome, Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.experiments.analysis.controls import FeaturePreference, TokenCountTest
    from contstim.reporter import Reporter


class CompareControls(
    Step["tuple[Sequence[TokenCountTest], Sequence[FeaturePreference]]"], name="controls"
):
    """Ask what else models follow: numbers of tokens, word frequency, any feature of a sentence.

    Writes token_counts.csv (do models prefer the sentence with fewer tokens, a binomial test each),
    feature_preferences.csv (do they prefer more of a feature than people do, on synthetic
    controversial pairs) and feature_shares.csv (how often each person and model does).

    Example: `contstim controls --trials trials.csv --responses responses.csv --scores scores.csv
    --text corpus.txt --model hf:gpt2 --out controls`
    """

    trials: Trials
    responses: Responses
    scores: TrialScores
    out: Annotated[Path, Writes("The folder to write.", record="controls")]
    features: Annotated[Path | None, Reads("A table: sentence, and a column for each feature.")] = (
        None
    )
    text: Annotated[
        Path | None,
        Reads(
            "Adds the feature zipf, the mean frequency of a sentence's words, from a text, a "
            "table with the columns word and count, or a trained model of words.",
            folder=True,
        ),
    ] = None
    tokens: Annotated[
        Path | None, Reads("A table: sentence, and numbers of tokens for each model.")
    ] = None
    models: Annotated[
        tuple[str, ...],
        Models(
            "Count the tokens of this model; NAME is its column in --scores. Repeatable.",
            flag="--model",
        ),
    ] = ()
    scale: AnswerScale = None
    min_catch: MinCatch = None
    trust_remote_code: TrustRemoteCode = False

    def work(
        self, reporter: Reporter
    ) -> Outcome[tuple[Sequence[TokenCountTest], Sequence[FeaturePreference]]]:
        """Test the controls, and write the tables."""
        from contstim.experiments.analysis.controls import (
            count_tokens,
            feature_preferences,
            feature_shares,
            mean_zipfs,
            read_features,
            token_count_control,
        )
        from contstim.experiments.analysis.ratings import gather
        from contstim.experiments.analysis.tables import rows_table
        from contstim.experiments.responses.admission import DEFAULT_RULE, CatchRule, admit
        from contstim.experiments.responses.table import read_responses
        from contstim.frequencies import read_frequencies
        from contstim.models.base import conventions
        from contstim.models.catalog import load_scorers
        from contstim.models.loading import Loading
        from contstim.scores import ScoreTable
        from contstim.stimuli import read_stimuli, read_trials
        from contstim.tables import write_table

        if not (self.features or self.text or self.tokens or self.models):
            raise InputError(
                "Give something to control for: `features`, `text`, `tokens` or `models`."
            )
        design = read_trials(self.trials)
        rule = DEFAULT_RULE if self.min_catch is None else CatchRule(number=self.min_catch)
        responses = read_responses(self.responses, design, scale=self.scale)
        admission = admit(design, responses, catch=rule)
        # The same people as in `analyze`: those who finished and passed their catch trials.
        ratings = gather(design, admission.responses, ScoreTable.read(self.scores))
        sentences = read_stimuli(self.trials)
        measured = {} if self.features is None else read_features(self.features)
        if self.text is not None:
            measured["zipf"] = mean_zipfs(sentences, read_frequencies(self.text))
        counts = {} if self.tokens is None else read_features(self.tokens)
        # Tokens are counted by tokenizers alone, so the networks' weights stay where they are.
        loading = Loading(trust_remote_code=self.trust_remote_code).without_weights
        models = load_scorers(self.models, loading)
        counts |= count_tokens(models, sentences)
        tests = token_count_control(ratings, counts)
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
            "excluded": [asdict(exclusion) for exclusion in admission.excluded],
            "simulated_participants": admission.origin.simulated,
        }
        return Outcome((tests, preferences), facts)
