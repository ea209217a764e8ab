"""`contstim controls`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.options import (
    Folder,
    Quiet,
    Responses,
    Trials,
    TrialScores,
    TrustRemoteCode,
)
from contstim.cli.output import remark, warn
from contstim.errors import InputError
from contstim.options import AnswerScale
from contstim.steps.analysis import MinCatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.experiments.analysis.controls import FeaturePreference, TokenCountTest


def controls(
    trials: Trials,
    responses: Responses,
    scores: TrialScores,
    out: Folder,
    features: Annotated[
        Path | None, typer.Option(help="A table: sentence, and a column for each feature.")
    ] = None,
    text: Annotated[
        Path | None,
        typer.Option(
            help="Adds the feature zipf, the mean frequency of a sentence's words, from a text, a "
            "table with the columns word and count, or a trained model of words."
        ),
    ] = None,
    tokens: Annotated[
        Path | None, typer.Option(help="A table: sentence, and numbers of tokens for each model.")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]MODEL",
            help="Count the tokens of this model; NAME is its column in --scores. Repeatable.",
        ),
    ] = None,
    scale: AnswerScale = None,
    min_catch: MinCatch = None,
    trust_remote_code: TrustRemoteCode = False,
    quiet: Quiet = False,
) -> None:
    """Ask what else models follow: numbers of tokens, word frequency, any feature of a sentence.

    Writes token_counts.csv (do models prefer the sentence with fewer tokens, a binomial test each),
    feature_preferences.csv (do they prefer more of a feature than people do, on synthetic
    controversial pairs) and feature_shares.csv (how often each person and model does).

    Example: `contstim controls --trials trials.csv --responses responses.csv --scores scores.csv
    --text corpus.txt --model hf:gpt2 --out controls`
    """
    from contstim.experiments.analysis.controls import (
        count_tokens,
        feature_preferences,
        feature_shares,
        token_count_control,
    )
    from contstim.experiments.analysis.features import mean_zipfs, read_features
    from contstim.experiments.analysis.ratings import gather
    from contstim.experiments.analysis.tables import rows_table
    from contstim.experiments.responses import CatchRule, admit, read_responses
    from contstim.experiments.responses.admission import DEFAULT_RULE
    from contstim.frequencies import read_frequencies
    from contstim.models.base import conventions
    from contstim.models.catalog import load_scorers
    from contstim.models.loading import Loading
    from contstim.models.origins import model_origins
    from contstim.records import write_record
    from contstim.scores import ScoreTable
    from contstim.stimuli import read_stimuli, read_trials
    from contstim.tables import write_table

    if not (features or text or tokens or model):
        raise InputError("Give something to control for: --features, --text, --tokens or --model.")
    design = read_trials(trials)
    rule = DEFAULT_RULE if min_catch is None else CatchRule(number=min_catch)
    admission = admit(design, read_responses(responses, design, scale=scale), catch=rule)
    # The same people as in `analyze`: those who finished and passed their catch trials.
    ratings = gather(design, admission.responses, ScoreTable.read(scores))
    sentences = read_stimuli(trials)
    measured: dict[str, dict[str, float]] = {} if features is None else read_features(features)
    if text is not None:
        measured["zipf"] = mean_zipfs(sentences, read_frequencies(text))
    counts: dict[str, dict[str, float]] = {} if tokens is None else read_features(tokens)
    # Tokens are counted by tokenizers alone, so the networks' weights stay where they are.
    loading = Loading(trust_remote_code=trust_remote_code).without_weights
    models = load_scorers(model or [], loading)
    counts |= count_tokens(models, sentences)
    tests = token_count_control(ratings, counts)
    preferences = feature_preferences(ratings, measured)
    written = []
    for name, rows in (
        ("token_counts", tests),
        ("feature_preferences", preferences),
        ("feature_shares", feature_shares(ratings, measured)),
    ):
        if rows:
            # A control without tests writes no file, not an empty one.
            written.append(out / f"{name}.csv")
            write_table(written[-1], rows_table(rows))
    origins = model_origins(scorer.specification for scorer in models)
    write_record(
        out / "controls",
        [trials, responses, scores, features, text, tokens, *origins.files],
        written,
        models=conventions(models),
        commits=origins.commits,
        excluded=[asdict(exclusion) for exclusion in admission.excluded],
        simulated_participants=admission.origin.simulated,
    )
    remark(str(admission), quiet=quiet)
    warn(admission.origin.warning)
    _print(tests, preferences)


def _print(tests: Sequence[TokenCountTest], preferences: Sequence[FeaturePreference]) -> None:
    from contstim.wording import counted, p_equation

    for test in tests:
        where = (
            "where people prefer the other sentence" if test.errors_only else "on all its trials"
        )
        interval = f" (95 %: {test.low:.1%} to {test.high:.1%})" if test.pairs else ""
        print(
            f"{test.model} prefers fewer tokens {where}: {test.fewer:,} of {test.pairs:,}"
            f"{interval}, adjusted {p_equation(test.adjusted)}"
        )
    for row in preferences:
        apart = row.difference
        print(
            f"{row.model} prefers more {row.feature} in {row.model_share:.1%} of "
            f"{counted(row.trials, 'trial')}, people in {row.people_share:.1%}; difference of "
            f"{row.feature} {apart.value:.3g} (95 %: {apart.low:.3g} to {apart.high:.3g}), "
            f"adjusted {p_equation(row.adjusted)}"
        )
    families = dict.fromkeys([test.family for test in tests] + [row.family for row in preferences])
    if families:
        print(f"P-values are adjusted by Benjamini and Hochberg over: {'; '.join(families)}.")
