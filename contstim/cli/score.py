"""`contstim score`."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from contstim.cli.options import Loading, Model, Quiet, Sentences, StoreBesideTable
from contstim.cli.output import remark, warn_of_training_texts
from contstim.cli.progress import scoring_progress
from contstim.wording import counted


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
    from contstim.errors import InputError
    from contstim.models.contamination import contamination_facts
    from contstim.models.score_in_turn import (
        score_in_turn,
        score_table,
        standard_error_table,
        term_table,
    )
    from contstim.records import write_record
    from contstim.stimuli import read_stimuli
    from contstim.store import Store
    from contstim.tables import write_table

    if per_word and out.suffix.lower() == ".npz":
        raise InputError(
            "A table of words is not written as .npz; name a .csv, .parquet or .jsonl file."
        )
    stimuli = read_stimuli(sentences)
    with (
        # Words are not kept between runs, so that they need no store.
        nullcontext() if per_word else Store(store or out.parent / "contstim.sqlite") as database,
        scoring_progress(len(set(stimuli)), quiet=quiet) as progress,
    ):
        # One model in memory at a time
        scores = score_in_turn(
            model,
            stimuli,
            store=database,
            by_token=per_word,
            standard_errors=standard_errors is not None,
            progress=progress,
            **loading.keywords,
        )
    # Every table gets a record of how each model scored, without which numbers mean nothing.
    conventions = {scored.name: scored.convention for scored in scores}
    if per_word:
        write_table(out, term_table(scores, stimuli))
    else:
        score_table(scores, stimuli).write(out)
    if standard_errors is not None:
        write_table(standard_errors, standard_error_table(scores, stimuli))
        write_record(standard_errors, models=conventions)
    contaminations = {scored.name: scored.contamination for scored in scores}
    write_record(out, models=conventions, **contamination_facts(contaminations))
    warn_of_training_texts(contaminations)
    remark(
        f"{out}: {counted(len(stimuli), 'sentence')} under {counted(len(scores), 'model')}.",
        quiet=quiet,
    )
    for scored in scores:
        if scored.n_sampled:
            remark(
                f"  {scored.name}: {scored.n_sampled:,} scores are sampled; --standard-errors FILE "
                f"tells how good they are.",
                quiet=quiet,
            )
