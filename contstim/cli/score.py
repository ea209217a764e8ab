"""`contstim score`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from contstim.cli.options import Model, Quiet, Sentences, StoreBesideTable
from contstim.cli.output import remark
from contstim.cli.progress import ProgressBars
from contstim.models.loading import Loading
from contstim.steps.execution import ScoringExecution


def score(
    *,
    model: Model,
    sentences: Sentences,
    out: Annotated[Path, typer.Option(help="The table to write: .csv, .parquet, .jsonl or .npz.")],
    per_word: Annotated[
        bool,
        typer.Option(
            "--per-word",
            help="Write a row for each token of each sentence, with its word, instead of sums.",
        ),
    ] = False,
    by: Annotated[
        Literal["token", "word"],
        typer.Option(help="With --per-word: a row for each token, or for each word."),
    ] = "token",
    boundary_correction: Annotated[
        bool,
        typer.Option(
            "--boundary-correction",
            help="With --per-word: count that a word ends to the word, and not to the first token "
            "of the next (causal transformers; Pimentel & Meister 2024, Oh & Schuler 2024).",
        ),
    ] = False,
    standard_errors: Annotated[
        Path | None,
        typer.Option(
            help="Also write the standard errors that sampling leaves (0: exact), a table of the "
            "same shape. Costs as much again as the scores."
        ),
    ] = None,
    bounds: Annotated[
        Path | None,
        typer.Option(
            help="Also write, for masked models under chain-mixture, each score beside its lower "
            "bound, the mean over orders, and the gap. Costs as much again as the scores."
        ),
    ] = None,
    execution: ScoringExecution,
    loading: Loading,
    store: StoreBesideTable = None,
    quiet: Quiet = False,
) -> None:
    """Score sentences under models: natural log-probabilities, a row a sentence, a column a model.

    Every score is kept as soon as it is known: an interrupted run, started again, goes on where it
    stopped, and no sentence is scored twice. With `--executor processes` or `ray`, workers share
    the sentences of all models, and give the same table.

    Says how many of the sentences stand in the training text of a model that contstim trained, and
    keeps it in the record.

    With `--per-word` the columns are sentence, model, position (of the word, from 0; the end of the
    sentence counts as one more), word, token (by word: tokens, how many), log_prob and surprisal,
    in nats. A model's rows add up to its score of the sentence, corrected or not.

    A model on an inference server is `--model 'NAME=server:http://HOST:8000/v1#MODEL'`; a key is
    read from the environment variable CONTSTIM_SERVER_KEY.

    Example: `contstim score --model kenlm:bigram.arpa --model hf:gpt2@chain
    --sentences natural.txt --out scores.csv`

    Example: `contstim score --model hf:bert-base-cased@chain-mixture --sentences natural.txt
    --out scores.csv --bounds bounds.csv`
    """
    from contstim.steps.scoring import score as run

    scores = run(
        model,
        sentences,
        out,
        per_word=per_word,
        by=by,
        boundary_correction=boundary_correction,
        standard_errors=standard_errors,
        bounds=bounds,
        execution=execution,
        loading=loading,
        store=store,
        watch=ProgressBars(quiet=quiet),
    )
    for scored in scores:
        if scored.lower_bounds is not None and scored.log_probs is not None:
            gaps = scored.log_probs - scored.lower_bounds
            remark(
                f"  {scored.name}: {scored.log_probs.mean():.2f} nats on average, the mean over "
                f"orders {scored.lower_bounds.mean():.2f}: a gap of {gaps.mean():.2f} "
                f"({gaps.min():.2f} to {gaps.max():.2f}).",
                quiet=quiet,
            )
        if scored.n_sampled:
            remark(
                f"  {scored.name}: {scored.n_sampled:,} scores are sampled; --standard-errors FILE "
                f"tells how good they are.",
                quiet=quiet,
            )
