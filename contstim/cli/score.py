"""`contstim score`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contstim.cli.options import Model, Quiet, Sentences, StoreBesideTable
from contstim.cli.output import remark
from contstim.cli.progress import TerminalWatcher
from contstim.steps.loading import Loading


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
    standard_errors: Annotated[
        Path | None,
        typer.Option(
            help="Also write the standard errors that sampling leaves (0: exact), a table of the "
            "same shape. Costs as much again as the scores."
        ),
    ] = None,
    loading: Loading,
    store: StoreBesideTable = None,
    quiet: Quiet = False,
) -> None:
    """Score sentences under models: natural log-probabilities, a row a sentence, a column a model.

    Every score is kept as soon as it is known: an interrupted run, started again, goes on where it
    stopped, and no sentence is scored twice.

    Says how many of the sentences stand in the training text of a model that contstim trained, and
    keeps it in the record.

    With `--per-word` the columns are sentence, model, position (of the word, from 0; the end of the
    sentence counts as one more), word, token, log_prob and surprisal, in nats. A model's rows add
    up to its score of the sentence.

    Example: `contstim score --model kenlm:bigram.arpa --model hf:gpt2@chain
    --sentences natural.txt --out scores.csv`
    """
    from contstim.steps.scoring import score as run

    scores = run(
        model,
        sentences,
        out,
        per_word=per_word,
        standard_errors=standard_errors,
        loading=loading,
        store=store,
        watch=TerminalWatcher(quiet=quiet),
    )
    for scored in scores:
        if scored.n_sampled:
            remark(
                f"  {scored.name}: {scored.n_sampled:,} scores are sampled; --standard-errors FILE "
                f"tells how good they are.",
                quiet=quiet,
            )
