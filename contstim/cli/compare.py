"""`contstim compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contstim.cli.options import Folder, Models, Quiet, Seed, StoreInFolder
from contstim.cli.output import print_summary, remark, tell_unknown_words
from contstim.cli.progress import scoring_progress
from contstim.errors import ContstimError, InputError
from contstim.models.loading import Loading
from contstim.wording import counted


def compare(
    *,
    out: Folder,
    scores: Annotated[
        list[Path] | None, typer.Option(help="A table of scores, as of `score`; repeatable.")
    ] = None,
    model: Models = None,
    sentences: Annotated[
        Path | None,
        typer.Option(help="What models score: a text, or a table; by default the tables' own."),
    ] = None,
    top: Annotated[
        int, typer.Option(min=1, help="Sentences to list for each pair of models and direction.")
    ] = 10,
    vocabulary: Annotated[
        Path | None,
        typer.Option(help="Words for synthesis; by default those frequent in the models' text."),
    ] = None,
    synthesize: Annotated[
        bool,
        typer.Option("--synthesize", help="Run the synthesis too, and write synthesized.csv."),
    ] = False,
    loading: Loading,
    store: StoreInFolder = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Say how alike models or scoring rules order sentences, and where they part most.

    Rank correlations, the share of pairs of sentences that two models order alike, the sentences on
    which they disagree most, and the commands that set them against each other: one that selects
    natural pairs and, for models, those that synthesize a sentence for each direction.

    Example: `contstim compare --model hf:runs/bert@chain --model hf:runs/bert@pll-original
    --sentences natural.txt --out compared`
    """
    from contstim.evaluation.comparison import (
        comparison_findings,
        contest_commands,
        contest_start,
        contest_triplets,
        gather,
        read_tables,
        select_command,
    )
    from contstim.evaluation.folder import write_findings
    from contstim.models.catalog import load_scorers
    from contstim.stimuli import read_stimuli, write_triplets
    from contstim.store import Store

    if synthesize and len(model or []) < 2:
        raise InputError("--synthesize needs two models: name them with --model.")
    tables = read_tables(scores or ())
    models = load_scorers(model or (), loading)
    texts = read_stimuli(sentences) if sentences else None
    # Without sentences of its own, a comparison is of those that the tables hold.
    sizes = [len(table.log_probs) for table in tables.values()]
    total = len(set(texts or ())) or max(sizes, default=0)
    with (
        Store(store or out / "contstim.sqlite") as opened,
        scoring_progress(total, quiet=quiet) as progress,
    ):
        table, left_out = gather(tables, models, texts, store=opened, progress=progress)
    tell_unknown_words(models, table.sentences or (), quiet=quiet)
    commands, contest = [select_command(out, table)], None
    # A contest between two models needs both loaded, not their scores alone
    if len(models) > 1:
        try:
            contest = contest_start(models, table, vocabulary)
            commands += contest_commands(models, contest[0], vocabulary, loading.prompt)
        except ContstimError as error:
            # Tables are worth having without commands, unless the user asked for what these need.
            if synthesize or vocabulary:
                raise
            remark(f"No commands to synthesize sentences: {error}", quiet=quiet)
    data = [path for path in (*(scores or []), sentences, vocabulary) if path]
    findings = comparison_findings(table, top=top, left_out=left_out, commands=commands)
    write_findings(findings, out, models=models, data=data, seed=seed)
    print_summary(findings.title, findings.summary, table.models)
    if left_out:
        remark(
            f"{counted(len(left_out), 'sentence')} left out: see {out / 'left_out.csv'}.",
            quiet=quiet,
        )
    print("Set them against each other:", *commands, sep="\n  ")
    if synthesize and contest:
        triplets = contest_triplets(models, *contest, seed=seed)
        write_triplets(out / "synthesized.csv", triplets)
        for triplet in triplets:
            print(f"{triplet.model_1} rejects: {triplet.synthetic_1}")
            print(f"{triplet.model_2} rejects: {triplet.synthetic_2}")
            if not triplet.distinct:
                print(f"Nothing was found from {triplet.natural.text!r}: {triplet.alike}.")
