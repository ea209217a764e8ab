"""`contstim evaluate blimp`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from contstim.cli.options import Folder, Models, Quiet, StoreInFolder
from contstim.cli.output import print_summary, remark, remark_folder, tell_unknown_words
from contstim.cli.progress import reading_progress, scoring_progress, training_progress
from contstim.errors import InputError
from contstim.evaluation.settings import Method, MinimalPairSettings
from contstim.models.loading import Loading
from contstim.steps.execution import ScoringExecution
from contstim.wording import counted


def blimp(
    *,
    data: Annotated[
        Path,
        typer.Option(
            help="A checkout of alexwarstadt/blimp, a folder of tables, or a table of minimal "
            "pairs (.jsonl, .csv, .parquet)."
        ),
    ],
    out: Folder,
    model: Models = None,
    scores: Annotated[
        Path | None,
        typer.Option(help="Scores of all sentences, as of `score`, in place of models."),
    ] = None,
    text: Annotated[
        Path | None, typer.Option(help="With --sizes: UTF-8 text, one sentence a line.")
    ] = None,
    people: Annotated[
        Path | None,
        typer.Option(help="People's answers (human_responses.csv); by default those in --data."),
    ] = None,
    published: Annotated[
        Path | None,
        typer.Option(
            help="Published accuracies (models_summary.jsonl); by default those in --data."
        ),
    ] = None,
    settings: MinimalPairSettings,
    execution: ScoringExecution,
    loading: Loading,
    store: StoreInFolder = None,
    quiet: Quiet = False,
) -> None:
    """Ask models which sentence of a minimal pair is acceptable (Warstadt et al. 2020).

    Writes a page (`report.html`, `report.md`), tables (CSV) and figures (PDF and PNG): accuracy by
    paradigm, phenomenon and overall, people and published models beside; ties; contrasts; accuracy
    against length, perplexity, log-probability and confidence. Every score is kept as soon as it is
    known: an interrupted run, started again, goes on where it stopped.

    Example: `contstim evaluate blimp --model kenlm:trigram.arpa --data blimp --out results`
    """
    from contstim.corpus import read_sentences
    from contstim.evaluation.accuracies import evaluate_minimal_pairs
    from contstim.evaluation.folder import write_findings
    from contstim.evaluation.learning_curves import train_on_parts
    from contstim.evaluation.minimal_pair_report import minimal_pair_findings
    from contstim.evaluation.minimal_pairs import (
        pair_files,
        published_files,
        read_human_agreement,
        read_minimal_pairs,
        read_published_accuracies,
    )
    from contstim.evaluation.pair_scores import pair_scores_from_table, score_pairs
    from contstim.scores import ScoreTable
    from contstim.store import Store

    if bool(scores) == bool(model or settings.sizes):
        raise InputError("Name models (--model, --sizes), or a table of scores (--scores).")
    if bool(settings.sizes) != bool(text):
        raise InputError("Learning curves need both --sizes and --text.")
    # Before models are loaded: a wrong folder or column is told at once
    files = pair_files(data)
    pairs = read_minimal_pairs(files, settings)
    answers, summary = published_files(data, people, published)
    agreement, accuracies = read_human_agreement(answers), read_published_accuracies(summary)
    with execution.scorers(model, loading, partial(remark, quiet=quiet)) as loaded:
        models, texts = [*loaded], {}
        if text:
            sentences = list(reading_progress(read_sentences(text), quiet=quiet))
            with training_progress(quiet=quiet) as on_progress:
                for trained, part in train_on_parts(
                    sentences,
                    settings,
                    out / "models",
                    taken={model.name for model in loaded},
                    device=loading.device,
                    say=partial(remark, quiet=quiet),
                    on_progress=on_progress,
                ):
                    models.append(trained)
                    texts[trained.name] = part
        tell_unknown_words(
            models, [s for pair in pairs for s in (pair.good, pair.bad)], quiet=quiet
        )
        if scores:
            scoring = pair_scores_from_table(ScoreTable.read(scores), pairs, settings.method)
        else:
            at_once = not execution.is_local
            with Store(store or out / "contstim.sqlite") as opened:
                scoring = score_pairs(
                    models,
                    pairs,
                    settings.method or Method,
                    store=opened,
                    bars=partial(scoring_progress, quiet=quiet, together=at_once),
                )
    evaluation = evaluate_minimal_pairs(
        scoring, settings, models=models, texts=texts, people=agreement, published=accuracies
    )
    findings = minimal_pair_findings(evaluation)
    beside = [path for path in (answers, summary, scores, text) if path]
    write_findings(findings, out, models=models, data=[*files, *beside], pairs=len(pairs))
    for (_, method), reason in scoring.refusals.items():
        remark(f"{method}: {reason}")
    if scoring.left_out:
        unread = len({omission.sentence for omission in scoring.left_out})
        remark(
            f"Not read by every model: {counted(unread, 'sentence')}, see {out / 'left_out.csv'}."
        )
    print_summary(
        "Accuracy on minimal pairs (95 % interval)",
        findings.summary,
        [str(name) for name, *_ in findings.summary.rows],
    )
    remark_folder(out / "report.html", quiet=quiet)
