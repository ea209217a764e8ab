"""`contstim evaluate blimp`."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from contstim.cli.options import Folder, Loading, Models, Quiet, Seed, StoreInFolder
from contstim.cli.output import names_for_tables, print_table, remark, remark_folder, results_table
from contstim.cli.progress import reading_progress, scoring_progress, training_progress
from contstim.wording import counted

if TYPE_CHECKING:
    from contstim.evaluation.minimal_pairs.comparison import Comparisons
    from contstim.evaluation.minimal_pairs.curves import Learned, Learner
    from contstim.evaluation.minimal_pairs.evaluation import Evaluation, Known

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
    loading: Loading,
    store: StoreInFolder = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Ask models which sentence of a minimal pair is acceptable (Warstadt et al. 2020).

    Writes `report.md`, tables (CSV) and figures (PDF and PNG): accuracy by paradigm, phenomenon and
    overall, people and published models beside; ties; contrasts; accuracy against length,
    perplexity, log-probability and confidence. Every score is kept as soon as it is known: an
    interrupted run, started again, goes on where it stopped.

    Example: `contstim evaluate blimp --model kenlm:trigram.arpa --data blimp --out results`
    """
    from contstim.errors import InputError
    from contstim.evaluation.minimal_pairs.comparison import compare, compare_scores
    from contstim.evaluation.minimal_pairs.curves import Learner
    from contstim.evaluation.minimal_pairs.evaluation import evaluate_minimal_pairs
    from contstim.evaluation.minimal_pairs.outputs import write_minimal_pairs
    from contstim.evaluation.minimal_pairs.pairs import Method
    from contstim.evaluation.minimal_pairs.pairs import sample as draw
    from contstim.evaluation.minimal_pairs.reading import (
        Fields,
        pair_files,
        read_minimal_pairs,
    )
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
    _check_names(model or [], train if sizes else "")
    fields = Fields(good_column, bad_column, paradigm_column, phenomenon_column, pair_column)
    files = pair_files(data)
    pairs = read_minimal_pairs(files, fields)
    if sample:
        pairs = draw(pairs, sample, seed)
    known, beside = _known(data, people, published)
    models = loading.scorers(model)
    learned: list[Learned] = []
    if sizes and text:
        learner = Learner(train, order, epochs, loading.device)
        learned = _learned(sizes, text, learner, out / "models", seed=seed, quiet=quiet)
        models += [one.model for one in learned]
    if scores:
        compared = compare_scores(ScoreTable.read(scores), pairs)
    else:
        with Store(store or out / "contstim.sqlite") as kept:
            bars = partial(scoring_progress, quiet=quiet)
            methods = [one for one in Method if one in (method or Method)]
            compared = compare(models, pairs, methods, store=kept, bars=bars)
    if not compared.made:
        raise InputError(f"Nothing could be compared. {_why(compared)}")
    found = evaluate_minimal_pairs(compared, ties=ties, known=known, learned=learned, models=models)
    write_minimal_pairs(
        found,
        out,
        models=models,
        data=[*files, *beside, *filter(None, (scores, text))],
        pairs=len(pairs),
        sample=sample or "all",
        seed=seed,
    )
    _show(found, out, quiet=quiet)


def _check_names(models: list[str], trained: str) -> None:
    """Refuse names that models of learning curves have."""
    from contstim.errors import InputError
    from contstim.models.specifications import parse_models

    for one in parse_models(models):
        if trained and re.fullmatch(rf"{trained}-\d+", one.name):
            raise InputError(
                f"{one.name!r} is what --sizes calls a model that it trains. Choose another name "
                f"for {one.specification}."
            )


def _why(compared: Comparisons) -> str:
    reasons = [one.reason for one in compared.refusals] + [one.reason for one in compared.left_out]
    return reasons[0] if reasons else "No pair has the fields that the method compares."


def _known(data: Path, people: Path | None, published: Path | None) -> tuple[Known, list[Path]]:
    """What others found, and the files that tell."""
    from contstim.evaluation.minimal_pairs.evaluation import Known
    from contstim.evaluation.minimal_pairs.people import (
        read_human_agreement,
        read_published_accuracies,
    )

    answers = people or _if_there(data / _ANSWERS)
    summary = published or _if_there(data / _SUMMARY)
    known = Known(
        read_human_agreement(answers) if answers else {},
        read_published_accuracies(summary) if summary else {},
    )
    return known, [path for path in (answers, summary) if path]


def _if_there(path: Path) -> Path | None:
    return path if path.is_file() else None


def _learned(
    sizes: str, text: Path, learner: Learner, folder: Path, *, seed: int, quiet: bool
) -> list[Learned]:
    from contstim.corpus import read_sentences
    from contstim.errors import InputError
    from contstim.evaluation.minimal_pairs.curves import learn, nested

    try:
        numbers = [int(size) for size in sizes.split(",")]
    except ValueError:
        raise InputError(
            f"--sizes is {sizes!r}; expected whole numbers such as 1000,10000,100000."
        ) from None
    sentences = list(reading_progress(read_sentences(text), quiet=quiet))
    learned = []
    if max(numbers) > len(sentences):
        remark(
            f"{text} has {counted(len(sentences), 'sentence')}, not {max(numbers):,}: all are used."
        )
    for part in nested(sentences, numbers, seed):
        remark(f"Training {learner.kind} on {counted(len(part), 'sentence')}.", quiet=quiet)
        with training_progress(quiet=quiet) as progress:
            learned.append(learn(part, learner, folder, seed=seed, on_progress=progress))
    return learned


def _show(found: Evaluation, out: Path, *, quiet: bool) -> None:

    for one in found.compared.refusals:
        remark(f"{one.method}: {one.reason}")
    if found.compared.left_out:
        unread = len({one.sentence for one in found.compared.left_out})
        remark(
            f"Not read by every model: {counted(unread, 'sentence')}, see {out / 'left_out.csv'}."
        )
    _print(found)
    remark_folder(out / "report.md", quiet=quiet)


def _print(found: Evaluation) -> None:
    """Overall accuracy and ties by method, a row for each model and for people."""
    from contstim.evaluation.minimal_pairs.tables import cells as with_intervals

    table = results_table("", title="Accuracy on minimal pairs (95 % interval)")
    cells: dict[str, list[str]] = {}
    for comparison in found.compared.made:
        accuracies = found.found[comparison.method]
        judged = f"{comparison.method}\n{counted(accuracies.pairs_of(), 'pair')}"
        for heading in (judged, "ties"):
            table.add_column(heading, justify="right", overflow="fold")
        before = len(table.columns) - 3
        ties = dict(zip(comparison.models, comparison.ties.sum(axis=0), strict=True))
        shown = with_intervals(accuracies.mean(), accuracies.interval())
        for name, cell in zip(accuracies.columns, shown, strict=True):
            row = cells.setdefault(name, [])
            row += [""] * (before - len(row))
            row += [cell, f"{ties[name]:,}" if name in ties else ""]
    names = names_for_tables(list(cells))
    for name, row in cells.items():
        table.add_row(names[name], *row)
    print_table(table, names)
