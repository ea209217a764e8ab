"""`contstim evaluate acceptability`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.options import Folder, Models, Quiet, StoreInFolder
from contstim.cli.output import (
    names_for_tables,
    print_table,
    remark,
    remark_folder,
    results_table,
    tell_unknown_words,
)
from contstim.cli.progress import scoring_progress
from contstim.errors import InputError
from contstim.models.loading import Loading
from contstim.steps.execution import ScoringExecution
from contstim.wording import counted

if TYPE_CHECKING:
    from contstim.evaluation.acceptability.evaluation import AcceptabilityEvaluation


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
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="A column of --scores to take as a model; repeatable. By default all that hold "
            "numbers, without indices, lengths, columns of --data, and z-scores of another column."
        ),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            help="A table of minimal pairs. By default all acceptable × unacceptable sentences of "
            "an item."
        ),
    ] = None,
    delta: Annotated[
        list[float] | None,
        typer.Option(
            help="δ of the Acceptability Delta Criterion; repeatable.  [default: 0.5 1 5]"
        ),
    ] = None,
    scores_as_given: Annotated[
        bool, typer.Option("--scores-as-given", help="The scores are z-scores already.")
    ] = False,
    human_z_scores: Annotated[
        bool, typer.Option("--human-z-scores", help="Turn the judgements into z-scores too.")
    ] = False,
    allow_missing: Annotated[
        bool,
        typer.Option(
            "--allow-missing", help="Leave sentences that a table of scores lacks, and pairs, out."
        ),
    ] = False,
    id_column: Annotated[str, typer.Option(help="Identifies a sentence.")] = "id",
    sentence_column: Annotated[str, typer.Option(help="Its text.")] = "sentence",
    judgement_column: Annotated[str, typer.Option(help="People's judgement.")] = "judgement",
    item_column: Annotated[str, typer.Option(help="The item it belongs to.")] = "item",
    label_column: Annotated[str, typer.Option(help="Whether experts accept it.")] = "label",
    phenomenon_column: Annotated[str, typer.Option(help="What it is about.")] = "phenomenon",
    acceptable_column: Annotated[
        str, typer.Option(help="In --pairs: the acceptable sentence's identifier.")
    ] = "gramm_id",
    unacceptable_column: Annotated[
        str, typer.Option(help="In --pairs: the other one's identifier.")
    ] = "ungramm_id",
    discard_column: Annotated[
        str, typer.Option(help="In --pairs: marks pairs to leave out.")
    ] = "discard",
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
    from contstim.evaluation.acceptability.acceptability_report import (
        ScoreSources,
        write_acceptability,
    )
    from contstim.evaluation.acceptability.criteria import DELTAS, Criterion
    from contstim.evaluation.acceptability.evaluation import evaluate_acceptability
    from contstim.evaluation.acceptability.reading import JudgementColumns, read_judgements
    from contstim.evaluation.acceptability.sentence_scores import (
        joined,
        model_scores,
        published_scores,
    )
    from contstim.store import Store

    if not (model or scores):
        raise InputError("Give what to evaluate: --model, or --scores with a table.")
    if column and len(scores or ()) != 1:
        raise InputError("--column chooses from one table: give --scores once.")
    if scores_as_given and model:
        raise InputError("--scores-as-given is for tables: scores of a --model are not z-scores.")
    # Without δ: the BLiMP criterion
    criteria = (Criterion(), *map(Criterion, delta or DELTAS))
    columns = JudgementColumns(
        id=id_column,
        sentence=sentence_column,
        judgement=judgement_column,
        item=item_column,
        label=label_column,
        phenomenon=phenomenon_column,
        acceptable=acceptable_column,
        unacceptable=unacceptable_column,
        discard=discard_column,
    )
    judgements = read_judgements(data, pairs, columns)
    # Scores of tables and of models stand side by side, in columns of one table.
    parts = [
        published_scores(
            judgements, table, column or (), allow_missing=allow_missing, data_columns=columns
        )
        for table in scores or ()
    ]
    with execution.scorers(model, loading, partial(remark, quiet=quiet)) as models:
        if models:
            asked = [judged.sentence for judged in judgements.sentences]
            tell_unknown_words(models, asked, quiet=quiet)
            # A sentence that several items share is scored once.
            distinct = len(set(asked))
            at_once = not execution.is_local
            with (
                scoring_progress(distinct, quiet=quiet, together=at_once) as progress,
                Store(store or out / "contstim.sqlite") as opened,
            ):
                parts.append(model_scores(judgements, models, store=opened, progress=progress))
    together = joined(parts)
    evaluation = evaluate_acceptability(
        judgements,
        together,
        criteria,
        scores_as_given=scores_as_given,
        standardize_people=human_z_scores,
    )
    write_acceptability(
        evaluation,
        out,
        ScoreSources(models, scores or (), together.left_out),
        scores_are="as given" if scores_as_given else "z-scores over all scored sentences",
        judgements_are="z-scores" if human_z_scores else "as given",
    )
    show(evaluation, len({omission.sentence for omission in together.left_out}), quiet=quiet)
    remark_folder(out / "report.html", quiet=quiet)


def show(evaluation: AcceptabilityEvaluation, left_out: int, *, quiet: bool) -> None:
    """Print how many pairs meet each criterion on standard output, and what is not evaluated."""
    title = f"Criteria met by {len(evaluation.pairs):,} minimal pairs"
    names = names_for_tables(evaluation.models)
    criteria = {criterion.name: evaluation.met(criterion) for criterion in evaluation.criteria}
    table = results_table("model", *criteria, title=title)
    for column, name in enumerate(evaluation.models):
        table.add_row(names[name], *(f"{int(m[:, column].sum()):,}" for m in criteria.values()))
    print_table(table, names)
    for reason, number in evaluation.excluded_for().items():
        if number:
            remark(f"Not evaluated: {counted(number, 'pair')}, {reason}.", quiet=quiet)
    if left_out:
        remark(f"Without a score: {counted(left_out, 'sentence')}; see left_out.csv.", quiet=quiet)
