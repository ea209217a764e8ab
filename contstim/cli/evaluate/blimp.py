"""`contstim evaluate blimp`."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from contstim.cli.options import Folder, Models, Quiet, Seed, StoreInFolder
from contstim.cli.output import (
    names_for_tables,
    print_table,
    remark,
    remark_folder,
    results_table,
    tell_unknown_words,
)
from contstim.cli.progress import reading_progress, scoring_progress, training_progress
from contstim.models.loading import Loading
from contstim.steps.execution import ScoringExecution
from contstim.wording import counted

if TYPE_CHECKING:
    from contstim.evaluation.minimal_pairs.curves import CurvePoint, CurveSettings
    from contstim.evaluation.minimal_pairs.evaluation import MinimalPairEvaluation
    from contstim.evaluation.minimal_pairs.published_results import PublishedResults

_ANSWERS = Path("raw_results/all_outputs/human_responses.csv")
_SUMMARY = Path("raw_results/summary/models_summary.jsonl")


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
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="What is compared: full-sentence, one-prefix or two-prefix; repeatable. By "
            "default all that pairs allow."
        ),
    ] = None,
    ties: Annotated[Literal["wrong", "half"], typer.Option(help="How a tie counts.")] = "wrong",
    sample: Annotated[
        int | None, typer.Option(min=1, help="Pairs of each paradigm, drawn at random.")
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            help="Learning curves: train models on so many sentences of --text, such as "
            "1000,10000,100000."
        ),
    ] = None,
    text: Annotated[
        Path | None, typer.Option(help="With --sizes: UTF-8 text, one sentence a line.")
    ] = None,
    train: Annotated[
        Literal["ngram", "rnn", "lstm", "bilstm", "gpt2", "bert"],
        typer.Option(help="With --sizes: what to train."),
    ] = "ngram",
    order: Annotated[
        int, typer.Option(min=1, max=6, help="With --train ngram: length of the longest n-grams.")
    ] = 3,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="With --train of a network: passes over the text at most."),
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
    good_column: Annotated[str, typer.Option(help="The acceptable sentence.")] = "sentence_good",
    bad_column: Annotated[str, typer.Option(help="The unacceptable one.")] = "sentence_bad",
    paradigm_column: Annotated[
        str, typer.Option(help="The paradigm; '' for the file's name.")
    ] = "UID",
    phenomenon_column: Annotated[
        str, typer.Option(help="The phenomenon; '' for the paradigm.")
    ] = "linguistics_term",
    pair_column: Annotated[
        str, typer.Option(help="The pair's identifier; '' for the row's number.")
    ] = "pairID",
    execution: ScoringExecution,
    loading: Loading,
    store: StoreInFolder = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Ask models which sentence of a minimal pair is acceptable (Warstadt et al. 2020).

    Writes a page (`report.html`, `report.md`), tables (CSV) and figures (PDF and PNG): accuracy by
    paradigm, phenomenon and overall, people and published models beside; ties; contrasts; accuracy
    against length, perplexity, log-probability and confidence. Every score is kept as soon as it is
    known: an interrupted run, started again, goes on where it stopped.

    Example: `contstim evaluate blimp --model kenlm:trigram.arpa --data blimp --out results`
    """
    from contstim.errors import InputError
    from contstim.evaluation.minimal_pairs.accuracy_report import write_minimal_pairs
    from contstim.evaluation.minimal_pairs.curves import CurveSettings
    from contstim.evaluation.minimal_pairs.evaluation import evaluate_minimal_pairs
    from contstim.evaluation.minimal_pairs.pair_scores import pair_scores_from_table, score_pairs
    from contstim.evaluation.minimal_pairs.pairs import Method, sample_pairs
    from contstim.evaluation.minimal_pairs.reading import (
        Fields,
        pair_files,
        read_minimal_pairs,
    )
    from contstim.models.specifications import parse_models
    from contstim.scores import ScoreTable
    from contstim.store import Store

    if bool(scores) == bool(model or sizes):
        raise InputError("Name models (--model, --sizes), or a table of scores (--scores).")
    unknown = set(method or ()) - set(Method)
    if unknown:
        raise InputError(f"There is no method {unknown.pop()!r}; there are {', '.join(Method)}.")
    if scores and set(method or ()) - {Method.FULL_SENTENCE}:
        raise InputError("A table of scores holds full sentences: prefix methods need models.")
    if bool(sizes) != bool(text):
        raise InputError("Learning curves need both --sizes and --text.")
    # Points of a learning curve are called as ngram-1000; a model of that name would hide one.
    for named in parse_models(model or []):
        if sizes and re.fullmatch(rf"{train}-\d+", named.name):
            raise InputError(
                f"{named.name!r} is what --sizes calls a model that it trains. Choose another name "
                f"for {named.specification}."
            )
    fields = Fields(good_column, bad_column, paradigm_column, phenomenon_column, pair_column)
    # Before models are loaded: a wrong folder or column is told at once
    files = pair_files(data)
    pairs = read_minimal_pairs(files, fields)
    if sample:
        pairs = sample_pairs(pairs, sample, seed)
    # A checkout of BLiMP holds people's answers and published accuracies too.
    beside, tables_beside = _published(data, people, published)
    points: list[CurvePoint] = []
    with execution.scorers(model, loading, partial(remark, quiet=quiet)) as loaded:
        models = [*loaded]
        if sizes and text:
            settings = CurveSettings(train, order, epochs, loading.device)
            points = _train_points(sizes, text, settings, out / "models", seed=seed, quiet=quiet)
            models += [point.model for point in points]
        tell_unknown_words(models, [side for pair in pairs for side in pair.sides], quiet=quiet)
        if scores:
            scoring = pair_scores_from_table(ScoreTable.read(scores), pairs)
        else:
            with Store(store or out / "contstim.sqlite") as scores_so_far:
                at_once = not execution.is_local
                bars = partial(scoring_progress, quiet=quiet, together=at_once)
                methods = [choice for choice in Method if choice in (method or Method)]
                scoring = score_pairs(models, pairs, methods, store=scores_so_far, bars=bars)
    if not scoring.by_method:
        # The first reason is enough: with nothing to compare, all methods mostly share it.
        reasons = [refusal.reason for refusal in scoring.refusals]
        reasons += [omission.reason for omission in scoring.left_out]
        reasons.append("No pair has the fields that the method compares.")
        raise InputError(f"Nothing could be compared. {reasons[0]}")
    evaluation = evaluate_minimal_pairs(
        scoring, ties=ties, published=beside, points=points, models=models
    )
    write_minimal_pairs(
        evaluation,
        out,
        models=models,
        data=[*files, *tables_beside, *filter(None, (scores, text))],
        pairs=len(pairs),
        sample=sample or "all",
        seed=seed,
    )
    _show(evaluation, out, quiet=quiet)


def _published(
    data: Path, people: Path | None, published: Path | None
) -> tuple[PublishedResults, list[Path]]:
    """Published results, and their files: those named, else those in the folder of data."""
    from contstim.evaluation.minimal_pairs.published_results import (
        PublishedResults,
        read_human_agreement,
        read_published_accuracies,
    )

    answers = people or (data / _ANSWERS if (data / _ANSWERS).is_file() else None)
    summary = published or (data / _SUMMARY if (data / _SUMMARY).is_file() else None)
    results = PublishedResults(
        read_human_agreement(answers) if answers else {},
        read_published_accuracies(summary) if summary else {},
    )
    return results, [path for path in (answers, summary) if path]


def _train_points(
    sizes: str, text: Path, settings: CurveSettings, folder: Path, *, seed: int, quiet: bool
) -> list[CurvePoint]:
    from contstim.corpus import read_sentences
    from contstim.errors import InputError
    from contstim.evaluation.minimal_pairs.curves import nested_texts, train_point

    try:
        numbers = [int(size) for size in sizes.split(",")]
    except ValueError:
        raise InputError(
            f"--sizes is {sizes!r}; expected whole numbers such as 1000,10000,100000."
        ) from None
    sentences = list(reading_progress(read_sentences(text), quiet=quiet))
    points = []  # each text begins with the next smaller one, so that only its size changes
    if max(numbers) > len(sentences):
        remark(
            f"{text} has {counted(len(sentences), 'sentence')}, not {max(numbers):,}: all are used."
        )
    for part in nested_texts(sentences, numbers, seed):
        remark(f"Training {settings.kind} on {counted(len(part), 'sentence')}.", quiet=quiet)
        with training_progress(quiet=quiet) as progress:
            points.append(train_point(part, settings, folder, seed=seed, on_progress=progress))
    return points


def _show(evaluation: MinimalPairEvaluation, out: Path, *, quiet: bool) -> None:
    """Print what is not evaluated, then accuracy and ties: rows are models and people."""
    from contstim.evaluation.minimal_pairs.accuracy_report import with_intervals

    for refusal in evaluation.scoring.refusals:
        remark(f"{refusal.method}: {refusal.reason}")
    if evaluation.scoring.left_out:
        unread = len({omission.sentence for omission in evaluation.scoring.left_out})
        remark(
            f"Not read by every model: {counted(unread, 'sentence')}, see {out / 'left_out.csv'}."
        )
    table = results_table("", title="Accuracy on minimal pairs (95 % interval)")
    cells: dict[str, list[str]] = {}
    for scores in evaluation.scoring.by_method:
        accuracies = evaluation.accuracies[scores.method]
        judged = f"{scores.method}\n{counted(accuracies.pairs_of(), 'pair')}"
        for heading in (judged, "ties"):
            table.add_column(heading, justify="right", overflow="fold")
        # Two columns a method after that of names; a row that begins late has empty cells first.
        before = len(table.columns) - 3
        ties = dict(zip(scores.models, scores.ties.sum(axis=0), strict=True))
        means = with_intervals(accuracies.mean(), accuracies.interval())
        for name, cell in zip(accuracies.columns, means, strict=True):
            row = cells.setdefault(name, [])
            row += [""] * (before - len(row))
            row += [cell, f"{ties[name]:,}" if name in ties else ""]
    names = names_for_tables(list(cells))
    for name, row in cells.items():
        table.add_row(names[name], *row)
    print_table(table, names)
    remark_folder(out / "report.html", quiet=quiet)
