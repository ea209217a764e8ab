"""`contstim score`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contstim.cli.output import (
    Device,
    Dtype,
    Model,
    Prompt,
    Quiet,
    TrustRemoteCode,
    remark,
    scoring_progress,
)
from contstim.wording import counted


def score(
    model: Model,
    sentences: Annotated[
        Path, typer.Option(help="Sentences, one a line, or a table with columns of sentences.")
    ],
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
    prompt: Prompt = None,
    device: Device = "auto",
    dtype: Dtype = "auto",
    trust_remote_code: TrustRemoteCode = False,
    store: Annotated[
        Path | None,
        typer.Option(help="Where scores are kept between runs; contstim.sqlite beside --out."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Score sentences under models: natural log-probabilities, a row a sentence, a column a model.

    Every score is kept as soon as it is known: an interrupted run, started again, goes on where it
    stopped, and no sentence is scored twice.

    With `--per-word` the columns are sentence, model, position (of the word, from 0; the end of the
    sentence counts as one more), word, token, log_prob and surprisal, in nats. A model's rows add
    up to its score of the sentence.

    Example: `contstim score --model kenlm:bigram.arpa --model hf:gpt2@chain
    --sentences natural.txt --out scores.csv`
    """
    from contstim.errors import InputError
    from contstim.models.base import conventions
    from contstim.models.catalog import load_models
    from contstim.models.scoring import error_table, score_sentences, token_table
    from contstim.records import write_record
    from contstim.stimuli import read_stimuli
    from contstim.store import Store
    from contstim.tables import write_table

    if per_word and out.suffix.lower() == ".npz":
        raise InputError("A table of words is no .npz; name a .csv, .parquet or .jsonl file.")
    stimuli = read_stimuli(sentences)
    models = load_models(
        model, device=device, dtype=dtype, prompt=prompt, trust_remote_code=trust_remote_code
    )
    distinct = len(set(stimuli))
    with scoring_progress(distinct, quiet=quiet) as progress:
        if per_word:
            write_table(out, token_table(models, stimuli, progress=progress))
        else:
            with Store(store or out.parent / "contstim.sqlite") as kept:
                table = score_sentences(models, stimuli, store=kept, progress=progress)
            table.write(out)
    if standard_errors is not None:
        write_table(standard_errors, error_table(models, stimuli))
        write_record(standard_errors, models=conventions(models))
    write_record(out, models=conventions(models))
    remark(
        f"{out}: {counted(len(stimuli), 'sentence')} under {counted(len(models), 'model')}.",
        quiet=quiet,
    )
    for scored in models:
        sampled = len(stimuli) - int(scored.exact(stimuli).sum())
        if sampled:
            remark(
                f"  {scored.name}: {sampled:,} scores are sampled; --standard-errors FILE tells "
                f"how good they are.",
                quiet=quiet,
            )
