"""`contstim score`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contstim.cli.output import Quiet, remark, scoring_progress


def score(
    model: Annotated[
        list[str], typer.Option(help="A model, such as kenlm:trigram.arpa; repeatable.")
    ],
    sentences: Annotated[
        Path, typer.Option(help="Sentences, one a line, or a table with columns of sentences.")
    ],
    out: Annotated[Path, typer.Option(help="The table to write: .csv, .parquet, .jsonl or .npz.")],
    store: Annotated[
        Path | None,
        typer.Option(help="Where scores are kept between runs; contstim.sqlite beside --out."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Score sentences under models: natural log-probabilities, a row a sentence, a column a model.

    Every score is kept as soon as it is known: an interrupted run, started again, goes on where it
    stopped, and no sentence is scored twice.

    Example: `contstim score --model kenlm:bigram.arpa --model kenlm:trigram.arpa
    --sentences natural.txt --out scores.csv`
    """
    from contstim.models.base import conventions
    from contstim.models.catalog import load_models
    from contstim.models.scoring import score_sentences
    from contstim.records import write_record
    from contstim.stimuli import read_stimuli
    from contstim.store import Store

    stimuli = read_stimuli(sentences)
    models = load_models(model)
    place = store or out.parent / "contstim.sqlite"
    distinct = len(set(stimuli))
    with Store(place) as kept, scoring_progress(distinct, quiet=quiet) as progress:
        table = score_sentences(models, stimuli, store=kept, progress=progress)
    table.write(out)
    write_record(out, models=conventions(models))
    remark(f"{out}: {len(stimuli):,} sentences under {len(models)} models.", quiet=quiet)
