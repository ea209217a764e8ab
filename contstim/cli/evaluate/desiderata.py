"""`contstim evaluate desiderata`."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.cli.options import Folder, Model, Quiet, Seed, Sentences, StoreInFolder
from contstim.cli.output import (
    names_for_tables,
    print_table,
    remark,
    results_table,
    tell_unknown_words,
)
from contstim.cli.progress import scoring_progress
from contstim.models.loading import Loading
from contstim.steps.execution import ScoringExecution
from contstim.wording import counted

if TYPE_CHECKING:
    from contstim.evaluation.desiderata.evaluation import Desiderata


def desiderata(
    *,
    model: Model,
    sentences: Sentences,
    frequencies: Annotated[
        Path,
        typer.Option(
            help="Where word frequencies come from: a text, a table with the columns word and "
            "count, or a trained model of words."
        ),
    ],
    out: Folder,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="[NAME=]MODEL",
            help="A causal model to correlate scores with; may be the NAME of a --model.",
        ),
    ] = None,
    sample: Annotated[int, typer.Option(min=0, help="Sentences to draw by chance; 0 for all.")] = 0,
    words: Annotated[
        int, typer.Option(min=1, help="Words of small letters to draw from the frequencies.")
    ] = 500,
    word_list: Annotated[
        Path | None, typer.Option(help="The words, one a line, instead of drawn ones.")
    ] = None,
    carrier: Annotated[
        list[str] | None,
        typer.Option(
            help="A sentence with '_' for the word; repeatable. By default three neutral "
            "ones and '_' alone."
        ),
    ] = None,
    execution: ScoringExecution,
    loading: Loading,
    store: StoreInFolder = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Ask of scoring rules what any measure of likelihood should do (Kauf & Ivanova 2023).

    Scores should fall with a sentence's length, rise with a word's frequency in a neutral sentence,
    agree with a causal model's, and not favour words that are cut into several tokens. Writes
    tables, scatter plots and a report. An interrupted run goes on where it stopped.

    Example: `contstim evaluate desiderata --model hf:runs/bert@pll-original --model
    hf:runs/bert@pll-word-l2r --reference hf:runs/gpt2 --sentences heldout.txt --frequencies
    train.txt --out desiderata`
    """
    from contstim.corpus import read_lines
    from contstim.evaluation.desiderata.carriers import CARRIERS, Carrier
    from contstim.evaluation.desiderata.desiderata_report import write_desiderata
    from contstim.evaluation.desiderata.evaluation import evaluate_desiderata
    from contstim.frequencies import read_frequencies
    from contstim.stimuli import read_stimuli
    from contstim.store import Store

    carriers = [Carrier(text) for text in carrier or CARRIERS]
    chosen = list(dict.fromkeys(read_stimuli(sentences)))
    if 0 < sample < len(chosen):
        # Rows are sorted, so that a sample stands in the order of the file.
        rows = sorted(random.Random(seed).sample(range(len(chosen)), sample))
        chosen = [chosen[row] for row in rows]
    counts = read_frequencies(frequencies)
    wanted = list(read_lines(word_list)) if word_list else counts.sample(words, seed=seed)
    specifications, compared = _with_reference(model, reference)
    # Every word is scored in every carrier.
    total = len(chosen) + len(carriers) * len(wanted)
    at_once = not execution.is_local
    with (
        execution.scorers(specifications, loading, partial(remark, quiet=quiet)) as loaded,
        Store(store or out / "contstim.sqlite") as opened,
        scoring_progress(total, quiet=quiet, together=at_once) as progress,
    ):
        tell_unknown_words(loaded, chosen, quiet=quiet)
        results = evaluate_desiderata(
            # A reference of its own is the last of those loaded, and is not evaluated
            loaded[: len(model)],
            chosen,
            wanted,
            counts,
            carriers=carriers,
            reference=None if compared is None else loaded[compared],
            store=opened,
            progress=progress,
        )
    data = [path for path in (sentences, frequencies, word_list) if path]
    write_desiderata(results, out, models=loaded, data=data, seed=seed, sample=sample)
    _show(results)
    sentences_lost = {omission.sentence for omission in results.left_out}
    for what, lost in (("sentence", sentences_lost), ("word", results.words_left_out)):
        if lost:
            number = counted(len(lost), what)
            remark(f"Left out: {number}; see {out / 'left_out.csv'}.", quiet=quiet)
    remark(f"{out}: tables, scatter plots and report.html.", quiet=quiet)


def _with_reference(model: list[str], reference: str | None) -> tuple[list[str], int | None]:
    """All models to load, and the place of the reference, which may be one of those evaluated."""
    from contstim.models.specifications import parse_model

    # A model that is evaluated and the reference as well is loaded once.
    if reference is None:
        return model, None
    for place, named in enumerate(map(parse_model, model)):
        if reference in (named.name, named.specification, named.text):
            return model, place
    return [*model, reference], len(model)


def _show(results: Desiderata) -> None:
    """Print the correlations (columns in _r), and what splitting a word is worth."""
    columns = results.table()
    measures = [name for name in columns if name.endswith("_r")]
    measures += ["split_words", "advantage_of_several"]
    names = names_for_tables(columns["model"])
    headings = [name.replace("_", "\n", 1).replace("_", " ") for name in measures]
    table = results_table("model", *headings, title="Desiderata of scoring rules")
    for row, name in enumerate(columns["model"]):
        table.add_row(names[name], *(f"{columns[column][row]:.3f}" for column in measures))
    print_table(table, names)
