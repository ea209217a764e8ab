"""`contstim evaluate acceptability`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.options import Folder, Models, Quiet, StoreInFolder
from contstim.cli.output import print_summary, remark, remark_folder, tell_unknown_words
from contstim.cli.progress import scoring_progress
from contstim.errors import InputError
from contstim.evaluation.settings import AcceptabilitySettings
from contstim.models.loading import Loading
from contstim.steps.execution import ScoringExecution
from contstim.wording import counted

if TYPE_CHECKING:
    from contstim.evaluation.criteria import AcceptabilityEvaluation


def acceptability(
    *,
    data: Annotated[
        Path,
        typer.Option(
            help="LI-Adger's folder, or a table of judged sentences (.csv, .parquet, .jsonl)."
        ),
    ],
    out: Folder,
    model: Models = None,
    scores: Annotated[
        list[Path] | None,
        typer.Option(help="A table of scores, by the column id or sentence; repeatable."),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            help="A table of minimal pairs. By default all acceptable × unacceptable sentences of "
            "an item."
        ),
    ] = None,
    settings: AcceptabilitySettings,
    execution: ScoringExecution,
    loading: Loading,
    store: StoreInFolder = None,
    quiet: Quiet = False,
) -> None:
    """Say how well models follow gradient judgements of acceptability.

    Counts the minimal pairs that meet the BLiMP criterion (the acceptable sentence scores higher)
    and the Acceptability Delta Criterion at each δ: scores, as z-scores over all sentences, differ
    in the same direction as people's judgements and by nearly as much. Writes tables (CSV),
    figures (PNG, PDF) and a page. An interrupted run goes on where it stopped.

    Example: `contstim evaluate acceptability --data li-adger --model hf:gpt2 --model
    hf:bert-large-cased@pll-original --out adc`
    """
    from contstim.evaluation.acceptability import read_judgements
    from contstim.evaluation.acceptability_report import acceptability_findings
    from contstim.evaluation.criteria import evaluate_acceptability
    from contstim.evaluation.folder import write_findings
    from contstim.evaluation.judged_scores import JudgedScores, model_scores, published_scores
    from contstim.store import Store

    if not (model or scores):
        raise InputError("Give what to evaluate: --model, or --scores with a table.")
    if settings.column and len(scores or ()) != 1:
        raise InputError("--column chooses from one table: give --scores once.")
    if settings.scores_as_given and model:
        raise InputError("--scores-as-given is for tables: scores of a --model are not z-scores.")
    judgements = read_judgements(data, pairs, settings)
    # Scores of tables and of models stand side by side, in columns of one table.
    parts = [published_scores(judgements, table, settings) for table in scores or ()]
    with execution.scorers(model, loading, partial(remark, quiet=quiet)) as models:
        if models:
            tell_unknown_words(models, judgements.texts, quiet=quiet)
            # A sentence that several items share is scored once.
            distinct, at_once = len(set(judgements.texts)), not execution.is_local
            with (
                scoring_progress(distinct, quiet=quiet, together=at_once) as progress,
                Store(store or out / "contstim.sqlite") as opened,
            ):
                parts.append(model_scores(judgements, models, store=opened, progress=progress))
    evaluation = evaluate_acceptability(judgements, JudgedScores.joined(parts), settings)
    findings = acceptability_findings(evaluation)
    write_findings(findings, out, models=models, data=evaluation.files)
    show(evaluation, quiet=quiet)
    remark_folder(out / "report.html", quiet=quiet)


def show(evaluation: AcceptabilityEvaluation, *, quiet: bool) -> None:
    """Print how many pairs meet each criterion on standard output, and what is not evaluated."""
    from contstim.evaluation.acceptability_report import criteria_table

    title = f"Criteria met by {len(evaluation.pairs):,} minimal pairs"
    print_summary(title, criteria_table(evaluation), evaluation.models)
    for reason, number in evaluation.excluded_for().items():
        if number:
            remark(f"Not evaluated: {counted(number, 'pair')}, {reason}.", quiet=quiet)
    left_out = {omission.sentence for omission in evaluation.scores.left_out}
    if left_out:
        sentences = counted(len(left_out), "sentence")
        remark(f"Without a score: {sentences}; see left_out.csv.", quiet=quiet)
